import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from keyhole.table.level_sets import LevelSet, tell_apart

from .brute_force import EXAMPLES

LEVELS = 6
SETS = st.lists(st.builds(LevelSet, st.frozensets(st.integers(0, LEVELS - 1)), st.booleans()), max_size=5)


@EXAMPLES
@given(SETS)
def test_levels_share_a_group_exactly_when_they_share_all_sets(sets):
    group, member = tell_apart(sets, LEVELS)
    belongs = [[(code in chosen.codes) != chosen.negated for chosen in sets] for code in range(LEVELS)]
    for code in range(LEVELS):
        assert member[:, group[code]].tolist() == belongs[code]
        for other in range(LEVELS):
            assert (group[code] == group[other]) == (belongs[code] == belongs[other])
    assert sorted(set(group.tolist())) == list(range(member.shape[1]))


@EXAMPLES
@given(SETS)
def test_sets_are_counted_without_listing_them(sets):
    for chosen in sets:
        assert chosen.count(LEVELS) == sum((code in chosen.codes) != chosen.negated for code in range(LEVELS))


def test_a_million_levels_cost_what_the_sets_name():
    group, member = tell_apart([LevelSet(frozenset({7}), negated=True)], 1_000_000)
    assert member.tolist() == [[True, False]]
    assert np.flatnonzero(group).tolist() == [7]
