"""What a formula may say, and what it is told when it says something else."""

import pytest

from keyhole.errors import InputError, UnknownKeyVariable
from keyhole.synthesis.utility_formula import read_formula

COLUMNS = ["Y", "A", "B", "X", "home town", "C"]


def test_the_columns_of_a_formula_are_found_wherever_they_stand() -> None:
    found = read_formula("Y ~ A*C(B, Treatment('b')) + np.log(X + 1) + I(X**2) + Q('home town')", COLUMNS)
    assert found.response == "Y"
    assert found.predictors == {"A", "B", "X", "home town"}
    assert found.grouped == {"B"}
    assert read_formula("Q('home town') ~ 1", COLUMNS).response == "home town"
    assert read_formula("Y ~ C(Q('home town'))", COLUMNS).grouped == {"home town"}
    assert read_formula("Y ~ A - 1", COLUMNS).predictors == {"A"}


def test_a_column_with_the_name_of_a_function_may_stand_alone() -> None:
    assert read_formula("Y ~ C + A", COLUMNS).predictors == {"C", "A"}
    assert read_formula("Y ~ C(A)", COLUMNS).predictors == {"A"}
    with pytest.raises(InputError, match="'C' is both a column and a function"):
        read_formula("Y ~ C + C(A)", COLUMNS)


@pytest.mark.parametrize("text", ["Y ~ A +", "Y ~ (A", "Y ~ A ~ B", "Y ~ 7", "Y ~ A$", "Y ~ 'A", "Y ~ f("])
def test_a_formula_that_patsy_cannot_read_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_formula(text, COLUMNS)


@pytest.mark.parametrize("text", ["Y ~ A B", "Y ~ A if", "Y ~ A | | B"])
def test_a_part_that_is_not_an_expression_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"part .* cannot be read"):
        read_formula(text, COLUMNS)


@pytest.mark.parametrize("text", ["", "A", "~ A", "Y + X ~ A", "Y:X ~ A", "np.log(Y) ~ A", "1 ~ A"])
def test_a_formula_explains_one_column(text: str) -> None:
    with pytest.raises(InputError, match="exactly one column to the left"):
        read_formula(text, COLUMNS)


def test_a_formula_with_nothing_to_the_right_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to the right"):
        read_formula("Y ~ 0", COLUMNS)


@pytest.mark.parametrize("text", ["Y ~ B + AGE", "AGE ~ B", "Y ~ Q('AGE')", "Y ~ np.log(AGE)", "Q('AGE') ~ B"])
def test_an_unknown_column_is_named_with_its_neighbours(text: str) -> None:
    with pytest.raises(UnknownKeyVariable, match=r"names 'AGE', .*Closest columns: AGE1\."):
        read_formula(text, ["Y", "B", "AGE1"])


@pytest.mark.parametrize(
    "part",
    [
        "__import__('os').getcwd()",
        "open('secret')",
        "np.load('secret')",
        "np.lib.format",
        "X.__class__",
        "I((lambda: 1)())",
        "[x for x in X]",
        "log(X)",
        "X[0]",
        "C(*A)",
        "f'{X}'",
    ],
)
def test_python_that_could_do_more_than_compute_is_refused(part: str) -> None:
    with pytest.raises(InputError, match="not let through"):
        read_formula(f"Y ~ A + {part}", COLUMNS)


def test_q_takes_one_name() -> None:
    for part in ("Q(A)", "Q('A', 'B')", "Q()"):
        with pytest.raises(InputError, match="one column in quotes"):
            read_formula(f"Y ~ {part}", COLUMNS)
