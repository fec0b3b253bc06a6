"""The forward search on samples whose pairs are known."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from keyhole.inference.formula import preset, with_term
from keyhole.keys.variable import KeyVariable
from keyhole.models.loglinear.cells import Cells
from keyhole.models.loglinear.criteria import criteria
from keyhole.models.loglinear.ipf import fit_margins
from keyhole.models.loglinear.search import candidates, sampled_cells, search_terms
from keyhole.models.loglinear.search_path import SearchPath, spread_of_risk
from keyhole.population.sample import Sample
from keyhole.population.weights import pseudo_counts
from keyhole.table.contingency import ContingencyTable

SIZES = (6, 5, 4, 4, 3)
PAIRS = ((0, 1), (2, 3))


def sample_with(pairs: tuple[tuple[int, ...], ...], strength: float, seed: int, size: int = 3000) -> Sample:
    """A tenth of a population in which these sets of keys act jointly."""
    rng = np.random.default_rng(seed)
    logit = np.zeros(SIZES)
    for keys in [*((j,) for j in range(len(SIZES))), *pairs]:
        scale = 0.5 if len(keys) == 1 else strength
        logit = logit + scale * rng.standard_normal([SIZES[j] if j in keys else 1 for j in range(len(SIZES))])
    counts = rng.poisson(size * np.exp(logit) / np.exp(logit).sum())
    return sample_of(np.argwhere(counts > 0), counts[counts > 0])


def sample_of(cells: np.ndarray, counts: np.ndarray) -> Sample:
    keys = tuple(KeyVariable(f"K{j}", tuple(map(str, range(levels)))) for j, levels in enumerate(SIZES))
    table = ContingencyTable.from_codes(keys, cells, counts.astype(np.int64))
    return Sample(table, 10 * table.records)


@pytest.fixture(scope="module")
def path() -> SearchPath:
    return search_terms(sample_with(PAIRS, 1.0, 1))


def test_finds_the_pairs_and_stops(path: SearchPath) -> None:
    assert {step.term for step in path.steps[1:3]} == set(PAIRS)
    assert abs(path.steps[path.chosen].b2) < abs(path.steps[2].b2) < 3
    assert search_terms(sample_with(PAIRS, 1.0, 1), threshold=1.645).chosen in (2, 3)
    assert path.steps[0].b2 > 10
    assert path.ending in ("no evidence of underfitting", "nothing improves")
    assert all(step.converged for step in path.steps)


def test_nothing_is_found_where_nothing_is() -> None:
    found = search_terms(sample_with((), 0.0, 2), threshold=1.645, beyond=0)
    assert (found.chosen, len(found.steps), found.ending) == (0, 1, "no evidence of underfitting")
    assert not found.warnings


def test_steps_are_what_fits_from_scratch_say(path: SearchPath) -> None:
    sample = sample_with(PAIRS, 1.0, 1)
    for step in path.steps:
        fit = fit_margins(Cells.of(sample, step.terms), sample.table.counts, step.terms)
        exact = criteria(fit.fitted, fit.cells.occupied, sample.table.counts, sample.sampling_fraction)
        assert (step.tau1, step.tau2) == pytest.approx((exact.tau1, exact.tau2), rel=1e-3)
        assert (step.b1, step.b2) == pytest.approx((exact.b1, exact.b2), rel=1e-2, abs=0.02)
    assert path.fitted.generators == path.steps[path.chosen].terms


def test_the_first_step_takes_the_best_of_all_pairs(path: SearchPath) -> None:
    sample = sample_with(PAIRS, 1.0, 1)
    sizes = {}
    for pair in combinations(range(len(SIZES)), 2):
        terms = with_term(preset(1, len(SIZES)), pair)
        fit = fit_margins(Cells.of(sample, terms), sample.table.counts, terms)
        sizes[pair] = abs(criteria(fit.fitted, fit.cells.occupied, sample.table.counts, 0.1).b2)
    assert path.steps[1].term == min(sizes, key=sizes.__getitem__)


def test_same_path_again_and_under_other_labels(path: SearchPath) -> None:
    sample = sample_with(PAIRS, 1.0, 1)
    assert search_terms(sample).steps == path.steps
    rng = np.random.default_rng(3)
    relabelled = np.stack(
        [rng.permutation(levels)[sample.table.cells[:, j]] for j, levels in enumerate(SIZES)], axis=1
    )
    other = search_terms(sample_of(relabelled, sample.table.counts))
    assert [step.term for step in other.steps] == [step.term for step in path.steps]
    assert other.steps[-1].tau1 == pytest.approx(path.steps[-1].tau1, rel=1e-3)


def test_a_sample_of_cells_chooses_alike(path: SearchPath, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = path.fitted.fitted
    places, weights = sampled_cells(fitted, 300)
    assert len(places) <= 300 < len(fitted)
    assert weights @ fitted[places] == pytest.approx(fitted.sum())
    monkeypatch.setattr("keyhole.models.loglinear.search.sampled_cells", lambda means: sampled_cells(means, 700))
    assert {step.term for step in search_terms(sample_with(PAIRS, 1.0, 1)).steps[1:3]} == set(PAIRS)


def test_triples_where_pairs_are_not_enough() -> None:
    sample = sample_with(((0, 1, 2),), 1.2, 4)
    pairs = search_terms(sample, beyond=0)
    triples = search_terms(sample, largest=3, beyond=0)
    assert pairs.steps[pairs.chosen].b2 > 1.645
    assert "too few terms" in " ".join(pairs.warnings)
    assert (0, 1, 2) in triples.steps[triples.chosen].terms
    assert abs(triples.steps[triples.chosen].b2) < pairs.steps[pairs.chosen].b2


def test_nothing_left_to_add_is_said() -> None:
    found = search_terms(sample_with(((0, 1, 2),), 1.2, 4), threshold=-100.0, refits=1)
    assert found.ending in ("nothing left to add", "nothing improves")
    two = sample_with(((0, 1, 2),), 2.0, 4).table.margin(["K0", "K1"])
    alone = search_terms(Sample(two, 10 * two.records), threshold=-100.0, beyond=0)
    assert alone.ending == "nothing left to add" or alone.chosen == 0


def test_neighbours_that_disagree_are_told(path: SearchPath) -> None:
    assert not any("Neighbouring" in words for words in path.warnings)
    shaken = [*path.steps]
    shaken[path.chosen] = replace(shaken[path.chosen], tau1=10 * shaken[path.chosen].tau1)
    told = replace(path, steps=tuple(shaken))
    assert path.chosen in told.jumps
    assert any("Neighbouring" in words for words in told.warnings)


def test_a_model_chosen_too_early_disagrees_with_the_next() -> None:
    early = search_terms(sample_with(PAIRS[:1], 2.0, 1), threshold=1e9, beyond=1)
    assert early.chosen == 0
    assert 1 in early.jumps
    assert any("Neighbouring" in words for words in early.warnings)


def test_path_for_people(path: SearchPath) -> None:
    shown = path.model_path
    assert (shown.along, shown.chosen, len(shown.steps)) == ("term added", path.chosen, len(path.steps))
    assert shown.steps[0].label == "independence"
    assert shown.steps[1].label == "*".join(f"K{key}" for key in path.steps[1].term)
    assert shown.steps[1].statistics["b2"] == path.steps[1].b2


def test_spread_of_risk() -> None:
    mean = np.array([0.0, 5e-4, 0.3, 2.0, 20.0, 60.0, 400.0])
    u = np.random.default_rng(5).poisson(mean, (400_000, len(mean)))
    for which, values in enumerate(((u == 0).astype(float), 1 / (1.0 + u))):
        drawn = values.sum(axis=1)
        tails = np.sqrt(((drawn - drawn.mean()) ** 4).mean() / drawn.var() ** 2 - 1)
        assert abs(drawn.var() / spread_of_risk(mean)[which] ** 2 - 1) < 4 * tails / np.sqrt(len(drawn))
    for edge in (1e-3, 50.0):
        below, above = (spread_of_risk(np.array([edge * side]))[1] for side in (1 - 1e-9, 1 + 1e-9))
        assert below == pytest.approx(above, rel=1e-4)


def test_candidates_are_not_in_the_model() -> None:
    assert candidates(((0, 1, 2), (3,)), 4, 2) == [(0, 3), (1, 3), (2, 3)]
    assert candidates(((0, 1, 2),), 3, 3) == []


def test_weights_that_go_with_a_key_do_not_look_like_a_bias() -> None:
    """Independent keys, the levels of one of them drawn with chances from 2% to 40%."""
    rng = np.random.default_rng(5)
    p = np.ones(SIZES)
    for j, size in enumerate(SIZES):
        p = p * rng.dirichlet(np.full(size, 3.0)).reshape([size if k == j else 1 for k in range(len(SIZES))])
    people = rng.multinomial(20_000, p.ravel()).reshape(SIZES)
    chance = np.geomspace(0.02, 0.4, SIZES[0]).reshape(-1, *[1] * (len(SIZES) - 1))
    taken = rng.binomial(people, chance)
    cells, counts = np.argwhere(taken > 0), taken[taken > 0]
    plain = sample_of(cells, counts)
    weights = counts / chance.ravel()[cells[:, 0]]
    table = ContingencyTable.from_codes(plain.table.keys, cells, counts, weights)
    start = search_terms(Sample(table, 20_000), beyond=0).steps[0]
    assert abs(start.b1) < 3
    assert abs(start.b2) < 3
    # With one chance for all cells the same counts look strange.
    fit = fit_margins(Cells.of(plain, preset(1, 5)), pseudo_counts(Sample(table, 20_000)), preset(1, 5))
    scale = table.records / fit.fitted.sum()
    assert criteria(scale * fit.fitted, fit.cells.occupied, counts, table.records / 20_000).b2 > 10


def test_margins_are_sums_of_weights() -> None:
    sample = sample_with(PAIRS, 1.0, 1)
    weights = sample.table.counts * np.where(sample.table.cells[:, 0] == 0, 4.0, 1.0)
    table = ContingencyTable.from_codes(sample.table.keys, sample.table.cells, sample.table.counts, weights)
    weighted = Sample(table, sample.population_size)
    found = search_terms(weighted, beyond=0)
    counts, fitted = pseudo_counts(weighted), found.fitted
    margin = np.bincount(fitted.cells.codes[0], fitted.fitted)
    np.testing.assert_allclose(margin, np.bincount(table.cells[:, 0], counts), rtol=1e-4)
    assert np.abs(margin / margin.sum() - np.bincount(table.cells[:, 0], table.counts) / table.records).max() > 0.1
    alike = ContingencyTable.from_codes(
        table.keys, table.cells, table.counts, 10.0 * table.counts, 100.0 * table.counts
    )
    same, plain = search_terms(Sample(alike, weighted.population_size), beyond=0), search_terms(sample, beyond=0)
    assert [step.term for step in same.steps] == [step.term for step in plain.steps]
    assert same.steps[-1].tau1 == pytest.approx(plain.steps[-1].tau1, rel=1e-6)
