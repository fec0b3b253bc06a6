"""keyhole assess from end to end: what it prints, writes and returns."""

import contextlib
import json
import sqlite3
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from keyhole.cli.run import _tell_first
from keyhole.cli.terminal import Terminal
from keyhole.inference.fit import RiskModel
from keyhole.models.catalogue import automatic
from keyhole.population.sample import Sample
from keyhole.progress import silent
from keyhole.risk.assess import assess_risk
from keyhole.risk.compare import Comparison, compare_models
from keyhole.risk.size_index_check import SizeIndexCheck
from tests.cli.conftest import Ran, rows
from tests.risk.samples import Geometric, random_sample

Keyhole = Callable[..., Ran]
KEYS = ("--keys", "age,sex,region")


def test_a_summary_and_a_report(keyhole: Keyhole, survey: Path, tmp_path: Path) -> None:
    ran = keyhole("assess", "--effort", "quick", survey, *KEYS, "--population-size", "45000")
    assert ran.status == 0, ran.err
    assert "pitman" in ran.out
    written = list((tmp_path / "work").iterdir())
    assert [path.name for path in written] == ["report.html"]
    assert stat.S_IMODE(written[0].stat().st_mode) == 0o600


def test_json_on_standard_output_and_nothing_else(keyhole: Keyhole, survey: Path, tmp_path: Path) -> None:
    ran = keyhole("assess", survey, *KEYS, "--sampling-fraction", "0.05", "--model", "pitman", "--json", "-")
    assert ran.status == 0, ran.err
    result = json.loads(ran.out)
    assert (result["schema"], result["command"], result["recommended"]) == (1, "assess", "pitman")
    assert result["data"]["population_size"] == 40_000
    assert result["data"]["levels"][1:] == [2, 5]
    assert not list((tmp_path / "work").iterdir())


def test_the_same_seed_gives_the_same_result(keyhole: Keyhole, survey: Path) -> None:
    def result(seed: int) -> dict[str, object]:
        ran = keyhole(
            "assess",
            "--effort",
            "quick",
            survey,
            *KEYS,
            "--population-size",
            "45000",
            "--seed",
            str(seed),
            "--json",
            "-",
        )
        found: dict[str, object] = json.loads(ran.out)
        for model in found["results"]:  # type: ignore[attr-defined]
            del model["seconds"]
        return found

    first = result(3)
    assert first == result(3)
    assert first["results"] != result(4)["results"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_records_come_in_input_order(keyhole: Keyhole, survey: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"records.{suffix}"
    ran = keyhole("assess", survey, *KEYS, "--population-size", "45000", "--model", "pitman", "--records", out)
    assert ran.status == 0, ran.err
    people = rows(survey)
    cells = [(person["age"], person["sex"], person["region"]) for person in people]
    found = duckdb.sql(f"select * from '{out}'").fetchall()
    assert duckdb.sql(f"select * from '{out}'").columns == [
        "row",
        "cell_count",
        "sample_unique",
        "r1",
        "r1_low",
        "r1_high",
        "r2",
        "model",
    ]
    assert [row[0] for row in found] == list(range(1, len(people) + 1))
    assert [row[1] for row in found] == [cells.count(cell) for cell in cells]
    for row, cell in zip(found, cells, strict=True):
        assert row[2] == (cells.count(cell) == 1)
        assert (row[3] is not None) == row[2]
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_every_record_has_a_match_probability_when_asked(keyhole: Keyhole, survey: Path, tmp_path: Path) -> None:
    out = tmp_path / "records.csv"
    ran = keyhole(
        "assess",
        survey,
        *KEYS,
        "--weights",
        "weight",
        "--model",
        "benedetti-franconi",
        "--records",
        out,
        "--all-records",
    )
    assert ran.status == 0, ran.err
    found = rows(out)
    assert all(0 < float(row["r2"]) <= 1 / int(row["cell_count"]) for row in found)


def test_every_record_has_one_without_naming_a_model(keyhole: Keyhole, survey: Path, tmp_path: Path) -> None:
    out = tmp_path / "records.csv"
    ran = keyhole(
        "assess",
        "--effort",
        "quick",
        survey,
        *KEYS,
        "--population-size",
        "45000",
        "--records",
        out,
        "--all-records",
    )
    assert ran.status == 0, ran.err
    assert all(0 < float(row["r2"]) <= 1 / int(row["cell_count"]) for row in rows(out))
    assert "--all-records" not in ran.err


def test_a_model_that_cannot_tell_of_every_record_says_so(keyhole: Keyhole, survey: Path, tmp_path: Path) -> None:
    out = tmp_path / "records.csv"
    asked = ("--model", "independence", "--records", out, "--all-records")
    ran = keyhole("assess", survey, *KEYS, "--population-size", "45000", *asked)
    assert "independence says nothing of records that are not unique in the sample" in ran.err
    assert any(not row["r2"] for row in rows(out))


def test_weights_give_the_population(keyhole: Keyhole, survey: Path) -> None:
    ran = keyhole("assess", "--effort", "quick", survey, *KEYS, "--weights", "weight", "--json", "-")
    assert ran.status == 0, ran.err
    result = json.loads(ran.out)
    total = sum(float(person["weight"]) for person in rows(survey))
    assert result["data"]["population_size"] == round(total)
    assert [found["model"] for found in result["results"]] == [
        "auto",
        "sequential-logit",
        *automatic(weighted=True)[:-1],
    ]
    # Of the models of the pool only the sequential logit uses the weights, which differ.
    assert result["recommended"] == "auto"
    assert result["results"][0]["tau1"]["estimate"] == result["results"][1]["tau1"]["estimate"]
    assert len(result["results"][0]["dependence"]["pairs"]) == 3


def test_out_holds_everything(keyhole: Keyhole, survey: Path, tmp_path: Path) -> None:
    ran = keyhole(
        "assess",
        "--effort",
        "quick",
        survey,
        *KEYS,
        "--population-size",
        "45000",
        "--out",
        tmp_path / "results",
        "--quiet",
    )
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["report.html", "result.json"]
    assert stat.S_IMODE((tmp_path / "results").stat().st_mode) == 0o700


def test_recodes_codebook_and_zeros_work_together(keyhole: Keyhole, survey: Path, tmp_path: Path) -> None:
    (tmp_path / "recode.yaml").write_text("age: {bands: [0, 15, 30, 45, 60, 75]}\n")
    (tmp_path / "levels.yaml").write_text("sex: [female, male, another]\n")
    (tmp_path / "zeros.yaml").write_text("- {sex: another, region: {not: [north, south]}}\n")
    ran = keyhole(
        "assess",
        "--effort",
        "quick",
        survey,
        *KEYS,
        "--population-size",
        "45000",
        "--recode",
        tmp_path / "recode.yaml",
        "--levels",
        tmp_path / "levels.yaml",
        "--zeros",
        tmp_path / "zeros.yaml",
        "--json",
        "-",
    )
    assert ran.status in (0, 3), ran.err
    data = json.loads(ran.out)["data"]
    assert data["levels"] == [6, 3, 5]
    assert (data["cells"], data["admissible_cells"]) == (90, 90 - 6 * 3)


def test_no_uniques_is_a_result_of_no_risk(keyhole: Keyhole, survey: Path) -> None:
    ran = keyhole(
        "assess", "--effort", "quick", survey, "--keys", "sex,region", "--population-size", "45000", "--json", "-"
    )
    result = json.loads(ran.out)
    assert result["data"]["sample_uniques"] == 0
    known = [model for model in result["results"] if model["status"] == "ok"]
    assert known
    assert all(model["tau1"]["estimate"] == 0 for model in known)
    assert ran.status == 0, ran.err


def test_everyone_unique_is_not_trusted(keyhole: Keyhole, tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text("name\n" + "\n".join(f"person {i}" for i in range(300)) + "\n")
    ran = keyhole(
        "assess", path, "--keys", "name", "--population-size", "6000", "--model", "pitman", "--json", "-"
    )
    assert ran.status == 3
    assert json.loads(ran.out)["results"][0]["status"] in ("not-converged", "failed")


def test_a_census_knows_its_uniques(keyhole: Keyhole, survey: Path) -> None:
    ran = keyhole("assess", survey, *KEYS, "--population-size", "2000", "--model", "pitman", "--json", "-")
    result = json.loads(ran.out)
    uniques = result["data"]["sample_uniques"]
    assert result["results"][0]["tau1"]["interval"] == [uniques, uniques]


def test_a_key_with_one_level_is_only_a_warning(keyhole: Keyhole, survey: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.csv"
    lines = survey.read_text().splitlines()
    one.write_text("\n".join([lines[0] + ",country", *(line + ",Utopia" for line in lines[1:])]) + "\n")
    ran = keyhole(
        "assess", "--effort", "quick", one, "--keys", "age,sex,region,country", "--population-size", "45000"
    )
    assert ran.status == 0, ran.err
    assert "country" in ran.out


def test_the_contract_command_on_real_data(keyhole: Keyhole, shared_data: Path) -> None:
    ran = keyhole(
        "assess",
        shared_data / "census-income" / "kdd_keys.parquet",
        "--keys",
        "AGE10,SEX,MARITAL7,RACE5,EDUC5,EMP4",
        "--sampling-fraction",
        "0.05",
        "--model",
        "pitman",
        "--json",
        "-",
    )
    assert ran.status == 0, ran.err
    result = json.loads(ran.out)
    assert result["schema"] == 1
    assert result["data"]["records"] == 299_285
    tau1, tau2 = (result["results"][0][name]["estimate"] for name in ("tau1", "tau2"))
    assert 0 < tau1 <= tau2 <= result["data"]["sample_uniques"]


def test_an_option_goes_to_the_models_that_have_it(keyhole: Keyhole, survey: Path) -> None:
    ran = keyhole(
        "compare", survey, *KEYS, "--population-size", "45000", "--models", "ewens,benedetti-franconi",
        "--model-option", "draws=50", "--json", "-",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    assert [model["settings"] for model in json.loads(ran.out)["results"]] == [{"draws": 50}, {}]


def test_keys_may_be_given_one_by_one_and_hold_commas(keyhole: Keyhole, survey: Path, tmp_path: Path) -> None:
    lines = survey.read_text().splitlines()
    odd = tmp_path / "odd.csv"
    odd.write_text("\n".join(['age,"sex, legal",region,weight', *lines[1:]]) + "\n")
    ran = keyhole(
        "assess",
        odd,
        "--keys",
        "age",
        "--keys",
        '"sex, legal",region',
        "--population-size",
        "45000",
        "--model",
        "ewens",
        "--json",
        "-",
    )
    assert ran.status == 0, ran.err
    assert json.loads(ran.out)["data"]["keys"] == ["age", "sex, legal", "region"]


def test_a_sqlite_file_needs_no_address(keyhole: Keyhole, survey: Path, tmp_path: Path) -> None:
    path = tmp_path / "survey.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("create table people (age text, sex text)")
        connection.executemany(
            "insert into people values (?, ?)", [(row["age"], row["sex"]) for row in rows(survey)]
        )
        connection.commit()
    ran = keyhole(
        "assess",
        path,
        "--table",
        "people",
        "--keys",
        "age,sex",
        "--population-size",
        "45000",
        "--model",
        "ewens",
        "--json",
        "-",
    )
    assert ran.status == 0, ran.err
    assert json.loads(ran.out)["data"]["records"] == 2000
    told = keyhole("assess", "--effort", "quick", path, "--keys", "age,sex", "--population-size", "45000")
    assert told.status == 2
    assert "--table" in told.err


def test_an_interrupted_run_gives_no_risk_of_a_model_that_nobody_chose(
    keyhole: Keyhole, survey: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a rough first model there is a result, marked; an older file of records is left and said to be older."""

    def ended(models: Sequence[RiskModel], sample: Sample, **options: Any) -> Comparison:
        found = compare_models(models[:1], sample)
        names = tuple(model.name for model in models[1:])
        return replace(found, recommended=None, not_run=names, interrupted=bool(names))

    asked = ("assess", survey, *KEYS, "--population-size", "45000", "--out", "there", "--records", "there/r.csv")
    monkeypatch.setattr("keyhole.cli.run.compare_models", ended)
    ran = keyhole(*asked, "--models", "pitman,ewens")
    assert ran.status == 130
    assert "no model yet whose risks --records could hold.\n" in ran.err
    assert "r.csv" not in ran.out
    assert {path.name for path in Path("there").iterdir()} == {"report.html", "result.json"}
    assert json.loads(Path("there/result.json").read_text())["interrupted"] is True
    Path("there/r.csv").write_text("older")
    assert "there/r.csv is of an earlier run." in keyhole(*asked, "--models", "pitman,ewens").err
    assert Path("there/r.csv").read_text() == "older"


def test_a_folder_that_cannot_be_made_is_told_before_the_work(
    keyhole: Keyhole, survey: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keyhole.cli.run.compare_models", None)
    ran = keyhole("assess", survey, *KEYS, "--population-size", "45000", "--out", survey / "below")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("keyhole: ")


@pytest.mark.parametrize(
    ("status", "misfit", "words"),
    [
        ("ok", 0.5, "a first rough answer"),
        ("ok", 40.0, "a first rough answer by a model that does not fit"),
        ("not-converged", 0.5, "not to be trusted"),
    ],
)
def test_first_answers_are_told_with_their_doubts(status: Any, misfit: float, words: str) -> None:
    found = assess_risk(Geometric(), random_sample())
    found = replace(found, status=status, size_index=SizeIndexCheck(misfit, None))
    said: list[str] = []
    _tell_first(Terminal(silent, said.append), 2, found)
    assert said[0].endswith(f"), {words}")
