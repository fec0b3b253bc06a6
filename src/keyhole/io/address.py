"""What of a database address may be shown: scheme, host and database, when it is certain which they are."""

import re
from pathlib import Path
from urllib.parse import unquote

LOCAL = ("sqlite", "duckdb")
"""Schemes whose addresses are paths."""

HIDDEN = "(address hidden)"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_PLACE = re.compile(
    r"(?:[^@/?#\s]*@)?(?P<host>[A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::\d+)?(?P<database>/[A-Za-z0-9_.-]*)?(?:[?#].*)?"
)
_FILE = re.compile(r"(?P<path>/[^@?#]*)(?:[?#].*)?")


def scheme_of(text: str) -> str | None:
    """The scheme of an address, in lower case; None if the text is not an address.

    Examples
    --------
    >>> scheme_of("PostgreSQL://db/census"), scheme_of("//[abc/survey.csv")
    ('postgresql', None)
    """
    found = _SCHEME.fullmatch(text)
    return found[1].lower() if found else None


def shown_address(url: str) -> str:
    """An address without user, password, port and options; hidden if a password might be part of what is left.

    Examples
    --------
    >>> shown_address("postgresql://ann:hunter2@db/census?sslpassword=x")
    'postgresql://db/census'
    >>> shown_address("postgresql://ann:hun/ter2@db/census")
    'postgresql://(address hidden)'
    """
    found = _SCHEME.fullmatch(url)
    if found is None:
        return HIDDEN
    scheme, rest = found[1].lower(), found[2]
    if scheme in LOCAL:
        file = _FILE.fullmatch(rest)
        return f"{scheme}://{unquote(file['path']) if file else HIDDEN}"
    place = _PLACE.fullmatch(rest)
    # A second @, or one behind the host, may belong to a password that was not encoded.
    if place is None or rest.count("@") > rest[: place.start("host")].count("@"):
        return f"{scheme}://{HIDDEN}"
    return f"{scheme}://{place['host']}{place['database'] or ''}"


def local_path(url: str) -> Path:
    """The file of a ``sqlite:///`` or ``duckdb:///`` address: a fourth slash begins an absolute path.

    Examples
    --------
    >>> local_path("sqlite:////data/a%20b.sqlite?mode=ro").as_posix()
    '/data/a b.sqlite'
    """
    path = re.split("[?#]", url.partition("://")[2], maxsplit=1)[0]
    return Path(unquote(path.partition("/")[2]))
