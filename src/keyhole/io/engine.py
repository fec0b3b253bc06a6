"""A DuckDB that stays at home: no network, no extensions, no files but the ones it is given.

The data are confidential. The engine may open only the named files, never downloads or loads an extension, and
when a table outgrows its memory it spills to a directory that only this user can read and that is removed when the
engine is closed or forgotten, or the process is asked to end (SIGTERM, SIGHUP) during a query. Its own error
messages quote records, so none of them is ever passed on.
"""

import itertools
import shutil
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from keyhole.errors import UnreadableData
from keyhole.io.own_words import in_own_words
from keyhole.io.termination import removed_when_terminated

if TYPE_CHECKING:
    import duckdb

Result = TypeVar("Result")

MEMORY_LIMIT = "1GB"
"""What DuckDB may hold in memory before it spills; the rest of 2 GB is left to Python and the result."""


class Engine:
    """A private, in-memory DuckDB that reads the given files and nothing else.

    Parameters
    ----------
    source
        The name of the data in messages.
    files
        The only files that may be opened.
    """

    def __init__(self, source: str, files: Sequence[Path] = ()) -> None:
        import duckdb

        self.source = source
        self.turn = threading.RLock()
        """Held by the thread whose query runs: a connection answers one question at a time."""
        self._numbers, self._forgotten = itertools.count(), deque[str]()
        self._spill = spill = tempfile.mkdtemp(prefix="keyhole-")  # mode 0700
        self.connection: duckdb.DuckDBPyConnection = duckdb.connect(
            ":memory:",
            config={
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "allow_community_extensions": "false",
                "memory_limit": MEMORY_LIMIT,
                "temp_directory": spill,
            },
        )
        self._close = weakref.finalize(self, _close, self.connection, spill)
        # Both spellings: DuckDB compares the text it is given, and a name with a wildcard is given escaped.
        allowed = sorted({name for file in files for name in (str(file), literal_path(file))})
        self.connection.execute(f"SET allowed_paths = [{', '.join(quoted(name) for name in allowed)}]")

    def distrust_statistics(self) -> None:
        """Do not infer from the smallest and largest value of a column that it holds no NaN.

        The statistics of a Parquet file leave NaN out, and DuckDB concludes from them that ``isnan`` is false
        everywhere. It costs a fifth of the speed or more, so only files with floating-point columns pay for it.
        """
        self.connection.execute("SET disabled_optimizers = 'statistics_propagation'")

    def lock(self) -> None:
        """Close every way out, for good: only the given files can be opened, and no setting changed."""
        self.connection.execute("SET python_enable_replacements = false")
        self.connection.execute("SET enable_external_access = false")
        self.connection.execute("SET lock_configuration = true")

    def close(self) -> None:
        """Forget the data and remove what was spilled."""
        self._close()

    def register(self, arrays: Mapping[str, NDArray[Any]]) -> str:
        """Show arrays of one length as a table, and give its name; they are read where they are, not copied."""
        with self.turn:
            while self._forgotten:
                self.connection.unregister(self._forgotten.popleft())
            name = f"loaded{next(self._numbers)}"
            self.connection.register(name, dict(arrays))
        return name

    @property
    def forget(self) -> Callable[[str], None]:
        """Marks a registered table as no longer needed; it goes when the next one comes."""
        return self._forgotten.append

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a query that gives few."""
        return self._ask(lambda: self.connection.execute(query).fetchall())

    def arrays(self, query: str) -> list[NDArray[Any]]:
        """The columns of a query, which must hold no missing values."""
        columns = self._ask(lambda: self.connection.execute(query).fetchnumpy())
        return [np.asarray(column) for column in columns.values()]

    def _ask(self, question: Callable[[], Result]) -> Result:
        with self.turn, removed_when_terminated(self._spill):
            return in_own_words(question, lambda error: _without_records(error, self.source))


def quoted(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal_path(path: Path) -> str:
    """A path in which DuckDB sees no wildcards: a file called ``a[1].csv`` must not read ``a1.csv``."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))


def _close(connection: "duckdb.DuckDBPyConnection", spill: str) -> None:
    connection.close()
    shutil.rmtree(spill, ignore_errors=True)


def _without_records(error: Exception, source: str) -> BaseException | None:
    """That reading failed, without DuckDB's words, which may quote a line of the data."""
    import duckdb

    if isinstance(error, duckdb.InterruptException):
        return KeyboardInterrupt()
    if isinstance(error, RuntimeError) and "interrupted" in str(error).lower():
        return KeyboardInterrupt()  # what DuckDB makes of Ctrl-C inside a query
    if isinstance(error, duckdb.OutOfMemoryException):
        return UnreadableData(
            f"Tabulating {source} needs more memory or temporary disk space than there is. "
            "Use fewer keys, recode keys with very many levels, or point TMPDIR to a larger private disk."
        )
    if isinstance(error, duckdb.Error):
        return UnreadableData(
            f"{source} could not be read ({type(error).__name__}): it may be damaged, or have changed meanwhile."
        )
    return None
