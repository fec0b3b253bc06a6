"""What matches give away: by hand, against loops over records, and where the answer is known beforehand."""

from dataclasses import astuple, fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyhole.errors import InvalidKeys
from keyhole.synthesis.matched_records import MatchRisk, match_risk, mean_match_risk

EXAMPLES = settings(deadline=None, max_examples=150)

# Known columns 0 and 1, target column 2.
ORIGINAL = np.array(
    [
        *([0, 0, 0], [0, 0, 0], [0, 0, 1]),  # A: three people
        [0, 1, 1],  # B: unique
        [1, 0, 1],  # C: unique
        *([1, 1, 0], [1, 1, 2]),  # D: two people
        [2, 0, 0],  # E: unique
    ]
)
SYNTHETIC = np.array(
    [
        *([0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]),  # A: three quarters level 0
        [0, 1, 1],  # B: unique again, and right
        *([1, 0, 0], [1, 0, 0]),  # C: sure and wrong
        *([1, 1, 2], [1, 1, 2]),  # D: sure, right for one of the two
        [2, 1, 1],  # nobody's combination; E is not found
    ]
)
SIZES = (3, 2, 3)


def test_a_table_worked_by_hand() -> None:
    risk = match_risk(ORIGINAL, SYNTHETIC, SIZES, [0, 1], 2)
    assert risk.uniques == 3  # B, C, E
    assert risk.replicated_uniques == 1 / 8  # B; C is unique in the original only
    assert risk.unmatched == 1  # E
    assert risk.disco == 2 / 8  # B, and one of D
    assert risk.dcap == (0.75 + 0.75 + 0.25 + 1 + 0 + 0 + 1 + 0) / 8  # A A A B C D D E
    assert risk.dcap_baseline == (4**2 + 3**2 + 1**2) / 8**2  # levels 0, 1, 2 have 4, 3, 1 people
    assert risk.tcap_records == 4  # B, C and both of D
    assert risk.tcap == 2 / 4
    assert risk.tcap_baseline == risk.dcap_baseline
    assert risk.tcap_modal == 2 / 4  # their levels are 1, 1, 0, 2


def test_without_a_target_only_the_matches_themselves_are_known() -> None:
    risk = match_risk(ORIGINAL, SYNTHETIC, SIZES, [0, 1], None)
    assert risk == MatchRisk(replicated_uniques=1 / 8, uniques=3, unmatched=1)
    assert astuple(risk)[3:] == (None,) * 7


def test_the_target_may_be_any_column_and_the_known_in_any_order() -> None:
    risk = match_risk(ORIGINAL[:, [2, 1, 0]], SYNTHETIC[:, [2, 1, 0]], (3, 2, 3), [2, 1], 0)
    assert differing(risk, match_risk(ORIGINAL, SYNTHETIC, SIZES, [0, 1], 2)) == set()


def brute_force(
    original: np.ndarray, synthetic: np.ndarray, known: list[int], target: int, records: int | None = None
) -> MatchRisk:
    """The definitions, one original record at a time; ``records`` puts another denominator in."""
    records = len(original) if records is None else records
    people = [(tuple(row[j] for j in known), row[target]) for row in original.tolist()]
    file = [(tuple(row[j] for j in known), row[target]) for row in synthetic.tolist()]
    uniques = replicated = unmatched = 0
    cap, guess = 0.0, 0.0
    sure: list[tuple[int, int]] = []
    for combination, level in people:
        alike = [mine for mine, _ in people if mine == combination]
        found = [theirs for mine, theirs in file if mine == combination]
        uniques += len(alike) == 1
        replicated += len(alike) == 1 and len(found) == 1
        unmatched += not found
        cap += found.count(level) / len(found) if found else 0
        guess += sum(theirs == level for _, theirs in people) / len(people)
        if len(set(found)) == 1:
            sure.append((level, found[0]))
    right = sum(level == read for level, read in sure)
    levels = [level for level, _ in sure]
    return MatchRisk(
        replicated_uniques=replicated / records,
        uniques=uniques,
        unmatched=unmatched,
        disco=right / records,
        dcap=cap / records,
        dcap_baseline=guess / records,
        tcap=right / len(sure) if sure else None,
        tcap_baseline=guess / records,
        tcap_modal=max(map(levels.count, levels)) / len(sure) if sure else None,
        tcap_records=len(sure),
    )


def differing(one: MatchRisk, other: MatchRisk) -> set[str]:
    """The measures of which the two do not agree."""
    pairs = {field.name: (getattr(one, field.name), getattr(other, field.name)) for field in fields(MatchRisk)}
    return {
        name
        for name, (a, b) in pairs.items()
        if (a is None) != (b is None) or (a is not None and abs(a - b) > 1e-12)
    }


@st.composite
def files(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, tuple[int, ...], list[int], int]:
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=4)))
    row = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    original = np.array(draw(st.lists(row, min_size=1, max_size=25)), dtype=np.int8)
    synthetic = np.array(draw(st.lists(row, max_size=25)), dtype=np.int64).reshape(-1, len(sizes))
    order = draw(st.permutations(range(len(sizes))))
    return original, synthetic, sizes, order[: draw(st.integers(1, len(sizes) - 1))], order[-1]


@EXAMPLES
@given(files())
def test_counting_gives_what_looking_at_every_record_gives(case) -> None:
    original, synthetic, sizes, known, target = case
    risk = match_risk(original, synthetic, sizes, known, target)
    assert differing(risk, brute_force(original, synthetic, known, target)) == set()


def random_file(records: int, sizes: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Records whose columns hang together: each tends to repeat the one before it."""
    columns = [rng.integers(0, sizes[0], records)]
    for size in sizes[1:]:
        fresh = rng.integers(0, size, records)
        columns.append(np.where(rng.random(records) < 0.6, columns[-1] % size, fresh))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("seed", range(5))
def test_larger_files_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = (5, 4, 6, 3, 4)
    original, synthetic = random_file(300, sizes, rng), random_file(200, sizes, rng)
    for known, target in (([0, 1, 2, 3], 4), ([2, 0], 3), ([4, 3, 1], 0)):
        risk = match_risk(original, synthetic, sizes, known, target)
        assert differing(risk, brute_force(original, synthetic, known, target)) == set()


def test_the_loops_notice_a_wrong_denominator() -> None:
    rng = np.random.default_rng(1)
    sizes = (5, 4, 6, 3)
    original, synthetic = random_file(300, sizes, rng), random_file(200, sizes, rng)
    risk = match_risk(original, synthetic, sizes, [0, 1, 2], 3)
    shares = {"replicated_uniques", "disco", "dcap", "dcap_baseline", "tcap_baseline"}
    for wrong in (len(synthetic), int(risk.uniques), len(original) - int(risk.unmatched)):
        assert differing(risk, brute_force(original, synthetic, [0, 1, 2], 3, wrong)) == shares


@pytest.mark.parametrize("seed", range(4))
def test_order_of_rows_and_columns_and_names_of_levels_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = (5, 4, 6, 3)
    original, synthetic = random_file(120, sizes, rng), random_file(150, sizes, rng)
    risk = match_risk(original, synthetic, sizes, [0, 1, 2], 3)
    shuffled = rng.permutation(original), rng.permutation(synthetic)
    assert differing(risk, match_risk(*shuffled, sizes, [0, 1, 2], 3)) == set()
    order = rng.permutation(4)
    place = np.argsort(order)
    moved = match_risk(
        original[:, order], synthetic[:, order], tuple(sizes[j] for j in order), [*place[:3]], int(place[3])
    )
    assert differing(risk, moved) == set()
    names = [rng.permutation(size) for size in sizes]
    renamed = (
        np.stack([name[column] for name, column in zip(names, file.T, strict=True)], 1) for file in shuffled
    )
    assert differing(risk, match_risk(*renamed, sizes, [0, 1, 2], 3)) == set()


def test_a_file_given_out_twice_over_has_no_uniques_but_says_the_same() -> None:
    rng = np.random.default_rng(3)
    sizes = (5, 4, 6, 3)
    original, synthetic = random_file(120, sizes, rng), random_file(150, sizes, rng)
    once = match_risk(original, synthetic, sizes, [0, 1, 2], 3)
    twice = match_risk(original, np.repeat(synthetic, 2, axis=0), sizes, [0, 1, 2], 3)
    assert once.replicated_uniques > 0
    assert twice.replicated_uniques == 0
    assert differing(once, twice) == {"replicated_uniques"}


@pytest.mark.parametrize("seed", range(5))
def test_the_original_itself_gives_away_all_its_uniques(seed: int) -> None:
    sizes = (5, 4, 6, 3)
    original = random_file(80, sizes, np.random.default_rng(seed))
    risk = match_risk(original, original, sizes, [0, 1, 2], 3)
    assert risk.replicated_uniques == risk.uniques / 80
    assert risk.unmatched == 0
    assert risk.tcap == 1
    assert risk.disco >= risk.replicated_uniques
    assert risk.dcap >= risk.dcap_baseline
    assert risk.dcap >= risk.disco


@EXAMPLES
@given(files())
def test_measures_keep_their_order(case) -> None:
    original, synthetic, sizes, known, target = case
    risk = match_risk(original, synthetic, sizes, known, target)
    found = 1 - risk.unmatched / len(original)
    sure = risk.tcap_records / len(original)
    assert np.isclose(risk.disco, (risk.tcap or 0) * sure)  # DiSCO = TCAP x share of sure records
    assert risk.disco <= sure <= found + 1e-12
    assert risk.disco <= risk.dcap + 1e-12 <= found + 2e-12
    assert risk.replicated_uniques <= min(risk.uniques / len(original), found) + 1e-12
    assert (risk.tcap is None) == (risk.tcap_modal is None) == (risk.tcap_records == 0)


def standard_errors_above_baseline(original: np.ndarray, synthetic: np.ndarray, sizes: tuple[int, ...]) -> float:
    """How far DCAP is from its baseline if the synthetic target were drawn from the original's distribution.

    Given the matches of each combination, its shares are those of a multinomial draw, so that the variance
    of DCAP is the sum over combinations of (sum_t d_qt^2 p_t - (sum_t d_qt p_t)^2) / s_q, over N^2.
    """
    risk = match_risk(original, synthetic, sizes, [0, 1], 2)
    assert risk.unmatched == 0
    p = np.bincount(original[:, 2], minlength=sizes[2]) / len(original)
    variance = 0.0
    for a in range(sizes[0]):
        for b in range(sizes[1]):
            mine = original[(original[:, 0] == a) & (original[:, 1] == b), 2]
            d = np.bincount(mine, minlength=sizes[2])
            matches = np.count_nonzero((synthetic[:, 0] == a) & (synthetic[:, 1] == b))
            variance += (d**2 @ p - (d @ p) ** 2) / matches
    return (risk.dcap - risk.dcap_baseline) * len(original) / np.sqrt(variance)


def test_a_target_drawn_by_itself_is_learnt_no_better_than_by_guessing() -> None:
    rng = np.random.default_rng(11)
    sizes = (6, 5, 4)
    original, synthetic = random_file(4_000, sizes, rng), random_file(5_000, sizes, rng)
    assert standard_errors_above_baseline(original, synthetic, sizes) > 20  # these two hang together
    synthetic[:, 2] = rng.choice(original[:, 2], len(synthetic))
    assert abs(standard_errors_above_baseline(original, synthetic, sizes)) < 4


def test_the_published_baseline_of_tcap_is_passed_without_any_link() -> None:
    rng = np.random.default_rng(5)
    original, synthetic = (
        np.stack([rng.integers(0, 5_000, records), rng.random(records) < 0.15], axis=1).astype(np.int64)
        for records in (5_000, 10_000)
    )
    risk = match_risk(original, synthetic, (5_000, 2), [0], 1)
    error = np.sqrt(0.25 / risk.tcap_records)
    assert risk.tcap > risk.tcap_baseline + 2 * error
    assert risk.tcap < risk.tcap_modal


def test_no_match_at_all() -> None:
    original, synthetic = np.array([[0, 0], [1, 1]]), np.array([[2, 0], [2, 1]])
    for file in (synthetic, synthetic[:0]):
        risk = match_risk(original, file, (3, 2), [0], 1)
        assert risk.unmatched == risk.uniques == 2
        assert risk.replicated_uniques == risk.disco == risk.dcap == risk.tcap_records == 0
        assert risk.tcap is risk.tcap_modal is None
        assert risk.dcap_baseline == risk.tcap_baseline == 0.5


def test_forty_columns_of_nine_levels_do_not_run_into_each_other() -> None:
    rng = np.random.default_rng(2)
    sizes = (9,) * 40
    base = rng.integers(0, 9, 40)
    neighbours = np.repeat(base[None], 39, axis=0)  # each differs from the base in one known column
    neighbours[range(39), range(39)] = (base[:39] + 1) % 9
    original = np.concatenate([neighbours, base[None], random_file(60, sizes, rng)]).astype(np.int8)
    synthetic = np.concatenate([original[::2], random_file(40, sizes, rng).astype(np.int8)])
    known = [*range(39)]
    risk = match_risk(original, synthetic, sizes, known, 39)
    assert risk.uniques == 100
    assert risk.replicated_uniques == 50 / 100
    assert differing(risk, brute_force(original, synthetic, known, 39)) == set()


def test_copies_are_averaged() -> None:
    copies = [SYNTHETIC, ORIGINAL]
    one, other = (match_risk(ORIGINAL, copy, SIZES, [0, 1], 2) for copy in copies)
    mean = mean_match_risk(ORIGINAL, copies, SIZES, [0, 1], 2)
    for field in fields(MatchRisk):
        name = field.name
        assert np.isclose(getattr(mean, name), (getattr(one, name) + getattr(other, name)) / 2)
    assert mean_match_risk(ORIGINAL, [SYNTHETIC], SIZES, [0, 1], 2) == one


def test_what_no_copy_defines_stays_undefined() -> None:
    nobody = SYNTHETIC[:0]
    assert mean_match_risk(ORIGINAL, [nobody, nobody], SIZES, [0, 1], 2).tcap is None
    assert mean_match_risk(ORIGINAL, [SYNTHETIC, ORIGINAL], SIZES, [0, 1], None).dcap is None
    some = mean_match_risk(ORIGINAL, [SYNTHETIC, nobody], SIZES, [0, 1], 2)
    assert some.tcap == 2 / 4  # of the one copy that has such records
    assert some.tcap_records == 4 / 2
    assert some.disco == (2 / 8 + 0) / 2


@pytest.mark.parametrize(
    ("original", "synthetic", "sizes", "known", "target", "words"),
    [
        (ORIGINAL, SYNTHETIC[:, :2], SIZES, [0], 1, "both files need these columns"),
        (ORIGINAL, SYNTHETIC, SIZES[:2], [0], 1, "both files need these columns"),
        (ORIGINAL[:, 0], SYNTHETIC, SIZES, [0], 1, "both files need these columns"),
        (ORIGINAL[:0], SYNTHETIC, SIZES, [0], 1, "no records"),
        (ORIGINAL, SYNTHETIC, SIZES, [], 1, "No column is known"),
        (ORIGINAL, SYNTHETIC, SIZES, [], None, "No column is known"),
        (ORIGINAL, SYNTHETIC, SIZES, [0, 3], 1, "not all among 0 to 2"),
        (ORIGINAL, SYNTHETIC, SIZES, [0], -1, "not all among 0 to 2"),
        (ORIGINAL, SYNTHETIC, SIZES, [0, 1, 0], 2, "once"),
        (ORIGINAL, SYNTHETIC, SIZES, [0, 1], 1, "both known and the target"),
        (ORIGINAL, SYNTHETIC + 1, SIZES, [0], 1, "of the synthetic file has codes outside its 3 levels"),
        (ORIGINAL - 1, SYNTHETIC, SIZES, [0], 1, "of the original file has codes outside its 3 levels"),
        (ORIGINAL, SYNTHETIC, (3, 2, 2), [0], 2, "Column 2 of the original file"),
    ],
)
def test_bad_input_is_refused_in_words(original, synthetic, sizes, known, target, words) -> None:
    with pytest.raises(InvalidKeys, match=words):
        match_risk(original, synthetic, sizes, known, target)


def test_columns_that_are_not_used_are_not_looked_at() -> None:
    assert match_risk(ORIGINAL, SYNTHETIC, (3, 2, 1), [0], 1) == match_risk(ORIGINAL, SYNTHETIC, SIZES, [0], 1)


def test_no_copies_are_refused() -> None:
    with pytest.raises(InvalidKeys, match="at least one copy"):
        mean_match_risk(ORIGINAL, [], SIZES, [0, 1], 2)
