"""The whole job of making synthetic copies: read, fit, draw, and see what they are good for."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from keyhole.arrays import Codes
from keyhole.errors import InputError
from keyhole.inference.fit import Diagnostic
from keyhole.io.stored import Value
from keyhole.io.writing import format_like
from keyhole.keys.level_values import level_values, value_labels
from keyhole.keys.variable import MISSING, KeyVariable
from keyhole.models.latent_class.model import MOST_CLASSES
from keyhole.progress import Progress, silent
from keyhole.randomness import DEFAULT_SEED, stream
from keyhole.synthesis.class_draws import Length, occupied_in_words
from keyhole.synthesis.files import MANIFEST, Confidential, Missing, read_confidential
from keyhole.synthesis.generator import Synthesis, binds, sampler_of, synthesize
from keyhole.synthesis.utility_design import Family
from keyhole.synthesis.utility_formula import read_formula
from keyhole.synthesis.utility_propensity import PropensityUtility, compare_propensity
from keyhole.synthesis.utility_regression import RegressionUtility, Rule, compare_regression
from keyhole.synthesis.utility_tables import TableUtility, compare_tables
from keyhole.table.structural_zeros import StructuralZeros


@dataclass(frozen=True)
class Order:
    """What was asked for.

    Attributes
    ----------
    only
        Keys to synthesise, the others given; nothing for all.
    formula, family, success
        A regression to compare on the original and on the copies, if any.
    """

    data: str
    keys: tuple[str, ...]
    copies: int = 5
    records: int | None = None
    only: tuple[str, ...] = ()
    missing: Missing = "level"
    table: str | None = None
    zeros: Path | None = None
    recode: Path | None = None
    levels: Path | None = None
    formula: str | None = None
    family: Family = "logistic"
    success: str | None = None
    seed: int = DEFAULT_SEED
    classes: int = 0
    length: Length = field(default=Length())

    @property
    def partial(self) -> bool:
        return bool(self.only) and set(self.only) != set(self.keys)

    def check(self, out: Path) -> None:
        """Refuse what cannot be done, before any work.

        Raises
        ------
        InputError
            The folder holds something else, or options contradict each other.
        """
        if out.exists() and not out.is_dir():
            raise InputError(f"--out needs a folder, and {str(out)!r} is a file.")
        if out.is_dir() and any(out.iterdir()) and not (out / MANIFEST).is_file():
            raise InputError(f"The folder {str(out)!r} holds other files; give an empty or a new one.")
        strange = [name for name in self.only if name not in self.keys]
        if strange:
            raise InputError(f"--only names {strange[0]!r}, which is not among the keys.")
        if self.formula is not None:
            read_formula(self.formula, self.keys)
            if self.copies < 2:
                raise InputError("--formula combines two copies or more: give --copies 2 or more.")
        if self.partial and self.records is not None:
            raise InputError("--only keeps the records of the file; leave --records away.")


@dataclass(frozen=True, eq=False)
class MadeCopies:
    """Copies, what made them, and what they are good for."""

    order: Order
    original: Confidential = field(repr=False)
    keys: tuple[KeyVariable, ...] = field(repr=False)
    synthesis: Synthesis = field(repr=False)
    tables: TableUtility = field(repr=False)
    propensity: PropensityUtility = field(repr=False)
    regression: RegressionUtility | None = field(repr=False)

    @property
    def converged(self) -> bool:
        return self.synthesis.draws.agreement != "untrusted"

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        draws = self.synthesis.draws
        most = draws.most_classes
        return (
            Diagnostic("rhat", draws.convergence.rhat, draws.agreement, draws.agreement_in_words),
            Diagnostic(
                "classes",
                most,
                "caution" if binds(self.synthesis) else "good",
                occupied_in_words(most, self.synthesis.classes),
            ),
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What should be known of the input."""
        if not self.original.dropped:
            return ()
        return (f"{self.original.dropped:,} records with a missing key were left out.",)

    @property
    def values(self) -> list[tuple[Value | None, ...]]:
        """What each level of each key is in a file like the original."""
        return [level_values(self.original.microdata, coding) for coding in self.original.codings]

    @property
    def value_labels(self) -> dict[str, dict[Value, str]]:
        found = {
            coding.variable.name: value_labels(self.original.microdata, coding) for coding in self.original.codings
        }
        return {name: labels for name, labels in found.items() if labels is not None}

    @property
    def suffix(self) -> str:
        return format_like(self.order.data)


def make_copies(order: Order, progress: Progress = silent) -> MadeCopies:
    """Read the file, learn its classes, make the copies and compare them with it."""
    progress("reading", 0)
    original = read_confidential(
        order.data,
        order.keys,
        table=order.table,
        zeros=order.zeros,
        recode=order.recode,
        levels=order.levels,
        missing=order.missing,
    )
    keys, codes, missing, zeros = original.keys, original.codes, None, original.zeros
    if order.missing == "impute":
        keys, codes, missing = original.without_missing()
        zeros = None if zeros is None else StructuralZeros(keys, zeros.rules)
    sizes = tuple(len(key) for key in keys)
    sampler = sampler_of(sizes, len(codes), zeros, order.classes)
    while True:
        found = synthesize(
            sampler,
            codes,
            copies=order.copies,
            records=order.records,
            only=[order.keys.index(name) for name in order.only] if order.partial else None,
            zeros=zeros,
            missing=missing,
            length=order.length,
            rng=stream(order.seed, "synthesis"),
            progress=progress,
        )
        if order.classes or not binds(found) or 2 * sampler.classes > MOST_CLASSES:
            break
        sampler = replace(sampler, classes=2 * sampler.classes)
    progress("comparing with the original", 0)
    complete = codes if missing is None else codes[~missing.any(axis=1)]
    names = [key.name for key in keys]
    return MadeCopies(
        order=order,
        original=original,
        keys=keys,
        synthesis=found,
        tables=compare_tables(complete, found.copies, sizes, names),
        propensity=compare_propensity(complete, found.copies, sizes),
        regression=_regression(order, keys, complete, found.copies),
    )


def _regression(
    order: Order, keys: Sequence[KeyVariable], codes: Codes, copies: Sequence[Codes]
) -> RegressionUtility | None:
    if order.formula is None:
        return None
    rule: Rule = "partial" if order.partial else "full"
    return compare_regression(
        order.formula,
        _columns(keys, codes),
        [_columns(keys, copy) for copy in copies],
        family=order.family,
        rule=rule,
        success=order.success,
    )


def _columns(keys: Sequence[KeyVariable], codes: Codes) -> dict[str, np.ndarray]:
    """Labels, or numbers where all labels of a key are numbers."""
    found = {}
    for key, column in zip(keys, codes.T, strict=True):
        labels = [label for label in key.levels if label != MISSING]
        try:
            values: np.ndarray = np.array([np.nan if label == MISSING else float(label) for label in key.levels])
        except ValueError:
            values = np.array([None if label == MISSING else label for label in key.levels], dtype=object)
        if not labels:
            values = np.array([None] * len(key.levels), dtype=object)
        found[key.name] = values[column]
    return found
