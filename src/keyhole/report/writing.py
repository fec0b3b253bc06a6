"""Files that only their owner can read, and that are there whole or not at all."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from keyhole.errors import InputError

OWNER_ONLY_FILE = 0o600
OWNER_ONLY_DIRECTORY = 0o700


@contextmanager
def private_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new empty file, beside ``path``, that takes its place when the block ends well.

    The file is readable by its owner only from the moment it exists. Whoever opens ``path`` sees the old
    content or the new one, never a part; after an error the old content is still there and nothing else is.
    A symbolic link at ``path`` stays a link: the file it points to is replaced.

    Raises
    ------
    InputError
        If the directory does not exist or cannot be written to, or ``path`` is a directory.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:100]}.{token_hex(8)}.tmp")
    if os.path.isdir(target):
        raise InputError(f"Cannot write {str(path)!r}: it is a directory. Give the name of a file.")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY_FILE))
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        # The mode given to open() is cut by the umask, which may deny even the owner.
        os.chmod(temporary, OWNER_ONLY_FILE)
        yield temporary
        os.chmod(temporary, OWNER_ONLY_FILE)
        _flush(temporary)
        os.replace(temporary, target)
        _flush(target.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def private_files(contents: Mapping[Path, str | bytes]) -> Iterator[None]:
    """Texts (as UTF-8) or bytes, each like a `private_file`, that take their places when the block ends well."""
    with ExitStack() as unfinished:
        for path, content in contents.items():
            data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
            unfinished.enter_context(private_file(path)).write_bytes(data)
        yield


def private_folder(path: str | os.PathLike[str]) -> Path:
    """The directory ``path``, made (with its parents) for its owner only where it does not exist yet.

    A directory that is already there keeps its permissions.
    """
    wanted = Path(path)
    missing = [place for place in (wanted, *wanted.parents) if not place.exists()]
    try:
        for place in reversed(missing):
            place.mkdir(mode=OWNER_ONLY_DIRECTORY, exist_ok=True)
            os.chmod(place, OWNER_ONLY_DIRECTORY)
    except OSError as error:
        raise _unwritable(path, error) from error
    if not wanted.is_dir():
        raise InputError(f"Cannot write into {str(path)!r}: it is a file, not a directory.")
    return wanted


def _flush(path: Path) -> None:
    # Some file systems do not let a directory be opened or synchronised; the rename itself has happened.
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _unwritable(path: str | os.PathLike[str], error: OSError) -> InputError:
    if isinstance(error, FileNotFoundError):
        why = "its directory does not exist. Make the directory first, or name another place"
    elif isinstance(error, NotADirectoryError):
        why = "a part of this path is a file, not a directory"
    elif isinstance(error, PermissionError):
        why = "you may not write there. Choose a directory that you own"
    else:
        why = (error.strerror or "the system refused").lower()
    return InputError(f"Cannot write {os.fspath(path)!r}: {why}.")
