"""Formulas: what they mean, that they read back, and what is refused."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keyhole.errors import UnknownKeyVariable, UnknownModel
from keyhole.inference.formula import Generators, in_words, maximal, preset, read_generators, with_term

NAMES = ["age", "sex", "region", "job"]
QUICK = settings(deadline=None, max_examples=40)
FEW = settings(deadline=None, max_examples=20)


@st.composite
def models(draw: st.DrawFn, keys: int = 6) -> Generators:
    """Generators of a random hierarchical model of one to ``keys`` keys."""
    number = draw(st.integers(1, keys))
    sets = draw(st.lists(st.sets(st.integers(0, number - 1), min_size=1), max_size=8))
    return maximal([*sets, *((key,) for key in range(number))])


def is_hierarchy(generators: Generators, keys: int) -> bool:
    """Whether these are generators by the definition, looked at one by one."""
    nested = any(set(a) < set(b) for a in generators for b in generators)
    tidy = all(list(g) == sorted(set(g)) for g in generators) and list(generators) == sorted(set(generators))
    return tidy and not nested and {key for g in generators for key in g} == set(range(keys))


@pytest.mark.parametrize(
    ("text", "generators"),
    [
        ("age*sex + region", ((0, 1), (2,), (3,))),
        ("  sex*age+region  ", ((0, 1), (2,), (3,))),
        ("age*sex + sex*age + age + age*sex*region", ((0, 1, 2), (3,))),
        ("independence", ((0,), (1,), (2,), (3,))),
        ("main", ((0,), (1,), (2,), (3,))),
        ("two-way", ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))),
        ("three-way", ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3))),
        ("two-way + job*sex*region", ((0, 1), (0, 2), (0, 3), (1, 2, 3))),
        ('`age`*"sex"', ((0, 1), (2,), (3,))),
    ],
)
def test_formulas(text: str, generators: Generators) -> None:
    assert read_generators(text, NAMES) == generators
    assert is_hierarchy(generators, 4)


def test_names_that_need_quotes() -> None:
    names = ["place of birth", "a+b", "x*y", "two-way", "tick`s", 'say "so"', "main"]
    assert read_generators('`place of birth`*`a+b` + "x*y"*`two-way`', names)[:2] == ((0, 1), (2, 3))
    assert read_generators('`tick``s`*"say ""so"""', names)[4] == (4, 5)
    assert read_generators("`main`", names) == preset(1, 7)
    assert read_generators("main*`a+b`", names) == ((0,), (1, 6), (2,), (3,), (4,), (5,))
    assert read_generators("two-way", names) == preset(2, 7)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        ("   ", "it is empty"),
        ("age*", "ends where there should be a key"),
        ("age + + sex", r"at \+ \(character 7\) there should be a key"),
        ("*age", r"at \* \(character 1\) there should be a key"),
        ("age sex", r"at sex \(character 7\) there should be \+ or \*"),
        ("`age` sex", r"there should be \+ or \*"),
        ("`age + sex", "a quote is not closed"),
        ('age + "sex', "a quote is not closed"),
        ("age*sex*age", r"age\*sex\*age names a key twice"),
    ],
)
def test_what_cannot_be_read(text: str, words: str) -> None:
    with pytest.raises(UnknownModel, match=words):
        read_generators(text, NAMES)


def test_unknown_names_are_told_with_the_closest_one() -> None:
    with pytest.raises(UnknownKeyVariable, match=r"'Regoin'.* Closest columns: region\."):
        read_generators("age*Regoin", NAMES)
    with pytest.raises(UnknownKeyVariable, match="Its 4 columns are: age, sex, region, job"):
        read_generators("two-way*xyz", [*NAMES])
    with pytest.raises(UnknownKeyVariable, match="'two-way'"):
        read_generators("`two-way`", NAMES)


@QUICK
@given(models(), st.data())
@example(((0,),), None)
def test_words_read_back(generators: Generators, data: st.DataObject | None) -> None:
    keys = 1 + max(max(g) for g in generators)
    name = st.one_of(st.text(min_size=1, max_size=6), st.sampled_from(["main", "two-way", "`", "a b", "+", '"']))
    names = ["main"] if data is None else data.draw(st.lists(name, min_size=keys, max_size=keys, unique=True))
    assert read_generators(in_words(generators, names), names) == generators
    assert is_hierarchy(generators, keys)


def test_words() -> None:
    assert in_words(((0, 1), (2,), (3,)), NAMES) == "age*sex + region + job"
    assert in_words(preset(1, 4), NAMES) == "independence"
    assert in_words(preset(3, 4), NAMES) == "three-way"
    assert in_words(preset(3, 2), NAMES[:2]) == "age*sex"
    assert in_words(preset(1, 1), ["two words"]) == "`two words`"


@QUICK
@given(models(), st.data())
def test_adding_a_term(generators: Generators, data: st.DataObject) -> None:
    keys = 1 + max(max(g) for g in generators)
    term = data.draw(st.sets(st.integers(0, keys - 1), min_size=1))
    larger = with_term(generators, term)
    assert is_hierarchy(larger, keys)
    assert any(term <= set(g) for g in larger)
    assert all(any(set(g) <= set(other) for other in larger) for g in generators)
    assert set(larger) <= {*generators, tuple(sorted(term))}
    assert with_term(larger, term) == larger
