"""What the report holds, and what it must not."""

import subprocess
import sys
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from keyhole.inference.dependence import Dependence, PairDependence
from keyhole.inference.fit import IGNORED_WEIGHTS, Diagnostic
from keyhole.inference.track_record import TrackRecord
from keyhole.population.sample import Sample
from keyhole.report.content import Report, compose
from keyhole.report.levels import FEW_RECORDS, level_lines
from keyhole.report.matrix import MOST_KEYS, matrix_of
from keyhole.risk.compare import Comparison
from keyhole.table.contingency import ContingencyTable


def report_of(comparison: Comparison, **options: Any) -> Report:
    return compose(comparison, source="survey.csv", command="keyhole assess survey.csv", **options)


def test_the_size_index_adds_up_to_the_occupied_cells(everyday: Comparison) -> None:
    data = report_of(everyday).data
    assert sum(cells for _, cells in data.size_index) == data.occupied_cells
    assert data.size_index[0] == ("1", data.sample_uniques)
    assert data.size_index[-1][0] == "10 or more"


def test_the_distribution_is_that_of_the_recommended_model(everyday: Comparison) -> None:
    report = report_of(everyday)
    assert everyday.chosen is not None
    assert everyday.chosen.records is not None
    assert report.distribution is not None
    assert report.distribution.model == report.recommended == "two-way"
    assert report.distribution.highest == everyday.chosen.records.r1.max()
    assert [model.recommended for model in report.models] == [False, False, True, False, False]
    assert [model.alike for model in report.models] == [True, True, False, False, False]


def test_provenance_has_what_it_takes_to_run_it_again(everyday: Comparison) -> None:
    when = datetime(2025, 3, 1, 12, 30, tzinfo=UTC)
    found = report_of(everyday, when=when).provenance
    assert (found.seed, found.when) == (everyday.assessments[0].seed, when)
    assert {name for name, _ in found.versions} == {"python", "keyhole", "numpy", "scipy", "duckdb"}


@pytest.mark.parametrize(
    "command",
    ["keyhole assess postgresql://ann:hunter2@db/x", "keyhole assess 'postgres://db/x?user=ann&password=hunter2'"],
)
def test_passwords_stay_out_of_the_report(everyday: Comparison, command: str) -> None:
    report = compose(everyday, source=command.split()[-1], command=command)
    assert "hunter2" not in repr(report.provenance) + report.title


def test_no_array_of_records_is_part_of_the_report(everyday: Comparison) -> None:
    report = report_of(everyday)
    for field in fields(report):
        assert "array(" not in repr(getattr(report, field.name)), field.name


def test_rarely_held_levels_are_not_named(sample: Sample) -> None:
    report_lines, _ = level_lines(sample.table, np.ones(sample.uniques))
    held = {
        (key.name, label): int(sample.table.counts[sample.table.cells[:, j] == code].sum())
        for j, key in enumerate(sample.table.keys)
        for code, label in enumerate(key.levels)
    }
    assert any(line.level is None for line in report_lines)
    for line in report_lines:
        if line.level is not None:
            assert line.records == held[line.key, line.level] >= FEW_RECORDS
        else:
            assert line.records is None or line.records >= FEW_RECORDS


def test_levels_are_ranked_by_what_their_share_does_not_explain(sample: Sample) -> None:
    r1 = np.linspace(0.1, 1.0, sample.uniques)
    lines, left_out = level_lines(sample.table, r1)
    excess = [line.tau1 * (1 - 1 / line.lift) for line in lines if line.tau1 and line.lift]
    assert excess == sorted(excess, reverse=True)
    assert all(line.lift is None or line.lift > 1 for line in lines)
    assert len(lines) <= 15
    assert left_out >= 0


def test_control_characters_in_labels_become_visible(compared: Any, hostile: Sample) -> None:
    report = report_of(compared(on=hostile), warnings=["bad\x1b]0;title\x07"])
    shown = repr(report.data.keys) + repr(report.drivers) + repr(report.warnings) + repr(report.verdict)
    for character in ("\\x1b", "\\x07", "\\u202e"):
        assert character not in shown


def test_weights_and_impossible_cells_are_assumptions(compared: Any, sample: Sample, toy: Any) -> None:
    from keyhole.population import sample as module

    class Rules:
        admissible_cells = 540

    heavy = replace(sample.table, weights=sample.table.counts * 20.0)
    with_rules = module.Sample(heavy, sample.population_size, Rules())  # type: ignore[arg-type]
    report = report_of(compared(toy(), on=with_rules))
    words = {assumption.topic: assumption.words for assumption in report.assumptions}
    assert "the chance that the survey weights imply" in words["How the sample was drawn"]
    assert "same chance" not in words["How the sample was drawn"]
    assert "added up from the survey weights" in words["The size of the population"]
    assert words["Impossible combinations"].startswith("50% of the combinations")
    assert report.data.admissible_cells == 540


def test_models_that_ignore_the_weights_are_named(compared: Any, sample: Sample, toy: Any) -> None:
    ignores = Diagnostic(IGNORED_WEIGHTS, 0.4, "caution", "The weights differ.")
    weighted = replace(sample, table=replace(sample.table, weights=sample.table.counts * 20.0))

    def drawn(*models: Any) -> str:
        found = report_of(compared(*models, on=weighted)).assumptions
        return next(one.words for one in found if one.topic == "How the sample was drawn")

    both = drawn(toy("a", admits=(ignores,)), toy("b"))
    assert "Weights are not used by a, which takes all chances to be equal." in both
    assert "everybody with the same chance" not in both
    assert drawn(toy("a", admits=(ignores,))).endswith("the chances did differ, and a does not use them.")


def test_what_several_intervals_leave_out_is_said_once(everyday: Comparison) -> None:
    report = report_of(everyday)
    assert report.said_once == (
        "The intervals of pitman and ewens leave out the uncertainty of the fitted parameters.",
    )
    assert not any("leaves out" in model.verdict for model in report.models)


def test_plug_in_intervals_are_called_too_narrow(everyday: Comparison) -> None:
    words = {found.topic: found.words for found in report_of(everyday).assumptions}["What the intervals contain"]
    assert "What those of pitman and ewens leave out besides is told with their checks: too narrow" in words


def test_forty_keys_and_one_key(compared: Any, sampled: Any) -> None:
    wide = sampled([["a", "b", "c"]] * 40, [f"K{j}" for j in range(40)], 300, 3000)
    assert len(report_of(compared(on=wide)).drivers.keys) == 40
    one = sampled([[str(i) for i in range(50)]], ["AGE"], 300, 3000)
    assert isinstance(one.table, ContingencyTable)
    assert report_of(compared(on=one)).data.keys == (("AGE", 50),)


def test_importing_the_report_imports_nothing_heavy() -> None:
    modules = ("content", "html", "json_result", "pictures", "records", "text", "writing")
    code = "import sys\n" + "".join(f"import keyhole.report.{name}\n" for name in modules)
    code += "print([name for name in ('matplotlib', 'jinja2', 'rich', 'duckdb', 'scipy') if name in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    )


def test_the_dependence_is_that_of_the_recommended_model_or_else_of_a_trusted_one(compared: Any, toy: Any) -> None:
    def model_of(*models: Any) -> str | None:
        found = report_of(compared(*models)).dependence
        return None if found is None else found.model

    good = TrackRecord(-8, 12, covered=17, samples=18).diagnostic()
    looking = toy("looking", dependent=True)
    assert model_of(looking, toy("proven", dependent=True, admits=(good,))) == "proven"
    assert model_of(toy("fitting", factor=1.0), looking) == "looking"
    assert model_of(toy("fitting", factor=1.0)) is None
    assert model_of(toy("fitting", factor=1.0), toy("wrong", dependent=True, untrusted=True)) is None


def test_of_very_many_keys_those_with_the_strongest_pairs_are_drawn() -> None:
    keys = tuple(f"K{j:02}" for j in range(30))
    pairs = [
        PairDependence(keys[a], keys[b], 2.0 if a >= 25 else 0.1 + a / 100) for b in range(30) for a in range(b)
    ]
    strongest = tuple(sorted(pairs, key=lambda pair: -pair.strength))
    found = matrix_of(Dependence(keys, strongest, ()))
    assert found is not None
    assert len(found.keys) == MOST_KEYS
    assert found.keys == tuple(sorted(found.keys))
    assert set(keys[25:]) < set(found.keys)
    assert found.strength[MOST_KEYS - 1, MOST_KEYS - 2] == found.top == 2.0
    assert all(row > column for row, column in found.strength)
    weak = matrix_of(Dependence(keys[:3], (PairDependence("K00", "K01", 0.1),), ()))
    assert weak is not None
    assert weak.top == pytest.approx(np.log(2))
    assert matrix_of(Dependence(keys[:2], (PairDependence("K00", "K01", 0.1),), ())) is None


def test_models_whose_turn_did_not_come_are_named(everyday: Comparison) -> None:
    report = report_of(replace(everyday, not_run=("np-i-emp", "pitman"), interrupted=True))
    assert report.warnings == ("The run was interrupted, and these models have no answer: np-i-emp, pitman.",)
    unchecked = report_of(replace(everyday, interrupted=True))
    assert unchecked.warnings == ("The run was interrupted before the checks by subsamples were done.",)
    assert report_of(everyday).warnings == ()
