"""Does a regression say the same on synthetic files as on the original?"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy import stats

from keyhole.arrays import Vector
from keyhole.errors import FitFailed, InputError
from keyhole.synthesis.combining import Combined, combine_fully_synthetic, combine_partially_synthetic
from keyhole.synthesis.utility_design import Columns, Design, Family, lay_out
from keyhole.synthesis.utility_fit import FileFit, fit_file
from keyhole.synthesis.utility_formula import read_formula

Rule: TypeAlias = Literal["full", "partial"]
"""How the copies were made: drawn as a whole, or with some values of the original's records replaced."""


@dataclass(frozen=True, slots=True)
class CoefficientEstimate:
    """A coefficient, its standard error and its interval; unbounded if the copies say too little."""

    estimate: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One coefficient in the original and in the copies together.

    Attributes
    ----------
    name
        Its name in the formula, as ``A[T.b]`` for level b of A against the first.
    original
        What the original says; None if it cannot tell.
    synthetic
        What the copies say together; None if one of them cannot tell.
    degrees_of_freedom
        Those of the interval of ``synthetic``.
    mended
        Whether the variance of ``synthetic`` was 0 or less and had to be mended.
    overlap
        How far the two intervals overlap, from 0 to 1, see `interval_overlap`; None if there are not both.
    words
        Why something is missing; empty if nothing is.
    """

    name: str
    original: CoefficientEstimate | None
    synthetic: CoefficientEstimate | None
    degrees_of_freedom: float | None
    mended: bool
    overlap: float | None
    words: str


@dataclass(frozen=True, slots=True)
class RegressionUtility:
    """A regression on the original and on synthetic copies of it.

    Attributes
    ----------
    formula, family, rule, level
        What was asked for.
    response, success
        The column that is explained, and its value that counts as 1; None for counts.
    records
        Records that entered the regression: of the original, then of each copy.
    coefficients
        In the order of the formula.
    notes
        Records that were left out, and variances that were mended, in words.
    """

    formula: str
    family: Family
    rule: Rule
    level: float
    response: str
    success: str | None
    records: tuple[int, ...]
    coefficients: tuple[Coefficient, ...]
    notes: tuple[str, ...]

    @property
    def mean_overlap(self) -> float | None:
        """Mean overlap of the coefficients that have one; None if none has."""
        found = [one.overlap for one in self.coefficients if one.overlap is not None]
        return fmean(found) if found else None


def compare_regression(
    formula: str,
    original: Columns,
    copies: Sequence[Columns],
    *,
    family: Family = "logistic",
    rule: Rule = "full",
    success: object | None = None,
    level: float = 0.95,
) -> RegressionUtility:
    """Fit a regression to the original and to every copy, combine the copies, and compare.

    Parameters
    ----------
    formula
        In the language of statsmodels, as ``"Y ~ A + C(B) + np.log(X)"``. Columns of labels are levels in sorted
        order, compared with the first; a name with spaces is written ``Q("A B")``.
    original, copies
        Columns by name, of numbers or labels. Records with a missing value in a column of the formula are left
        out, and records of a copy with a label that the original does not have.
    family
        ``"logistic"`` for a response with two values, ``"poisson"`` for counts.
    rule
        ``"full"`` if the copies are drawn as a whole from the posterior predictive law, ``"partial"`` if values of
        the original's own records were replaced; see `combine_fully_synthetic`.
    success
        The value of a logistic response that counts as 1; by default the last of the two in sorted order.
    level
        Coverage of the intervals.

    Raises
    ------
    UnknownKeyVariable
        A column of the formula that a file does not have.
    InputError
        A formula that cannot be read or applied, a response that does not suit the family, fewer than two copies.
    FitFailed
        A regression of which the original tells no coefficient.
    MissingExtra
        statsmodels is not installed.

    Examples
    --------
    >>> files = [{"Y": ["no"] * 4 + ["yes"] * 4, "A": list("aaabbbb" + end)} for end in "aab"]
    >>> found = compare_regression("Y ~ A", files[0], files[1:])
    >>> found.success, [one.name for one in found.coefficients]
    ('yes', ['Intercept', 'A[T.b]'])
    """
    _check(family, rule, level, copies)
    plan = lay_out(read_formula(formula, list(original)), original, family, success)
    names = ["the original", *(f"copy {place}" for place in range(1, len(copies) + 1))]
    designs = [plan.build(file, name) for file, name in zip((original, *copies), names, strict=True)]
    truth, *fits = (fit_file(design.matrix, design.response, family) for design in designs)
    if all(truth.why_open):
        raise FitFailed(f"The original tells no coefficient of {formula!r}: {truth.why_open[0]}.")
    records = tuple(len(design.response) for design in designs)
    combined = _combine(fits, rule, level, records)
    coefficients = tuple(
        _coefficient(name, place, truth, fits, combined, level) for place, name in enumerate(plan.coefficients)
    )
    return RegressionUtility(
        formula=formula,
        family=family,
        rule=rule,
        level=level,
        response=plan.formula.response,
        success=plan.success,
        records=records,
        coefficients=coefficients,
        notes=(*_left_out(names, designs), *_mended(coefficients)),
    )


def interval_overlap(first: tuple[float, float], second: tuple[float, float]) -> float:
    r"""How far two intervals overlap: the mean of the shares that their intersection has in either.

    .. math:: \frac12\left(\frac{U - L}{U_1 - L_1} + \frac{U - L}{U_2 - L_2}\right), \quad
              L = \max(L_1, L_2),\ U = \min(U_1, U_2)

    It is 1 for equal intervals, and 0 for intervals that do not meet, however far apart they are: there the
    published number goes below 0, and its size says nothing about an overlap. An unbounded interval holds all of
    a bounded one, which has no share in it: the overlap is 1/2.

    References
    ----------
    Karr, Kohnen, Oganian, Reiter & Sanil (2006), The American Statistician 60, 224-232,
    https://doi.org/10.1198/000313006X124640.

    Examples
    --------
    >>> interval_overlap((0, 2), (1, 5))
    0.375
    """
    shared = min(first[1], second[1]) - max(first[0], second[0])
    if first == second:
        return 1.0
    if shared <= 0:
        return 0.0
    return fmean(0.0 if np.isinf(high - low) else shared / (high - low) for low, high in (first, second))


def _check(family: str, rule: str, level: float, copies: Sequence[Columns]) -> None:
    for name, found, known in (("family", family, get_args(Family)), ("rule", rule, get_args(Rule))):
        if found not in known:
            raise InputError(f"The {name} of a regression is {' or '.join(map(repr, known))}; found {found!r}.")
    if not 0 < level < 1:
        raise InputError(f"The level of an interval is between 0 and 1; found {level}.")
    if len(copies) < 2:
        raise InputError(f"Combining needs two synthetic files or more, found {len(copies)}: draw more copies.")


def _combine(fits: Sequence[FileFit], rule: Rule, level: float, records: Sequence[int]) -> Combined:
    """All coefficients together; those that a copy leaves open are given numbers that nobody reads."""
    estimates = np.array([np.nan_to_num(fit.estimate) for fit in fits])
    variances = np.array([np.nan_to_num(fit.variance) for fit in fits])
    if rule == "partial":
        return combine_partially_synthetic(estimates, variances, level=level)
    return combine_fully_synthetic(
        estimates, variances, level=level, synthetic_size=fmean(records[1:]), original_size=records[0]
    )


def _coefficient(
    name: str, place: int, truth: FileFit, fits: Sequence[FileFit], combined: Combined, level: float
) -> Coefficient:
    original = synthetic = overlap = None
    if not truth.why_open[place]:
        original = _wald(truth.estimate, truth.variance, place, level)
    told = not any(fit.why_open[place] for fit in fits)
    if told:
        parts = (combined.estimate, combined.standard_error, combined.low, combined.high)
        synthetic = CoefficientEstimate(*(float(values[place]) for values in parts))
    if original is not None and synthetic is not None:
        overlap = interval_overlap((original.low, original.high), (synthetic.low, synthetic.high))
    return Coefficient(
        name=name,
        original=original,
        synthetic=synthetic,
        degrees_of_freedom=float(combined.degrees_of_freedom[place]) if told else None,
        mended=told and bool(combined.mended[place]),
        overlap=overlap,
        words=_why_open(place, truth, fits),
    )


def _wald(estimate: Vector, variance: Vector, place: int, level: float) -> CoefficientEstimate:
    """The interval that a large sample gives by itself."""
    centre, error = float(estimate[place]), float(np.sqrt(variance[place]))
    half = float(stats.norm.ppf((1 + level) / 2)) * error
    return CoefficientEstimate(centre, error, centre - half, centre + half)


def _why_open(place: int, truth: FileFit, fits: Sequence[FileFit]) -> str:
    words = [f"In the original, {truth.why_open[place]}."] if truth.why_open[place] else []
    reasons = [fit.why_open[place] for fit in fits if fit.why_open[place]]
    words += [f"In {reasons.count(reason)} of {len(fits)} copies, {reason}." for reason in dict.fromkeys(reasons)]
    return " ".join(words)


def _left_out(names: Sequence[str], designs: Sequence[Design]) -> list[str]:
    notes = []
    for name, design in zip(names, designs, strict=True):
        if design.missing:
            notes.append(
                f"Records left out of {name} because a column of the formula is missing: {design.missing}."
            )
        if design.unknown:
            notes.append(f"Records left out of {name} because the original has no such label: {design.unknown}.")
    return notes


def _mended(coefficients: Sequence[Coefficient]) -> list[str]:
    mended = sum(one.mended for one in coefficients)
    if not mended:
        return []
    return [
        f"Coefficients whose combined variance was not positive and is mended: {mended} of {len(coefficients)}."
    ]
