"""The catalogue of models: names, options and what is refused."""

import numpy as np
import pytest

from keyhole.errors import UnknownModel
from keyhole.models.catalogue import CATALOGUE, automatic, model_named


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_entry_builds_its_model(name: str) -> None:
    entry = CATALOGUE[name]
    assert model_named(name).name == entry.name == name
    assert dict(model_named(name).settings) == dict(entry.options)
    assert entry.paper
    assert entry.use.endswith(".")
    assert entry.fails.endswith(".")


def test_options_are_read_from_text() -> None:
    assert model_named("pitman", draws="250").settings["draws"] == 250


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("pittman", {}, "Closest: pitman"),
        ("xyz", {}, "There are: auto, sequential-logit, two-way"),
        ("pitman", {"draw": 5}, "Closest: draws"),
        ("pitman", {"draws": "many"}, "whole number"),
        ("pitman", {"draws": 3}, "from 20"),
        ("pitman", {"draws": True}, "whole number"),
        ("benedetti-franconi", {"draws": 100}, "It has none"),
    ],
)
def test_what_does_not_exist_is_refused(name: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(UnknownModel, match=words):
        model_named(name, **options)


def test_automatic_candidates_are_in_the_catalogue() -> None:
    assert set(automatic()) < set(automatic(weighted=True)) <= set(CATALOGUE)


def test_entries_do_not_change() -> None:
    with pytest.raises(TypeError):
        CATALOGUE["pitman"] = CATALOGUE["ewens"]  # type: ignore[index]
    assert np.isscalar(CATALOGUE["ewens"].options["draws"])
