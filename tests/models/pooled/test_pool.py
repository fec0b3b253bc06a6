"""A pool believes each model as far as it predicts unseen records best, and its laws are those of its members."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.random import Generator

from keyhole.arrays import Vector
from keyhole.data import census_income
from keyhole.errors import FitFailed, UnknownModel
from keyhole.inference.fit import Diagnostic, Fit, Member, Verdict
from keyhole.inference.track_record import NO_RECORD, TRACK_RECORD, TrackRecord, good_record
from keyhole.models.catalogue import model_named
from keyhole.models.pooled.checks import ENDED_EARLY, diagnose
from keyhole.models.pooled.laws import numbers_of, pooled_laws
from keyhole.models.pooled.model import TRIAL_SWEEPS, Pooled, PooledFit
from keyhole.models.pooled.shares import bootstrapped_shares, shares_of
from keyhole.population.multinomial import MultinomialUnsampled
from keyhole.population.sample import Sample
from keyhole.population.unsampled import UnsampledCounts
from keyhole.progress import Progress, silent
from keyhole.risk.assess import assess_risk, risk_of_laws
from keyhole.validation.population import load_population
from tests.models.samples import sample_of, typical_sample


@dataclass(frozen=True, eq=False)
class Toy:
    """Every unique cell has the same probability; records are predicted as well as it is told."""

    sample: Sample
    probability: float
    log_density: float
    laws: int = 20
    verdict: Verdict = "good"
    interval_leaves_out: str = ""
    effective_draws: None = None

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return (Diagnostic("toy", 1, self.verdict, "A toy."),)

    @property
    def log_by_cell(self) -> Vector:
        return np.full(self.sample.table.occupied, self.log_density)

    def unsampled(self) -> Iterator[UnsampledCounts]:
        for _ in range(self.laws):
            yield MultinomialUnsampled(np.full(self.sample.uniques, self.probability), self.sample.unsampled_size)


class Recorded(Toy):
    """A fit of a model that did well on real populations."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return (TrackRecord(-5, 5, covered=20, samples=20).diagnostic(),)


class Interrupted(Toy):
    """A fit whose chains somebody stopped."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return (Diagnostic("ending", "interrupted", "caution", "Stopped."),)


@dataclass(frozen=True)
class ToyModel:
    name: str = "toy"
    settings: Mapping[str, object] = field(default_factory=dict)

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> Fit:
        return Toy(sample, 1e-4, -5.0)


def members(*shares: float) -> list[Member]:
    sample = typical_sample()
    return [
        Member(ToyModel(f"toy-{place}"), Toy(sample, 1e-5 * (place + 1), -5.0), share)
        for place, share in enumerate(shares)
    ]


def test_the_estimate_of_a_pool_is_the_mean_of_its_members_by_their_shares() -> None:
    pooled = members(0.75, 0.25)
    rng = np.random.default_rng(1)
    alone = [risk_of_laws(member.fit.unsampled(), rng=rng)[0].estimate for member in pooled]
    together = risk_of_laws(pooled_laws(pooled), rng=rng)[0].estimate
    # Whole numbers of laws come near to the shares: 20 of the first and 7 of the second.
    assert together == pytest.approx((20 * alone[0] + 7 * alone[1]) / 27)
    assert abs(together - (0.75 * alone[0] + 0.25 * alone[1])) < 0.02 * abs(alone[0] - alone[1])


def test_a_member_without_a_share_gives_no_law() -> None:
    pooled = members(1.0, 0.0)
    assert len(list(pooled_laws(pooled))) == 20
    assert numbers_of([20, 1000], [0.5, 0.5]).tolist() == [20, 20]


def test_shares_follow_the_held_out_score_and_nothing_else() -> None:
    sample = typical_sample()
    better, worse = Toy(sample, 0.5, -5.0), Toy(sample, 0.1, -5.1)
    assert shares_of([better, worse], sample, rng=np.random.default_rng(1)).tolist() == [1.0, 0.0]
    assert shares_of([worse, better], sample, rng=np.random.default_rng(1)).tolist() == [0.0, 1.0]
    half = shares_of([better, better], sample, rng=np.random.default_rng(1))
    np.testing.assert_allclose(half, 0.5)


def test_scores_that_cannot_be_told_apart_share() -> None:
    """A difference of one standard error over the records leaves both models in."""
    rng = np.random.default_rng(3)
    noise = rng.normal(0.0, 0.5, 1000)
    first = np.full(1000, -5.0)
    second = first + noise - noise.mean() - 0.5 / np.sqrt(1000)
    shares = bootstrapped_shares(np.array([first, second]), np.ones(1000), rng=rng)
    assert 0.7 < shares[0] < 0.95
    assert shares.sum() == pytest.approx(1.0)


def test_doubts_about_the_leader_are_doubts_about_the_pool() -> None:
    sample = typical_sample()
    doubtful, careful, sound = (Toy(sample, 1e-5, -5.0, verdict=v) for v in ("untrusted", "caution", "good"))

    def verdicts(first: Toy, second: Toy, share: float) -> list[str]:
        pooled = [Member(ToyModel("one"), first, 1 - share, 0.0), Member(ToyModel("two"), second, share)]
        return [check.verdict for check in diagnose(pooled, {}) if check.name.endswith("toy")]

    assert verdicts(doubtful, sound, 0.5) == ["untrusted", "good"]
    assert verdicts(sound, careful, 0.5) == ["good", "caution"]
    assert verdicts(sound, careful, 0.1) == ["good", "good"]
    assert verdicts(sound, doubtful, 0.0) == ["good"]


def test_a_member_whose_checks_failed_has_no_say_and_the_leader_always_has() -> None:
    sample = typical_sample()
    better, worse = Toy(sample, 0.5, -5.0, verdict="untrusted"), Toy(sample, 0.1, -5.1)
    assert shares_of([worse, better], sample, rng=np.random.default_rng(1)).tolist() == [1.0, 0.0]
    assert shares_of([better, worse], sample, rng=np.random.default_rng(1)).tolist() == [1.0, 0.0]
    pooled = [Member(ToyModel("one"), worse, 1.0, 0.0), Member(ToyModel("two"), better, 0.0)]
    assert "two had no say" in diagnose(pooled, {})[0].words


def test_the_record_is_that_of_the_leader_where_it_alone_has_a_say() -> None:
    sample = typical_sample()
    for share, kept in ((1.0, True), (0.6, False)):
        pooled = [
            Member(ToyModel("one"), Recorded(sample, 1e-5, -5.0), share),
            Member(ToyModel("two"), Toy(sample, 1e-5, -5.0), 1 - share),
        ]
        assert (good_record(diagnose(pooled, {})) is not None) == kept


def test_a_mixture_says_that_it_was_not_tried() -> None:
    sample = typical_sample()
    pair = [
        Member(ToyModel("one"), Recorded(sample, 1e-5, -5.0), 0.7, 0.0),
        Member(ToyModel("two"), Toy(sample, 1e-5, -5.0), 0.3),
    ]
    (found,) = [check for check in diagnose(pair, {}) if check.name == TRACK_RECORD]
    assert (found.verdict, found.value) == ("caution", NO_RECORD)
    assert "two has 30% of it" in found.words


@pytest.mark.parametrize(
    ("ending", "words"), [("time", "the time limit ended it"), ("interrupted", "it was interrupted")]
)
def test_a_second_opinion_that_was_ended_says_by_what(ending: str, words: str) -> None:
    class Ended(Toy):
        @property
        def diagnostics(self) -> tuple[Diagnostic, ...]:
            return (
                Diagnostic("ending", ending, "caution", "Stopped."),
                Diagnostic("toy", 1, "untrusted", "A toy."),
            )

    sample = typical_sample()
    pair = [
        Member(ToyModel("one"), Toy(sample, 1e-5, -5.0), 1.0),
        Member(ToyModel("two"), Ended(sample, 1e-5, -5.0), 0.0),
    ]
    assert f"two had no say: {words}" in diagnose(pair, {})[0].words


def test_an_interruption_is_heard_whatever_the_share() -> None:
    sample = typical_sample()
    pooled = [
        Member(ToyModel("one"), Toy(sample, 1e-5, -5.0), 1.0),
        Member(ToyModel("two"), Interrupted(sample, 1e-5, -5.0), 0.0),
    ]
    endings = [check.value for check in diagnose(pooled, {}) if check.name == "ending"]
    assert endings == ["interrupted"]


def test_a_quick_pool_is_the_sequential_logit_with_every_claim_of_its_own() -> None:
    sample = typical_sample()
    found = assess_risk(Pooled("quick"), sample, seed=2)
    assert [member.model for member in found.members] == ["sequential-logit"]
    (alone,) = found.members
    assert found.tau1 is not None
    assert alone.tau1 is not None
    assert (found.tau1, found.tau2, found.size_index) == (alone.tau1, alone.tau2, alone.size_index)
    assert found.dependence is not None
    assert found.size_index is not None


@dataclass(frozen=True)
class ToyChains:
    """A model with chains: how well it predicts, and how its run ends."""

    log_density: float = -5.0
    ends: type[Toy] = Toy
    most_sweeps: int = 1000
    name: str = "toy-chains"
    settings: Mapping[str, object] = field(default_factory=dict)

    def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> Fit:
        return self.ends(sample, 1e-6 * self.most_sweeps, self.log_density)


def fitted_pool(other: ToyChains, monkeypatch: pytest.MonkeyPatch, **options: object) -> PooledFit:
    monkeypatch.setattr(Pooled, "models", lambda self, sample: (ToyModel(), other))
    pool = Pooled(**options)  # type: ignore[arg-type]
    return pool.fit(typical_sample(), rng=np.random.default_rng(1))


def test_a_model_far_behind_in_its_trial_has_no_say_and_is_a_second_opinion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worse, near = ToyChains(-5.2), ToyChains(-5.0)
    found = fitted_pool(worse, monkeypatch)
    gap = 0.2 * found.sample.sample_size
    assert found.behind == pytest.approx({"toy-chains": gap})
    assert [member.share for member in found.members] == [1.0, 0.0]
    # The run that is shown went on to its end.
    assert isinstance(found.members[1].fit, Toy)
    assert found.members[1].fit.probability == pytest.approx(1e-3)
    assert f"by {gap:,.0f} in all" in found.diagnostics[0].words
    alone = fitted_pool(worse, monkeypatch, second_opinion=False)
    assert [member.model.name for member in alone.members] == ["toy"]
    both = fitted_pool(near, monkeypatch, second_opinion=False)
    assert not both.behind
    assert [member.share for member in both.members] == pytest.approx([0.5, 0.5])
    # With every effort no trial is held: the end decides.
    assert not fitted_pool(worse, monkeypatch, effort="thorough").behind


def test_an_interrupted_trial_is_heard_and_nothing_is_run_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = fitted_pool(ToyChains(-5.0, Interrupted), monkeypatch)
    assert isinstance(found.members[1].fit, Interrupted)
    assert found.members[1].fit.probability == pytest.approx(1e-6 * TRIAL_SWEEPS["normal"])
    assert [check.value for check in found.diagnostics if check.name == "ending"] == ["interrupted"]


def test_without_second_opinions_the_answer_is_the_same_to_the_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    """On real people, whose keys latent classes predict far worse."""
    monkeypatch.setattr("keyhole.models.pooled.model.MOST_SWEEPS", {"normal": 350})
    keys = "SEX,AGE10,RACE5,EDUC5,MARITAL7,HISP10,BIRTH8,VETBEN3,EMP4,STUDENT3,CITIZEN5,WEEKS5"
    people = load_population(census_income.path(), keys.split(",")).population
    sample, _ = people.sample(np.random.default_rng(1).choice(len(people), 1000, replace=False))
    with_it, without = (
        Pooled(second_opinion=asked).fit(sample, rng=np.random.default_rng(3)) for asked in (True, False)
    )
    assert with_it.behind == without.behind != {}
    assert [len(fit.members) for fit in (with_it, without)] == [2, 1]
    taus = [risk_of_laws(fit.unsampled(), rng=np.random.default_rng(1))[:2] for fit in (with_it, without)]
    assert taus[0] == taus[1]


def test_a_member_says_in_the_pool_what_it_says_alone() -> None:
    """To the digit, given the same seed; and so does the pool where it is the only one."""
    sample = sample_of(typical_sample().table.counts.tolist(), 30_000, keys=6, levels=3)
    pool = assess_risk(model_named("auto", effort="quick"), sample, seed=5)
    alone = assess_risk(model_named("sequential-logit"), sample, seed=5)
    other = assess_risk(model_named("sequential-logit"), sample, seed=6)
    for found in (pool, pool.members[0]):
        assert (found.tau1, found.tau2) == (alone.tau1, alone.tau2)
    assert alone.tau1 != other.tau1
    assert pool.members[0].size_index == alone.size_index
    assert pool.members[0].processor_seconds > 0.0
    # Without what is shown beside it the model is still the one that was checked on real populations.
    unchecked = assess_risk(model_named("sequential-logit", nested=0), sample, seed=5)
    assert (unchecked.tau1, unchecked.record) == (alone.tau1, alone.record)
    assert alone.record is not None
    assert assess_risk(model_named("sequential-logit", nested=0, draws=100), sample, seed=5).record is None


def test_a_second_opinion_that_fails_is_no_doubt_about_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Failing(ToyChains):
        def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> Fit:
            if self.most_sweeps > TRIAL_SWEEPS["normal"]:
                raise FitFailed("It cannot.")
            return super().fit(sample, rng=rng, progress=progress)

    found = fitted_pool(Failing(-5.2), monkeypatch)
    assert found.behind
    assert (found.failures, len(found.members)) == ({}, 1)
    # One that is not out and fails is told.
    assert fitted_pool(Failing(-5.0), monkeypatch).failures == {"toy-chains": "It cannot."}


def test_what_the_leader_said_stands_when_the_run_is_ended_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Stopped(ToyChains):
        def fit(self, sample: Sample, *, rng: Generator, progress: Progress = silent) -> Fit:
            raise KeyboardInterrupt

    found = fitted_pool(Stopped(), monkeypatch)
    assert [(member.model.name, member.share) for member in found.members] == [("toy", 1.0)]
    assert found.diagnostics[-1] == ENDED_EARLY
    assert all(check.name != "ending" for check in fitted_pool(ToyChains(), monkeypatch).diagnostics)
    monkeypatch.setattr(Pooled, "models", lambda self, sample: (Stopped(), ToyModel()))
    with pytest.raises(KeyboardInterrupt):
        Pooled().fit(typical_sample(), rng=np.random.default_rng(1))


def test_with_a_limit_of_time_there_is_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not fitted_pool(ToyChains(-5.2), monkeypatch, max_seconds=1.0).behind


def test_efforts_differ_in_the_length_of_chains_not_in_the_clock() -> None:
    sample = typical_sample()
    normal, thorough = (Pooled(effort).models(sample)[1].settings for effort in ("normal", "thorough"))
    assert (normal["most_sweeps"], thorough["most_sweeps"]) == (3_000, 20_000)
    assert normal["max_seconds"] == 0.0
    with pytest.raises(UnknownModel, match="quick, normal or thorough"):
        model_named("auto", effort="hard")
