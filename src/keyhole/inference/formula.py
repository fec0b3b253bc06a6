"""Formulas of hierarchical log-linear models: from ``age*sex + region`` to generators and back.

A hierarchical model contains, with an interaction, everything inside it: ``age*sex`` stands for both main effects
and their interaction. Such a model is told by its generators, the interactions inside no other one. Every key has
at least a main effect, so keys that a formula leaves out enter as main effects.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

from keyhole.errors import UnknownKeyVariable, UnknownModel
from keyhole.keys.columns import suggestion

Generators: TypeAlias = tuple[tuple[int, ...], ...]
"""Maximal sets of positions of keys, each in rising order, sorted among themselves; every key is in one."""

PRESETS = {"independence": 1, "main": 1, "two-way": 2, "three-way": 3}
"""Words for all interactions of so many keys."""

PLAIN = re.compile(r"[^\s+*`\"]+")
TOKEN = re.compile(
    rf"\s*(?:(?P<quoted>`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\")|(?P<sign>[+*])|(?P<plain>{PLAIN.pattern}))"
)


def read_generators(text: str, names: Sequence[str]) -> Generators:
    """The generators of a formula over the keys of these names.

    Terms are joined by ``+``, the keys of a term by ``*``. A name with a space, ``+`` or ``*`` in it, or that is
    also the word of a preset, stands in backticks or double quotes; a quote within it is doubled. The presets
    ``independence`` (or ``main``), ``two-way`` and ``three-way`` are terms too.

    Raises
    ------
    UnknownKeyVariable
        A name that is not a key.
    UnknownModel
        A formula that cannot be read.

    Examples
    --------
    >>> read_generators("age*sex + sex + region", ["age", "sex", "region", "job"])
    ((0, 1), (2,), (3,))
    >>> read_generators("two-way", ["age", "sex", "region"])
    ((0, 1), (0, 2), (1, 2))
    """
    position = {name: key for key, name in enumerate(names)}
    sets: list[Collection[int]] = [(key,) for key in range(len(names))]
    for term in _terms(text):
        first = term[0]
        if len(term) == 1 and not first.quoted and first.word in PRESETS:
            sets += preset(PRESETS[first.word], len(names))
            continue
        for name in term:
            if name.word not in position:
                raise UnknownKeyVariable(
                    f"The log-linear formula names {name.word!r}, which is not a key of the table. "
                    f"{suggestion(name.word, names)}"
                )
        if len({name.word for name in term}) < len(term):
            raise _unreadable(text, f"{'*'.join(name.word for name in term)} names a key twice")
        sets.append([position[name.word] for name in term])
    return maximal(sets)


def preset(order: int, keys: int) -> Generators:
    """All interactions of ``order`` keys, or of all keys where there are not so many.

    Examples
    --------
    >>> preset(2, 3), preset(3, 2)
    (((0, 1), (0, 2), (1, 2)), ((0, 1),))
    """
    return tuple(combinations(range(keys), min(order, keys)))


def maximal(sets: Iterable[Collection[int]]) -> Generators:
    """The sets that are inside no other one, in the order of generators."""
    distinct = {frozenset(keys) for keys in sets}
    kept = [keys for keys in distinct if not any(keys < other for other in distinct)]
    return tuple(sorted(tuple(sorted(keys)) for keys in kept))


def with_term(generators: Generators, term: Collection[int]) -> Generators:
    """The model with one interaction more, and with everything inside that interaction.

    Examples
    --------
    >>> with_term(((0, 1), (2,)), (1, 2))
    ((0, 1), (1, 2))
    """
    return maximal([*generators, term])


def in_words(generators: Generators, names: Sequence[str]) -> str:
    """A formula that reads back as these generators, as short as a preset allows.

    Examples
    --------
    >>> in_words(((0, 1), (2,)), ["age", "sex", "place of birth"])
    'age*sex + `place of birth`'
    >>> in_words(((0, 1), (0, 2), (1, 2)), ["age", "sex", "region"])
    'two-way'
    """
    for word, order in PRESETS.items():
        # A model of all keys at once is told by its keys: no preset says as much.
        if order < len(names) and generators == preset(order, len(names)):
            return word
    return " + ".join("*".join(_quoted(names[key]) for key in keys) for keys in generators)


def _quoted(name: str) -> str:
    if PLAIN.fullmatch(name) and name not in PRESETS:
        return name
    return "`" + name.replace("`", "``") + "`"


class _Name(NamedTuple):
    word: str
    quoted: bool


def _terms(text: str) -> list[list[_Name]]:
    """The names of each term, as they are written."""
    terms: list[list[_Name]] = [[]]
    place, wanted, rest = 0, True, text.rstrip()
    while place < len(rest):
        token = TOKEN.match(rest, place)
        if token is None:
            raise _unreadable(text, "a quote is not closed")
        sign, plain, quoted = token["sign"], token["plain"], token["quoted"]
        if wanted == (sign is not None):
            found = f"at {sign or plain or quoted} (character {token.end()})"
            raise _unreadable(text, f"{found} there should be " + ("a key" if wanted else "+ or *"))
        if sign == "+":
            terms.append([])
        elif quoted is not None:
            terms[-1].append(_Name(quoted[1:-1].replace(quoted[0] * 2, quoted[0]), True))
        elif plain is not None:
            terms[-1].append(_Name(plain, False))
        place, wanted = token.end(), sign is not None
    if wanted:
        raise _unreadable(text, "it ends where there should be a key" if rest else "it is empty")
    return terms


def _unreadable(text: str, why: str) -> UnknownModel:
    return UnknownModel(
        f"The log-linear formula {text!r} cannot be read: {why}. Write terms such as age*sex + region, names with "
        f"spaces in `backticks`, or one of {', '.join(PRESETS)}."
    )
