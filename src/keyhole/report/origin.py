"""Where the numbers of a page on synthetic files come from."""

from dataclasses import dataclass
from datetime import UTC, datetime

from keyhole.report.provenance import PACKAGES, _versions
from keyhole.report.words import clean, without_secrets


@dataclass(frozen=True, slots=True)
class Origin:
    """All that is needed to run it again; ``copies_from`` is the place of the synthetic files."""

    source: str
    copies_from: str
    command: str
    seed: int
    versions: tuple[tuple[str, str], ...]
    when: datetime


def origin_of(source: str, copies_from: str, command: str, seed: int, when: datetime | None = None) -> Origin:
    """The origin of numbers found now; passwords in database addresses are left out."""
    return Origin(
        source=clean(without_secrets(source)),
        copies_from=clean(without_secrets(copies_from)),
        command=clean(without_secrets(command)),
        seed=seed,
        versions=_versions(PACKAGES),
        when=when or datetime.now(UTC),
    )
