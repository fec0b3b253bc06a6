"""Trials over processes and in a journal: the same numbers, remembered, and never lost."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import keyhole
from keyhole.errors import FitFailed, InputError
from keyhole.population.sample import Sample
from keyhole.risk.estimate import RiskAssessment
from keyhole.validation import assessor as assessor_module
from keyhole.validation import replicate as replicate_module
from keyhole.validation.assessor import SHARED, assess, source_digest
from keyhole.validation.journal import Journal
from keyhole.validation.measures import measure
from keyhole.validation.replicate import Replicate, Trial, run_trial
from keyhole.validation.runner import Workers, by_fit, in_turn, run_trials

from .people import people

POPULATIONS = {"people": people()}
MODELS = ("benedetti-franconi", "ewens")
TRIALS = [Trial("people", size, seed, model) for model in MODELS for size in (200, 400) for seed in (1, 2)]


def timeless(results: dict[Trial, Replicate]) -> dict[Trial, Replicate]:
    return {trial: replace(one, seconds=0.0, processor_seconds=0.0) for trial, one in results.items()}


def test_processes_and_the_journal_give_the_same_numbers(tmp_path: Path) -> None:
    alone = run_trials(TRIALS, POPULATIONS)
    journal = Journal(tmp_path / "journal.jsonl", {"machine": "mine"})
    beside = run_trials(TRIALS, POPULATIONS, journal=journal, workers=Workers(2))
    again = Journal(journal.path)
    remembered = run_trials(TRIALS, POPULATIONS, journal=again, workers=Workers(0))
    assert list(remembered) == TRIALS
    assert timeless(alone) == timeless(beside) == timeless(remembered)
    assert beside == remembered
    assert again.origin_of(TRIALS[0].key(POPULATIONS["people"])) == {"machine": "mine"}
    assert journal.path.stat().st_mode & 0o077 == 0


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    def interrupt(trial: Trial, replicate: Replicate, done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_trials(TRIALS, POPULATIONS, journal=Journal(path), ended=interrupt)
    # The interruption cut the line short that was being written.
    path.write_text(path.read_text()[:-20])
    ran: list[Trial] = []
    results = run_trials(
        TRIALS, POPULATIONS, journal=Journal(path), ended=lambda trial, one, done, total: ran.append(trial)
    )
    assert ran == TRIALS[2:]
    assert timeless(results) == timeless(run_trials(TRIALS, POPULATIONS))
    assert len(Journal(path)) == len(TRIALS)


def test_a_journal_of_other_data_settings_or_code_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    population, trial = POPULATIONS["people"], TRIALS[0]
    keys = {
        trial.key(population),
        trial.key(people(seed=6)),
        replace(trial, seed=9).key(population),
        replace(trial, size=201).key(population),
        replace(TRIALS[-1], options=(("draws", 300),)).key(population),
    }
    monkeypatch.setattr(replicate_module, "source_digest", lambda model: "changed")
    keys.add(trial.key(population))
    assert len(keys) == 6
    assert run_trial(trial, population, "as it was").status == "fault"


def test_a_digest_is_of_the_code_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a file changes while a process runs, it computes neither for the old code nor for the new."""
    names = ("pitman", "sequential-logit", "auto")

    def digests() -> dict[str, str]:
        source_digest.cache_clear()
        return {name: source_digest(name) for name in names}

    code = assessor_module._BEGUN_WITH
    own = digests()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", lambda path: b"changed")
        running = digests()
        patched.setattr(assessor_module, "_BEGUN_WITH", dict.fromkeys(code, b"changed"))
        begun_later = digests()
    assert all(len({found[name] for found in (own, running, begun_later)}) == 3 for name in names)
    for place, expected in ((("risk", "assess.py"), set(names)), (("pooled", "laws.py"), set(names[1:]))):
        file = next(path for path in code if path.parts[-2:] == place)
        with monkeypatch.context() as patched:
            patched.setitem(code, file, b"changed")
            changed = digests()
        assert {name for name in names if changed[name] != own[name]} == expected
    source_digest.cache_clear()


def test_no_trial_begins_after_the_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    assert run_trials(TRIALS, POPULATIONS, journal=journal, workers=Workers(1, max_seconds=0.0)) == {}
    assert not journal.path.exists()


def test_failures_are_counted_and_faults_are_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str, options: object, sample: object, seed: int) -> None:
        raise ZeroDivisionError("the record of Jane Doe")

    journal = Journal(tmp_path / "journal.jsonl")
    with monkeypatch.context() as broken:
        broken.setattr(replicate_module, "assess", fail)
        faulty = run_trials(TRIALS[:1], POPULATIONS, journal=journal)
    assert "Jane" not in journal.path.read_text()
    (found,) = measure(faulty)
    assert (found.replicates, found.failed, found.tau1) == (1, 1, None)
    assert list(found.faults) == [faulty[TRIALS[0]].verdict]
    assert "ZeroDivisionError" in faulty[TRIALS[0]].verdict
    assert run_trials(TRIALS[:1], POPULATIONS, journal=journal, workers=Workers(0)) == faulty
    assert run_trials(TRIALS[:1], POPULATIONS, journal=journal)[TRIALS[0]].status == "ok"
    assert Journal(journal.path).get(TRIALS[0].key(POPULATIONS["people"])).status == "ok"  # type: ignore[union-attr]


def test_a_risk_that_is_no_number_is_a_fault_of_its_trial_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_a_number(name: str, options: Mapping[str, object], sample: Sample, seed: int) -> RiskAssessment:
        found = assess(name, options, sample, seed)
        assert found.records is not None
        return replace(found, records=replace(found.records, r1=np.full(sample.uniques, np.nan)))

    monkeypatch.setattr(replicate_module, "assess", without_a_number)
    assert run_trial(TRIALS[0], POPULATIONS["people"]).status == "fault"


def test_every_shared_part_of_the_code_is_in_the_key() -> None:
    root = Path(keyhole.__file__).parent
    assert all(any(root.glob(pattern)) for pattern in SHARED)


def test_a_fit_that_fails_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from keyhole.models.superpopulation.ewens import Ewens

    def fail(self: object, sample: object, **others: object) -> None:
        raise FitFailed("The sample says nothing.")

    monkeypatch.setattr(Ewens, "fit", fail)
    journal = Journal(tmp_path / "journal.jsonl")
    trials = [trial for trial in TRIALS if trial.model == "ewens"]
    first = run_trials(trials, POPULATIONS, journal=journal)
    assert {one.status for one in first.values()} == {"failed"}
    assert run_trials(trials, POPULATIONS, journal=Journal(journal.path)) == first
    assert all(found.failed == found.replicates == 2 for found in measure(first))


def test_quick_models_and_first_replicates_come_first() -> None:
    trials = [
        Trial("people", 100, seed, model) for model in ("hdp", "sequential-logit", "ewens") for seed in (1, 2)
    ]
    order = [(trial.model, trial.seed) for trial in in_turn(trials)]
    assert order == [(model, seed) for model in ("ewens", "sequential-logit", "hdp") for seed in (1, 2)]
    both = [Trial(name, 100, seed, "ewens") for name in ("one", "two") for seed in (1, 2)]
    assert [(trial.population, trial.seed) for trial in in_turn(both)] == [
        ("one", 1),
        ("two", 1),
        ("one", 2),
        ("two", 2),
    ]


def test_a_member_of_a_pool_is_not_fitted_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One fit answers for both, as two fits would; with other options it does not."""
    fitted: list[str] = []

    def noted(name: str, options: Mapping[str, object], sample: Sample, seed: int) -> RiskAssessment:
        fitted.append(name)
        return assess(name, options, sample, seed)

    monkeypatch.setattr(replicate_module, "assess", noted)
    pool = Trial("people", 600, 1, "auto", options=(("effort", "quick"),))
    member = replace(pool, model="sequential-logit", options=())
    journal = Journal(tmp_path / "journal.jsonl")
    together = run_trials([member, pool], POPULATIONS, journal=journal)
    assert fitted == ["auto"]
    assert len(journal) == 2
    assert list(together) == [member, pool]
    assert timeless(together) == timeless(run_trials([member], POPULATIONS) | run_trials([pool], POPULATIONS))
    assert together[member].processor_seconds > 0.0
    other = replace(member, options=(("draws", 20),))
    fitted.clear()
    run_trials([pool, other], POPULATIONS, journal=Journal(journal.path))
    assert fitted == ["sequential-logit"]
    assert by_fit([pool, other, replace(member, seed=2)]) == [(pool,), (other,), (replace(member, seed=2),)]


def test_a_member_that_the_pool_fits_otherwise_is_fitted_on_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assessor_module, "ALONE", {"sequential-logit": {"nested": 0, "draws": 30}})
    pool = Trial("people", 600, 1, "auto", options=(("effort", "quick"),))
    member = replace(pool, model="sequential-logit", options=())
    together = run_trials([pool, member], POPULATIONS)
    assert together[pool].tau1 != together[member].tau1
    assert timeless(together)[member] == timeless(run_trials([member], POPULATIONS))[member]


def test_measures_of_replicates_are_those_of_their_estimates() -> None:
    results = run_trials(TRIALS, POPULATIONS)
    rows = measure(results)
    assert [(row.model, row.size, row.replicates) for row in rows] == [
        (model, size, 2) for model in MODELS for size in (200, 400)
    ]
    first, second = (results[trial] for trial in TRIALS[:2])
    assert first.tau1 is not None
    assert second.tau1 is not None
    assert rows[0].tau1 is not None
    mean = (first.tau1.estimate + second.tau1.estimate) / 2
    assert rows[0].tau1.mean_estimate == pytest.approx(mean)
    assert rows[0].tau1.relative_bias == pytest.approx(mean / ((first.tau1.truth + second.tau1.truth) / 2) - 1)
    assert sum(size for size, _, _ in rows[0].calibration_r2) == first.uniques + second.uniques
    assert rows[0].false_positives[0] == 1.0
    assert rows[0].false_negatives[-1] == 1.0


def test_an_unreadable_journal_is_an_error_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Cannot read"):
        Journal(tmp_path)
    (tmp_path / "odd.jsonl").write_text('nonsense\n[1]\n{"key": {}, "result": {"a": 1}}\n\n{"key": 1}')
    assert len(Journal(tmp_path / "odd.jsonl")) == 0
