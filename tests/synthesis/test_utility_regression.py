"""A regression on original and copies: odds and rates by hand, what is left open, and copies good and bad."""

import math
import sys

import numpy as np
import pytest
from scipy.special import expit

from keyhole.errors import DisclosureRiskError, FitFailed, InputError, MissingExtra, UnknownKeyVariable
from keyhole.synthesis.combining import combine_fully_synthetic, combine_partially_synthetic
from keyhole.synthesis.utility_design import lay_out
from keyhole.synthesis.utility_formula import read_formula
from keyhole.synthesis.utility_regression import Coefficient, compare_regression, interval_overlap

Z = 1.959963984540054


def table(*groups: tuple[int, int]) -> dict[str, list[str]]:
    """A file with groups a, b, ... in A, each with so many records with Y "no" and so many with "yes"."""
    file: dict[str, list[str]] = {"A": [], "Y": []}
    for label, (no, yes) in zip("abcdef", groups, strict=False):
        file["A"] += [label] * (no + yes)
        file["Y"] += ["no"] * no + ["yes"] * yes
    return file


def log_odds_ratio(first: tuple[int, int], other: tuple[int, int]) -> tuple[float, float]:
    counts = (*first, *other)
    return math.log(other[1] / other[0] * first[0] / first[1]), sum(1 / count for count in counts)


def by_name(coefficients: tuple[Coefficient, ...]) -> dict[str, Coefficient]:
    return {one.name: one for one in coefficients}


@pytest.mark.parametrize("rule", ["full", "partial"])
def test_odds_ratios_by_hand(rule: str) -> None:
    files = [((30, 10), (20, 40)), ((28, 12), (25, 35)), ((33, 7), (20, 40)), ((24, 16), (18, 42))]
    original, *copies = (table(*groups) for groups in files)
    found = compare_regression("Y ~ A", original, copies, rule=rule)  # type: ignore[arg-type]
    assert [one.name for one in found.coefficients] == ["Intercept", "A[T.b]"]
    slope = found.coefficients[1]
    estimate, variance = log_odds_ratio(*files[0])
    assert slope.original is not None
    assert slope.synthetic is not None
    assert np.isclose(slope.original.estimate, estimate)
    assert np.isclose(slope.original.standard_error, math.sqrt(variance))
    assert np.isclose(slope.original.low, estimate - Z * math.sqrt(variance))
    assert np.isclose(slope.original.high, estimate + Z * math.sqrt(variance))
    each = np.array([log_odds_ratio(*groups) for groups in files[1:]])
    combine = combine_fully_synthetic if rule == "full" else combine_partially_synthetic
    together = combine(each[:, 0], each[:, 1])
    assert np.isclose(slope.synthetic.estimate, together.estimate)
    assert np.isclose(slope.synthetic.standard_error, together.standard_error)
    assert np.isclose(slope.synthetic.low, together.low)
    assert np.isclose(slope.synthetic.high, together.high)
    assert slope.degrees_of_freedom is not None
    assert np.isclose(slope.degrees_of_freedom, together.degrees_of_freedom)
    assert slope.mended == bool(together.mended)
    intervals = [(one.low, one.high) for one in (slope.original, slope.synthetic)]
    assert slope.overlap == interval_overlap(*intervals)
    assert found.mean_overlap == np.mean([one.overlap for one in found.coefficients])
    assert found.records == (100,) * 4
    assert (found.response, found.success, slope.words) == ("Y", "yes", "")
    assert found.notes == ()


def test_mending_takes_the_sizes_of_the_files() -> None:
    copies = [table((60, 20), (40, 80)), table((59, 21), (41, 79))]
    found = compare_regression("Y ~ A", table((30, 10), (20, 40)), copies)
    slope = found.coefficients[1]
    within = np.mean([log_odds_ratio(*g)[1] for g in [((60, 20), (40, 80)), ((59, 21), (41, 79))]])
    assert slope.mended
    assert slope.synthetic is not None
    assert np.isclose(slope.synthetic.standard_error**2, 2 * within)
    assert found.notes == ("Coefficients whose combined variance was not positive and is mended: 2 of 2.",)


def test_rates_by_hand() -> None:
    original = {"Y": [3, 5, 0, 1, 2], "A": [0, 0, 1, 1, 1]}
    copy = {"Y": [4, 4, 1, 1, 1], "A": [0, 0, 1, 1, 1]}
    found = compare_regression("Y ~ A", original, [copy, copy], family="poisson", rule="partial")
    slope = found.coefficients[1]
    assert slope.original is not None
    assert slope.synthetic is not None
    assert np.isclose(slope.original.estimate, math.log(1 / 4))
    assert np.isclose(slope.original.standard_error, math.sqrt(1 / 8 + 1 / 3))
    assert np.isclose(slope.synthetic.estimate, math.log(1 / 4))
    assert slope.overlap is not None
    assert np.isclose(slope.overlap, 1)
    assert found.success is None


def test_overlap_by_hand() -> None:
    assert interval_overlap((0, 2), (1, 3)) == 0.5
    assert interval_overlap((0, 4), (1, 2)) == (1 / 4 + 1) / 2
    assert interval_overlap((1, 2), (1, 2)) == 1
    assert interval_overlap((0, 1), (1, 2)) == 0
    assert interval_overlap((0, 1), (5, 6)) == 0
    assert interval_overlap((0, 1), (-math.inf, math.inf)) == 0.5
    assert interval_overlap((0, 1), (0, 3)) == interval_overlap((0, 3), (0, 1))


def test_the_value_that_counts_as_one_can_be_chosen() -> None:
    files = [table((30, 10), (20, 40)), table((28, 12), (25, 35)), table((33, 7), (20, 40))]
    yes = compare_regression("Y ~ A", files[0], files[1:])
    no = compare_regression("Y ~ A", files[0], files[1:], success="no")
    assert (yes.success, no.success) == ("yes", "no")
    for one, other in zip(yes.coefficients, no.coefficients, strict=True):
        assert one.original is not None
        assert other.original is not None
        assert np.isclose(one.original.estimate, -other.original.estimate)
        assert one.overlap is not None
        assert other.overlap is not None
        assert np.isclose(one.overlap, other.overlap)
    coded = [{"A": file["A"], "Y": [1 if value == "no" else 2 for value in file["Y"]]} for file in files]
    assert compare_regression("Y ~ A", coded[0], coded[1:]).success == "2"
    assert compare_regression("Y ~ A", coded[0], coded[1:], success=1).success == "1"
    assert compare_regression("Y ~ A", coded[0], coded[1:], success="1").coefficients == no.coefficients
    with pytest.raises(InputError, match="not one of the two values"):
        compare_regression("Y ~ A", files[0], files[1:], success="perhaps")


def test_all_files_are_compared_with_the_same_level() -> None:
    # Copies without level a would make b the first level if they were laid out by themselves.
    original = table((30, 10), (20, 40), (10, 10))
    lacking = {"A": ["b"] * 60 + ["c"] * 20, "Y": original["Y"][40:]}
    found = by_name(compare_regression("Y ~ A", original, [lacking, original]).coefficients)
    assert list(found) == ["Intercept", "A[T.b]", "A[T.c]"]
    for one in found.values():
        assert one.synthetic is None
        assert one.overlap is None
        assert one.original is not None
        assert one.words == "In 1 of 2 copies, it cannot be told from other coefficients."


def test_a_coefficient_that_a_copy_does_not_have_is_marked() -> None:
    original = table((30, 10), (20, 40), (10, 10))
    whole, lacking = table((25, 15), (25, 35), (12, 8)), table((25, 15), (25, 35))
    found = by_name(compare_regression("Y ~ A", original, [whole, lacking, lacking], rule="partial").coefficients)
    assert found["A[T.c]"].synthetic is None
    assert found["A[T.c]"].degrees_of_freedom is None
    assert found["A[T.c]"].words == "In 2 of 3 copies, no record has it."
    slope = found["A[T.b]"]
    assert slope.synthetic is not None
    assert np.isclose(slope.synthetic.estimate, log_odds_ratio((25, 15), (25, 35))[0])
    assert slope.words == ""


def test_separation_is_marked_in_the_original_and_in_copies() -> None:
    original = table((30, 10), (20, 40), (10, 0))
    copies = [table((25, 15), (25, 35), (0, 9)), table((25, 15), (25, 35), (4, 4))]
    found = compare_regression("Y ~ A", original, copies)
    last = by_name(found.coefficients)["A[T.c]"]
    reason = "it has no finite estimate, for some records are predicted without error."
    assert last.words == f"In the original, {reason} In 1 of 2 copies, {reason}"
    assert last.original is None
    assert last.synthetic is None
    others = [one.overlap for one in found.coefficients[:2]]
    assert None not in others
    assert found.mean_overlap == np.mean(others)  # type: ignore[arg-type]


def test_an_original_that_tells_nothing_is_refused() -> None:
    parted = table((10, 0), (0, 10))
    with pytest.raises(FitFailed, match=r"tells no coefficient of 'Y ~ A'.*without error"):
        compare_regression("Y ~ A", parted, [parted, parted])
    with pytest.raises(FitFailed, match="'Y' has the same value in all records"):
        compare_regression("Y ~ A", table((10, 0), (9, 0)), [parted, parted])


def test_a_copy_with_a_response_of_one_value_tells_nothing() -> None:
    original = table((30, 10), (20, 40))
    found = compare_regression("Y ~ A", original, [original, table((40, 0), (60, 0))])
    assert all(one.synthetic is None and one.original is not None for one in found.coefficients)
    assert found.mean_overlap is None


def test_records_with_labels_of_their_own_are_left_out_and_counted() -> None:
    original = table((30, 10), (20, 40))
    copy = table((28, 12), (25, 35), (3, 2))
    copy["A"].append("a")
    copy["Y"].append("perhaps")
    found = compare_regression("Y ~ A", original, [copy, table((28, 12), (25, 35))], rule="partial")
    assert found.records == (100, 100, 100)
    assert found.notes == ("Records left out of copy 1 because the original has no such label: 6.",)
    slope = found.coefficients[1].synthetic
    assert slope is not None
    assert np.isclose(slope.estimate, log_odds_ratio((28, 12), (25, 35))[0])


def test_numbers_of_groups_that_the_original_lacks_are_left_out_too() -> None:
    original = {"A": [1] * 40 + [2] * 60, "Y": table((30, 10), (20, 40))["Y"]}
    copy = {"A": [*original["A"], 3], "Y": [*original["Y"], "no"]}
    found = compare_regression("Y ~ C(A)", original, [copy, original], rule="partial")
    assert [one.name for one in found.coefficients] == ["Intercept", "C(A)[T.2]"]
    assert found.records == (100, 100, 100)
    assert found.notes == ("Records left out of copy 1 because the original has no such label: 1.",)
    assert compare_regression("Y ~ A", original, [copy, original]).records == (100, 101, 100)


def test_missing_values_are_left_out_and_counted() -> None:
    original = table((30, 10), (20, 40))
    holes = {"A": [*original["A"], None, "a", float("nan")], "Y": [*original["Y"], "no", None, None]}
    holes["X"] = [math.nan] * 103  # a column that the formula does not name
    found = compare_regression("Y ~ A", holes, [original, holes])
    assert found.records == (100, 100, 100)
    assert found.notes[:2] == (
        "Records left out of the original because a column of the formula is missing: 3.",
        "Records left out of copy 2 because a column of the formula is missing: 3.",
    )
    numbers = {"Y": [0, 1, 0, 1, None, 1], "X": [1, 2, 3, 4, 5, None]}
    assert compare_regression("Y ~ X", numbers, [numbers, numbers]).records == (4, 4, 4)


def test_transformations_are_those_of_the_original() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    y = (rng.uniform(size=200) < expit(x)).astype(int)
    moved = {"Y": y, "X": x + 5}
    found = compare_regression("Y ~ center(X)", {"Y": y, "X": x}, [moved, moved], rule="partial")
    constant, slope = found.coefficients
    assert constant.synthetic is not None
    assert constant.original is not None
    assert slope.original is not None
    assert slope.synthetic is not None
    assert np.isclose(slope.synthetic.estimate, slope.original.estimate)
    expected = constant.original.estimate - 5 * slope.original.estimate
    assert np.isclose(constant.synthetic.estimate, expected)


def test_a_blueprint_makes_the_design_that_the_formula_says() -> None:
    file = {"Y": [0, 1, 1], "A": ["u", "v", "u"], "X": [1.0, 2.0, 4.0]}
    design = lay_out(read_formula("Y ~ A:X + np.log2(X) - 1", list(file)), file, "logistic").build(file, "it")
    assert np.allclose(design.matrix, [[1, 0, 0], [0, 2, 1], [4, 0, 2]])
    assert design.response.tolist() == [0, 1, 1]


def test_what_cannot_be_compared_is_refused_in_words() -> None:
    good = table((30, 10), (20, 40))
    with pytest.raises(InputError, match="two synthetic files or more, found 1"):
        compare_regression("Y ~ A", good, [good])
    with pytest.raises(InputError, match="'logistic' or 'poisson'; found 'probit'"):
        compare_regression("Y ~ A", good, [good, good], family="probit")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'full' or 'partial'; found 'half'"):
        compare_regression("Y ~ A", good, [good, good], rule="half")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="between 0 and 1; found 95"):
        compare_regression("Y ~ A", good, [good, good], level=95)
    with pytest.raises(UnknownKeyVariable, match="names 'B'"):
        compare_regression("Y ~ A + B", good, [good, good])
    with pytest.raises(UnknownKeyVariable, match="Column 'A' of the formula is not in copy 2"):
        compare_regression("Y ~ A", good, [good, {"Y": good["Y"]}])
    with pytest.raises(InputError, match="needs two values, found 3"):
        compare_regression("A ~ Y", table((1, 1), (1, 1), (1, 1)), [good, good])
    with pytest.raises(InputError, match="needs numbers; the original has labels"):
        compare_regression("Y ~ A", good, [good, good], family="poisson")
    odd = {"Y": [1.5, -1, 2], "A": [1, 2, 3]}
    with pytest.raises(InputError, match="in 2 of 3 records of the original"):
        compare_regression("Y ~ A", odd, [odd, odd], family="poisson")
    with pytest.raises(InputError, match="'A' has labels in one of the original and copy 1"):
        compare_regression("Y ~ A", good, [good | {"A": [1] * 100}, good])
    with pytest.raises(InputError, match="differ in length: between 2 and 100"):
        compare_regression("Y ~ A", good, [good, good | {"A": ["a", "b"]}])
    with pytest.raises(InputError, match="no record in copy 1"):
        compare_regression("Y ~ A", good, [good | {"A": ["z"] * 100}, good])
    with pytest.raises(InputError, match="not a column of values"):
        compare_regression("Y ~ A", good | {"A": [["a", "b"]] * 100}, [good, good])
    line = {"Y": [0, 1, 0, 1], "X": [1, 2, 3, 4]}
    with pytest.raises(InputError, match=r"'np\.log\(X\)' of the formula .* in 1 of 4 records of copy 2"):
        compare_regression("Y ~ np.log(X)", line, [line, line | {"X": [0, 1, 2, 3]}])


@pytest.mark.parametrize(
    ("formula", "change"),
    [
        ("Y ~ np.log(A)", {}),
        ("Y ~ C(A, Treatment('z'))", {}),
        ("Y ~ C(X // 10)", {"X": [777] * 100}),
        ("Y ~ np.log(X)", {"X": [-777] * 100}),
        ("Y ~ X", {"X": ["secret"] * 100}),
        ("Y ~ X", {"Y": ["secret"] * 100}),
        ("Y ~ X", {"X": [math.inf] * 100}),
    ],
)
def test_no_error_quotes_a_record(formula: str, change: dict[str, list[object]]) -> None:
    good = table((30, 10), (20, 40)) | {"X": list(range(100))}
    good["A"][0] = "secret"
    if "X" in formula:
        good["X"] = [value + 1 for value in good["X"]]
    with pytest.raises(DisclosureRiskError) as caught:
        compare_regression(formula, good, [good, good | change])
    assert not any(word in str(caught.value) for word in ("secret", "777"))
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("package", ["patsy", "pandas", "statsmodels"])
def test_a_missing_package_is_asked_for(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    good = table((30, 10), (20, 40))
    for module in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf'{package}.*pip install "keyhole\[utility\]"'):
        compare_regression("Y ~ A", good, [good, good])


def draw_file(size: int, effects: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A constant, a two-level and a numeric predictor with these effects."""
    group, x = rng.integers(0, 2, size), rng.normal(size=size)
    chance = expit(effects[0] + effects[1] * group + effects[2] * x)
    return {"A": np.array(["a", "b"])[group], "X": x, "Y": (rng.uniform(size=size) < chance).astype(int)}


TRUE = np.array([-0.5, 1.0, 0.7])


def synthesise(
    original: dict[str, np.ndarray], size: int, copies: int, rng: np.random.Generator
) -> list[dict[str, np.ndarray]]:
    """Copies: effects from their posterior, the normal law about the fit, then records from these effects."""
    api = pytest.importorskip("statsmodels.api")
    matrix = np.column_stack([np.ones(len(original["Y"])), original["A"] == "b", original["X"]])
    fit = api.GLM(original["Y"], matrix, family=api.families.Binomial()).fit()
    return [
        draw_file(size, effects, rng)
        for effects in rng.multivariate_normal(fit.params, fit.cov_params(), size=copies)
    ]


def test_good_copies_overlap_and_shuffled_ones_do_not() -> None:
    rng = np.random.default_rng(2)
    original = draw_file(2000, TRUE, rng)
    good = synthesise(original, 2000, 10, rng)
    bad = [{**copy, "Y": rng.permutation(copy["Y"])} for copy in good]
    names = ("Intercept", "A[T.b]", "X")
    fine = compare_regression("Y ~ A + X", original, good, rule="partial")
    poor = by_name(compare_regression("Y ~ A + X", original, bad, rule="partial").coefficients)
    assert tuple(one.name for one in fine.coefficients) == names
    assert all(one.overlap is not None and one.overlap > 0.5 for one in fine.coefficients)
    assert poor["A[T.b]"].overlap == 0
    assert poor["X"].overlap == 0


@pytest.mark.statistical
def test_combined_intervals_cover_the_effects() -> None:
    rng = np.random.default_rng(3)
    covered, errors, claimed = [], [], []
    for _ in range(200):
        original = draw_file(800, TRUE, rng)
        copies = synthesise(original, 4000, 15, rng)
        found = [one.synthetic for one in compare_regression("Y ~ A + X", original, copies).coefficients]
        assert None not in found
        covered.append([one.low <= true <= one.high for one, true in zip(found, TRUE, strict=True) if one])
        errors.append([(one.estimate - true) ** 2 for one, true in zip(found, TRUE, strict=True) if one])
        claimed.append([one.standard_error**2 for one in found if one])
    # 95% of 600, not all independent, and a rule that covers 95 to 97% with so many copies.
    assert 0.92 < np.mean(covered) < 0.99
    assert np.allclose(np.mean(errors, axis=0), np.mean(claimed, axis=0), rtol=0.4)
