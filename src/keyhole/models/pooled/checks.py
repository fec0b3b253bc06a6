"""What is to be said of a pool: whose word counts how much, how far they agree, and what worries them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from keyhole.inference.fit import Diagnostic, Member
from keyhole.inference.track_record import NO_RECORD, TRACK_RECORD

INTERRUPTED, TIME = "interrupted", "time"
"""The endings of chains that somebody stopped, nothing being to be run after them, and of those out of time."""

ENDED_EARLY = Diagnostic(
    "ending", INTERRUPTED, "caution", "The run was interrupted before all models of the pool had an answer."
)

MINOR = 0.2
"""Shares below this are too small for a doubt about their model to be one about the pool."""


def diagnose(
    members: Sequence[Member], failures: Mapping[str, str], behind: Mapping[str, float] = MappingProxyType({})
) -> tuple[Diagnostic, ...]:
    """The shares, what could not be fitted or is out, the members' own checks and the pool's record."""
    found = [_shares(members, behind)]
    found += [
        Diagnostic(
            f"failed_{name}", "failed", "caution", f"{name} could not be fitted and is not in the pool: {why}"
        )
        for name, why in failures.items()
    ]
    for place, member in enumerate(members):
        for check in member.fit.diagnostics:
            heard = place == 0 or member.share > 0.0 or check.value == INTERRUPTED
            if heard and check.name != TRACK_RECORD:
                found.append(_taken_over(member, check, leader=place == 0))
    return (*found, *_record(members))


def _record(members: Sequence[Member]) -> tuple[Diagnostic, ...]:
    """That of the leader, where others hardly count; mixtures were not needed on the real samples so far."""
    leader, *others = members
    own = tuple(check for check in leader.fit.diagnostics if check.name == TRACK_RECORD)
    if leader.share > 1.0 - MINOR or not own or own[0].value == NO_RECORD:
        return own
    mixed = " and ".join(f"{one.model.name} has {one.share:.0%}" for one in others if one.share)
    words = (
        f"On samples of real populations with known truth the pool was nearly all {leader.model.name}. Here "
        f"{mixed} of it, which was not tried: how often its intervals hold is not known."
    )
    return (Diagnostic(TRACK_RECORD, NO_RECORD, "caution", words),)


def _shares(members: Sequence[Member], behind: Mapping[str, float]) -> Diagnostic:
    names = [member.model.name for member in members]
    if behind:
        out = (
            f"{name} had no say: in a trial run it gave records that it had not seen a far lower log probability "
            f"(by {gap:,.0f} in all)."
            for name, gap in behind.items()
        )
        words = " ".join([f"It is {names[0]}.", *out])
        told = "; ".join([names[0], *(f"{name} behind by {gap:.0f}" for name, gap in behind.items())])
        return Diagnostic("pool", told, "good", words)
    if len(members) == 1:
        words = f"It is {names[0]} alone."
        return Diagnostic("pool", names[0], "good", words)
    if not any(map(_trusted, members[1:])):
        out = (
            f"{one.model.name} had no say: {_why_untrusted(one)}, so that what it answers is a second opinion "
            "only."
            for one in members[1:]
        )
        return Diagnostic("pool", names[0], "good", " ".join([f"It is {names[0]}.", *out]))
    parts = [f"{name} {member.share:.0%}" for name, member in zip(names, members, strict=True)]
    words = (
        f"The pool is made of {', '.join(parts)}: how sure it is that each predicts best the records that it has "
        "not seen."
    )
    return Diagnostic("pool", "; ".join(parts), "good", words)


def _trusted(member: Member) -> bool:
    return all(check.verdict != "untrusted" for check in member.fit.diagnostics)


def _why_untrusted(member: Member) -> str:
    ending = next((check.value for check in member.fit.diagnostics if check.name == "ending"), None)
    return {
        INTERRUPTED: "it was interrupted before its chains were long enough",
        TIME: "the time limit ended it before its chains were long enough",
    }.get(str(ending), "its own checks failed")


def _taken_over(member: Member, check: Diagnostic, *, leader: bool) -> Diagnostic:
    """A check of a member; doubts about one that hardly counts are none about the pool."""
    if leader or check.value == INTERRUPTED:
        return check
    name, verdict = member.model.name, check.verdict if member.share >= MINOR else "good"
    return Diagnostic(f"{name}_{check.name}".replace("-", "_"), check.value, verdict, f"{name}: {check.words}")
