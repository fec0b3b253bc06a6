"""The samples and truths of the real tables are those that SOURCE.md states."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from keyhole.validation.designs import SimpleRandom
from keyhole.validation.replicate import Trial

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
NAMES = (
    "kdd_CA10",
    "kdd_NY10",
    "kdd_NC12",
    *(
        pytest.param(name, marks=pytest.mark.statistical)
        for name in ("eph_CA10", "eph_NY10", "eph_NC13", "eph_CA10_adults18+")
    ),
)


@pytest.fixture(scope="module")
def real_tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("real_tables", SCRIPTS / "real_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def stated(folder: Path, name: str) -> list[tuple[int, int, int, float, float]]:
    """n, sample cells, sample uniques, tau1 and tau2 of the first sample of each size."""
    texts = [file.read_text() for file in sorted(folder.glob("*/SOURCE.md"))]
    text = next(text for text in texts if f"**{name}" in text)
    found = re.search(rf"\*\*{re.escape(name)}[ *].*?\n\n(\|.*?)(?:\n\n|\Z)", text, re.DOTALL)
    assert found is not None
    lines = [line.replace(",", "").split("|")[1:-1] for line in found[1].splitlines()[2:]]
    rows = [[cell.strip() for cell in line] for line in lines]
    return [(int(n), int(cells), int(ones), float(tau1), float(tau2)) for n, _, cells, ones, tau1, tau2 in rows]


@pytest.mark.parametrize("name", NAMES)
def test_first_samples_are_those_of_the_source(name: str, shared_data: Path, real_tables: ModuleType) -> None:
    rows = stated(shared_data, name)
    assert [row[0] for row in rows][:3] == [1000, 5000, 10_000]
    population = real_tables.read_population(real_tables.BY_NAME[name], shared_data)
    assert rows[3][0] == round(0.05 * len(population))
    assert real_tables.PEOPLE[name] == len(population)
    for size, cells, ones, tau1, tau2 in rows:
        sample, truth = Trial(name, size, 1, "pitman", SimpleRandom()).sampled(population)
        assert (sample.table.occupied, sample.uniques, truth.tau1) == (cells, ones, tau1)
        assert truth.tau2 == pytest.approx(tau2, abs=0.0051)
        other, elsewhere = Trial(name, size, 2, "pitman", SimpleRandom()).sampled(population)
        assert (other.table.occupied, other.uniques, elsewhere.tau1) != (cells, ones, tau1)


def test_every_declared_table_is_known(shared_data: Path, real_tables: ModuleType) -> None:
    texts = [file.read_text() for file in shared_data.glob("*/SOURCE.md")]
    declared = {name for text in texts for name in re.findall(r"^\*\*(\w+\+?)[^*]*\*\*: N=", text, re.MULTILINE)}
    assert set(real_tables.DECLARED) == declared
