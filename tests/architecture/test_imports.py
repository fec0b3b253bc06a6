"""Importing Keyhole is quick and quiet: heavy libraries come when they are needed."""

import json
import subprocess
import sys

import pytest

HEAVY = (
    "duckdb",
    "scipy",
    "numba",
    "matplotlib",
    "jinja2",
    "rich",
    "typer",
    "pandas",
    "pyarrow",
    "polars",
    "narwhals",
    "pydantic",
    "yaml",
    "pyreadstat",
)


def modules_after(statement: str) -> set[str]:
    """The top-level modules loaded by a fresh interpreter that runs ``statement``."""
    code = (
        f"{statement}\nimport sys, json\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_keyhole_loads_nothing_heavy() -> None:
    assert modules_after("import keyhole").isdisjoint(HEAVY)


def test_help_loads_only_the_terminal() -> None:
    statement = (
        "import sys; sys.argv = ['keyhole', '--help']\n"
        "from keyhole.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass"
    )
    assert modules_after(statement).isdisjoint(set(HEAVY) - {"typer", "rich"})


@pytest.mark.parametrize("module", ["keyhole.io", "keyhole.report", "keyhole.models.catalogue"])
def test_a_layer_loads_its_extras_only_when_called(module: str) -> None:
    loaded = modules_after(f"import {module}")
    assert loaded.isdisjoint({"duckdb", "matplotlib", "jinja2", "pandas", "pyarrow", "polars", "pyreadstat"})


def test_every_public_name_can_be_had() -> None:
    import keyhole

    for name in keyhole.__all__:
        assert getattr(keyhole, name) is not None
    assert set(keyhole.__all__) <= set(dir(keyhole))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = keyhole.no_such_name
