"""keyhole validate: files, numbers, messages, interruption."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import duckdb
import numpy as np
import pytest
from pydantic import BaseModel, ConfigDict, Field

from keyhole.validation.journal import Journal
from tests.cli.conftest import Ran

Keyhole = Callable[..., Ran]
Share = Annotated[float, Field(ge=0, le=1)]
CHEAP = ("--keys", "age,sex,region", "--models", "benedetti-franconi,ewens", "--jobs", "1")


class Tau(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    mean_truth: float
    median_truth: float
    mean_estimate: float
    relative_bias: float | None
    median_abs_relative_error: float | None
    rmse: float
    coverage: Share
    mean_width: float
    relative_error_quantiles: list[float | None]


class Result(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    model: str
    sample_size: int
    replicates: int
    failed: int
    not_converged: int
    failures: dict[str, int]
    tau1: Tau | None
    tau2: Tau | None
    calibration_r1: list[tuple[Share, Share, int]] = Field(strict=False)
    calibration_r2: list[tuple[Share, Share, int]] = Field(strict=False)
    auc_r1: Share | None
    false_positive_rate: list[Share]
    false_negative_rate: list[Share]
    missed_at_false_positive_rate: list[Share]
    seconds_per_fit: float | None
    processor_seconds_per_fit: float | None
    settings: dict[str, object]


class Population(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    size: int
    keys: list[str]
    levels: list[int]
    cells: float | None
    occupied_cells: int
    population_uniques: int


class Document(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    version: Literal[1] = Field(alias="schema")
    keyhole: str
    command: Literal["validate"]
    seed: int
    status: Literal["ok", "not-converged", "failed", "incomplete"]
    population: Population
    design: dict[str, object]
    planned: int
    ended: int
    kappa: list[Share]
    results: list[Result]


def test_every_file_and_the_same_numbers_in_each(keyhole: Keyhole, survey: Path) -> None:
    ran = keyhole("validate", survey, *CHEAP, "--sample-size", "200,15%", "--replicates", "3", "--out", "made")
    assert ran.status == 0, ran.err
    names = {path.name for path in Path("made").iterdir()}
    assert names == {"report.html", "validation.json", "results.parquet", "journal.jsonl"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in Path("made").iterdir())
    told = Document.model_validate_json(Path("made/validation.json").read_text())
    assert (told.population.size, told.population.keys) == (2000, ["age", "sex", "region"])
    assert [(one.model, one.sample_size, one.replicates) for one in told.results] == [
        ("ewens", 200, 3),
        ("benedetti-franconi", 200, 3),
        ("ewens", 300, 3),
        ("benedetti-franconi", 300, 3),
    ]
    rows = duckdb.sql(
        "SELECT avg(tau1), avg(tau1_truth), median(abs(tau1 / tau1_truth - 1)), avg((tau1_truth BETWEEN tau1_low "
        "AND tau1_high)::INT), count(*) FROM 'made/results.parquet' WHERE model = 'ewens' AND sample_size = 200"
    ).fetchall()
    tau1 = told.results[0].tau1
    assert tau1 is not None
    assert rows[0] == pytest.approx(
        (tau1.mean_estimate, tau1.mean_truth, tau1.median_abs_relative_error, tau1.coverage, 3)
    )
    page = Path("made/report.html").read_text()
    assert "Samples of 300" in page
    assert page.count("<svg") == 2 * 2 * 6
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "ewens" in ran.out
    assert "Samples of 200" in ran.out


def test_json_on_stdout_has_nothing_beside_it_and_nothing_is_written(keyhole: Keyhole, survey: Path) -> None:
    ran = keyhole("validate", survey, *CHEAP, "--sample-size", "200", "--replicates", "1", "--json", "-")
    assert Document.model_validate_json(ran.out).results[0].replicates == 1
    assert (ran.status, ran.err, list(Path().iterdir())) == (0, "", [])


def test_the_seed_is_that_of_the_first_sample(keyhole: Keyhole, survey: Path) -> None:
    both = ("validate", survey, *CHEAP, "--sample-size", "200", "--json", "-")
    second = json.loads(keyhole(*both, "--replicates", "1", "--seed", "2").out)["results"]
    pair = json.loads(keyhole(*both, "--replicates", "2", "--seed", "1").out)["results"]
    first = json.loads(keyhole(*both, "--replicates", "1", "--seed", "1").out)["results"]
    means = [found[0]["tau1"]["mean_estimate"] for found in (first, second, pair)]
    assert means[0] != means[1]
    assert (means[0] + means[1]) / 2 == pytest.approx(means[2])


@pytest.mark.parametrize(
    "options",
    [("--design", "bernoulli"), ("--design", "stratified", "--strata", "region", "--allocation", "equal")],
    ids=["bernoulli", "stratified"],
)
def test_other_designs(keyhole: Keyhole, survey: Path, options: tuple[str, ...]) -> None:
    arguments = ("--keys", "age,sex", "--models", "benedetti-franconi", "--jobs", "1", *options)
    ran = keyhole(
        "validate", survey, *arguments, "--sample-size", "300", "--replicates", "2", "--out", "made", "--json", "-"
    )
    assert ran.status == 0, ran.err
    told = Document.model_validate_json(ran.out)
    assert told.design["design"] == options[1]
    sizes = duckdb.sql("SELECT records FROM 'made/results.parquet' ORDER BY seed").fetchnumpy()["records"]
    if options[1] == "bernoulli":
        assert len(set(sizes.tolist())) == 2
    else:
        # About 20 people live on the islands: all of them are in.
        assert np.ptp(sizes) == 0
        assert told.results[0].tau1 is not None


def test_the_time_runs_out(keyhole: Keyhole, survey: Path) -> None:
    both = ("validate", survey, *CHEAP, "--sample-size", "200", "--replicates", "2", "--out", "made")
    ran = keyhole(*both, "--max-seconds", "0")
    assert ran.status == 3
    assert Document.model_validate_json(Path("made/validation.json").read_text()).status == "incomplete"
    assert "0 of 4 fits" in " ".join(ran.out.split())
    assert keyhole(*both).status == 0
    assert (
        keyhole("validate", survey, *CHEAP, "--sample-size", "200", "--replicates", "2", "--resume", "made").status
        == 0
    )


def test_what_a_folder_knows_already_is_told(keyhole: Keyhole, survey: Path) -> None:
    """Before the time of a first fit too; and that results of other samples are replaced."""
    both = ("validate", survey, *CHEAP, "--sample-size", "200", "--out", "made")
    assert "are taken from" not in keyhole(*both, "--replicates", "2", "--max-seconds", "0").err
    assert Path("made/journal.jsonl").stat().st_size == 0
    assert keyhole(*both, "--replicates", "2").status == 0
    again = keyhole(*both, "--replicates", "3").err
    assert "4 of 6 fits are taken from made." in again
    assert "of other models" not in again
    other = keyhole(*both, "--replicates", "1", "--design", "bernoulli").err
    assert "made holds 6 fits of other models, samples or options" in other
    assert "are taken from" not in other
    assert keyhole(*both, "--replicates", "3", "--quiet").err == ""


def test_samples_without_uniques_have_their_report(keyhole: Keyhole, survey: Path) -> None:
    asked = ("--keys", "sex", "--models", "two-way", "--jobs", "1", "--sample-size", "300", "--replicates", "2")
    ran = keyhole("validate", survey, *asked, "--out", "made")
    assert ran.status == 0, ran.err
    assert Document.model_validate_json(Path("made/validation.json").read_text()).results[0].replicates == 2


def test_results_of_another_population_are_not_overwritten(keyhole: Keyhole, survey: Path) -> None:
    rest = ("--models", "benedetti-franconi", "--jobs", "1", "--sample-size", "200", "--replicates", "1")
    assert keyhole("validate", survey, "--keys", "age,sex", *rest, "--out", "made").status == 0
    before = Path("made/validation.json").read_text()
    for option in ("--out", "--resume"):
        ran = keyhole("validate", survey, "--keys", "age,region", *rest, option, "made")
        assert (ran.status, "another population" in ran.err) == (2, True)
    assert Path("made/validation.json").read_text() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--sample-size", "3000"), ("3,000", "2,000")),
        (("--sample-size", "lots"), ("lots", "5%")),
        (("--sample-size", "200", "--models", "pitmann"), ("pitmann", "pitman")),
        (("--sample-size", "200", "--model-option", "color=red"), ("color",)),
        (("--sample-size", "200", "--design", "stratified"), ("--strata",)),
        (("--sample-size", "200", "--strata", "region"), ("--design",)),
        (("--sample-size", "200", "--allocation", "equal"), ("--design",)),
        (("--sample-size", "2", "--design", "stratified", "--strata", "region"), ("strata",)),
        (("--sample-size", "200", "--design", "stratified", "--strata", "county"), ("county",)),
        (("--sample-size", "200", "--backend", "dask"), ("--scheduler",)),
        (("--sample-size", "200", "--resume", "nowhere"), ("no interrupted run",)),
        (("--sample-size", "200", "--out", "a", "--resume", "b"), ("--out",)),
        (("--sample-size", "200", "--report", "nowhere/page.html"), ("nowhere",)),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    keyhole: Keyhole, survey: Path, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    ran = keyhole("validate", survey, *CHEAP, *options)
    assert (ran.status, ran.out, ran.err.strip().count("\n")) == (2, "", 0), ran.err
    for word in words:
        assert word in ran.err
    assert not list(Path().iterdir())


def test_an_unknown_key_and_a_broken_rule_are_refused(keyhole: Keyhole, survey: Path, tmp_path: Path) -> None:
    ran = keyhole("validate", survey, "--keys", "agee", "--sample-size", "200", "--jobs", "1")
    assert (ran.status, "'agee'" in ran.err) == (2, True)
    rules = tmp_path / "zeros.yaml"
    rules.write_text("- {sex: female, region: north}\n")
    ran = keyhole("validate", survey, *CHEAP, "--sample-size", "200", "--zeros", rules)
    assert (ran.status, "rule 1" in ran.err) == (2, True)
    assert not list(Path().iterdir())


def test_ctrl_c_keeps_what_had_ended_and_the_same_command_goes_on(survey: Path, tmp_path: Path) -> None:
    arguments = ["validate", survey, "--keys", "age,sex,region", "--models", "pitman", "--sample-size", "300"]
    more = ["--jobs", "2", "--out", "made", "--replicates"]
    command = [sys.executable, "-m", "keyhole", *map(str, arguments), *more]
    # As from a terminal: the interruption goes to the workers too.
    process = subprocess.Popen(
        [*command, "500"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    path = tmp_path / "made" / "journal.jsonl"
    try:
        until = time.monotonic() + 300
        while time.monotonic() < until and process.poll() is None and not (path.is_file() and len(Journal(path))):
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert "--out made goes on" in err
    assert {one.name for one in path.parent.iterdir()} == {"journal.jsonl"}
    kept = len(Journal(path))
    assert 1 <= kept < 500
    done = subprocess.run(
        [*command, str(kept), "--quiet"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    told = Document.model_validate_json((path.parent / "validation.json").read_text())
    assert told.results[0].replicates == kept


@pytest.mark.parametrize("size", ["1,500", "200,1,000", "10,000"])
def test_a_number_with_a_comma_in_it_is_not_taken_for_two(keyhole: Keyhole, survey: Path, size: str) -> None:
    ran = keyhole("validate", survey, *CHEAP, "--sample-size", size, "--replicates", "1", "--out", "made")
    assert ran.status == 2
    assert "commas separate sizes" in ran.err
    assert not Path("made").exists()
