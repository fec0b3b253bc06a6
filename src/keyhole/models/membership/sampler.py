r"""The Gibbs sampler of both mixed membership models, memberships integrated out.

.. math:: x_{ij} \mid z_{ij} = k \sim \theta_{jk}, \quad z_{ij} \sim g_i, \quad
    g_i \sim \mathrm{Dirichlet}(\alpha_i\, g_0), \quad \theta_{jk} \sim \mathrm{Dirichlet}(\nu_j b_j)

Grade of membership: K profiles, :math:`g_0 \sim \mathrm{Dirichlet}(1, \ldots, 1)`, one :math:`\alpha` for all.
Hierarchical Dirichlet process: profiles without end, :math:`g_0 \sim \mathrm{GEM}(\alpha_0)`, an
:math:`\alpha_i` for each record.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from keyhole.arrays import Codes, IntVector, Vector
from keyhole.errors import FitFailed
from keyhole.models.membership import _kernels as kernels
from keyhole.models.membership._split_kernels import MOST_KEYS, split_or_merge
from keyhole.models.membership._table_kernels import move_tables
from keyhole.models.membership.admissibility import Admissibility
from keyhole.models.membership.cell_probability import CellProbability
from keyhole.models.membership.concentration import ConcentrationLaws
from keyhole.models.membership.level_prior import LevelPrior, Prior, Rows
from keyhole.models.membership.starts import allocations
from keyhole.models.membership.state import Memberships, Room
from keyhole.numerics.concentration import GammaPrior, draw_common
from keyhole.table.structural_zeros import StructuralZeros

MOST_PROFILES = 30_000
"""What the type of the allocations can number, with room for the births of a sweep."""

MOST_IMAGINARY = 1_000
"""Inadmissible records for each real one, beyond which a sweep would take longer than anybody waits."""


@dataclass(frozen=True, eq=False)
class MembershipSampler:
    """Prior and transitions.

    Attributes
    ----------
    levels
        The number of levels of each key.
    components
        The number of profiles; 0 for as many as the records ask for.
    prior
        The prior of the profiles.
    own
        Prior of the concentration of a record (of all records, where they share one).
    above
        Prior of the concentration of the weights of profiles without end.
    zeros
        What is impossible.
    """

    levels: tuple[int, ...]
    components: int = 0
    prior: Prior = "marginal"
    own: GammaPrior = field(default=GammaPrior())
    above: GammaPrior = field(default=GammaPrior())
    zeros: StructuralZeros | None = None
    memberships: int = 2048

    @property
    def state_type(self) -> type[Memberships]:
        return Memberships

    @property
    def unbounded(self) -> bool:
        return self.components == 0

    @cached_property
    def rows(self) -> Rows:
        return Rows(self.levels)

    @cached_property
    def laws(self) -> ConcentrationLaws:
        return ConcentrationLaws.of(self.own, self.rows.keys)

    @cached_property
    def level_prior(self) -> LevelPrior:
        return LevelPrior(self.rows, self.prior)

    @cached_property
    def admissible(self) -> Admissibility:
        if self.zeros is None:
            return Admissibility.everything(self.rows)
        return Admissibility.of(self.zeros.small_diagram, self.rows)

    @cached_property
    def moves(self) -> tuple[str, ...]:
        """What sweeps move, each a random one of these; a split costs more than the others and is rarely accepted.

        Imaginary records are not kept, so that with structural zeros profiles cannot be integrated out.
        """
        whole = self.zeros is None and 1 < self.rows.keys <= MOST_KEYS
        return ("keys", "tables") * 3 + ("profiles",) * whole

    @cached_property
    def cells(self) -> CellProbability:
        diagram = None if self.zeros is None else self.zeros.small_diagram
        return CellProbability(self.rows, self.laws, self.unbounded, diagram, self.memberships)

    def draw_prior(self, size: int, rng: Generator) -> Memberships:
        mass, base = self.level_prior.draw(rng)
        alpha = np.zeros(size) if self.unbounded else np.array([self.own.draw(rng)])
        z = np.zeros((size, self.rows.keys), dtype=np.int16)
        nobody = np.zeros((self.rows.total, self.components), dtype=np.int64)
        theta = self.level_prior.profiles(mass, base, nobody, rng)
        g0 = np.empty(0) if self.unbounded else rng.dirichlet(np.ones(self.components))
        state = Memberships(z, theta, g0, 1.0 if self.unbounded else 0.0, alpha, self.above.draw(rng), mass, base)
        self.redraw(state, rng)
        return state

    def redraw(self, state: Memberships, rng: Generator) -> Codes:
        """New records; profiles that they are the first to have join the state."""
        records = np.zeros(state.z.shape, dtype=np.int32)
        room = Room.of(state, self._spare)
        longer = np.zeros(self.rows.keys, dtype=np.int64)
        state.imaginary = self._imagine(state, room, longer, len(records), rng, records)
        K = room.profiles
        state.theta, state.g0, state.left = room.theta[:, :K].copy(), room.g0[:K].copy(), room.left
        return records

    def start(self, records: Codes, rng: Generator, *, crowded: bool) -> Memberships:
        z = allocations(records, self.components, crowded, rng)
        K = self.components or int(z.max(initial=0)) + 1
        mass, base = self.level_prior.flat()
        alpha = np.full(len(records) if self.unbounded else 1, self.own.shape / self.own.rate)
        counts = np.zeros((self.rows.total, K), dtype=np.int64)
        np.add.at(counts, (records + self.rows.start[:-1], z), 1)
        g0 = 1.0 + np.bincount(z[:, 0], minlength=K)
        left = 0.01 if self.unbounded else 0.0
        theta = self.level_prior.profiles(mass, base, counts, rng)
        return Memberships(z, theta, (1.0 - left) * g0 / g0.sum(), left, alpha, 1.0, mass, base)

    def sweep(self, state: Memberships, records: Codes, rng: Generator) -> Memberships:
        room = Room.of(state, self._spare)
        longer = np.full(self.rows.keys, len(records), dtype=np.int64)
        self._allocate(state, room, np.ascontiguousarray(records, dtype=np.int32), rng)
        imaginary = 0
        if self.zeros is not None:
            imaginary = self._imagine(state, room, longer, len(records), rng)
        if room.profiles > MOST_PROFILES:
            raise FitFailed(f"More than {MOST_PROFILES:,} profiles: give the concentrations other priors.")
        z, counts, tables = self._relabelled(state, room)
        alpha, alpha0, left, g0 = self._draw_weights(state, tables, longer, rng)
        mass, base = self.level_prior.update(state.mass, state.base, counts, rng)
        theta = self.level_prior.profiles(mass, base, counts, rng)
        return Memberships(z, theta, g0, left, alpha, alpha0, mass, base, imaginary)

    def probabilities(self, state: Memberships, cells: Codes, rng: Generator) -> Vector:
        return self.cells.of(state, cells, rng)

    def trace(self, state: Memberships) -> dict[str, float]:
        return {
            "profiles": float(state.profiles),
            "largest_weight": float(state.g0.max(initial=0.0)),
            "alpha": float(state.alpha.mean()) if len(state.alpha) else 0.0,
            "alpha0": state.alpha0,
            "mass": float(state.mass.mean()),
            "imaginary": float(state.imaginary),
        }

    @property
    def _spare(self) -> int:
        """Columns for profiles to be born into, where their number is not fixed."""
        return self.rows.keys + 16 if self.unbounded else 0

    def _allocate(self, state: Memberships, room: Room, records: Codes, rng: Generator) -> None:
        """Profiles of single keys, of tables, or split and merged; then tables and concentrations."""
        where = records, state.z, state.alpha, self.unbounded
        prior = state.alpha0, state.mass, state.base, self.rows.start
        move = self.moves[int(rng.integers(len(self.moves)))]
        u = rng.random((self.rows.keys + (move == "tables"), len(records)))
        if move == "tables":
            room.take(
                *move_tables(
                    u, *where, room.profiles, room.left, room.theta, room.g0, *prior, room.counts, room.tables, rng
                )
            )
        elif move == "profiles":
            room.profiles = split_or_merge(*where, room.profiles, room.theta, room.g0, *prior, rng)
        v = rng.random(len(records) if self.unbounded else 0)
        room.take(
            *kernels.allocate(
                move == "keys", *where, room.profiles, room.left, room.theta, room.g0, *prior,
                *self._share(room.theta, room), u, v, *self.laws.arrays, room.counts, room.tables, rng,
            )
        )  # fmt: skip

    def _imagine(
        self,
        state: Memberships,
        room: Room,
        longer: IntVector,
        wanted: int,
        rng: Generator,
        records: Codes | None = None,
    ) -> int:
        """Records drawn from the model until so many are admissible; the others are counted as if they were real.

        With ``records`` the admissible ones are written there and become the state's.
        """
        most = MOST_IMAGINARY * max(wanted, 1)
        stored = np.empty((0, self.rows.keys), dtype=np.int32) if records is None else records
        shared = self._share(np.ones((1, room.theta.shape[1])), room)
        got, missed, *filled = kernels.imagine(
            wanted, most, state.alpha, self.unbounded, room.profiles, room.left, room.theta, room.g0, state.alpha0,
            state.mass, state.base, self.rows.start, *shared, *self.laws.arrays, *self.admissible.arrays,
            room.counts, room.tables, longer, stored, state.z, rng,
        )  # fmt: skip
        room.take(*filled)
        if got < wanted:
            raise FitFailed(
                f"The impossible combinations hold nearly all of what the model believes: {missed:,} inadmissible "
                f"records were drawn beside {wanted:,} real ones. Recode the keys that the rules tie together, or "
                "use the latent class model, which needs no such records."
            )
        return int(missed)

    def _share(self, theta: Vector, room: Room) -> tuple[Vector, Vector, NDArray[np.int16]]:
        """The alias tables of the weights times the given probabilities."""
        rows, K = len(theta), max(room.profiles, 1)
        tables = np.zeros(rows), np.ones((rows, K)), np.zeros((rows, K), dtype=np.int16)
        kernels.share_tables(theta, room.g0, room.profiles, *tables)
        return tables

    def _relabelled(self, state: Memberships, room: Room) -> tuple[NDArray[np.int16], IntVector, IntVector]:
        """Allocations, counts and tables without the profiles that nobody has, where they may vanish."""
        K = room.profiles
        if not self.unbounded:
            return state.z, room.counts, room.tables
        used = room.used
        z = state.z
        if len(used) < K:
            label = np.zeros(K, dtype=np.int16)
            label[used] = np.arange(len(used))
            kernels.relabel(z, label)
        return z, np.ascontiguousarray(room.counts[:, used]), room.tables[used]

    def _draw_weights(
        self, state: Memberships, tables: IntVector, longer: IntVector, rng: Generator
    ) -> tuple[Vector, float, float, Vector]:
        """Concentrations and weights given the tables: alpha, alpha0, what is left, and g0."""
        if self.unbounded:
            g0 = np.empty(len(tables))
            return state.alpha, *kernels.draw_weights(tables, self.above.shape, self.above.rate, g0, rng), g0
        alpha = np.array([draw_common(self.own, int(tables.sum()), longer, rng)])
        return alpha, state.alpha0, 0.0, _dirichlet(1.0 + tables.astype(np.float64), rng)


def _dirichlet(shape: Vector, rng: Generator) -> Vector:
    draws = rng.standard_gamma(shape)
    return np.asarray(draws / draws.sum())
