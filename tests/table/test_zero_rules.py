from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from keyhole.errors import InvalidRules
from keyhole.keys.rules import LARGEST
from keyhole.keys.variable import KeyVariable
from keyhole.table.rule_meaning import Labels, ZeroRules
from keyhole.table.structural_zeros import StructuralZeros
from keyhole.table.zero_rules import parse_zero_rules, read_zero_rules, zero_rules_from

from .brute_force import EXAMPLES, rule_lists

KEYS = (
    KeyVariable("AGE", ("0-14", "15+")),
    KeyVariable("PAID", ("yes", "no", "1", "1.0", "01", "2020-01-01", "~")),
)


def the_problem(text: str) -> str:
    with pytest.raises(InvalidRules) as caught:
        StructuralZeros(KEYS, parse_zero_rules(text, "zeros.yaml"))
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_every_form_of_the_contract_is_read():
    rules = parse_zero_rules(
        """
        - {AGE: [0-14], MARITAL: [married, widowed, divorced]}      # a list means any of these levels
        - {EMPLOYMENT: child, EDUCATION: {not: [none, primary]}}
        - EMPLOYMENT: {not: child}
        """
    )
    assert [rule.conditions for rule in rules.rules] == [
        (Labels("AGE", ("0-14",)), Labels("MARITAL", ("married", "widowed", "divorced"))),
        (Labels("EMPLOYMENT", ("child",)), Labels("EDUCATION", ("none", "primary"), negated=True)),
        (Labels("EMPLOYMENT", ("child",), negated=True),),
    ]
    assert [rule.number for rule in rules.rules] == [1, 2, 3]


@pytest.mark.parametrize("label", KEYS[1].levels)
def test_labels_stay_as_written(label):
    zeros = StructuralZeros(KEYS, parse_zero_rules(f"- {{AGE: 0-14, PAID: {label}}}"))
    assert zeros.boxes[0][1].codes == {KEYS[1].code[label]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "zeros.yaml is empty"),
        ("# nothing but a comment", "zeros.yaml is empty"),
        ("[]", "holds no rules"),
        ("AGE: 0-14", "not a list of rules"),
        ("some,comma,separated\nvalues,in,lines", "not a list of rules"),
        ("- 0-14", "Rule 1 of zeros.yaml is not a mapping"),
        ("- {AGE: 0-14, PAID: yes}\n- [AGE]", "Rule 2 of zeros.yaml is not a mapping"),
        ("- {}", "Rule 1 of zeros.yaml names no key"),
        ("- {AGE: []}", "Rule 1 of zeros.yaml: AGE has an empty list"),
        ("- {AGE: {not: []}}", "Rule 1 of zeros.yaml: AGE has an empty list"),
        ("- {AGE: [[0-14]]}", "Rule 1 of zeros.yaml: AGE must be a label, a list of labels, or {not: [labels]}"),
        ("- {AGE: {none: [0-14]}}", "AGE must be a label"),
        ("- {AGE: {not: [0-14], or: [15+]}}", "AGE must be a label"),
        ("- {AGE: 0-14, PAID: yes, AGE: 15+}", "line 1: a name is given twice"),
        ("- {[AGE]: 0-14}", "line 1: a name must be plain text"),
        ("- {AGE: 0-14\n- {", "not valid YAML, line 2"),
        ("- &a {AGE: *a}", "aliases"),
        ("- *secret", "aliases"),
        ("\x00", "not valid YAML"),
        ('"\\U99999999"', "not valid YAML"),
        ("[\n" * 5_000, "nested too deeply"),
        (
            "- {AGES: 0-14}",
            "Rule 1 of zeros.yaml names 'AGES', which is not among the keys (AGE, PAID) (closest: 'AGE')",
        ),
        (
            "- {AGE: 15+, PAID: no}\n- {AGE: [0-15, 15+, x], PAID: no}",
            "Rule 2 of zeros.yaml names 2 unknown labels of AGE: '0-15', 'x'. AGE has 2 labels",
        ),
        ("- {AGE: {not: [0-14, 15+]}, PAID: no}", "leaves no label of AGE, so it matches no cell"),
        ("- {AGE: [0-14, 15+]}", "Rule 1 of zeros.yaml matches every cell"),
        ("- {AGE: 0-14}\n- {AGE: 15+}", "The rules of zeros.yaml together make every cell impossible"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text, said):
    assert said in the_problem(text)


def test_many_unknown_labels_are_counted():
    message = the_problem(f"- {{AGE: {[f'x{i}' for i in range(40)]}}}".replace("'", ""))
    assert "40 unknown labels of AGE" in message
    assert message.endswith("and 35 more. AGE has 2 labels, those in the data and in the codebook (--levels).")


def test_labels_of_the_data_are_not_offered():
    message = the_problem("- {AGE: 0-13, PAID: no}")
    assert "0-14" not in message
    assert "15+" not in message


def test_the_error_does_not_keep_the_file():
    with pytest.raises(InvalidRules) as error:
        parse_zero_rules("- {AGE: [[Smith]]}")
    assert error.value.__context__ is None


def test_a_data_file_given_by_mistake_is_not_quoted():
    for text in (
        "name,income\n*Smith, 70000",
        "name: &Smith 1\nname: &Smith 2",
        "- %Smith\n- @Smith",
        "- !Smith!x y",
    ):
        assert "Smith" not in the_problem(text)


def test_files_are_read_as_text_with_or_without_a_mark(tmp_path: Path):
    path = tmp_path / "zeros.yaml"
    for encoding in ("utf-8", "utf-8-sig"):
        path.write_text("- {AGE: 0-14, MARITAL: 既婚}", encoding=encoding)
        rules = read_zero_rules(path)
        assert rules.source == "zeros.yaml"
        assert rules.rules[0].conditions[1] == Labels("MARITAL", ("既婚",))


def test_files_that_are_no_rule_files_are_refused(tmp_path: Path):
    binary, huge = tmp_path / "binary.yaml", tmp_path / "huge.yaml"
    binary.write_bytes(bytes(range(256)))
    with huge.open("wb") as file:
        file.truncate(LARGEST + 1)
    for path, said in [
        (tmp_path / "absent.yaml", "absent.yaml' is not there"),
        (tmp_path, "cannot be opened|UTF-8"),
        (Path("a\0b"), "cannot be opened"),
        (binary, "binary.yaml is not a UTF-8 text file"),
        (huge, "too large"),
    ]:
        with pytest.raises(InvalidRules, match=said):
            read_zero_rules(path)


def attempt(read: Callable[[], ZeroRules]) -> None:
    """Anything but rules or a one-line InvalidRules fails the test by its own exception."""
    message = "no problem"
    try:
        StructuralZeros(KEYS, read())
    except InvalidRules as error:
        message = str(error)
    assert len(message.splitlines()) == 1


YAML_LIKE = st.text(st.sampled_from(list("-:{}[],&*!|>'\"%@#?~ \n\t<0AGEnot")), max_size=60)


@EXAMPLES
@given(st.one_of(st.text(), YAML_LIKE))
@example("%YAML 99999999999999999999.1\n---\n- a")
@example("- {AGE: 0-14, ? : }")
@example("%TAG ! tag:x\n--- !a b")
def test_any_text_is_rules_or_a_clear_error(text):
    attempt(lambda: parse_zero_rules(text))


PLAIN = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.sampled_from(["0-14", "yes", "AGE"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["AGE", "PAID", "not", "x"]), inner, max_size=3),
    ),
    max_leaves=12,
)


@EXAMPLES
@given(st.one_of(PLAIN, st.lists(PLAIN, max_size=4)))
def test_any_structure_is_rules_or_a_clear_error(content):
    attempt(lambda: parse_zero_rules(yaml.safe_dump(content, allow_unicode=True)))
    attempt(lambda: zero_rules_from(content))


@EXAMPLES
@given(rule_lists())
def test_written_rules_are_read_back(case):
    _, rules = case
    assert parse_zero_rules(yaml.safe_dump(rules, sort_keys=False)) == zero_rules_from(rules)
