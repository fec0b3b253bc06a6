r"""Gibbs sampling of a Dirichlet-process mixture of products of multinomials, truncated.

.. math:: x_{ij} \mid z_i = k \sim \theta_{jk}, \quad P(z_i = k) = \pi_k = V_k \prod_{l<k} (1 - V_l), \quad
    V_k \sim \mathrm{Beta}(1, a), \quad \theta_{jk} \sim \mathrm{Dirichlet}(M_j b_j).

Where some cells are impossible, class k gives an admissible cell x the probability
:math:`\prod_j \theta_{jk}(x_j) / A_k` with :math:`A_k` its admissible mass, so that :math:`\pi_k` is the share
of the class among the people there can be. No imaginary records are needed.

A sweep: classes of the records given everything; mass and base given the probabilities of the occupied classes;
then, with sticks and probabilities integrated out, a split or merge and exchanges of labels; sticks,
concentration and probabilities given the classes. With structural zeros the probabilities cannot be integrated
out: there are no splits, and labels take them along.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.random import Generator

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.models.latent_class import _admissible_kernels as admissible
from keyhole.models.latent_class import _kernels as kernels
from keyhole.models.latent_class._split_kernels import split_or_merge
from keyhole.models.latent_class.cell_tree import CellTree, first_difference
from keyhole.models.latent_class.flat_diagram import FlatDiagram
from keyhole.models.latent_class.state import LatentClasses
from keyhole.table.decision_diagram import DecisionDiagram

EXTREME = -200.0
"""Log admissible mass of a class below which its products are formed in logarithms."""

FEW, CROWDED = 2, 0.8
"""Classes that chains start with: this many, or this share of all."""


@dataclass(frozen=True)
class LatentClassSampler:
    """The sampler for tables with given numbers of levels.

    Attributes
    ----------
    classes
        The truncation: no more classes than this.
    prior
        ``uniform``: every Dirichlet parameter is 1, as in the papers. ``marginal``: a mass times a base, both
        learned.
    concentration_prior
        Shape and rate of the gamma prior of a.
    splits
        Splits or merges proposed in a sweep; none with structural zeros.
    diagram
        Of the admissible cells, if some are impossible.
    """

    sizes: tuple[int, ...]
    classes: int = 50
    prior: Literal["uniform", "marginal"] = "marginal"
    concentration_prior: tuple[float, float] = (0.25, 0.25)
    splits: int = 1
    diagram: DecisionDiagram | None = None

    @property
    def state_type(self) -> type[LatentClasses]:
        return LatentClasses

    @cached_property
    def begins(self) -> IntVector:
        """Where the levels of each key begin among all, and where the last ones end."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @cached_property
    def key_of(self) -> IntVector:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def _flat(self) -> FlatDiagram | None:
        return None if self.diagram is None else FlatDiagram.of(self.diagram)

    def draw_prior(self, size: int, rng: Generator) -> LatentClasses:
        shape, rate = self.concentration_prior
        mass, base = self._first_base()
        if self.prior == "marginal":
            mass = rng.standard_exponential(len(self.sizes))
            base = np.concatenate([rng.dirichlet(np.ones(levels)) for levels in self.sizes])
        state = self._blank(size, float(rng.gamma(shape, 1 / rate)), mass, base)
        self._draw_parameters(state, np.zeros(self.classes, np.int64), self._no_counts(), rng)
        return state

    def redraw(self, state: LatentClasses, rng: Generator) -> Codes:
        member = rng.choice(self.classes, state.records, p=_normal(np.exp(state.log_weight)))
        return self.levels_of(member, state, rng)

    def levels_of(self, member: IntVector, state: LatentClasses, rng: Generator) -> Codes:
        """Records of people of given classes."""
        codes = np.empty((len(member), len(self.sizes)), dtype=np.int64)
        if self._flat is not None:
            order = np.argsort(member, kind="stable")
            drawn = np.empty_like(codes)
            admissible.draw_admissible_cells(
                member[order], state.log_theta, self.begins, *self._flat.arrays, rng, drawn
            )  # type: ignore[call-arg]
            codes[order] = drawn
            return codes
        for j, levels in enumerate(self.sizes):
            edges = np.exp(state.log_theta[self.begins[j] : self.begins[j + 1]]).cumsum(axis=0).T[member]
            reach = rng.random(len(member)) * edges[:, -1]
            codes[:, j] = np.minimum((edges < reach[:, None]).sum(axis=1), levels - 1)
        return codes

    def start(self, records: CellTree | Codes, rng: Generator, *, crowded: bool) -> LatentClasses:
        tree = self._tree(records)
        mass, base = self._first_base()
        if self.prior == "marginal":
            seen = np.zeros(self.begins[-1])
            np.add.at(seen, tree.rows, tree.counts[:, None])
            share = (seen + 1.0 / np.array(self.sizes)[self.key_of]) / (tree.records + 1.0)
            base = share / np.add.reduceat(share, self.begins[:-1])[self.key_of]
        state = self._blank(tree.records, 1.0, mass, base)
        few = max(min(FEW, self.classes // 2), 1)
        used = min(max(int(CROWDED * self.classes), few + 1), self.classes) if crowded else few
        member = rng.integers(0, used, len(tree.counts))
        counts = self._no_counts()
        np.add.at(counts, (tree.rows, member[:, None]), tree.counts[:, None])
        sizes = np.bincount(member, tree.counts, self.classes).astype(np.int64)
        self._draw_parameters(state, sizes, counts, rng, first=True)
        return state

    def sweep(self, state: LatentClasses, records: CellTree | Codes, rng: Generator) -> LatentClasses:
        tree = self._tree(records)
        member, sizes, counts = self.allocation(state, tree, rng)
        state.occupied = int(np.count_nonzero(sizes))
        if self.prior == "marginal":
            kernels.draw_base(state.log_theta, sizes, self.begins, rng, state.mass, state.base)
        if self.splits and self.diagram is None and tree.records > 1:
            cell_of = np.repeat(np.arange(len(tree.counts)), tree.counts)
            parameters = self._parameters(state), state.mass[self.key_of[tree.rows[0]]]
            for _ in range(self.splits):
                split_or_merge(tree.rows, cell_of, *parameters, state.concentration, rng, member, sizes, counts)
        label = np.arange(self.classes)
        kernels.swap_labels(sizes, state.concentration, rng, label)
        state.log_theta = np.ascontiguousarray(state.log_theta[:, label])
        self._draw_parameters(state, sizes, np.ascontiguousarray(counts[:, label]), rng)
        return state

    def allocation(
        self, state: LatentClasses, tree: CellTree, rng: Generator
    ) -> tuple[IntVector, IntVector, IntVector]:
        """The class of each record, cell by cell; the sizes of the classes; their records by level."""
        member = np.empty(tree.records, dtype=np.int64)
        sizes, counts = np.empty(self.classes, dtype=np.int64), self._no_counts()
        uniforms = rng.random(tree.records)
        kernels.allocate(
            tree.rows, tree.depth, tree.counts, *_factors(state), rng, uniforms, member, sizes, counts
        )
        return member, sizes, counts

    def probabilities(self, state: LatentClasses, cells: Codes, rng: Generator) -> Vector:
        rows = (cells + self.begins[:-1]).astype(np.int32)
        found = np.empty(len(rows))
        depth = first_difference(rows)
        kernels.cell_probabilities(rows, depth, *_factors(state), found)
        return found

    def trace(self, state: LatentClasses) -> dict[str, float]:
        return {"classes": float(state.occupied), "concentration": state.concentration}

    def _tree(self, records: CellTree | Codes) -> CellTree:
        return records if isinstance(records, CellTree) else CellTree.of(self.sizes, records)

    def _first_base(self) -> tuple[Vector, Vector]:
        """The uniform prior: each key's mass is its number of levels."""
        levels = np.array(self.sizes, dtype=np.float64)
        return levels if self.prior == "uniform" else np.ones(len(levels)), 1.0 / levels[self.key_of]

    def _blank(self, records: int, concentration: float, mass: Vector, base: Vector) -> LatentClasses:
        weight, theta = np.empty(self.classes), np.empty((self.begins[-1], self.classes))
        return LatentClasses(weight, theta, np.zeros(self.classes), mass, base, concentration, records)

    def _no_counts(self) -> IntVector:
        return np.zeros((self.begins[-1], self.classes), dtype=np.int64)

    def _parameters(self, state: LatentClasses) -> Vector:
        """The parameter of the Dirichlet law at each level."""
        return state.mass[self.key_of] * state.base

    def _draw_parameters(
        self, state: LatentClasses, sizes: IntVector, counts: IntVector, rng: Generator, *, first: bool = False
    ) -> None:
        """Sticks, concentration and level probabilities given the classes of the records.

        At first there are no probabilities to go on from, and impossible cells are left out of account.
        """
        lost = kernels.draw_sticks(sizes, state.concentration, rng, state.log_weight)
        if sizes.any():
            shape, rate = self.concentration_prior
            state.concentration = float(rng.gamma(shape + self.classes - 1, 1.0 / (rate - lost)))
        parameters = self._parameters(state)
        if self._flat is None or not sizes.any() or first:
            kernels.draw_levels(parameters, counts, self.begins, rng, state.log_theta)
            if self._flat is not None:
                admissible.log_admissible_mass(
                    state.log_theta, self.begins, *self._flat.arrays, state.log_admissible
                )  # type: ignore[call-arg]
        else:
            admissible.draw_admissible_levels(
                parameters,
                counts,
                sizes,
                self.begins,
                *self._flat.arrays,
                rng,
                state.log_theta,
                state.log_admissible,
            )  # type: ignore[call-arg]


def _factors(state: LatentClasses) -> tuple[Vector, Vector, Vector, Vector, Vector, IntVector]:
    """What the probability of a cell is made of, class by class, plain and in logarithms.

    The levels' probabilities; what their product is multiplied by; the shares and the admissible mass that this
    consists of; and the classes for which it is too large. These have next to no admissible mass, so that neither
    the factor nor the products it belongs to can be told from infinity and zero.
    """
    extreme = state.log_admissible < EXTREME
    weight = np.exp(np.where(extreme, -np.inf, state.log_weight - state.log_admissible))
    theta = np.exp(state.log_theta)
    return theta, state.log_theta, weight, state.log_weight, state.log_admissible, np.flatnonzero(extreme)


def _normal(weights: Vector) -> Vector:
    return np.asarray(weights / weights.sum())
