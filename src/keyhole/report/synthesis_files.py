"""Writes what synthesis and its judgement give: copies, draws, pages and numbers, for their owner only."""

import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

from keyhole.io.writing import cannot_write, write_codes
from keyhole.report.json_result import SCHEMA, plain, to_text
from keyhole.report.synthetic_content import compose_synthetic
from keyhole.report.synthetic_html import render_synthetic_html
from keyhole.report.synthetic_json import matches_json, synthetic_json
from keyhole.report.synthetic_matches import match_lines
from keyhole.report.synthetic_pictures import plural_copies
from keyhole.report.synthetic_records import write_synthetic_records
from keyhole.report.synthetic_text import render_synthetic_text
from keyhole.report.utility_content import UtilityReport, compose_utility
from keyhole.report.utility_html import render_utility_html
from keyhole.report.writing import private_file, private_files, private_folder
from keyhole.synthesis.assess_copies import JudgedCopies
from keyhole.synthesis.files import COPY, DRAWS, MANIFEST, draws_file
from keyhole.synthesis.make_copies import MadeCopies

PAGE = "utility.html"


def deliver_copies(made: MadeCopies, out: Path, *, notes: Sequence[str] = (), quiet: bool) -> None:
    """Write the copies, the draws that made them, the settings and the page, all or none of them.

    ``notes`` are what should be told of the input besides.
    """
    folder = private_folder(out)
    names = [key.name for key in made.keys]
    values, labels = made.values, made.value_labels
    documents: dict[Path, str | bytes] = {
        folder / DRAWS: draws_file(made.synthesis.generating, made.keys),
        folder / MANIFEST: to_text(manifest_of(made)),
        folder / PAGE: render_utility_html(_page(made, out, notes)),
    }
    paths = [folder / f"{COPY}{number}{made.suffix}" for number in range(1, len(made.synthesis.copies) + 1)]
    with ExitStack() as open_files:
        open_files.enter_context(private_files(documents))
        for path, copy in zip(paths, made.synthesis.copies, strict=True):
            new = open_files.enter_context(private_file(path))
            write_codes(new, names, copy, values, labels, suffix=made.suffix)
    for old in folder.glob(f"{COPY}*"):
        if old not in paths:
            old.unlink()  # of an earlier synthesis into this folder
    if not quiet:
        _tell(made, paths, folder, notes)


def _page(made: MadeCopies, out: Path, notes: Sequence[str]) -> UtilityReport:
    return compose_utility(
        made.tables,
        made.propensity,
        regression=made.regression,
        records=made.original.table.records,
        copy_records=len(made.synthesis.copies[0]),
        source=made.original.microdata.source,
        copies_from=out.name,
        command=shlex.join(["keyhole", *sys.argv[1:]]),
        seed=made.order.seed,
        partial=made.order.partial,
        diagnostics=made.diagnostics,
        warnings=(*notes, *made.warnings),
    )


def manifest_of(made: MadeCopies) -> dict[str, object]:
    """Settings, seed, diagnostics and utility."""
    order = made.order
    given = {"zeros": order.zeros, "recode": order.recode, "levels": order.levels}
    return {
        "schema": SCHEMA,
        "keyhole": version("keyhole"),
        "command": "synthesize",
        "seed": order.seed,
        "source": made.original.microdata.source,
        "keys": list(order.keys),
        "only": list(order.only) if order.partial else [],
        "copies": order.copies,
        "records": [len(copy) for copy in made.synthesis.copies],
        "original_records": made.original.table.records,
        "missing": order.missing,
        **{name: None if path is None else str(path.resolve()) for name, path in given.items()},
        "settings": {
            "classes": made.synthesis.classes,
            "chains": order.length.chains,
            "warmup": order.length.warmup,
            "thin": order.length.thin,
            "draws": order.length.draws,
        },
        "status": "ok" if made.converged else "not-converged",
        "diagnostics": {one.name: plain(one.value) for one in made.diagnostics}
        | {"verdict": " ".join(one.words for one in made.diagnostics)},
        "utility": _utility(made),
    }


def _utility(made: MadeCopies) -> dict[str, object]:
    tables, propensity = made.tables, made.propensity
    found: dict[str, object] = {
        "tables": [
            {"keys": list(keys), "distance": plain(float(distance)), "ratio": plain(float(ratio))}
            for keys, distance, ratio in zip(tables.tables, tables.distance, tables.ratio, strict=True)
        ],
        "pmse_ratio": plain(propensity.ratio),
        "pmse_sample_ratio": plain(propensity.sample_ratio),
    }
    if made.regression is not None:
        found["regression"] = {
            "formula": made.regression.formula,
            "family": made.regression.family,
            "rule": made.regression.rule,
            "coefficients": [
                {
                    "name": one.name,
                    "original": None if one.original is None else plain(one.original.estimate),
                    "synthetic": None if one.synthetic is None else plain(one.synthetic.estimate),
                    "overlap": plain(one.overlap),
                }
                for one in made.regression.coefficients
            ],
        }
    return found


def _tell(made: MadeCopies, paths: list[Path], folder: Path, notes: Sequence[str]) -> None:
    from rich.console import Console

    worst = int(made.tables.distance.argmax())
    lines = [
        f"{plural_copies(len(paths))} of {len(made.synthesis.copies[0]):,} records each in {folder}.",
        *filter(None, (cannot_write(made.order.data),)),
        *(one.words for one in made.diagnostics),
        f"Of all tables of one or two keys the largest distance is {made.tables.distance[worst]:.3f} "
        f"({' by '.join(made.tables.tables[worst])}); pMSE over that of another sample of the same people "
        f"{made.propensity.sample_ratio.mean():.2f}.",
        *(f"Warning: {note}" for note in (*notes, *made.warnings)),
        f"Written: {folder / PAGE}, {folder / MANIFEST}, {folder / DRAWS}",
        "Only the copies are meant to leave; `keyhole synthetic-risk` tells what they give away.",
    ]
    console = Console()
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def deliver_judgement(
    found: JudgedCopies,
    *,
    page: Path | None,
    json: str | None,
    records: Path | None = None,
    command: str,
    show_combinations: bool,
    quiet: bool,
) -> None:
    """Write the page and the numbers that were asked for, then show the summary."""
    if found.risk is None:
        _deliver_matches(found, json=json, quiet=quiet)
        return
    content = compose_synthetic(
        found.risk,
        matches=found.matches,
        target=found.target,
        keys=found.keys,
        source=found.source,
        copies_from=found.inquiry.synthetic.name,
        command=command,
        seed=found.inquiry.seed,
        show_combinations=show_combinations,
        external=found.external,
        warnings=found.warnings,
        learns=found.inquiry.learns,
        knows=found.knows,
    )
    result = to_text(synthetic_json(found.risk, found.matches, found.inquiry.seed))
    documents: dict[Path, str | bytes] = {}
    if page is not None:
        documents[page] = render_synthetic_html(content)
    if json is not None and json != "-":
        documents[Path(json)] = result
    with private_files(documents):  # they take their places when the last of all is written
        if records is not None:
            write_synthetic_records(records, found.risk, found.original.combination_of_each_record())
    if json == "-":
        sys.stdout.write(result)
    elif not quiet:
        from rich.console import Console

        console = Console()
        render_synthetic_text(content, console)
        for path in (*documents, *filter(None, (records,))):
            console.print(f"Written: {path}", highlight=False, markup=False, soft_wrap=True)


def _deliver_matches(found: JudgedCopies, *, json: str | None, quiet: bool) -> None:
    """The same where no model was asked for: a few numbers, and no page."""
    result = to_text(matches_json(found.matches, found.records, found.copies, found.inquiry.seed))
    with private_files({Path(json): result} if json is not None and json != "-" else {}):
        pass
    if json == "-":
        sys.stdout.write(result)
    elif not quiet:
        from rich.console import Console

        console = Console()
        for line in match_lines(found.matches, found.records):
            words = f"{line.name}: {line.value}{f' ({line.compared})' if line.compared else ''}. {line.meaning}"
            console.print(words, highlight=False, markup=False)
        for words in found.warnings:
            console.print(f"Warning: {words}", highlight=False, markup=False)
