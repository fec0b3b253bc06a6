"""Bad input: exit status 2, one clear line, nothing written, no record's values."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran

Keyhole = Callable[..., Ran]
SECRET = "zanzibar-4711"
"""A value that is in every bad file and must be in no message."""


def refused(ran: Ran, folder: Path, *words: str) -> None:
    """The command said no, in one line with these words, and left nothing behind."""
    assert ran.status == 2, (ran.status, ran.out, ran.err)
    assert ran.out == ""
    lines = ran.err.strip().splitlines()
    assert len(lines) == 1, ran.err
    assert "Traceback" not in ran.err
    assert SECRET not in ran.err
    for word in words:
        assert word.lower() in ran.err.lower(), ran.err
    assert not list(folder.iterdir())


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A valid file whose every record holds the secret."""
    path = tmp_path / "people.csv"
    rows = [f"{i % 7},{'f' if i % 2 else 'm'},{SECRET if i % 3 else 'elsewhere'},{1 + i % 5}" for i in range(100)]
    path.write_text("age,sex,place,weight\n" + "\n".join(rows) + "\n")
    return path


def test_a_missing_file(keyhole: Keyhole, work: Path, tmp_path: Path) -> None:
    refused(keyhole("assess", tmp_path / "none.csv", "--keys", "age", "--population-size", "9"), work, "none.csv")


def test_an_empty_file(keyhole: Keyhole, work: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    refused(keyhole("assess", tmp_path / "empty.csv", "--keys", "age", "--population-size", "9"), work, "empty")


def test_a_header_without_records(keyhole: Keyhole, work: Path, tmp_path: Path) -> None:
    (tmp_path / "header.csv").write_text("age,sex\n")
    refused(
        keyhole("assess", tmp_path / "header.csv", "--keys", "age", "--population-size", "9"), work, "no records"
    )


def test_an_unknown_key(keyhole: Keyhole, work: Path, people: Path) -> None:
    refused(keyhole("assess", people, "--keys", "agee,sex", "--population-size", "900"), work, "'agee'", "age")


def test_a_key_given_twice(keyhole: Keyhole, work: Path, people: Path) -> None:
    refused(
        keyhole("assess", people, "--keys", "age,sex,age", "--population-size", "900"),
        work,
        "age",
        "more than once",
    )


def test_no_key_at_all(keyhole: Keyhole, work: Path, people: Path) -> None:
    refused(keyhole("assess", people, "--keys", " , ", "--population-size", "900"), work, "key")


def test_a_population_smaller_than_the_sample(keyhole: Keyhole, work: Path, people: Path) -> None:
    refused(keyhole("assess", people, "--keys", "age", "--population-size", "99"), work, "smaller", "100", "99")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ((), "none of them"),
        (("--population-size", "900", "--weights", "weight"), "exactly one"),
        (("--sampling-fraction", "1.5"), "fraction"),
        (("--sampling-fraction", "nan"), "fraction"),
        (("--sampling-fraction", "0"), "fraction"),
    ],
)
def test_a_population_told_wrongly(
    keyhole: Keyhole, work: Path, people: Path, options: tuple[str, ...], word: str
) -> None:
    refused(keyhole("assess", people, "--keys", "age", *options), work, word)


@pytest.mark.parametrize("weight", ["-3", "nan", "0", "inf", "", "heavy"])
def test_weights_that_are_not_weights(keyhole: Keyhole, work: Path, people: Path, weight: str) -> None:
    people.write_text(people.read_text() + f"3,f,{SECRET},{weight}\n3,f,{SECRET},{weight}\n")
    refused(keyhole("assess", people, "--keys", "age", "--weights", "weight"), work, "weight", "2")


def test_weights_scaled_to_the_sample(keyhole: Keyhole, work: Path, tmp_path: Path) -> None:
    path = tmp_path / "scaled.csv"
    path.write_text("age,weight\n" + "\n".join(f"{i % 9},{0.5 if i % 2 else 1.5}" for i in range(100)) + "\n")
    refused(keyhole("assess", path, "--keys", "age", "--weights", "weight"), work, "scaled")


def test_a_rule_with_an_unknown_label(keyhole: Keyhole, work: Path, people: Path, tmp_path: Path) -> None:
    (tmp_path / "zeros.yaml").write_text("- {sex: female, age: 3}\n")
    ran = keyhole(
        "assess", people, "--keys", "age,sex", "--population-size", "900", "--zeros", tmp_path / "zeros.yaml"
    )
    refused(ran, work, "female", "sex", "rule 1")


def test_a_rule_file_that_is_not_one(keyhole: Keyhole, work: Path, people: Path, tmp_path: Path) -> None:
    (tmp_path / "zeros.yaml").write_text("{]")
    ran = keyhole(
        "assess", people, "--keys", "age,sex", "--population-size", "900", "--zeros", tmp_path / "zeros.yaml"
    )
    refused(ran, work, "zeros.yaml")


def test_records_in_forbidden_cells(keyhole: Keyhole, work: Path, people: Path, tmp_path: Path) -> None:
    (tmp_path / "zeros.yaml").write_text("- {sex: f, age: [1, 3]}\n- {sex: m, age: 2}\n")
    text = people.read_text().splitlines()[1:]
    first = sum(row.startswith(("1,f", "3,f")) for row in text)
    second = sum(row.startswith("2,m") for row in text)
    ran = keyhole(
        "assess", people, "--keys", "age,sex", "--population-size", "900", "--zeros", tmp_path / "zeros.yaml"
    )
    refused(ran, work, "rule 1", "rule 2", str(first), str(second), str(first + second))


def test_a_ragged_file(keyhole: Keyhole, work: Path, people: Path) -> None:
    people.write_text(people.read_text() + f"3,f,{SECRET},2,extra,{SECRET}\n4,f\n")
    refused(keyhole("assess", people, "--keys", "age,place", "--population-size", "900"), work, "people.csv")


def test_binary_garbage(keyhole: Keyhole, work: Path, tmp_path: Path) -> None:
    path = tmp_path / "garbage.csv"
    path.write_bytes(bytes(range(256)) * 40)
    refused(keyhole("assess", path, "--keys", "age", "--population-size", "900"), work, "garbage.csv")


@pytest.mark.parametrize(
    "name", ["fake.parquet", "fake.sav", "fake.dta", "fake.sas7bdat", "fake.duckdb", "fake.xyz"]
)
def test_a_file_that_is_not_what_its_name_says(keyhole: Keyhole, work: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(f"age\n{SECRET}\n" * 50)
    refused(keyhole("assess", tmp_path / name, "--keys", "age", "--population-size", "900"), work, name)


def test_an_unknown_model(keyhole: Keyhole, work: Path, people: Path) -> None:
    ran = keyhole("assess", people, "--keys", "age", "--population-size", "900", "--model", "pittman")
    refused(ran, work, "pittman", "pitman")


@pytest.mark.parametrize("option", ["speed=9", "nonsense"])
def test_an_unknown_model_option(keyhole: Keyhole, work: Path, people: Path, option: str) -> None:
    ran = keyhole(
        "assess",
        people,
        "--keys",
        "age",
        "--population-size",
        "900",
        "--model",
        "pitman",
        "--model-option",
        option,
    )
    refused(ran, work, option.split("=")[0])


def test_thresholds_the_wrong_way_round(keyhole: Keyhole, work: Path, people: Path) -> None:
    ran = keyhole(
        "assess", people, "--keys", "age", "--population-size", "900", "--kappa1", "0.1", "--kappa2", "0.5"
    )
    refused(ran, work, "kappa")


@pytest.mark.parametrize("option", ["--report", "--json", "--records"])
def test_a_place_that_cannot_be_written(
    keyhole: Keyhole, work: Path, people: Path, tmp_path: Path, option: str
) -> None:
    place = tmp_path / "nowhere" / "file.csv"
    refused(keyhole("assess", people, "--keys", "age", "--population-size", "900", option, place), work, "nowhere")


def test_a_usage_error_is_also_status_2(keyhole: Keyhole, people: Path) -> None:
    ran = keyhole("assess", people, "--keys", "age", "--population-size", "many")
    assert ran.status == 2
    assert "--population-size" in ran.err


def test_a_fault_of_ours_quotes_no_data(
    keyhole: Keyhole, work: Path, people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError(SECRET)

    monkeypatch.setattr("keyhole.cli.run.compare_models", broken)
    ran = keyhole("assess", people, "--keys", "age", "--population-size", "900")
    assert (ran.status, ran.out) == (1, "")
    assert SECRET not in ran.err
    assert "KeyError at test_bad_input.py" in ran.err
    assert not list(work.iterdir())


@pytest.mark.parametrize("option", ["--report", "--json", "--records"])
def test_an_input_is_never_overwritten(keyhole: Keyhole, work: Path, people: Path, option: str) -> None:
    before = people.read_bytes()
    link = people.parent / "link.csv"
    link.symlink_to(people)
    for place in (people, link):
        ran = keyhole("assess", people, "--keys", "age", "--population-size", "900", option, place)
        refused(ran, work, "input")
    assert people.read_bytes() == before


def test_a_rule_file_is_never_overwritten(keyhole: Keyhole, work: Path, people: Path, tmp_path: Path) -> None:
    rules = tmp_path / "recode.yaml"
    rules.write_text("age: {top: 5}")
    ran = keyhole(
        "assess", people, "--keys", "age", "--population-size", "900", "--recode", rules, "--json", rules
    )
    refused(ran, work, "input")
    assert rules.read_text() == "age: {top: 5}"


def test_two_results_do_not_share_a_file(keyhole: Keyhole, work: Path, people: Path, tmp_path: Path) -> None:
    ran = keyhole(
        "assess",
        people,
        "--keys",
        "age",
        "--population-size",
        "900",
        "--json",
        tmp_path / "x",
        "--report",
        tmp_path / "x",
    )
    refused(ran, work, "same file")


def test_only_files_are_replaced(keyhole: Keyhole, work: Path, people: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    refused(
        keyhole("assess", people, "--keys", "age", "--population-size", "900", "--report", pipe),
        work,
        "not a file",
    )
    assert pipe.is_fifo()


@pytest.mark.parametrize("options", [("--population-size", str(10**30)), ("--sampling-fraction", "1e-320")])
def test_more_people_than_ever_lived(keyhole: Keyhole, work: Path, people: Path, options: tuple[str, str]) -> None:
    refused(keyhole("assess", people, "--keys", "age", *options), work, "people")


def test_all_results_are_written_or_none(keyhole: Keyhole, work: Path, people: Path, tmp_path: Path) -> None:
    """The last file cannot be written; the others must not be there either."""
    place = tmp_path / "results"
    place.mkdir()
    ran = keyhole(
        "assess",
        people,
        "--keys",
        "age,sex,place",
        "--population-size",
        "900",
        "--model",
        "ewens",
        "--json",
        place / "a.json",
        "--report",
        place / "r.html",
        "--records",
        "/proc/self/records.csv",
    )
    refused(ran, work, "records.csv")
    assert not list(place.iterdir())


@pytest.mark.parametrize(
    ("twice", "words"),
    [
        (("--chains", "2", "--model-option", "chains=3"), "chains is given twice, by --chains"),
        (("--max-seconds", "5", "--model-option", "max_seconds=3"), "given twice, by --max-seconds"),
        (("--out", "xo", "--model-option", "checkpoint=c.npz"), "checkpoint is given twice"),
        (("--effort", "quick", "--model-option", "effort=normal"), "effort is given twice"),
        (("--model-option", "chains=2", "--model-option", "chains=3"), "gives chains twice"),
        (("--max-seconds", "0"), "--max-seconds must be above 0"),
        (("--max-seconds", "nan"), "--max-seconds must be above 0"),
    ],
)
def test_limits_given_twice_or_of_nothing_are_refused(
    keyhole: Keyhole, work: Path, people: Path, twice: tuple[str, ...], words: str
) -> None:
    asked = ("--keys", "age,sex", "--population-size", "1000", "--model", "latent-class")
    refused(keyhole("assess", people, *asked, *twice), work, words)
