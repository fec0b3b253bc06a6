"""The search for cells: the same in slices as in one go, and refused or interrupted where it would not end."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations

import numpy as np
import pytest

from keyhole.errors import FitFailed
from keyhole.inference.formula import Generators
from keyhole.models.loglinear import _kernels as kernels
from keyhole.models.loglinear import cell_search
from keyhole.models.loglinear.cell_search import Admission, CellSearch, pruning_order
from keyhole.models.loglinear.cells import Cells
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable
from tests.models.loglinear import twins


def uniform_sample(size: int, levels: tuple[int, ...]) -> Sample:
    codes = np.random.default_rng(0).integers(0, levels, (size, len(levels)))
    return Sample(ContingencyTable.from_codes(twins.keys_of(levels), codes), 100_000)


def search_of(sample: Sample, generators: Generators) -> CellSearch:
    codes, levels = sample.table.dense()
    sizes, order = tuple(map(len, levels)), tuple(range(len(levels)))
    return CellSearch.of(codes, sizes, order, generators, Admission.of(sample.zeros, order, levels))


@contextmanager
def alarm_after(seconds: float) -> Iterator[None]:
    """A signal, as Ctrl-C is one, that Python answers by raising ``TimeoutError``."""

    def ring(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("model", twins.MODELS)
def test_slices_change_nothing(model: str, zeros: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = twins.some_sample(25, zeros=zeros, strength=0.3)
    whole = Cells.of(sample, twins.MODELS[model])
    told: list[tuple[str, int, int | None]] = []
    monkeypatch.setattr(cell_search, "SLICE", 1)
    sliced = Cells.of(
        sample,
        twins.MODELS[model],
        progress=lambda task, done, total=None, note="": told.append((task, done, total)),
    )
    assert sliced.steps == whole.steps
    for one, other in zip(sliced.layers, whole.layers, strict=True):
        for name in ("prefix", "branch", "own"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    # One step a slice, and one slice more to find that nothing is left.
    counting = [done for task, done, _ in told if task == "finding cells"]
    assert counting == [*range(1, whole.steps + 1), whole.steps]
    assert told[-1] == ("storing cells", whole.steps, whole.steps)


def test_every_step_is_a_node_where_nothing_is_pruned() -> None:
    cells = Cells.of(twins.some_sample(), twins.MODELS["independence"])
    assert cells.steps == cells.nodes - len(cells)


def test_a_search_without_end_is_given_up() -> None:
    sample = uniform_sample(150, (10,) * 30)
    with pytest.raises(FitFailed, match=r"given up after [\d,]+ steps .* Leave out keys, recode .* fewer terms"):
        Cells.of(sample, tuple(combinations(range(30), 2)), most_steps=100_000)
    # One that ends within its steps is not.
    small, two_way = twins.some_sample(25, strength=0.3), twins.MODELS["two-way"]
    assert len(Cells.of(small, two_way, most_steps=1)) == len(Cells.of(small, two_way))


def test_a_search_can_be_interrupted() -> None:
    sample = uniform_sample(150, (10,) * 30)
    Cells.of(uniform_sample(5, (2,) * 3), ((0, 1),))  # compile
    with pytest.raises(TimeoutError), alarm_after(0.5):
        Cells.of(sample, tuple(combinations(range(30), 2)), most_steps=50_000_000)


@pytest.mark.parametrize("order", [1, 2])
def test_cells_that_nothing_prunes_are_refused_unseen(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(*_: object) -> int:
        raise AssertionError("the number of cells was known")

    monkeypatch.setattr(kernels, "walk", walk)
    sample = uniform_sample(200, (2,) * 60)
    with pytest.raises(FitFailed, match=f"would visit {2**60:,} of the {2**60:,} cells"):
        Cells.of(sample, tuple(combinations(range(60), order)))


@pytest.mark.parametrize("zeros", [False, True])
def test_the_number_that_is_known_is_that_of_brute_force(zeros: bool) -> None:
    sample = twins.some_sample(25, zeros=zeros, strength=0.3)
    expected = len(twins.active_cells(sample, (), prune=False))
    assert search_of(sample, ()).known == search_of(sample, twins.MODELS["independence"]).known == expected
    # Pairs that nobody has leave fewer, and nobody knows how many.
    assert search_of(sample, twins.MODELS["two-way"]).known is None
    assert len(twins.active_cells(sample, twins.MODELS["two-way"])) < expected


def test_the_nodes_above_the_cells_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk ends where the tree has grown too large, though its cells alone would fit."""
    sample = uniform_sample(150, (3,) * 12)
    search = search_of(sample, ((0, 1, 2, 3),))
    monkeypatch.setattr(cell_search, "SLICE", 1 << 10)
    with pytest.raises(FitFailed, match=r"visit more than [\d,]+ of the 531,441 cells"):
        search.run(9 * 3**12, sample)


def partial_cells(sample: Sample, keys: list[int], *, pairs: bool) -> float:
    """The guess that orders are judged by, each share of pairs counted anew."""
    codes, levels = sample.table.dense()
    expected = float(np.prod([len(levels[key]) for key in keys]))
    for i, j in combinations(keys, 2) if pairs else ():
        expected *= len(np.unique(codes[:, [i, j]], axis=0)) / (len(levels[i]) * len(levels[j]))
    return expected


def cheapest(sample: Sample, *, pairs: bool) -> list[int]:
    """The best of the orders that grow least from each first key."""
    J = len(sample.table.keys)

    def grown(order: list[int]) -> list[int]:
        rest = [key for key in range(J) if key not in order]
        if not rest:
            return order
        return grown([*order, min(rest, key=lambda key: partial_cells(sample, [*order, key], pairs=pairs))])

    return min((grown([first]) for first in range(J)), key=lambda order: cost_of(sample, order, pairs=pairs))


def cost_of(sample: Sample, order: list[int], *, pairs: bool = True) -> float:
    return sum(partial_cells(sample, order[:d], pairs=pairs) for d in range(1, len(order)))


@pytest.mark.parametrize("seed", range(5))
def test_the_order_is_the_one_described(seed: int) -> None:
    sample = twins.some_sample(60, (5, 7, 2, 3, 11, 4), seed, strength=0.3)
    codes, levels = sample.table.dense()
    order = pruning_order(codes, [len(found) for found in levels], tuple(combinations(range(6), 2)))
    assert sorted(order) == list(range(6))
    assert cost_of(sample, list(order)) == pytest.approx(cost_of(sample, cheapest(sample, pairs=True)))
    # Broken on purpose: an order that knows nothing of pairs is worse.
    assert cost_of(sample, list(order)) < 0.95 * cost_of(sample, cheapest(sample, pairs=False))
