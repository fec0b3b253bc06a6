"""Where a report's numbers come from: what was run, on what, with which versions, when."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from keyhole.report.words import clean, without_secrets
from keyhole.risk.compare import Comparison

PACKAGES = ("keyhole", "numpy", "scipy", "duckdb")
"""The packages whose version can change a number."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """All that is needed to run it again; ``versions`` pairs each package with its version."""

    source: str
    command: str
    seed: int
    versions: tuple[tuple[str, str], ...]
    when: datetime
    seconds: float


def provenance_of(
    comparison: Comparison, *, source: str, command: str, when: datetime | None = None
) -> Provenance:
    """The provenance of a comparison made now; passwords in database addresses are left out."""
    assessments = comparison.assessments
    pooled = {member.model for found in assessments for member in found.members}  # their time is in the pool's
    return Provenance(
        source=clean(without_secrets(source)),
        command=clean(without_secrets(command)),
        seed=assessments[0].seed,
        versions=_versions(PACKAGES),
        when=when or datetime.now(UTC),
        seconds=sum(found.seconds_fit + found.seconds_risk for found in assessments if found.model not in pooled),
    )


def _versions(packages: Sequence[str]) -> tuple[tuple[str, str], ...]:
    found = [("python", platform.python_version())]
    for package in packages:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            found.append((package, "not installed"))
    return tuple(found)
