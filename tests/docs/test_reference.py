"""The generated reference pages say what the code says."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_command_reference_is_up_to_date() -> None:
    script = ROOT / "scripts" / "make_command_reference.py"
    spec = importlib.util.spec_from_file_location("make_command_reference", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page: Path = module.PAGE
    assert page.read_text() == module.command_reference(), f"run `python {script.relative_to(ROOT)}`"


def test_every_page_is_in_the_index_and_every_link_leads_somewhere() -> None:
    import re

    pages = sorted((ROOT / "docs").rglob("*.md"))
    index = (ROOT / "docs" / "README.md").read_text()
    for page in pages:
        if page.name != "README.md":
            assert str(page.relative_to(ROOT / "docs")) in index, f"docs/README.md does not list {page.name}"
    for page in [*pages, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"
