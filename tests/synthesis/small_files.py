"""Small files, chains on them, and what is exact about their risk."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from keyhole.arrays import Codes, Vector
from keyhole.models.latent_class.cell_tree import CellTree
from keyhole.models.latent_class.sampler import LatentClassSampler
from keyhole.synthesis.chances import Weighed
from keyhole.synthesis.class_draws import ClassDraw, Draws, Length, draw_classes
from keyhole.synthesis.generator import synthesize
from keyhole.synthesis.question import Question
from keyhole.synthesis.risk import synthetic_risk
from keyhole.synthesis.risk_result import SyntheticRisk
from keyhole.synthesis.supports import Near, Support
from keyhole.synthesis.weighing import weigh

TOLERANCE = 0.01
"""Total variation from what is exact."""

SIZES = (2, 3, 2)


def skewed(sizes: tuple[int, ...], records: int, rng: np.random.Generator) -> Codes:
    """Independent keys whose later levels are rarer."""
    columns = []
    for size in sizes:
        share = 1.0 / np.arange(1, size + 1)
        columns.append(rng.choice(size, records, p=share / share.sum()))
    return np.stack(columns, axis=1)


def clustered(sizes: tuple[int, ...], records: int, rng: np.random.Generator, classes: int = 3) -> Codes:
    """Records of a few classes that are well apart."""
    member = rng.integers(0, classes, records)
    columns = []
    for size in sizes:
        law = rng.dirichlet(np.full(size, 0.4), classes) + 0.02
        edges = (law / law.sum(axis=1, keepdims=True)).cumsum(axis=1)
        columns.append(np.minimum((edges[member] < rng.random((records, 1))).sum(axis=1), size - 1))
    return np.stack(columns, axis=1)


def every_cell(sizes: tuple[int, ...]) -> Codes:
    return np.array(list(product(*map(range, sizes))))


def run(sampler: LatentClassSampler, file: Codes, asked: Codes, length: Length, seed: int) -> Draws:
    rng = np.random.default_rng(seed)
    return draw_classes(sampler, CellTree.of(sampler.sizes, file), asked, length, rng=rng, keep_states=True)


def runs(
    sampler: LatentClassSampler, codes: Codes, copies: Sequence[Codes], asked: Codes, length: Length, seed: int = 1
) -> list[Draws]:
    """Of the file, and of the file with each copy."""
    files = [codes, *(np.concatenate([codes, copy]) for copy in copies)]
    return [run(sampler, file, asked, length, seed + place) for place, file in enumerate(files)]


def known(drawn: Draws, keys: int) -> list[ClassDraw]:
    return [ClassDraw.known(state, keys) for state in drawn.states]


def weighed(
    support: Support, asked: Codes, drawn: Sequence[Sequence[ClassDraw]], beliefs: Vector | None = None
) -> Weighed:
    return weigh(asked, support, drawn[0], drawn[1:], np.arange(len(asked)), beliefs)


def by_cell(found: Vector, asked: Codes, sizes: tuple[int, ...]) -> Vector:
    """Chances of the support ``all`` in the order of the cells: the record's own comes from the first place."""
    chance = found[:, 1:].copy()
    own = (every_cell(sizes)[None] == asked[:, None]).all(axis=2)
    chance[own] = found[:, 0]
    return chance


def variation(one: Vector, other: Vector) -> Vector:
    return np.asarray(0.5 * np.abs(one - other).sum(axis=-1))


def normal(log: Vector) -> Vector:
    share = np.exp(log - log.max(axis=-1, keepdims=True))
    return np.asarray(share / share.sum(axis=-1, keepdims=True))


def level_counts(codes: Codes, sizes: tuple[int, ...]) -> list[Vector]:
    return [np.bincount(codes[:, j], minlength=size).astype(float) for j, size in enumerate(sizes)]


def without(codes: Codes, row: Codes) -> Codes:
    """The file without one record of a combination."""
    return np.delete(codes, (codes == row).all(axis=1).argmax(), axis=0)


def all_alike(log_weight: Vector) -> tuple[Vector, Vector]:
    """Weights broken on purpose: all draws count alike, as if the record had not been in its place."""
    return np.full(log_weight.shape, 1.0 / log_weight.shape[1]), np.zeros(len(log_weight))


def small_file(seed: int, records: int = 80) -> tuple[LatentClassSampler, Codes, tuple[Codes, ...]]:
    rng = np.random.default_rng(seed)
    sizes = (3, 2, 4, 3)
    codes = clustered(sizes, records, rng)
    sampler = LatentClassSampler(sizes, 8, "marginal")
    made = synthesize(sampler, codes, copies=2, length=Length(50, 1, 20, 1), rng=rng)
    return sampler, codes, made.copies


SHORT = Length(60, 2, 80, 2)


def assessed(
    sampler: LatentClassSampler, codes: Codes, copies: Sequence[Codes], seed: int = 9, **options: object
) -> SyntheticRisk:
    support = Near(sampler.sizes)
    question = Question(**{"support": support, "length": SHORT, **options})  # type: ignore[arg-type]
    return synthetic_risk(sampler, codes, copies, question, rng=np.random.default_rng(seed))
