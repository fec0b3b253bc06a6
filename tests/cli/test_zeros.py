"""keyhole zeros suggest on the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_suggestions_are_a_file_that_assess_takes(keyhole: Callable[..., Any], tmp_path: Path) -> None:
    rows = ["age,state"] + ["young,single"] * 60 + ["old,single"] * 60 + ["old,married"] * 119 + ["old,widowed"]
    data = tmp_path / "people.csv"
    data.write_text("\n".join(rows) + "\n")
    ran = keyhole("zeros", "suggest", data, "--keys", "age,state")
    assert ran.status == 0
    assert '- {"age": "young", "state": ["married"]}' in ran.out
    rules = tmp_path / "zeros.yaml"
    rules.write_text(ran.out)
    asked = ("--population-size", "2000", "--model", "pitman", "--zeros", rules, "--quiet")
    assert keyhole("assess", "--effort", "quick", data, "--keys", "age,state", *asked).status in (0, 3)


def test_nothing_to_suggest_is_said(keyhole: Callable[..., Any], survey: Path) -> None:
    ran = keyhole("zeros", "suggest", survey, "--keys", "sex,region")
    assert (ran.status, ran.out) == (0, "")
    assert "No pair of levels is missing" in ran.err
    assert "there is nothing to give to --zeros" in ran.err
