"""Rule files: YAML whose scalars stay as they are written, read into checked objects or refused in one line."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from keyhole.errors import InvalidRules
from keyhole.io.own_words import in_own_words

LARGEST = 16 * 2**20
"""Rule files are written by hand; a larger one is a mistake."""


SCHEMA_WORDS = ("groups", "bands", "labels", "top", "bottom")
"""Names that a rule file gives to its parts, which messages may repeat."""


class _PlainLoader(yaml.SafeLoader):
    """YAML in which every scalar is text: ``01``, ``1.0``, ``yes`` and ``null`` are labels, not values."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            # A few lines of aliases can stand for billions of labels.
            raise yaml.YAMLError("aliases (*name) are not allowed")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _refused("a name must be plain text", key)
            if key.value in seen:
                raise _refused("a name is given twice", key)
            seen.add(key.value)
        return super().construct_mapping(node, deep=True)


def _refused(problem: str, node: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def _text(loader: _PlainLoader, node: Any) -> str:
    return str(loader.construct_scalar(node))


def _untagged(loader: _PlainLoader, node: Any) -> Any:
    raise _refused("tags (!name) are not allowed", node)


_PlainLoader.yaml_constructors = {
    "tag:yaml.org,2002:str": _text,
    "tag:yaml.org,2002:seq": yaml.SafeLoader.construct_yaml_seq,
    "tag:yaml.org,2002:map": yaml.SafeLoader.construct_yaml_map,
    None: _untagged,
}


def read_rules(path: str | Path, kind: Any, what: str) -> Any:
    """Read a rule file into a checked object.

    Parameters
    ----------
    kind
        The type the rules must have, for pydantic.
    what
        The kind of file in messages: ``"recode file"``.
    """
    return checked(read_plain(path, what), kind, f"{what} {Path(path).name}")


def parse_rules(text: str, kind: Any, what: str) -> Any:
    """Rules from YAML text; see :func:`read_rules`."""
    return checked(parse_plain(text, what), kind, what)


def read_plain(path: str | Path, what: str) -> object:
    """The lists, mappings and texts of a YAML file."""
    path = Path(path)

    def tell(error: Exception) -> InvalidRules | None:
        if isinstance(error, UnicodeDecodeError):
            return InvalidRules(f"The {what} {path.name} is not a UTF-8 text file.")
        if isinstance(error, OSError | ValueError):  # ValueError: a path with a null character
            return InvalidRules(f"The {what} {str(path)!r} is not there or cannot be opened.")
        return None

    if in_own_words(path.stat, tell).st_size > LARGEST:
        raise InvalidRules(f"The {what} {path.name} is too large, above {LARGEST // 2**20} MB: the right file?")
    return parse_plain(in_own_words(lambda: path.read_text(encoding="utf-8-sig"), tell), f"{what} {path.name}")


def parse_plain(text: str, what: str) -> object:
    """The lists, mappings and texts of a YAML text; ``what`` is what messages call it."""

    def tell(error: Exception) -> InvalidRules | None:
        if isinstance(error, yaml.MarkedYAMLError):
            mark = error.problem_mark or error.context_mark
            where = "" if mark is None else f", line {mark.line + 1}"
            return InvalidRules(f"The {what} is not valid YAML{where}: {_harmless(error.problem)}.")
        if isinstance(error, yaml.YAMLError | ValueError | OverflowError):
            return InvalidRules(f"The {what} is not valid YAML: it holds aliases or forbidden characters.")
        return InvalidRules(f"The {what} is nested too deeply.") if isinstance(error, RecursionError) else None

    content: object = in_own_words(lambda: yaml.load(text, _PlainLoader), tell)
    return content


def checked(content: object, kind: Any, what: str) -> Any:
    """Plain content as an object of type ``kind``, or one line that says what does not fit."""

    def tell(error: Exception) -> InvalidRules | None:
        if isinstance(error, ValidationError):
            first, *others = error.errors(include_url=False, include_input=False)
            more = f" ({len(others)} more)" if others else ""
            message = _one_line(first["msg"].removeprefix("Value error, "))
            return InvalidRules(f"The {what} cannot be used: at {_where(first['loc'], content)}: {message}{more}.")
        return InvalidRules(f"The {what} is nested too deeply.") if isinstance(error, RecursionError) else None

    return in_own_words(lambda: TypeAdapter(kind).validate_python(content), tell)


def _where(place: Sequence[int | str], content: object) -> str:
    """A place in a rule file, without the names in it: the file may be data, given by mistake."""
    if not place:
        return "the whole file"
    entry = list(content).index(place[0]) + 1 if isinstance(content, dict) and place[0] in content else None
    inner = [str(part) if isinstance(part, int) or part in SCHEMA_WORDS else "an entry" for part in place[1:]]
    return " / ".join(["an entry" if entry is None else f"entry {entry}", *inner])


def _harmless(problem: str | None) -> str:
    """What the YAML reader says, without the words it quotes: the file may be data, given by mistake."""
    return re.sub(
        r"(['\"])(.*?)\1",
        lambda quoted: quoted[0] if re.fullmatch(r"<[a-z ]+>|\W", quoted[2]) else "...",
        _one_line(problem),
    )


def _one_line(text: str | None) -> str:
    words = " ".join("".join(letter if letter.isprintable() else " " for letter in text or "not readable").split())
    return words.rstrip(".") if len(words) <= 200 else words[:200] + "..."
