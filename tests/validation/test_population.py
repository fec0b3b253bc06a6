"""A known population, its samples, and how they are drawn."""

from pathlib import Path

import numpy as np
import pytest

from keyhole.errors import ForbiddenRecords, InputError
from keyhole.risk.truth import known_truth
from keyhole.table.contingency import ContingencyTable
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import parse_zero_rules
from keyhole.validation.designs import Bernoulli, SimpleRandom, Stratified, equal, proportional
from keyhole.validation.population import KnownPopulation, load_population
from keyhole.validation.sizes import sample_size, sample_sizes

from .people import KEYS, people


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_sample_is_that_of_the_rows_and_its_truth_is_the_populations() -> None:
    population = people()
    chosen = rng().choice(len(population), 300, replace=False)
    weights = rng().uniform(1, 5, 300)
    sample, truth = population.sample(chosen, weights)
    codes = population.table.cells[population.cell_of]
    plain = ContingencyTable.from_codes(KEYS, codes[chosen], weights=weights)
    for name in ("cells", "counts", "weights", "squared_weights"):
        np.testing.assert_allclose(getattr(sample.table, name), getattr(plain, name))
    expected = known_truth(plain, ContingencyTable.from_codes(KEYS, codes))
    assert (truth.tau1, truth.tau2) == (expected.tau1, expected.tau2)
    assert truth.tau1 > 0
    np.testing.assert_array_equal(truth.population_counts, expected.population_counts)
    assert sample.population_size == 4000


def test_a_file_gives_the_same_population_in_its_row_order(tmp_path: Path) -> None:
    rows = [("b", "x", "1"), ("a", "y", ""), ("a", "x", "2"), ("b", "x", "2"), ("", "x", "1")]
    file = tmp_path / "people.csv"
    file.write_text("K,L,S\n" + "\n".join(",".join(row) for row in rows) + "\n")
    loaded = load_population(file, ["K", "L"], missing="drop", strata=["S"])
    assert loaded.dropped == 1
    population = loaded.population
    labels = [
        tuple(key.levels[code] for key, code in zip(population.keys, population.table.cells[cell], strict=True))
        for cell in population.cell_of
    ]
    assert labels == [row[:2] for row in rows[:4]]
    # The strata are those of the rows that are left: 1, missing, 2, 2.
    stratum = population.strata(["S"])
    assert stratum[2] == stratum[3]
    assert len(set(stratum.tolist())) == 3


def test_strata_of_two_columns_are_their_combinations() -> None:
    population = people()
    stratum = population.strata(["A", "C"])
    codes = population.table.cells[population.cell_of][:, [0, 2]]
    for number in range(stratum.max() + 1):
        assert len(np.unique(codes[stratum == number], axis=0)) == 1
    assert stratum.max() + 1 == len(np.unique(codes, axis=0))
    with pytest.raises(InputError, match="not loaded: Z"):
        population.strata(["A", "Z"])


def test_the_digest_tells_order_rules_and_levels_apart() -> None:
    population = people(300)
    backwards = KnownPopulation(population.table, population.cell_of[::-1])
    rules = parse_zero_rules("- {A: A0, B: B0}")
    absent = [0, 0] not in population.table.cells[:, :2].tolist()
    assert population.digest == people(300).digest
    assert population.digest != backwards.digest
    assert population.digest != people(300, seed=6).digest
    if absent:
        ruled = KnownPopulation(population.table, population.cell_of, StructuralZeros(KEYS, rules))
        assert population.digest != ruled.digest


def test_people_in_impossible_cells_are_refused() -> None:
    population = people()
    level = KEYS[0].levels[int(population.table.cells[0, 0])]
    zeros = StructuralZeros(KEYS, parse_zero_rules(f"- {{A: {level}}}"))
    with pytest.raises(ForbiddenRecords, match="rule 1"):
        KnownPopulation(population.table, population.cell_of, zeros)


def test_a_simple_random_sample_is_that_of_the_shared_tables() -> None:
    population = people()
    drawn = SimpleRandom().draw(population, 50, rng=rng(7))
    np.testing.assert_array_equal(drawn.chosen, rng(7).choice(4000, 50, replace=False))


def test_a_bernoulli_sample_has_the_expected_size_on_average() -> None:
    population = people()
    sizes = [len(Bernoulli().draw(population, 400, rng=rng(seed)).chosen) for seed in range(100)]
    # Binomial(4000, 0.1): standard deviation 19.
    assert abs(np.mean(sizes) - 400) < 4 * 19 / 10
    assert 13 < np.std(sizes) < 26


@pytest.mark.parametrize("size", [100, 999, 2500])
def test_shares_of_strata(size: int) -> None:
    counts = np.array([2000, 1000, 600, 350, 50])
    taken = proportional(counts, size, rng())
    assert taken.sum() == size
    assert (np.abs(taken - size * counts / 4000) < 1).all()
    alike = equal(counts, size, rng())
    assert alike.sum() == size
    cut = alike[alike < counts]
    assert cut.max() - cut.min() <= 1


def test_proportional_shares_give_everybody_the_same_chance() -> None:
    counts = np.array([700, 200, 60, 20, *[1] * 20])
    taken = np.array([proportional(counts, 90, rng(seed)) for seed in range(2000)])
    assert (taken.sum(axis=1) == 90).all()
    due = 90 * counts / counts.sum()
    assert (np.abs(taken - due) < 1).all()
    scatter = np.sqrt(np.maximum((due % 1) * (1 - due % 1), 1e-9) / 2000)
    assert (np.abs(taken.mean(axis=0) - due) < 4.5 * scatter + 1e-9).all()


def test_equal_shares_carry_weights_that_add_up_to_the_population() -> None:
    population = people()
    drawn = Stratified(("A",), "equal").draw(population, 600, rng=rng())
    assert drawn.weights is not None
    assert drawn.weights.sum() == pytest.approx(len(population))
    assert drawn.weights.std() > 0.1
    stratum = population.strata(["A"])
    inside = np.bincount(stratum[drawn.chosen])
    np.testing.assert_allclose(drawn.weights, (np.bincount(stratum) / inside)[stratum[drawn.chosen]])
    for other in (Stratified(("A",), "equal", weighted=False), Stratified(("A",))):
        assert other.draw(population, 600, rng=rng()).weights is None
    with pytest.raises(InputError, match="strata"):
        Stratified(("A", "B", "C")).draw(population, 5, rng=rng())


def test_sizes_are_numbers_or_percentages() -> None:
    assert sample_sizes(["5%", "1000", "200", "1_000"], 4000) == (200, 1000)
    for wrong in ("0", "5000", "-3", "many", "110%", "0.001%", ""):
        with pytest.raises(InputError, match=r"sample"):
            sample_size(wrong, 4000)


def test_a_design_tells_whether_models_get_weights() -> None:
    assert Stratified(("K",)).settings["weighted"] is False
    assert Stratified(("K",), "equal").settings["weighted"] is True
    assert Stratified(("K",), "equal", weighted=False).settings["weighted"] is False
