"""The models as a user meets them."""

import pickle
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keyhole.errors import FitFailed, ForbiddenRecords, UnknownModel
from keyhole.inference.chains import Chains, run_chains
from keyhole.inference.fit import IGNORED_WEIGHTS
from keyhole.inference.model_path import ChosenOnPath
from keyhole.inference.sampled_fit import SampledFit
from keyhole.models.membership import choice as choice_module
from keyhole.models.membership import sampler as sampler_module
from keyhole.models.membership.choice import Choice, ChosenFit, Tried
from keyhole.models.membership.model import GradeOfMembership, HierarchicalMembership
from keyhole.models.membership.sampler import MembershipSampler
from keyhole.models.membership.starts import allocations
from keyhole.models.membership.state import Memberships
from keyhole.population.sample import Sample
from keyhole.progress import Progress, silent
from keyhole.table.contingency import ContingencyTable
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import parse_zero_rules
from tests.models.membership.test_kernels import LEVELS, people
from tests.sampler_checks import keys_of

KEYS = keys_of(LEVELS)
QUICK = {"chains": 2, "most_sweeps": 100}
RULES = '- {K0: "0", K1: "1"}'


def sample_of(size: int, zeros: StructuralZeros | None = None, weights: np.ndarray | None = None) -> Sample:
    records = people(size)
    if zeros is not None:
        records = records[~zeros.contains(records)]
    return Sample(ContingencyTable.from_codes(KEYS, records, weights=weights), 5000, zeros)


@pytest.mark.parametrize("model", [HierarchicalMembership(**QUICK), GradeOfMembership(**QUICK, components=3)])
@pytest.mark.parametrize("with_zeros", [False, True])
def test_fits_are_repeatable_and_complete(
    model: HierarchicalMembership | GradeOfMembership, with_zeros: bool
) -> None:
    sample = sample_of(30, StructuralZeros(KEYS, parse_zero_rules(RULES)) if with_zeros else None)
    first, second = (model.fit(sample, rng=np.random.default_rng(1)) for _ in range(2))
    second = pickle.loads(pickle.dumps(second))
    for one, other in zip(first.unsampled(), second.unsampled(), strict=True):
        np.testing.assert_array_equal(one.mean_match(), other.mean_match())
    names = {diagnostic.name for diagnostic in first.diagnostics}
    assert {"profiles", "cell_error", "track_record"} <= names
    assert ("imaginary" in names) == with_zeros
    assert np.all(first.mean_match_all() <= 1 / sample.table.counts)


def test_a_resumed_run_is_the_uninterrupted_one(tmp_path: Path) -> None:
    sample = sample_of(30)
    options = {"chains": 2, "target_ess": 1e9}

    def values(sweeps: int, name: str) -> np.ndarray:
        model = HierarchicalMembership(**options, most_sweeps=sweeps, checkpoint=str(tmp_path / name))
        return model.fit(sample, rng=np.random.default_rng(1)).chains.values("tau1")

    whole = values(100, "whole")
    values(50, "part")
    np.testing.assert_array_equal(values(100, "part"), whole)


def test_the_number_of_profiles_is_chosen_by_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keyhole.models.membership.choice.TRIED", (2, 3))
    fit = GradeOfMembership(**QUICK).fit(sample_of(60), rng=np.random.default_rng(1))
    told = next(diagnostic for diagnostic in fit.diagnostics if diagnostic.name == "components")
    assert told.value in (2, 3)
    assert "2: -" in told.words
    assert isinstance(fit, ChosenOnPath)
    assert [step.value for step in fit.path.steps] == [2, 3]
    assert fit.path.steps[fit.path.chosen].value == told.value
    assert all(0 < step.tau1 < step.tau2 for step in fit.path.steps)
    best = Choice(3, {2: Tried(1, 2, -5.0), 3: Tried(1, 2, -4.9)})
    assert best.remarks[0].verdict == "caution"  # the largest number that was tried
    assert Choice(2, {2: Tried(1, 2, -5.0), 3: Tried(1, 2, -5.1)}).remarks[0].verdict == "good"


def test_profiles_that_do_as_well_are_named() -> None:
    told = Choice(8, {5: Tried(30, 60, -5.01, 0.02), 8: Tried(20, 50, -5.0), 12: Tried(19, 49, -5.2, 0.1)})
    assert "told apart from it, with tau1 about 20, are 5 (tau1 about 30)." in told.remarks[0].words


@pytest.mark.parametrize("after", [1, 2])
def test_an_interruption_of_the_tries_leaves_the_best_of_them(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0

    def interrupted(*given: object, **options: object) -> Chains[Memberships]:
        nonlocal tries
        tries += 1
        found = run_chains(*given, **options)  # type: ignore[arg-type]
        return replace(found, ending="interrupted") if tries == after else found

    monkeypatch.setattr("keyhole.models.membership.choice.run_chains", interrupted)
    fit = GradeOfMembership(**QUICK).fit(sample_of(30), rng=np.random.default_rng(1))
    assert (tries, fit.chains.ending) == (after, "interrupted")
    told = next(one for one in fit.diagnostics if one.name == "components")
    assert told.verdict == "caution"
    assert "The tries were interrupted" in told.words


def test_a_try_that_fails_ends_the_tries_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0

    def failing(*given: object, **options: object) -> Chains[Memberships]:
        nonlocal tries
        tries += 1
        if tries == 2:
            raise FitFailed("Impossible combinations hold nearly all.")
        return run_chains(*given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("keyhole.models.membership.choice.run_chains", failing)
    fit = GradeOfMembership(**QUICK).fit(sample_of(30), rng=np.random.default_rng(1))
    told = next(one for one in fit.diagnostics if one.name == "components")
    assert (tries, told.value, told.verdict) == (2, 2, "caution")
    assert "More could not be tried. Impossible combinations hold nearly all." in told.words


def test_a_resumed_run_has_the_number_of_profiles_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keyhole.models.membership.choice.TRIED", (2, 3))
    options = {"chains": 2, "target_ess": 1e9, "checkpoint": str(tmp_path / "kept")}

    def fit(sweeps: int, **more: str) -> SampledFit:
        model = GradeOfMembership(**{**options, **more}, most_sweeps=sweeps)  # type: ignore[arg-type]
        return model.fit(sample_of(30), rng=np.random.default_rng(1))

    fit(50)
    monkeypatch.setattr("keyhole.models.membership.choice.run_chains", None)  # nothing is tried again
    resumed = fit(100)
    monkeypatch.undo()
    monkeypatch.setattr("keyhole.models.membership.choice.TRIED", (2, 3))
    whole = fit(100, checkpoint="")
    np.testing.assert_array_equal(resumed.chains.values("tau1"), whole.chains.values("tau1"))
    assert resumed.path == whole.path  # type: ignore[attr-defined]


@pytest.mark.parametrize(("stopped_at", "finished"), [(2, [2]), (3, [2]), (5, [2, 3])])
def test_tries_that_were_interrupted_go_on_to_the_numbers_of_an_uninterrupted_run(
    stopped_at: int, finished: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keyhole.models.membership.choice.TRIED", (2, 3, 5))
    monkeypatch.setattr(choice_module, "SHORT", replace(choice_module.SHORT, most_sweeps=100))
    options = {"chains": 2, "target_ess": 1e9, "most_sweeps": 50}
    tasks = []

    def interrupt(task: str, done: int, total: int | None = None, note: str = "") -> None:
        tasks.append(task)
        if task == f"trying {stopped_at} profiles: sampling" and done >= 50:
            raise KeyboardInterrupt

    def fit(checkpoint: str, progress: Progress = silent) -> ChosenFit:
        model = GradeOfMembership(**options, checkpoint=checkpoint)  # type: ignore[arg-type]
        found = model.fit(sample_of(30), rng=np.random.default_rng(1), progress=progress)
        assert isinstance(found, ChosenFit)
        return found

    part = fit(str(tmp_path / "kept"), interrupt)
    assert part.chains.ending == "interrupted"
    assert [step.value for step in part.path.steps] == finished  # the half-finished one only if there is no other
    assert any("compiling" in task for task in tasks)
    resumed, whole = fit(str(tmp_path / "kept")), fit("")
    assert resumed.path == whole.path
    np.testing.assert_array_equal(resumed.chains.values("tau1"), whole.chains.values("tau1"))
    chosen = whole.path.steps[whole.path.chosen].value
    assert {path.name for path in tmp_path.iterdir()} == {"kept-gom.choice.npz", f"kept-gom.{chosen}.npz"}


def test_the_time_limit_counts_what_the_tries_sampled_and_not_what_they_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = []

    def tried(*given: object, **more: object) -> Chains[Memberships]:
        time.sleep(0.2)  # as long as it compiles
        return replace(run_chains(*given, **more), seconds=1.5)  # type: ignore[arg-type]

    def run(*given: Any, **more: Any) -> Chains[Memberships]:
        left.append(given[3].max_seconds)
        return run_chains(*given, **more)

    monkeypatch.setattr("keyhole.models.membership.choice.TRIED", (2, 3))
    monkeypatch.setattr(choice_module, "SHORT", replace(choice_module.SHORT, most_sweeps=50))
    monkeypatch.setattr("keyhole.models.membership.choice.run_chains", tried)
    monkeypatch.setattr("keyhole.models.membership.fitting.run_chains", run)
    GradeOfMembership(**QUICK, max_seconds=100.0).fit(sample_of(30), rng=np.random.default_rng(1))
    assert left == [97.0]


def test_weights_are_ignored_and_that_is_said() -> None:
    sample = sample_of(30, weights=np.linspace(1, 300, 30))
    fit = HierarchicalMembership(**QUICK).fit(sample, rng=np.random.default_rng(1))
    assert IGNORED_WEIGHTS in {diagnostic.name for diagnostic in fit.diagnostics}


def test_records_in_impossible_cells_are_refused() -> None:
    zeros = StructuralZeros(KEYS, parse_zero_rules(RULES))
    records = np.array([[0, 1, 0], [1, 0, 0]])
    sample = Sample(ContingencyTable.from_codes(KEYS, records), 100, zeros)
    for model in (HierarchicalMembership(), GradeOfMembership(components=2)):
        with pytest.raises(ForbiddenRecords):
            model.fit(sample, rng=np.random.default_rng(1))


def test_too_many_imaginary_records_are_an_error_without_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_module, "MOST_IMAGINARY", 0.1)
    zeros = StructuralZeros(KEYS, parse_zero_rules('- {K0: ["0", "1"], K1: "1"}'))
    with pytest.raises(FitFailed, match="latent class"):
        HierarchicalMembership(**QUICK).fit(sample_of(60, zeros), rng=np.random.default_rng(1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prior": "flat"}, "marginal or uniform"),
        ({"alpha_rate": 0.0}, "alpha_rate"),
        ({"chains": 0}, "one chain"),
    ],
)
def test_settings_that_cannot_be_are_refused(options: dict[str, object], words: str) -> None:
    for model in (GradeOfMembership, HierarchicalMembership):
        with pytest.raises(UnknownModel, match=words):
            model(**options)  # type: ignore[arg-type]
    with pytest.raises(UnknownModel, match="alpha0_shape"):
        HierarchicalMembership(alpha0_shape=-1.0)
    with pytest.raises(UnknownModel, match="components"):
        GradeOfMembership(components=-1)


@pytest.mark.parametrize("components", [0, 4])
@pytest.mark.parametrize("crowded", [False, True])
def test_sweeps_keep_everything_aligned(components: int, crowded: bool) -> None:
    records = people(200)
    sampler = MembershipSampler(LEVELS, components)
    rng = np.random.default_rng(6)
    state = sampler.start(records, rng, crowded=crowded)
    for _ in range(10):
        state = sampler.sweep(state, records, rng)
        assert state.g0.sum() + state.left == pytest.approx(1.0)
        assert state.theta.shape == (sampler.rows.total, state.profiles)
        np.testing.assert_allclose(sampler.rows.summed(state.theta), 1.0)
        used = np.unique(state.z)
        assert used.max() < state.profiles
        assert components or len(used) == state.profiles
        assert np.all(state.theta[records + sampler.rows.start[:-1], state.z] > 0)


def test_profiles_are_born_where_nothing_is_left_of_the_weights() -> None:
    """The weight of profiles to come may be too small for a number; splits need room all the same."""
    records = people(200)
    sampler = MembershipSampler(LEVELS)
    rng = np.random.default_rng(6)
    born = 0
    for _ in range(60):
        state = sampler.start(records, rng, crowded=False)
        state.left, state.g0 = 0.0, state.g0 / state.g0.sum()
        before = state.profiles
        state = sampler.sweep(state, records, rng)
        born += state.profiles > before
    assert born


@pytest.mark.parametrize("components", [0, 2, 3, 20])
def test_chains_start_with_few_and_with_many_profiles(components: int) -> None:
    records = np.random.default_rng(1).integers(0, 4, (200, 5)).astype(np.int32)
    few, many = (allocations(records, components, crowded, np.random.default_rng(2)) for crowded in (False, True))
    assert len(np.unique(few)) < len(np.unique(many))
