"""Which candidates of a path are shown, and what is said of them."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from keyhole.inference.model_path import ModelPath, PathStep
from keyhole.report.path import ChosenPath, chosen_paths, evenly, figures


def shown(path: ModelPath) -> ChosenPath:
    return ChosenPath("toy", path, evenly(len(path.steps), 40, path.chosen), drawn=True)


def falling(*tau1: float, chosen: int = -1, along: str = "term added") -> ChosenPath:
    steps = tuple(PathStep(f"step {i}", None, value, value) for i, value in enumerate(tau1))
    return shown(ModelPath(along, steps, chosen % len(steps)))


@pytest.mark.parametrize("length", [2, 39, 40, 41, 42, 79, 80, 81, 1000])
def test_thinning_is_even_and_keeps_the_ends_and_the_chosen_step(length: int) -> None:
    for keep in {0, 1, length // 2, length - 2, length - 1}:
        places = evenly(length, 40, keep)
        assert min(length, 38) <= len(places) <= 40
        assert list(places) == sorted(set(places))
        assert {0, keep, length - 1} <= set(places) <= set(range(length))
        others = [place for place in places if place != keep]
        gaps = [after - before for before, after in pairwise(others)]
        assert max(gaps, default=0) <= 2 * -(-(length - 1) // 38)


def test_the_sentence_says_where_the_path_went_and_how_far_the_last_two_are_apart() -> None:
    assert falling(310.0, 99.0, 96.03).in_words() == (
        "2 terms were added; tau1 went from 310 to 96 along the path; the last two steps differ by 3%."
    )
    assert falling(310.0, 96.0).in_words("T").startswith("1 term was added; T went from 310 to 96")
    assert (
        falling(50.0, 50.0).in_words().endswith("tau1 stayed at 50 along the path; the last two steps are alike.")
    )
    assert falling(0.0, 1e-9).in_words().endswith("the last two steps are alike.")


def test_a_choice_before_the_end_is_compared_with_the_steps_on_both_sides() -> None:
    assert (
        falling(300.0, 200.0, 100.0, 98.0, chosen=2)
        .in_words()
        .endswith(
            "; the model with the first 2 of them was chosen, with tau1 100, up to 50% from the steps beside it."
        )
    )
    assert (
        falling(100.0, 90.0, chosen=0)
        .in_words()
        .endswith("; the model before all of them was chosen, with tau1 100, 10% from the step beside it.")
    )
    assert falling(9.0, 9.0, 9.0, chosen=1).in_words().endswith("with tau1 9, like the steps beside it.")
    assert falling(4.0, 2.0, chosen=0, along="penalty").in_words() == (
        "2 candidates were tried along penalty; tau1 went from 4 to 2 along the path; "
        "penalty step 0 was chosen, with tau1 4, 50% from the step beside it."
    )


def test_what_is_not_known_is_not_compared() -> None:
    nan = float("nan")
    assert falling(nan, 10.0, nan, chosen=2).in_words() == "2 terms were added; the last step was chosen."
    assert falling(nan, 10.0, nan, chosen=1).in_words().endswith("the model with the first 1 of them was chosen.")
    assert "went from 10 to 8 along" in falling(nan, 10.0, nan, 8.0, float("inf")).in_words()


def test_only_statistics_with_something_to_see_are_drawn_and_all_are_listed(term_path: Any) -> None:
    found = shown(term_path(6))
    odd = tuple(
        replace(step, statistics={"none": float("nan"), **step.statistics, "c": 1.0}) for step in found.steps
    )
    found = shown(ModelPath("term added", odd, 2))
    assert found.statistics == ("none", "B1", "B2", "c")
    assert found.panels == ("B1", "B2")
    assert found.rows[2].statistics == ("\N{EN DASH}", "3.00", "4.41", "1")
    assert [row.chosen for row in found.rows] == [False, False, True, False, False, False]


@pytest.mark.parametrize(("steps", "chosen"), [(2, 0), (8, 7), (21, 8), (500, 499), (500, 201)])
def test_numbers_at_the_axis_stand_clear_of_each_other(lambda_path: Any, steps: int, chosen: int) -> None:
    for most in (5, 9):
        ticks = shown(lambda_path(steps, chosen)).ticks(most)
        assert chosen in ticks
        assert 2 <= len(ticks) <= most + 1
        assert min(after - before for before, after in pairwise(ticks)) >= (steps - 1) / most


def test_a_column_has_the_decimals_that_tell_its_numbers_apart() -> None:
    assert figures([-8123.4, -8123.5, -8120.0]) == ("-8,123.40", "-8,123.50", "-8,120.00")
    assert figures([0.0, 250.0]) == ("0", "250")
    assert figures([1.0, 1.0, float("inf")]) == ("1", "1", "\N{EN DASH}")
    assert figures([1e-12, 2e-12]) == ("1e-12", "2e-12")
    assert figures([]) == ()


def test_every_model_with_two_candidates_or_more_has_its_path(compared: Any, toy: Any, term_path: Any) -> None:
    comparison = compared(
        toy("a", path=term_path(1)), toy("b", path=term_path(2)), toy("c"), toy("d", fails="No.")
    )
    assert [found.model for found in chosen_paths(comparison)] == ["b"]


def test_a_number_of_something_is_told_as_such() -> None:
    steps = tuple(PathStep(f"{n} profiles", n, tau1, tau1) for n, tau1 in ((2, 8.0), (3, 4.0), (5, 4.0)))
    path = shown(ModelPath("number of profiles", steps, 1))
    assert path.in_words() == (
        "3 numbers of profiles were tried; tau1 went from 8 to 4 along the path; the model with 3 profiles was "
        "chosen, with tau1 4, up to 50% from the steps beside it."
    )
    assert "Chosen: 3 profiles" in path.description
