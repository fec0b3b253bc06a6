"""Every command and every line of Python in the tutorials runs."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran, keyhole  # noqa: F401

TUTORIALS = sorted((Path(__file__).resolve().parents[2] / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_tutorial_runs(page: Path, keyhole: Callable[..., Ran]) -> None:  # noqa: F811
    blocks = BLOCK.findall(page.read_text())
    assert blocks, f"{page.name} shows nothing to run"
    for language, file, text in blocks:
        if language == "python":
            exec(compile(text, page.name, "exec"), {})
        elif language == "yaml":
            Path(file).write_text(text)
        elif language == "console":
            for line in text.splitlines():
                program, *arguments = shlex.split(line.removeprefix("$ "))
                assert program == "keyhole"
                ran = keyhole(*arguments)
                assert ran.status == 0, (line, ran.err)
