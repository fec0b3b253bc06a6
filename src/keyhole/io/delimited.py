"""Delimited text: the encoding and delimiter of a file, and its records, read fast or with care.

DuckDB reads plain UTF-8 files in place and in parallel. What it cannot read (another encoding, a mixture of line
endings, quotes in odd places) is read by Python's ``csv`` module, record by record, which also finds out what
exactly is wrong with a file that neither can read. Every value is a label: ``01`` stays ``01``.
"""

import codecs
import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from keyhole.errors import UnreadableData
from keyhole.io.coded import CodedColumn, Coder
from keyhole.io.engine import Engine, literal_path, quoted
from keyhole.io.headers import check_header
from keyhole.io.loaded import LoadedColumns
from keyhole.io.microdata import Opened, Selection, with_weights
from keyhole.io.own_words import in_own_words
from keyhole.io.typed import text_column

DELIMITERS = (",", ";", "\t", "|")
SAMPLE = 1 << 18
"""How many characters are looked at to tell the delimiter."""
BLOCK = 1 << 20
SPACED_QUOTE = re.compile(rb'[,;|]\s*[ \t]"|[\t\r\n][ \f\v]*[ \t]"|"[ \t][ \f\v]*[\t\r\n]|"[ \t]\s*(?:[,;|]|\Z)')
"""Space between a delimiter and a quote. Tabs are both, and may be millions in a row: each is looked at once."""
BINARY = 0.01
"""A text in which more of the first characters than this are control characters is not a text."""


@dataclass(frozen=True)
class Dialect:
    """How the text of one file is written.

    Attributes
    ----------
    careful
        Whether DuckDB may misread it: there may be spaces between a delimiter and a quote, which DuckDB passes
        over and others do not, or there is a line break in the header.
    """

    path: Path
    source: str
    encoding: str
    delimiter: str
    header: tuple[str, ...]
    careful: bool = False

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """The line on which each record ends and its fields; blank lines are passed over."""
        with _text(self.path, self.encoding) as text:
            lines = csv.reader(text, delimiter=self.delimiter, strict=True)
            next(lines)
            for fields in lines:
                if fields or len(self.header) == 1:
                    yield lines.line_num, fields or [""]


@dataclass(frozen=True)
class DelimitedFile:
    """A UTF-8 file that DuckDB reads in place."""

    relation: str
    columns: tuple[str, ...]
    records: int

    def select(self, names: Sequence[str], engine: Engine, weights: str | None = None) -> Selection:
        """The named columns, as text."""
        place = {name: place for place, name in enumerate(self.columns)}
        chosen = with_weights(names, weights)
        return Selection(self.relation, {name: text_column(f"c{place[name]}") for name in chosen})


def open_delimited(path: Path, source: str, engine: Engine) -> Opened:
    """Open a delimited file after one pass over it that finds every malformed record."""
    dialect = find_dialect(path, source)
    opened = _open_in_place(dialect, engine) or _open_with_care(dialect)
    if not opened.records:
        raise UnreadableData(f"{source} has a header of {len(opened.columns)} columns and no records.")
    return opened


def find_dialect(path: Path, source: str) -> Dialect:
    """Find the encoding, the delimiter and the names of the columns."""
    try:
        encoding, spaced_quotes = _find_encoding(path, source)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise UnreadableData(f"{source} is named as a gzip file but cannot be decompressed.") from None
    invalid = UnreadableData(f"{source} is not valid {encoding}, which its first bytes promise.")
    sample = in_own_words(
        lambda: _sample(path, encoding), lambda error: invalid if isinstance(error, UnicodeError) else None
    )
    if not sample.strip():
        raise UnreadableData(f"{source} is empty: a header line and at least one record were expected.")
    strange = sum(1 for letter in sample if ord(letter) < 32 and letter not in "\t\n\r\f\v")
    if strange > BINARY * len(sample):
        raise UnreadableData(_binary(source))
    delimiter = _find_delimiter(sample)
    names = in_own_words(
        lambda: _first_fields(path, encoding, delimiter), lambda error: _told_of_header(source, encoding, error)
    )
    header = _header(names, source)
    check_header(names, _records(sample, delimiter), source)
    broken = any(letter in name for name in names for letter in "\r\n")
    return Dialect(path, source, encoding, delimiter, header, careful=spaced_quotes or broken)


def _open_in_place(dialect: Dialect, engine: Engine) -> Opened | None:
    """The file through DuckDB, or None if it will not have it."""
    if dialect.encoding not in ("utf-8", "utf-8-sig") or dialect.careful:
        return None
    if len(dialect.header) == 1:  # a blank line is then a record, and DuckDB sees two in one that ends in CR LF
        return None
    columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(dialect.header)))
    relation = (
        f"read_csv({quoted(literal_path(dialect.path))}, auto_detect=false, header=true, strict_mode=true, "
        f"null_padding=false, delim={quoted(dialect.delimiter)}, quote='\"', escape='\"', columns={{{columns}}})"
    )
    try:
        ((records,),) = engine.rows(f"SELECT count(*) FROM {relation}")
    except UnreadableData:
        return None
    if not records:  # or DuckDB found other lines than there are
        return None
    # DuckDB passes over an empty field too many at the end of a record.
    return None if _may_end_too_late(dialect) else DelimitedFile(relation, dialect.header, records)


def _may_end_too_late(dialect: Dialect) -> bool:
    """Whether a line that ends in a delimiter has a field too many, or quotes that keep it from being judged."""
    delimiter, width = dialect.delimiter.encode(), len(dialect.header)

    def is_late(line: bytes) -> bool:
        return line.endswith(delimiter) and (b'"' in line or line.count(delimiter) >= width)

    def counts_out(lines: bytes) -> bool:
        # No record is too short, or DuckDB had refused it: with the right sum, none is too long either.
        ends = max(lines.count(b"\n"), lines.count(b"\r"))
        return b'"' not in lines and lines.count(delimiter) == ends * (width - 1)

    rest = b""
    with _bytes(dialect.path) as file:
        while block := file.read(BLOCK):
            text = rest + block
            whole = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
            lines, rest = text[:whole], text[whole:]
            open_ended = delimiter + b"\n" in lines or delimiter + b"\r" in lines
            if open_ended and not counts_out(lines) and any(map(is_late, lines.splitlines())):
                return True
    return is_late(rest)


def _open_with_care(dialect: Dialect) -> Opened:
    """The file through the csv module, every record checked."""
    width = len(dialect.header)

    def count() -> tuple[int, int, str]:
        records, ragged, first = 0, 0, ""
        for line, fields in dialect.records():
            records += 1
            if len(fields) != width:
                ragged += 1
                first = first or f"line {line:,} has {len(fields)}"
        return records, ragged, first

    records, ragged, first = in_own_words(count, lambda error: _told(dialect, error))
    if ragged:
        raise UnreadableData(
            f"{dialect.source} has {width} columns, but {ragged:,} of {records:,} records have another number of "
            f"fields (first: {first}). Check the delimiter ({_spoken(dialect.delimiter)} here) and the quotes."
        )

    def fetch(names: Sequence[str]) -> Mapping[str, CodedColumn]:
        place = {name: place for place, name in enumerate(dialect.header)}
        coders = [(place[name], Coder()) for name in names]
        block: list[list[str]] = []
        for _, fields in dialect.records():
            block.append(fields)
            if len(block) == 50_000:
                _add(coders, block)
                block = []
        _add(coders, block)
        return {name: coder.finish() for name, (_, coder) in zip(names, coders, strict=True)}

    def load(names: Sequence[str]) -> Mapping[str, CodedColumn]:
        return in_own_words(lambda: fetch(names), lambda error: _told(dialect, error))

    return LoadedColumns(dialect.source, dialect.header, records, load)


def _add(coders: Sequence[tuple[int, Coder]], block: list[list[str]]) -> None:
    for place, coder in coders:
        coder.add([fields[place] for fields in block])


def _told(dialect: Dialect, error: Exception) -> UnreadableData | None:
    if isinstance(error, csv.Error):
        return UnreadableData(
            f"{dialect.source} has a quoted field that is not closed, closed twice, or longer than "
            f"{csv.field_size_limit():,} characters. Write a quote inside a quoted field twice."
        )
    if isinstance(error, UnicodeError):
        return UnreadableData(f"{dialect.source} is not valid {dialect.encoding} throughout.")
    return None


def _sample(path: Path, encoding: str) -> str:
    with _text(path, encoding) as text:
        return text.read(SAMPLE)


def _first_fields(path: Path, encoding: str, delimiter: str) -> list[str]:
    with _text(path, encoding) as text:
        return next(csv.reader(text, delimiter=delimiter, strict=True))


def _told_of_header(source: str, encoding: str, error: Exception) -> UnreadableData | None:
    if isinstance(error, csv.Error):
        return UnreadableData(f"The header of {source} has a quoted name that is not closed.")
    return UnreadableData(f"{source} is not valid {encoding}.") if isinstance(error, UnicodeError) else None


def _header(names: Sequence[str], source: str) -> tuple[str, ...]:
    if not names:
        raise UnreadableData(f"{source} begins with a blank line; a header with column names was expected.")
    # Spreadsheets and pandas leave the name of an index column out.
    named = [name.strip() or f"column {place}" for place, name in enumerate(names, 1)]
    twice = sum(times > 1 for times in Counter(named).values())
    if twice:
        raise UnreadableData(
            f"{source} has {twice} column names that occur more than once in its header: rename them, "
            "or add a header line if the file has none."
        )
    return tuple(named)


def _find_encoding(path: Path, source: str) -> tuple[str, bool]:
    """The first encoding that fits the whole file, and whether its quotes may have spaces around them.

    A single-byte encoding fits anything that is text at all.
    """
    with _bytes(path) as file:
        start = file.read(4)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16", False
    if len(start) >= 2 and 0 in start[:2] and start[:2] != b"\0\0":
        return "utf-16-le" if start[1] == 0 else "utf-16-be", False
    utf8 = codecs.getincrementaldecoder("utf-8")()
    fits, undefined, spaced, tail = True, False, False, b"\n"
    with _bytes(path) as file:
        while block := file.read(BLOCK):
            if b"\0" in block:
                raise UnreadableData(_binary(source))
            undefined = undefined or any(byte in block for byte in b"\x81\x8d\x8f\x90\x9d")
            spaced = spaced or _has_spaced_quotes(tail + block)
            tail = block[-1024:]
            try:
                utf8.decode(block)
            except UnicodeDecodeError:
                fits = False
                utf8.reset()
    try:
        utf8.decode(b"", final=True)
    except UnicodeDecodeError:
        fits = False
    if fits:
        return "utf-8-sig" if start.startswith(codecs.BOM_UTF8) else "utf-8", spaced
    return "latin-1" if undefined else "cp1252", spaced


def _has_spaced_quotes(block: bytes) -> bool:
    # The plain search is fast and nearly always enough.
    return (b' "' in block or b'" ' in block) and SPACED_QUOTE.search(block) is not None


def _find_delimiter(sample: str) -> str:
    """The delimiter that cuts most records of the sample into as many fields, more than one, as the header."""
    best, choice = (0.0, 0), ","
    for delimiter in DELIMITERS:
        widths = _widths(sample, delimiter)
        if widths[0] > 1:
            score = (sum(width == widths[0] for width in widths) / len(widths), widths[0])
            if score > best:
                best, choice = score, delimiter
    return choice


def _widths(sample: str, delimiter: str) -> list[int]:
    """The number of fields of each record of the sample but the last, which may be cut off."""
    widths = [len(fields) for fields in _records(sample, delimiter)]
    return (widths[:-1] if len(sample) == SAMPLE and len(widths) > 1 else widths) or [0]


def _records(sample: str, delimiter: str) -> Iterator[list[str]]:
    records = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
    with suppress(csv.Error):  # a field too long for the csv module: judge by the records before it
        yield from (fields for fields in records if fields)


@contextmanager
def _bytes(path: Path) -> Iterator[IO[bytes]]:
    with path.open("rb") as file:
        if path.suffix.lower() != ".gz":
            yield file
            return
        with gzip.GzipFile(fileobj=file) as unzipped:
            yield cast(IO[bytes], unzipped)


@contextmanager
def _text(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    with _bytes(path) as file, io.TextIOWrapper(file, encoding=encoding, newline="") as text:
        yield text


def _binary(source: str) -> str:
    return f"{source} is not a text file: it holds control characters. Expected delimited text with a header line."


def _spoken(delimiter: str) -> str:
    return {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a vertical bar"}[delimiter]
