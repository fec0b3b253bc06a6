"""keyhole synthesize and keyhole synthetic-risk: the files they write, and what they refuse."""

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SHORT = ("--warmup", "150", "--draws", "64", "--thin", "2")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """400 people whose state depends on their age; nobody young is widowed."""
    rng = np.random.default_rng(3)
    age = rng.choice(["young", "middle", "old"], 400, p=[0.3, 0.4, 0.3])
    widowed = (age == "old") & (rng.random(400) < 0.5)
    state = np.where(widowed, "widowed", np.where(rng.random(400) < 0.5, "single", "married"))
    sex, town = rng.choice(["f", "m"], 400), rng.choice(["a, b", "c", "d"], 400)
    path = tmp_path / "people.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "state", "sex", "town"])
        writer.writerows(zip(age, state, sex, town, strict=True))
    return path


def rows_of(path: Path) -> list[tuple[str, ...]]:
    with path.open(newline="") as file:
        return [tuple(row) for row in csv.reader(file)]


def test_copies_are_written_and_judged(keyhole: Callable[..., Any], people: Path, tmp_path: Path) -> None:
    out = tmp_path / "copies"
    asked = ("--keys", "age,state,sex,town", "--copies", "3", "--records", "250", "--formula", "sex ~ age + state")
    ran = keyhole("synthesize", people, *asked, "--out", out, *SHORT)
    assert ran.status in (0, 3)
    assert sorted(path.name for path in out.iterdir()) == [
        "generating-draws.npz", "synthesis.json", "synthetic-1.csv", "synthetic-2.csv", "synthetic-3.csv",
        "utility.html",
    ]  # fmt: skip
    assert {path.stat().st_mode & 0o777 for path in out.iterdir()} == {0o600}
    original, copies = rows_of(people), [rows_of(out / f"synthetic-{number}.csv") for number in (1, 2, 3)]
    for copy in copies:
        assert copy[0] == original[0]
        assert len(copy) == 251
        assert set(np.array(copy[1:])[:, 3]) <= {"a, b", "c", "d"}
    assert copies[0] != copies[1]
    manifest = json.loads((out / "synthesis.json").read_text())
    assert manifest["keys"] == ["age", "state", "sex", "town"]
    assert manifest["status"] == ("ok" if ran.status == 0 else "not-converged")
    assert {one["name"] for one in manifest["utility"]["regression"]["coefficients"]} >= {"Intercept"}

    page, numbers = tmp_path / "risk.html", tmp_path / "risk.json"
    judged = keyhole(
        "synthetic-risk", people, "--synthetic", out, *SHORT, "--json", numbers, "--report", page, "--sizes", "100"
    )
    assert judged.status in (0, 3)
    found = json.loads(numbers.read_text())
    assert (found["copies"], found["support"], found["prior"]) == (3, "one-change", "uniform")
    assert found["combinations"] == len(Counter(original[1:]))
    assert found["risk"]["mean_prior"] == pytest.approx(1 / (1 + 2 + 2 + 1 + 2))
    assert 0 < found["risk"]["mean_probability"] <= found["risk"]["max_probability"] < 1
    assert [point["copies"] for point in found["by_copies"]] == [1, 2, 3]
    assert [point["records"] for point in found["by_records"]] == [100]
    assert found["known_parameters"]["max"] > 0
    assert set(found["data_only"]) >= {"replicated_uniques", "disco", "dcap", "dcap_baseline", "tcap"}
    assert "a, b" not in page.read_text()

    for number in (1, 2, 3):  # nothing depends on the order of the rows
        path = out / f"synthetic-{number}.csv"
        head, *rest = path.read_text().splitlines()
        path.write_text("\n".join([head, *sorted(rest)]) + "\n")
    again = tmp_path / "again.json"
    keyhole("synthetic-risk", people, "--synthetic", out, *SHORT, "--json", again, "--sizes", "100", "--quiet")
    assert json.loads(again.read_text()) == found


def test_impossible_combinations_are_not_synthesised(
    keyhole: Callable[..., Any], people: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "zeros.yaml"
    rules.write_text("- {age: [young, middle], state: widowed}\n")
    for number, only in enumerate(((), ("--only", "state,sex"))):
        out = tmp_path / f"copies-{number}"
        ran = keyhole(
            "synthesize",
            people,
            "--keys",
            "age,state,sex",
            "--zeros",
            rules,
            "--out",
            out,
            *SHORT,
            *only,
            "--quiet",
        )
        assert ran.status in (0, 3)
        for path in out.glob("synthetic-*.csv"):
            made = rows_of(path)[1:]
            assert len(made) == 400
            assert not any(state == "widowed" and age != "old" for age, state, _ in made)
            if only:  # the others are the people's own
                assert Counter(row[0] for row in made) == Counter(row[0] for row in rows_of(people)[1:])
    judged = keyhole("synthetic-risk", people, "--synthetic", tmp_path / "copies-1", *SHORT, "--json", "-")
    assert judged.status in (0, 3)
    found = json.loads(judged.out)  # who knows all others knows what was kept of the last one
    assert found["support"] == "known-part"
    assert found["risk"]["mean_prior"] > 1 / 6  # of 3 states and 2 sexes some are impossible


def test_missing_values_can_be_imputed(keyhole: Callable[..., Any], people: Path, tmp_path: Path) -> None:
    lines = people.read_text().splitlines()
    data = tmp_path / "gaps.csv"
    data.write_text(
        "\n".join([lines[0], *(line.replace("single", "") for line in lines[1:60]), *lines[60:]]) + "\n"
    )
    kept, filled = tmp_path / "kept", tmp_path / "filled"
    shared = ("--keys", "age,state", "--copies", "2", *SHORT, "--quiet")
    assert keyhole("synthesize", data, *shared, "--out", kept).status in (0, 3)
    assert keyhole("synthesize", data, *shared, "--missing", "impute", "--out", filled).status in (0, 3)
    assert any(row[1] == "" for row in rows_of(kept / "synthetic-1.csv"))
    assert not any("" in row for row in rows_of(filled / "synthetic-1.csv"))
    judged = keyhole("synthetic-risk", data, "--synthetic", filled, *SHORT, "--json", "-")
    assert "left out" not in judged.err
    assert json.loads(judged.out)["records"] == 400 - sum(
        ",," in line or line.endswith(",") for line in lines
    ) - len([line for line in data.read_text().splitlines() if ",," in line])


def test_missing_values_are_imputed_with_what_can_be(
    keyhole: Callable[..., Any], people: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "zeros.yaml"
    rules.write_text("- {age: [young, middle], state: widowed}\n")
    head, *lines = people.read_text().splitlines()
    data, out = tmp_path / "gaps.csv", tmp_path / "filled"
    data.write_text("\n".join([head, *(line.replace("married", "") for line in lines[:80]), *lines[80:]]) + "\n")
    asked = ("--keys", "age,state", "--zeros", rules, "--missing", "impute", "--copies", "2", "--out", out)
    assert keyhole("synthesize", data, *asked, *SHORT, "--quiet").status in (0, 3)
    for path in out.glob("synthetic-*.csv"):
        made = rows_of(path)[1:]
        assert len(made) == 400
        assert not any(state == "" or (state == "widowed" and age != "old") for age, state in made)
    judged = keyhole("synthetic-risk", data, "--synthetic", out, *SHORT, "--json", "-")
    found = json.loads(judged.out)
    assert found["known_parameters"] is not None  # the draws have the levels of the copies
    assert "records with a missing key were left out" in keyhole(
        "synthetic-risk", data, "--synthetic", out, "--data-only"
    ).out.replace("\n", " ")


def test_every_record_has_its_risk(keyhole: Callable[..., Any], people: Path, tmp_path: Path) -> None:
    head, *lines = people.read_text().splitlines()
    data, out = tmp_path / "gaps.csv", tmp_path / "copies"
    data.write_text("\n".join([head, *lines, ",single,f,c"]) + "\n")
    shared = ("--missing", "drop", *SHORT, "--quiet")
    keyhole("synthesize", data, "--keys", "age,state,sex,town", "--copies", "2", "--out", out, *shared)
    table = tmp_path / "records.csv"
    ran = keyhole("synthetic-risk", data, "--synthetic", out, "--records", table, "--json", "-", *shared)
    assert ran.status in (0, 3)
    assert table.stat().st_mode & 0o777 == 0o600
    (names, *rows), found = rows_of(table), json.loads(ran.out)
    assert ",".join(names) == (
        "row,cell_count,probability,standard_error,rank,candidates,prior,ratio,needed,khat,trusted"
    )
    assert [int(row[0]) for row in rows] == list(range(1, 402))
    assert rows[-1][1:] == ("",) * 10  # left out for its missing age
    people_of: dict[str, set[tuple[str, ...]]] = {}
    for line, row in zip(lines, rows, strict=False):
        people_of.setdefault(line, set()).add(tuple(row[1:]))
    assert len(people_of) == found["combinations"]
    assert all(len(told) == 1 for told in people_of.values())  # records that are alike have the same risk
    numbers = [next(iter(told)) for told in people_of.values()]
    count = Counter(lines)
    assert all(int(told[0]) == count[line] for line, (told,) in people_of.items())
    assert np.mean([float(told[1]) for told in numbers]) == pytest.approx(found["risk"]["mean_probability"])
    assert sum(told[3] == "1" for told in numbers) == found["risk"]["top_ranked"]
    assert all(float(told[6]) == pytest.approx(float(told[1]) / float(told[5])) for told in numbers)


def test_more_classes_are_taken_where_all_are_needed(
    keyhole: Callable[..., Any], people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keyhole.synthesis import generator, make_copies

    monkeypatch.setattr(generator, "first_classes", lambda records: 2)
    monkeypatch.setattr(make_copies, "MOST_CLASSES", 8)
    shared = ("--keys", "age,state,town", "--copies", "2", *SHORT, "--quiet")
    for out, options, most in (("free", (), range(4, 9)), ("fixed", ("--classes", "2"), range(2, 3))):
        keyhole("synthesize", people, *shared, *options, "--out", tmp_path / out)
        manifest = json.loads((tmp_path / out / "synthesis.json").read_text())
        assert manifest["settings"]["classes"] in most
    assert "give --classes" in manifest["diagnostics"]["verdict"]


def test_files_of_other_programs_are_judged_by_named_keys(
    keyhole: Callable[..., Any], people: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    lines = people.read_text().splitlines()
    (folder / "theirs.csv").write_text("\n".join([*lines[:200], '"older",single,f,c']) + "\n")
    without = keyhole("synthetic-risk", people, "--synthetic", folder)
    assert without.status == 2
    assert "--keys" in without.err
    asked = ("synthetic-risk", people, "--synthetic", folder, "--keys", "age,state,sex,town")
    ran = keyhole(*asked, "--data-only", "--target", "state", "--json", "-")
    found = json.loads(ran.out)
    assert (ran.status, found["risk"], found["copies"]) == (0, None, 1)
    contract = "schema command copies combinations support estimator prior risk importance data_only"
    assert set(found) >= set(contract.split())
    assert 0 < found["data_only"]["dcap"] <= 1
    (folder / "short.csv").write_text("age,state\nold,single\n")
    short = keyhole(*asked, "--data-only")
    assert (short.status, "'short.csv' has no column 'sex'" in short.err) == (2, True)
    (folder / "short.csv").unlink()
    told = keyhole(*asked, *SHORT, "--report", "page.html")
    assert told.status in (0, 3)
    assert "not made by Keyhole" in Path("page.html").read_text()
    assert "levels that the original does not have, of age" in Path("page.html").read_text()


def test_combinations_are_named_only_on_request(keyhole: Callable[..., Any], people: Path, tmp_path: Path) -> None:
    out = tmp_path / "copies"
    keyhole("synthesize", people, "--keys", "age,town", "--copies", "2", "--out", out, *SHORT, "--quiet")
    keyhole("synthetic-risk", people, "--synthetic", out, *SHORT, "--report", "no.html", "--quiet")
    keyhole(
        "synthetic-risk",
        people,
        "--synthetic",
        out,
        *SHORT,
        "--report",
        "yes.html",
        "--show-combinations",
        "--quiet",
    )
    assert "a, b" not in Path("no.html").read_text()
    assert "a, b" in Path("yes.html").read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--only", "income"), "--only names 'income'"),
        (("--only", "age", "--records", "10"), "leave --records away"),
        (("--keys", "income"), "income"),
        (("--formula", "state ~ income"), "not a column of the data"),
        (("--formula", "state ~ age", "--copies", "1"), "--copies 2 or more"),
    ],
)
def test_what_cannot_be_made_is_refused(
    keyhole: Callable[..., Any], people: Path, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    keys = () if "--keys" in options else ("--keys", "age,state")
    ran = keyhole("synthesize", people, *keys, "--out", tmp_path / "new", *options)
    assert ran.status == 2
    assert words in ran.err
    assert not (tmp_path / "new").exists()


def test_a_folder_with_other_files_is_left_alone(
    keyhole: Callable[..., Any], people: Path, tmp_path: Path
) -> None:
    ran = keyhole("synthesize", people, "--keys", "age,state", "--out", tmp_path)
    assert ran.status == 2
    assert "holds other files" in ran.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--knows", "income"), "--knows names 'income'"),
        (("--knows", "age,state,sex,town"), "nothing left to guess"),
        (("--sizes", "many"), "--sizes takes numbers"),
        (("--sizes", "100,401"), "one with 400"),
        (("--prior", "absent.csv"), "absent.csv"),
        (("--knows", "age", "--support", "search"), "another --support"),
        (("--data-only", "--report", "page.html"), "leave --report"),
        (("--data-only", "--records", "rows.csv"), "leave --report and --records away"),
        (("--records", "rows.xlsx"), ".csv or .parquet"),
        (("--target", "income"), "--target names 'income'"),
        (("--synthetic", "nowhere"), "no folder 'nowhere'"),
    ],
)
def test_questions_that_cannot_be_answered_are_refused(
    keyhole: Callable[..., Any], people: Path, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    (folder / "theirs.csv").write_text(people.read_text())
    before = sorted(tmp_path.rglob("*"))
    ran = keyhole("synthetic-risk", people, "--synthetic", folder, "--keys", "age,state,sex,town", *options)
    assert (ran.status, ran.out) == (2, "")
    assert words in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "support",
    [
        ("--support", "all"),
        ("--support", "search"),
        ("--knows", "age,sex"),
        ("--knows", "age", "--support", "one-change"),
        ("--support", "two-change", "--estimator", "importance"),
    ],
)
def test_every_support_answers(
    keyhole: Callable[..., Any], people: Path, tmp_path: Path, support: tuple[str, ...]
) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    (folder / "theirs.csv").write_text(people.read_text())
    beliefs = tmp_path / "beliefs.csv"
    beliefs.write_text("age,state,sex,town,weight\nold,widowed,f,c,5\nyoung,single,m,d,1\n")
    shared = ("synthetic-risk", people, "--synthetic", folder, "--keys", "age,state,sex,town", *SHORT, *support)
    for prior in ("uniform", "model", str(beliefs)):
        ran = keyhole(*shared, "--prior", prior, "--learns", "state", "--json", "-")
        assert ran.status in (0, 3)
        found = json.loads(ran.out)
        assert found["prior"] == ("given" if prior == str(beliefs) else prior)
        assert 0 < found["risk"]["max_probability"] <= 1
        assert found["learned"] is not None
