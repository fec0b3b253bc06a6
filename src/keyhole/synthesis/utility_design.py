"""The design matrix and the response of a regression, laid out alike for the original and its copies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole.arrays import Mask, Vector
from keyhole.errors import FitFailed, InputError, UnknownKeyVariable
from keyhole.io.extras import need
from keyhole.synthesis.utility_formula import Formula

Columns: TypeAlias = Mapping[str, ArrayLike]
"""The columns of a file by name: numbers, or labels. None and NaN stand for missing values."""

Family: TypeAlias = Literal["logistic", "poisson"]


class Design(NamedTuple):
    """The matrix and the response of one file.

    ``unknown`` counts the records that were left out because the original has no record with their label.
    """

    matrix: Vector
    response: Vector
    missing: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Blueprint:
    """How the original lays out the design: its levels, its coefficients, and what counts as 1 in the response.

    ``success`` is None for counts.
    """

    formula: Formula
    family: Family
    coefficients: tuple[str, ...]
    success: str | None
    _labelled: frozenset[str] = field(repr=False)
    _levels: Mapping[str, Sequence[Any]] = field(repr=False)
    _outcomes: tuple[Any, Any] | None = field(repr=False)
    _design: Any = field(repr=False)

    def build(self, file: Columns, name: str) -> Design:
        """The design of a file, laid out like that of the original.

        Raises
        ------
        InputError
            A file without the columns of the formula, or with values that the formula cannot use.
        """
        arrays = _arrays(self.formula, file, name)
        missing = _missing(arrays)
        unknown = np.zeros(len(missing), dtype=np.bool_)
        for column, values in arrays.items():
            if (column in self._labelled) != (values.dtype == object):
                raise InputError(
                    f"Column {column!r} has labels in one of the original and {name}, and numbers in the other: "
                    "code them alike."
                )
            if column in self._levels:
                unknown |= ~missing & ~_among(values, self._levels[column])
        if self._outcomes is not None:
            unknown |= ~missing & ~_among(arrays[self.formula.response], self._outcomes)
        keep = ~missing & ~unknown
        if not keep.any():
            raise InputError(f"There is no record in {name} with values in all columns of the formula.")
        kept = {column: values[keep] for column, values in arrays.items()}
        matrix = _matrix(self.formula, self._design, _frame(self.formula, kept, self._levels), name)
        _check_finite(matrix, self.coefficients, self.formula.text, name)
        if self._outcomes is None:
            y = _counts(kept[self.formula.response], self.formula.response, name)
        else:
            y = (kept[self.formula.response] == self._outcomes[1]).astype(np.float64)
        return Design(matrix, y, int(missing.sum()), int(unknown.sum()))


def lay_out(formula: Formula, original: Columns, family: Family, success: object | None = None) -> Blueprint:
    """Lay out the design of a formula after the original file.

    Labels are levels in sorted order, the first is the one that the others are compared with unless the formula
    says otherwise. The response of a logistic regression has two values; ``success`` is the one that counts
    as 1, by default the last in sorted order.
    """
    arrays = _arrays(formula, original, "the original")
    missing = _missing(arrays)
    if missing.all():
        raise InputError("There is no record in the original with values in all columns of the formula.")
    kept = {column: values[~missing] for column, values in arrays.items()}
    levels = {
        column: np.unique(kept[column]).tolist()
        for column in sorted(formula.predictors)
        if kept[column].dtype == object or column in formula.grouped
    }
    outcomes = _outcomes(formula.response, kept[formula.response], success) if family == "logistic" else None
    if outcomes is None:
        _counts(kept[formula.response], formula.response, "the original")
    design = _matrix(formula, None, _frame(formula, kept, levels), "the original").design_info
    return Blueprint(
        formula=formula,
        family=family,
        coefficients=tuple(design.column_names),
        success=None if outcomes is None else _label(outcomes[1]),
        _labelled=frozenset(column for column, values in kept.items() if values.dtype == object),
        _levels=levels,
        _outcomes=outcomes,
        _design=design,
    )


def _arrays(formula: Formula, file: Columns, name: str) -> dict[str, NDArray[Any]]:
    """The columns that a formula names: arrays of numbers, or of labels with None for missing ones."""
    arrays = {}
    for column in sorted(formula.predictors | {formula.response}):
        if column not in file:
            raise UnknownKeyVariable(f"Column {column!r} of the formula is not in {name}.")
        arrays[column] = _array(file[column])
        if arrays[column].ndim != 1:
            raise InputError(f"Column {column!r} of {name} is not a column of values: give one value a record.")
    lengths = {len(values) for values in arrays.values()}
    if len(lengths) > 1:
        raise InputError(
            f"The columns of {name} differ in length: between {min(lengths)} and {max(lengths)} records."
        )
    return arrays


def _array(values: ArrayLike) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind in "iuf":
        return array
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    known = ~np.asarray(need("pandas", "utility").isna(array))
    content = array[known].tolist()
    if content and all(isinstance(value, int | float | np.number) for value in content):
        numbers = np.full(len(array), np.nan)
        numbers[known] = content
        return numbers
    labels = np.full(len(array), None, dtype=object)
    labels[known] = [str(value) for value in content]
    return labels


def _among(values: NDArray[Any], levels: Sequence[Any]) -> Mask:
    known = set(levels)
    return np.fromiter((value in known for value in values.tolist()), np.bool_, len(values))


def _missing(arrays: Mapping[str, NDArray[Any]]) -> Mask:
    """The records with a missing value in any column."""
    pandas = need("pandas", "utility")
    return np.asarray(np.any([pandas.isna(values) for values in arrays.values()], axis=0))


def _outcomes(column: str, values: NDArray[Any], success: object | None) -> tuple[Any, Any]:
    """The value of a logistic response that counts as 0, and the one that counts as 1."""
    found = np.unique(values).tolist()
    if len(found) == 1:
        raise FitFailed(
            f"The response {column!r} has the same value in all records of the original: nothing to fit."
        )
    if len(found) != 2:
        raise InputError(
            f"The response {column!r} of a logistic regression needs two values, found {len(found)}: recode it, "
            'or take family="poisson" if it counts something.'
        )
    if success is None:
        return found[0], found[1]
    chosen = [value for value in found if success in (value, _label(value))]
    if not chosen:
        raise InputError(
            f"The value that is to count as 1 is not one of the two values of the response {column!r}."
        )
    return next(value for value in found if value != chosen[0]), chosen[0]


def _counts(values: NDArray[Any], column: str, name: str) -> Vector:
    if values.dtype == object:
        raise InputError(f"The response {column!r} of a Poisson regression needs numbers; {name} has labels.")
    wrong = int((~np.isfinite(values) | (values < 0) | (values != np.floor(values))).sum())
    if wrong:
        raise InputError(
            f"The response {column!r} of a Poisson regression counts something: whole numbers from 0 on. "
            f"Something else was found in {wrong} of {len(values)} records of {name}."
        )
    return values.astype(np.float64)


def _label(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _frame(formula: Formula, arrays: Mapping[str, NDArray[Any]], levels: Mapping[str, Sequence[Any]]) -> Any:
    pandas = need("pandas", "utility")
    return pandas.DataFrame(
        {
            column: pandas.Categorical(arrays[column], categories=levels[column])
            if arrays[column].dtype == object
            else arrays[column]
            for column in sorted(formula.predictors)
        },
        index=range(len(arrays[formula.response])),
    )


def _matrix(formula: Formula, design: Any, frame: Any, name: str) -> Any:
    """The design matrix of a frame, laid out anew or like an earlier one."""
    patsy = need("patsy", "utility")
    keep_all = patsy.NAAction(NA_types=[])
    try:
        with np.errstate(all="ignore"):
            if design is not None:
                return patsy.build_design_matrices([design], frame, NA_action=keep_all)[0]
            parts = patsy.ModelDesc([], formula.terms)
            return patsy.dmatrix(parts, frame, patsy.EvalEnvironment([{"np": np}]), NA_action=keep_all)
    except (patsy.PatsyError, ValueError, TypeError):
        # The words of these errors may quote the data.
        raise InputError(
            f"The formula {formula.text!r} cannot be applied to {name}: give functions numeric columns, and "
            "name only levels that exist."
        ) from None


def _check_finite(matrix: Vector, coefficients: Sequence[str], text: str, name: str) -> None:
    for column, values in zip(coefficients, np.asarray(matrix).T, strict=True):
        wrong = int((~np.isfinite(values)).sum())
        if wrong:
            raise InputError(
                f"The part {column!r} of the formula {text!r} is not a finite number in {wrong} of {len(values)} "
                f"records of {name}."
            )
