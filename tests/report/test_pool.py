"""What the report says of a pool: its members are in it, not beside it."""

from dataclasses import replace

from tests.risk.samples import Geometric, random_sample

from keyhole.inference.track_record import TrackRecord
from keyhole.report.agreement import agreement, models_that_count
from keyhole.report.verdict import verdict_of
from keyhole.risk.assess import assess_risk
from keyhole.risk.compare import Comparison

GOOD = TrackRecord(-8, 12, covered=17, samples=18).diagnostic()


def comparison_with_a_pool() -> Comparison:
    sample = random_sample()
    members = tuple(
        assess_risk(Geometric((share,), name=name, diagnostics=(GOOD,)), sample)
        for name, share in (("first", 0.1), ("second", 0.3))
    )
    untrusted = replace(members[1], status="not-converged")
    pool = replace(members[0], model="pool", members=(members[0], untrusted))
    other = assess_risk(Geometric((0.6,), name="other", diagnostics=(GOOD,)), sample)
    return Comparison((pool, members[0], untrusted, other), "pool", "It is a pool.")


def test_members_are_told_of_and_not_counted_again() -> None:
    comparison = comparison_with_a_pool()
    chosen = comparison.chosen
    assert chosen is not None
    assert set(models_that_count(comparison, chosen)) == {"pool", "other"}
    words = agreement(comparison, chosen)
    assert words.startswith("By themselves, first (")
    assert ", not to be trusted) agree not at all. " in words


def test_beside_a_pool_without_a_record_others_without_one_do_not_count() -> None:
    sample = random_sample()
    member = assess_risk(Geometric((0.1,), name="first"), sample)
    pool = replace(member, model="pool", members=(member, replace(member, model="second")))
    other = assess_risk(Geometric((0.9,), name="other"), sample)
    comparison = Comparison((pool, member, other), "pool", "It is a pool.")
    assert set(models_that_count(comparison, pool)) == {"pool"}
    words = agreement(comparison, pool)
    assert "The other model has no weight in this verdict: other (" in words
    assert "was never tried on such samples of them" in words
    poor = replace(other, diagnostics=(TrackRecord(20, 90, covered=1, samples=18).diagnostic(),))
    words = agreement(Comparison((pool, member, poor), "pool", "It is a pool."), pool)
    assert "did worse on real populations than first." in words


def test_a_member_without_a_say_raises_no_alarm_of_its_own() -> None:
    comparison = comparison_with_a_pool()
    alone = replace(comparison, assessments=comparison.assessments[1:], recommended="other")
    topics = [
        [point.topic for point in verdict_of(one, truth=None, keys=(), classes=None).points]
        for one in (comparison, alone)
    ]
    assert "Not to be trusted: second" not in topics[0]
    assert "Not to be trusted: second" in topics[1]


def test_a_member_with_the_doubts_of_its_pool_does_not_tell_them_twice() -> None:
    member = replace(
        assess_risk(Geometric(name="member"), random_sample()), status="not-converged", verdict="Few."
    )
    pool = replace(member, model="pool", members=(member,), verdict="Few. Untried.")
    for other, told in ((member, False), (replace(member, verdict="Wild."), True)):
        comparison = Comparison((replace(pool, members=(other,)), other), None, "Nothing can be trusted.")
        topics = [point.topic for point in verdict_of(comparison, truth=None, keys=(), classes=None).points]
        assert "Not to be trusted: pool" in topics
        assert ("Not to be trusted: member" in topics) == told
