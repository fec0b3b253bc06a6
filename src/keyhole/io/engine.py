"""A DuckDB that stays at home: no network, no extensions, no files but the ones it is given.

The data are confidential. The engine may open only the named files, never downloads or loads an extension, and
when a table outgrows its memory it spills to a directory that only this user can read and that is removed when the
engine is closed or forgotten. Its own error messages quote records, so none of them is ever passed on.
"""

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keyhole.errors import UnreadableData

if TYPE_CHECKING:
    import duckdb

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
        spill = tempfile.mkdtemp(prefix="keyhole-")  # mode 0700
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

    def register(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Show arrays of one length as a table; they are read where they are, not copied."""
        self.connection.register(name, dict(arrays))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a query that gives few."""
        with _without_records(self.source):
            return self.connection.execute(query).fetchall()

    def arrays(self, query: str) -> list[NDArray[Any]]:
        """The columns of a query, which must hold no missing values."""
        with _without_records(self.source):
            columns = self.connection.execute(query).fetchnumpy()
        return [np.asarray(column) for column in columns.values()]


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


@contextmanager
def _without_records(source: str) -> Iterator[None]:
    """Say that reading failed without DuckDB's words, which may quote a line of the data."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except RuntimeError as error:
        if "interrupted" in str(error).lower():  # what DuckDB makes of Ctrl-C inside a query
            raise KeyboardInterrupt from None
        raise
    except duckdb.OutOfMemoryException:
        raise UnreadableData(
            f"Tabulating {source} needs more memory or temporary disk space than there is. "
            "Use fewer keys, recode keys with very many levels, or point TMPDIR to a larger private disk."
        ) from None
    except duckdb.Error as error:
        raise UnreadableData(
            f"{source} could not be read ({type(error).__name__}): it may be damaged, or have changed meanwhile."
        ) from None
