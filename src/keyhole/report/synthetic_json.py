"""The risk of synthetic files as JSON, schema 1: what scripts and pipelines read."""

import math
from collections.abc import Sequence
from importlib.metadata import version

from keyhole.arrays import Vector
from keyhole.report.checks import NO_CONCERN
from keyhole.report.json_result import SCHEMA
from keyhole.synthesis.matched_records import MatchRisk
from keyhole.synthesis.risk_result import Combinations, CurvePoint, SyntheticRisk

COMMAND = "synthetic-risk"


def synthetic_json(risk: SyntheticRisk, matches: MatchRisk | None, seed: int) -> dict[str, object]:
    """The risk as the JSON object of schema 1; `keyhole.report.json_result.to_text` makes it text.

    Every number is finite: what is not a number, or was not asked for, is null. No combination is named.
    """
    found, untrusted = risk.combinations, risk.untrusted
    return {
        "schema": SCHEMA,
        "keyhole": version("keyhole"),
        "command": COMMAND,
        "seed": seed,
        "status": "ok" if risk.trusted else "not-converged",
        "copies": risk.copies,
        "records": risk.records,
        "combinations": len(found),
        "support": risk.support,
        "estimator": risk.estimator,
        "prior": risk.prior,
        "risk": {
            "mean_probability": _number(found.probability.mean()),
            "max_probability": _number(found.probability.max()),
            "mean_prior": _number(found.before.mean()),
            "top_ranked": found.ranked(1),
            "top_three": found.ranked(3),
            "above_twice_prior": found.above(2.0),
            "untrusted_records": int(found.counts[untrusted].sum()),
            "untrusted_combinations": int(untrusted.sum()),
            "top_ranked_by_luck": _number((1.0 / found.candidates).sum()),
        },
        "known_parameters": _summary(found.known),
        "learned": _learned(found),
        "by_copies": _curve(risk.by_copies, "copies"),
        "by_records": _curve(risk.by_records, "records"),
        "importance": {
            "ess": _ends(risk.weights.effective),
            "khat": _ends(risk.weights.khat),
            "trusted": risk.weights.trusted,
        },
        "data_only": _data_only(matches),
        "diagnostics": _diagnostics(risk),
    }


def matches_json(matches: MatchRisk, records: int, copies: int, seed: int) -> dict[str, object]:
    """The same where no model was asked for."""
    return {
        "schema": SCHEMA,
        "keyhole": version("keyhole"),
        "command": COMMAND,
        "seed": seed,
        "status": "ok",
        "copies": copies,
        "records": records,
        **dict.fromkeys(("combinations", "support", "estimator", "prior", "risk", "importance")),
        "data_only": _data_only(matches),
    }


def _data_only(found: MatchRisk | None) -> dict[str, object]:
    names = (
        "replicated_uniques", "disco", "dcap", "dcap_baseline", "tcap", "tcap_baseline", "tcap_modal",
        "tcap_records", "uniques", "unmatched",
    )  # fmt: skip
    return {name: None if found is None else _number(getattr(found, name)) for name in names}


def _diagnostics(risk: SyntheticRisk) -> dict[str, object]:
    concerns = [check.words for check in risk.diagnostics if check.verdict != "good"]
    values: dict[str, object] = {
        check.name: check.value if isinstance(check.value, str) else _number(check.value)
        for check in risk.diagnostics
    }
    return {**values, "verdict": " ".join(concerns) or NO_CONCERN}


def _curve(points: Sequence[CurvePoint], along: str) -> list[dict[str, object]]:
    return [
        {
            along: int(point.number),
            "mean_probability": _number(point.mean_probability),
            "max_probability": _number(point.max_probability),
            "top_ranked": int(point.top_ranked),
        }
        for point in points
    ]


def _learned(found: Combinations) -> dict[str, object] | None:
    learned = _summary(found.learned)
    if learned is None or found.learned_before is None:
        return None
    return {**learned, "mean_prior": _number(found.learned_before.mean())}


def _summary(chance: Vector | None) -> dict[str, object] | None:
    return None if chance is None else {"mean": _number(chance.mean()), "max": _number(chance.max())}


def _ends(values: Vector) -> list[float | int | None]:
    return [_number(values.min()), _number(values.max())]


def _number(value: object) -> float | int | None:
    """A number as JSON knows it, or null."""
    if value is None or isinstance(value, int):
        return value
    found = float(value)  # type: ignore[arg-type]
    return found if math.isfinite(found) else None
