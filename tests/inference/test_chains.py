"""Chains on a model whose posterior is known: one key, Dirichlet prior, records alike."""

import _thread
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator

from keyhole.arrays import Codes, Vector
from keyhole.errors import FitFailed, InvalidCheckpoint
from keyhole.inference.chain import Watched
from keyhole.inference.chains import Chains, run_chains
from keyhole.inference.checkpoint import Checkpoint, kept_path, kept_paths
from keyhole.inference.sampled_fit import SampledFit
from keyhole.inference.schedule import ROUND, Schedule
from keyhole.population.sample import Sample
from keyhole.table.contingency import ContingencyTable
from tests.sampler_checks import calibration_ranks, geweke_scores, keys_of, uniformity

LEVELS = 6


@dataclass
class Weights:
    values: Vector
    apart: bool = False


@dataclass(frozen=True)
class Dirichlet:
    """Exact draws from the posterior; ``wrong`` counts records five times, ``far`` parts the starts for good."""

    wrong: bool = False
    far: bool = False
    pause: float = 0.0

    @property
    def state_type(self) -> type[Weights]:
        return Weights

    def draw_prior(self, size: int, rng: Generator) -> Weights:
        return Weights(rng.dirichlet(np.ones(LEVELS)))

    def redraw(self, state: Weights, rng: Generator) -> Codes:
        return rng.choice(LEVELS, 40, p=state.values)[:, None]

    def start(self, records: Codes, rng: Generator, *, crowded: bool) -> Weights:
        return Weights(np.full(LEVELS, 1 / LEVELS), crowded and self.far)

    def sweep(self, state: Weights, records: Codes, rng: Generator) -> Weights:
        time.sleep(self.pause)
        seen = np.bincount(records[:, 0], minlength=LEVELS) * (5 if self.wrong else 1)
        if state.apart:
            seen = np.array([0, 0, 0, 0, 0, 1000])
        return Weights(rng.dirichlet(1.0 + seen), state.apart)

    def probabilities(self, state: Weights, cells: Codes, rng: Generator) -> Vector:
        return np.asarray(state.values[cells[:, 0]])

    def trace(self, state: Weights) -> dict[str, float]:
        return {"largest": float(state.values.max())}


class OfPeople(Dirichlet):
    def redraw(self, state: Weights, rng: Generator) -> Codes:
        return rng.choice(LEVELS, 12, p=state.values)[:, None]


RECORDS = np.array([0] * 20 + [1] * 12 + [2] * 6 + [3, 4])[:, None]
SAMPLE = Sample(ContingencyTable.from_codes(keys_of((LEVELS,)), RECORDS), 60)


def run(sampler: Dirichlet | None = None, seed: int = 1, **options: object) -> Chains[Weights]:
    schedule = Schedule(**options)  # type: ignore[arg-type]
    return run_chains(sampler or Dirichlet(), RECORDS, Watched(SAMPLE), schedule, rng=np.random.default_rng(seed))


def test_chains_end_when_they_agree_and_are_worth_enough() -> None:
    found = run(target_ess=300)
    assert found.ending == "converged"
    assert found.convergence("tau1").ess >= 300
    assert found.sweeps == 300  # exact draws converge at the first look
    fit = SampledFit(SAMPLE, found)
    assert not fit.modes_differ
    assert all(diagnostic.verdict == "good" for diagnostic in fit.diagnostics)
    # E p of a cell with one record is 2/46; of (1-p)^20 it is a ratio of beta functions.
    exact = np.prod([(44.0 + i) / (46.0 + i) for i in range(20)])
    mean = np.mean([law.prob_none() for law in fit.unsampled()])
    assert abs(mean - exact) < 0.01


def test_the_number_of_threads_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def values(threads: int) -> Vector:
        monkeypatch.setattr("keyhole.inference.chains.processors", lambda: threads)
        return run().values("tau1")

    np.testing.assert_array_equal(values(1), values(4))


def test_chains_that_settle_apart_are_weighed_and_not_trusted() -> None:
    found = run(Dirichlet(far=True), most_sweeps=400)
    fit = SampledFit(SAMPLE, found)
    assert found.ending == "limit"
    assert fit.modes_differ
    assert {d.name for d in fit.diagnostics if d.verdict == "untrusted"} >= {"modes", "rhat_tau1"}
    # The even chains know the records; those of the other kind gave all mass to a level nobody has.
    assert fit.weights[[0, 2]].sum() > 0.99


def test_one_chain_is_compared_with_itself_and_that_is_said() -> None:
    found = run(chains=1)
    assert found.ending == "converged"
    told = {one.name: one for one in SampledFit(SAMPLE, found).diagnostics}
    assert told["chains"].verdict == "caution"
    assert told["rhat_tau1"].words.startswith("The halves of the one chain agree")


def test_a_resumed_run_is_the_uninterrupted_one(tmp_path: Path) -> None:
    def chains(path: Path, sweeps: int, fingerprint: str = "a") -> Chains[Weights]:
        return run_chains(
            Dirichlet(),
            RECORDS,
            Watched(SAMPLE),
            Schedule(most_sweeps=sweeps, target_ess=1e9),
            rng=np.random.default_rng(3),
            checkpoint=Checkpoint(path, fingerprint),
        )

    whole = chains(tmp_path / "whole.npz", 400)
    chains(tmp_path / "part.npz", 175)
    resumed = chains(tmp_path / "part.npz", 400)
    np.testing.assert_array_equal(whole.values("tau2"), resumed.values("tau2"))
    for one, other in zip(whole.laws, resumed.laws, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (tmp_path / "part.npz").stat().st_mode & 0o777 == 0o600
    with pytest.raises(InvalidCheckpoint, match="another run"):
        chains(tmp_path / "part.npz", 400, "b")
    (tmp_path / "part.npz").write_bytes(b"nothing of ours")
    with pytest.raises(InvalidCheckpoint, match="not a checkpoint"):
        chains(tmp_path / "part.npz", 400)


def test_a_time_limit_leaves_whole_rounds_and_says_so() -> None:
    found = run(Dirichlet(pause=1e-3), max_seconds=0.6, target_ess=1e9)
    assert found.ending == "time"
    assert found.sweeps % ROUND == 0
    assert "time limit" in " ".join(diagnostic.words for diagnostic in SampledFit(SAMPLE, found).diagnostics)


def test_no_time_at_all_gives_no_number() -> None:
    with pytest.raises(FitFailed, match="before there were draws"):
        run(Dirichlet(pause=0.01), max_seconds=0.01)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises, also where the tests were started in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_leaves_what_was_done() -> None:
    calls = 0

    def interrupt(task: str, done: int, total: int | None = None, note: str = "") -> None:
        nonlocal calls
        calls += done >= 4 * ROUND
        if calls == 1:
            _thread.interrupt_main()

    found = run_chains(
        Dirichlet(pause=1e-3),
        RECORDS,
        Watched(SAMPLE),
        Schedule(target_ess=1e9),
        rng=np.random.default_rng(1),
        progress=interrupt,
    )
    assert found.ending == "interrupted"
    same = run_chains(
        Dirichlet(), RECORDS, Watched(SAMPLE), Schedule(most_sweeps=found.sweeps), rng=np.random.default_rng(1)
    )
    np.testing.assert_array_equal(found.values("tau1"), same.values("tau1"))


def test_kept_laws_are_thinned_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keyhole.inference.chain.MOST_KEPT", 40)
    found = run(most_sweeps=500, target_ess=1e9)
    chain = found.chains[0]
    assert 40 <= len(chain.laws) <= 81
    taus = [Watched(SAMPLE).taus(law.astype(float))[0] for law in chain.laws]
    np.testing.assert_allclose(taus, np.array(chain.values["tau1"])[:: chain.stride][: len(taus)], rtol=1e-5)


def test_geweke_accepts_the_sampler_and_rejects_the_broken_one() -> None:
    def statistics(state: Weights, records: Codes) -> Vector:
        return np.array([state.values[0], state.values.max(), (state.values[0] - np.mean(records == 0)) ** 2])

    right = geweke_scores(OfPeople(), 12, statistics, draws=4000, rng=np.random.default_rng(5))
    wrong = geweke_scores(OfPeople(wrong=True), 12, statistics, draws=4000, rng=np.random.default_rng(5))
    assert np.abs(right).max() < 3.5
    assert np.abs(wrong).max() > 5


def test_calibration_accepts_the_sampler_and_rejects_the_broken_one() -> None:
    options = {"people": 40, "records": 6, "replicates": 300, "warmup": 0, "draws": 60, "thin": 1}
    levels = (LEVELS,)
    right = calibration_ranks(Dirichlet(), levels, **options, rng=np.random.default_rng(6))
    wrong = calibration_ranks(replace(Dirichlet(), wrong=True), levels, **options, rng=np.random.default_rng(6))
    assert min(uniformity(right[:, i]) for i in range(2)) > 1e-3
    assert min(uniformity(wrong[:, i]) for i in range(2)) < 1e-4


def test_a_warm_up_that_is_not_over_gives_no_number() -> None:
    with pytest.raises(ValueError, match="leaves none"):
        Schedule(warmup=600, most_sweeps=600)
    with pytest.raises(FitFailed, match="before there were draws"):
        run(Dirichlet(pause=1e-3), warmup=10_000, max_seconds=0.3)


@pytest.mark.parametrize("damaged", [b"", b"PK\x03\x04 cut off", np.lib.format.MAGIC_PREFIX])
def test_a_damaged_checkpoint_is_said_to_be_none(tmp_path: Path, damaged: bytes) -> None:
    path = tmp_path / "part.npz"
    path.write_bytes(damaged)
    with pytest.raises(InvalidCheckpoint, match="not a checkpoint"):
        Checkpoint(path, "a").read(Weights)


def test_the_files_of_a_model_are_not_those_of_another_whose_name_begins_alike(tmp_path: Path) -> None:
    named = tmp_path / "kept [1].npz"
    paths = [kept_path(named, part) for part in ("np-i", "np-i-emp", "gom.choice", "gom.5")]
    for path in paths:
        path.touch()
    assert kept_paths(named, "np-i") == paths[:1]
    assert kept_paths(named, "np-i-emp") == paths[1:2]
    assert kept_paths(named, "gom") == sorted(paths[2:])


def test_chains_that_agree_when_the_time_is_over_have_converged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Judged at no fixed number of sweeps: only the end of the time is left.
    monkeypatch.setattr(Schedule, "judges", lambda self, sweeps: False)
    monkeypatch.setattr("keyhole.inference.chains.AGREE", 1.3)  # however few draws a busy machine makes
    found = run(Dirichlet(pause=1e-3), max_seconds=1.0, target_ess=20)
    assert found.ending == "converged"
    told = {one.name for one in SampledFit(SAMPLE, found).diagnostics}
    assert "ending" not in told
    assert run(Dirichlet(pause=1e-3, far=True), max_seconds=0.5, target_ess=20).ending == "time"
    stopped = replace(found, ending="interrupted")
    words = next(one.words for one in SampledFit(SAMPLE, stopped).diagnostics if one.name == "ending")
    assert words == "The run was interrupted."


def test_too_few_draws_are_said_to_be_too_few() -> None:
    found = run(Dirichlet(far=True), most_sweeps=2 * ROUND, target_ess=1e9)
    assert SampledFit(SAMPLE, found).modes_differ
    few = replace(found, schedule=Schedule(warmup=2 * ROUND - 3))  # three draws of each chain are left
    told = {one.name: one for one in SampledFit(SAMPLE, few).diagnostics}
    assert told["rhat_tau1"].words == (
        "There are too few draws to judge whether chains from opposite starts agree on tau1."
    )
    assert told["rhat_tau1"].verdict == told["ess_tau1"].verdict == "untrusted"
    assert told["ess_tau2"].words == "There are too few draws of tau2 to say what they are worth."
    assert "modes" not in told
    assert not any(word in one.words for one in told.values() for word in ("inf", "nan"))


def test_the_number_on_which_chains_differ_is_named() -> None:
    found = run(target_ess=300)
    for i, chain in enumerate(found.chains):
        chain.values["tau2"] = [value + 0.4 * i for value in np.full(300, 4.0) + 0.01 * np.arange(300) % 0.05]
    told = {one.name: one.words for one in SampledFit(SAMPLE, found).diagnostics}
    assert "Chains have not met: the mean of tau2 is from 4.0 to 5.2 by chain" in told["modes"]
    for chain in found.chains:
        chain.values["tau1"] = [float("nan")] * 300
    told = {one.name: one.words for one in SampledFit(SAMPLE, found).diagnostics}
    assert "tau1 is not a number in some of them" in told["modes"]
