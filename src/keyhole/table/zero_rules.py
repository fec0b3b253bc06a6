"""The structural-zero rule file: YAML in, rules out, or one line that says what is wrong.

This module is apart from the meaning of the rules because it alone needs PyYAML and pydantic, which take a
moment to import.
"""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from keyhole.errors import InvalidRules
from keyhole.io.own_words import in_own_words
from keyhole.keys.rules import parse_plain, read_plain
from keyhole.table.rule_meaning import Labels, ZeroRule, ZeroRules


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_Names = Annotated[list[str], BeforeValidator(_as_list), Field(strict=True)]


class _AnyBut(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    labels: Annotated[_Names, Field(alias="not")]


_File = TypeAdapter(list[dict[str, _Names | _AnyBut]])


def read_zero_rules(path: str | Path) -> ZeroRules:
    """The rules of a file.

    Raises
    ------
    InvalidRules
        A file that cannot be read, or is not a list of rules.
    """
    return zero_rules_from(read_plain(path, "rule file"), Path(path).name)


def parse_zero_rules(text: str, source: str = "the rule file") -> ZeroRules:
    """The rules of a YAML text; ``source`` is what messages call it.

    Examples
    --------
    >>> rules = parse_zero_rules("- {AGE: 0-14, MARITAL: {not: [single]}}")
    >>> rules.rules[0].conditions[1]
    Labels(key='MARITAL', labels=('single',), negated=True)
    """
    return zero_rules_from(parse_plain(text, "rule file"), source)


def zero_rules_from(content: object, source: str = "the rule file") -> ZeroRules:
    """The rules of plain Python lists and mappings of text, as YAML or JSON would give them.

    Examples
    --------
    >>> len(zero_rules_from([{"AGE": ["0-14"], "MARITAL": "married"}, {"SEX": {"not": ["f"]}, "PREGNANT": "yes"}]))
    2
    """
    if content is None or content == "":
        raise InvalidRules(f"{source} is empty: expected a list of rules.")
    if not isinstance(content, list):
        raise InvalidRules(f"{source} is not a list of rules: each rule starts with '- ' on a line of its own.")
    if not content:
        raise InvalidRules(f"{source} holds no rules.")

    def tell(error: Exception) -> InvalidRules | None:
        if isinstance(error, ValidationError):
            return InvalidRules(_first_problem(error, source))
        nested = isinstance(error, RecursionError)
        return InvalidRules(f"{source} is not a rule file: it is nested too deeply.") if nested else None

    parsed = in_own_words(lambda: _File.validate_python(content), tell)
    rules = tuple(_rule(number, entries, source) for number, entries in enumerate(parsed, start=1))
    return ZeroRules(rules, source)


def _rule(number: int, entries: dict[str, list[str] | _AnyBut], source: str) -> ZeroRule:
    if not entries:
        raise InvalidRules(f"Rule {number} of {source} names no key: it would declare every cell impossible.")
    for name, entry in entries.items():
        if not (entry.labels if isinstance(entry, _AnyBut) else entry):
            raise InvalidRules(
                f"Rule {number} of {source}: {_brief(name)} has an empty list. Name labels, or leave the key out."
            )
    return ZeroRule(
        number,
        tuple(
            Labels(name, tuple(entry.labels), negated=True)
            if isinstance(entry, _AnyBut)
            else Labels(name, tuple(entry))
            for name, entry in entries.items()
        ),
    )


def _first_problem(error: ValidationError, source: str) -> str:
    place = error.errors(include_url=False, include_context=False, include_input=False)[0]["loc"]
    rule = f"Rule {int(place[0]) + 1} of {source}"
    if len(place) == 1:
        return f"{rule} is not a mapping of keys to labels, such as {{AGE: 0-14, MARITAL: [married, widowed]}}."
    return f"{rule}: {_brief(str(place[1]))} must be a label, a list of labels, or {{not: [labels]}}."


def _brief(name: str) -> str:
    name = " ".join(name.split())
    return name if len(name) <= 40 else f"{name[:40]}..."
