"""Schema 1, as executable documentation."""

import json
import math
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import BaseModel, ConfigDict, Field

from keyhole.inference.model_path import ModelPath, PathStep
from keyhole.report.json_result import to_json, to_text
from keyhole.risk.compare import Comparison
from keyhole.risk.size_index_check import SizeIndexCheck
from keyhole.risk.truth import Truth

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Data(Strict):
    records: int
    population_size: int
    sampling_fraction: Finite
    keys: list[str]
    levels: list[int]
    cells: float | None
    admissible_cells: float | None
    occupied_cells: int
    sample_uniques: int


class Estimate(Strict):
    estimate: Finite
    interval: Annotated[list[Finite], Field(min_length=2, max_length=2)]
    level: Finite
    mcse: Finite
    expected_sd: Finite | None


class TrueRisk(Strict):
    tau1: Finite
    tau2: Finite


class Diagnostics(BaseModel):
    model_config = ConfigDict(extra="allow")
    size_index_misfit: float | None
    verdict: str


class Seconds(Strict):
    fit: Finite
    risk: Finite


class Pair(Strict):
    keys: Annotated[list[str], Field(min_length=2, max_length=2)]
    strength: Finite


class ThreeWay(Strict):
    keys: Annotated[list[str], Field(min_length=2, max_length=2)]
    on: str
    score: Finite


class Together(Strict):
    pairs: list[Pair]
    three_way: list[ThreeWay]


class Step(Strict):
    label: str
    value: Finite | None
    tau1: Finite | None
    tau2: Finite | None
    statistics: dict[str, Finite | None]


class Path(Strict):
    along: str
    chosen: Annotated[int, Field(ge=0)]
    steps: list[Step]


class Result(Strict):
    model: str
    status: Literal["ok", "not-converged", "failed"]
    tau1: Estimate | None
    tau2: Estimate | None
    truth: TrueRisk | None = None
    diagnostics: Diagnostics
    dependence: Together | None = None
    path: Path | None = None
    seconds: Seconds
    settings: dict[str, Any]


class SchemaOne(Strict):
    schema_: Annotated[Literal[1], Field(alias="schema")]
    keyhole: str
    command: str
    seed: int
    data: Data
    results: list[Result]
    recommended: str | None
    not_run: list[str] = Field(default=[], min_length=1)
    interrupted: Literal[True] | None = None


def parsed(comparison: Comparison, **options: Any) -> SchemaOne:
    text = to_text(to_json(comparison, command="assess", **options))
    assert "NaN" not in text
    assert "Infinity" not in text
    return SchemaOne.model_validate(json.loads(text))


def test_an_interruption_is_marked(everyday: Comparison) -> None:
    assert parsed(replace(everyday, interrupted=True)).interrupted
    assert parsed(everyday).interrupted is None


def test_a_comparison_is_schema_1(everyday: Comparison) -> None:
    result = parsed(everyday)
    assert result.recommended == "two-way"
    assert [found.model for found in result.results] == ["pitman", "ewens", "two-way", "hdp", "lancaster"]
    assert [found.status for found in result.results] == ["ok", "ok", "ok", "not-converged", "failed"]
    data, sample = result.data, everyday.assessments[0].sample
    assert data.keys == ["AGE", "SEX", "REGION", "JOB"]
    assert math.prod(data.levels) == data.cells == data.admissible_cells
    assert (data.records, data.sample_uniques) == (sample.sample_size, sample.uniques)
    assert data.sampling_fraction == data.records / data.population_size


def test_the_order_of_the_fields_is_that_of_the_contract(everyday: Comparison) -> None:
    result = to_json(everyday, command="assess", truth=Truth(3.0, 9.5, np.array([1, 2])))
    assert list(result) == ["schema", "keyhole", "command", "seed", "data", "results", "recommended"]
    first = result["results"][0]
    assert list(first) == [
        "model", "status", "tau1", "tau2", "truth", "diagnostics", "seconds", "settings",
    ]  # fmt: skip
    assert list(first["tau1"]) == ["estimate", "interval", "level", "mcse", "expected_sd"]


def test_plug_in_models_have_no_expected_sd_and_say_what_is_left_out(everyday: Comparison) -> None:
    plug_in, sampled = parsed(everyday).results[0], parsed(everyday).results[2]
    assert plug_in.tau1 is not None
    assert plug_in.tau1.expected_sd is None
    assert "leaves out" in plug_in.diagnostics.verdict
    assert sampled.tau1 is not None
    assert sampled.tau1.expected_sd is not None


def test_a_failed_model_has_no_numbers_and_says_why(everyday: Comparison) -> None:
    failed = parsed(everyday).results[-1]
    assert failed.tau1 is None
    assert failed.tau2 is None
    assert failed.diagnostics.verdict == "The table has too few cells to fit."


def test_checks_become_diagnostics_by_name(everyday: Comparison) -> None:
    found = to_json(everyday, command="assess")["results"][3]["diagnostics"]
    assert found["rhat_tau1"] == 1.31
    assert found["boundary"] == "interior"
    assert found["size_index_misfit"] is None


def test_the_truth_is_there_only_where_it_is_known(everyday: Comparison) -> None:
    known = to_json(everyday, command="demo", truth=Truth(3.0, 9.5, np.array([1, 2])))
    assert known["results"][0]["truth"] == {"tau1": 3.0, "tau2": 9.5}
    assert "truth" not in to_json(everyday, command="assess")["results"][0]


def test_nothing_recommended_is_null(compared: Any, toy: Any) -> None:
    assert parsed(compared(toy(untrusted=True), toy("b", fails="No."))).recommended is None


def test_what_is_not_a_number_becomes_null(everyday: Comparison) -> None:
    odd = replace(
        everyday.assessments[0],
        size_index=SizeIndexCheck(float("nan"), 1.0),
        settings={"a": np.array([1.0, np.inf]), "b": np.int64(3), "c": ("x", None), "d": {"e": -np.inf}, "f": 1j},
    )
    found = parsed(replace(everyday, assessments=(odd,))).results[0]
    assert found.diagnostics.size_index_misfit is None
    assert found.settings == {"a": [1.0, None], "b": 3, "c": ["x", None], "d": {"e": None}, "f": "1j"}


@pytest.mark.parametrize("keys", [40, 400])
def test_a_table_beyond_counting_is_still_a_result(compared: Any, sampled: Any, keys: int) -> None:
    wide = sampled([["a", "b", "c", "d", "e", "f", "g", "h"]] * keys, [f"K{j}" for j in range(keys)], 50, 1000)
    cells = parsed(compared(on=wide)).data.cells
    assert cells == (float(8**40) if keys == 40 else None)


def test_hostile_labels_survive(compared: Any, hostile: Any) -> None:
    assert parsed(compared(on=hostile)).data.keys == [key.name for key in hostile.table.keys]


def test_the_dependence_is_there_only_where_a_model_found_one(compared: Any, toy: Any) -> None:
    comparison = compared(toy(dependent=True), toy("b"))
    found = to_json(comparison, command="assess")["results"]
    assert "dependence" not in found[1]
    assert found[0]["dependence"]["pairs"][0] == {"keys": ["AGE", "SEX"], "strength": 2.5}
    assert len(found[0]["dependence"]["pairs"]) == 6
    assert found[0]["dependence"]["three_way"][0] == {"keys": ["AGE", "SEX"], "on": "REGION", "score": 15.0}
    assert parsed(comparison).results[0].dependence is not None


def test_the_path_is_there_only_where_a_model_was_chosen_on_one(
    compared: Any, toy: Any, term_path: Any, lambda_path: Any
) -> None:
    comparison = compared(toy(path=term_path(8)), toy("b"), toy("c", path=lambda_path(300, 250)))
    found = to_json(comparison, command="assess")["results"]
    assert "path" not in found[1]
    assert list(found[0]["path"]) == ["along", "chosen", "steps"]
    assert (found[0]["path"]["along"], found[0]["path"]["chosen"]) == ("term added", 7)
    assert found[0]["path"]["steps"][0] == {
        "label": "independence", "value": None, "tau1": 310.0, "tau2": 500.0,
        "statistics": {"B1": 13.5, "B2": 9.0},
    }  # fmt: skip
    assert len(found[2]["path"]["steps"]) == 300  # a long path is thinned in pictures only
    assert found[2]["path"]["steps"][250]["value"] == 250 / 299
    assert [one.path is None for one in parsed(comparison).results] == [False, True, False]


def test_what_is_not_a_number_on_a_path_becomes_null(compared: Any, toy: Any) -> None:
    odd = PathStep("all", np.float64(np.inf), float("nan"), np.float64(3.5), {"B1": -np.inf, "B2": np.float32(2)})
    found = parsed(compared(toy(path=ModelPath("lambda", (odd, odd), np.int64(1))))).results[0].path
    assert found is not None
    assert found.chosen == 1
    assert found.steps[1].model_dump() == {
        "label": "all", "value": None, "tau1": None, "tau2": 3.5, "statistics": {"B1": None, "B2": 2.0},
    }  # fmt: skip


def test_models_that_were_not_run_are_named(everyday: Comparison) -> None:
    assert parsed(replace(everyday, not_run=("np-i", "pitman"))).not_run == ["np-i", "pitman"]
