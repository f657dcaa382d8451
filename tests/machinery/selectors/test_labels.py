"""Label selectors: the grammar, its errors, matching."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.meta.v1 import LabelSelector, LabelSelectorRequirement
from steersman.machinery.errors.field import Path
from steersman.machinery.selectors import labels
from steersman.machinery.selectors.labels import Requirement, Selector, SelectorError, parse
from tests.counted_work import calls

QUALIFIED = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)

OBJECTS = {
    "a": {"tier": "web", "env": "prod", "n": "5"},
    "b": {"tier": "db", "env": "prod", "n": "10", "example.com/x": "y"},
    "c": {"env": "test", "empty": ""},
}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", "abc"),
        ("tier=web", "a"),
        ("tier==web", "a"),
        ("tier!=web", "bc"),
        ("tier in (web,db)", "ab"),
        ("tier notin (web)", "bc"),
        ("tier", "ab"),
        ("!tier", "c"),
        ("env=prod,tier!=db", "a"),
        ("env=prod,tier=db", "b"),
        ("n>5", "b"),
        ("n<10", "a"),
        ("empty=", "c"),
        ("empty in (,x)", "c"),
        ("example.com/x=y", "b"),
        ("tier in ()", ""),
        ("env>3", ""),
        ("in in (in, notin)", ""),
    ],
)
def test_selector_selects(text: str, selected: str) -> None:
    matches = parse(text).matches
    assert "".join(name for name, each in OBJECTS.items() if matches(each)) == selected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("env=prod,,tier", "found ',', expected: identifier after ','"),
        (
            "n>x",
            'unable to parse requirement: values[0]: Invalid value: "x": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        ("tier in (web", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("tier in (web,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("tier in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("tier in web", "unable to parse requirement: found 'web' expected: '('"),
        ("=web", "found '=', expected: !, identifier, or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("bad key=web", "unable to parse requirement: found 'key', expected: in, notin, =, ==, !=, gt, lt"),
        ("-bad=web", f'unable to parse requirement: <nil>: Invalid value: "-bad": name part {QUALIFIED}'),
        ("tier=bad!value", "found '!', expected: ',' or 'end of string'"),
        (
            "a/b/c=d",
            f'unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key {QUALIFIED} '
            "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        ),
        ("tier===x", "unable to parse requirement: found '=', expected: identifier"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        (
            f"x={'0' * 64}",
            f'unable to parse requirement: values[0][x]: Invalid value: "{"0" * 64}": must be no more than 63 bytes',
        ),
    ],
)
def test_unreadable_selector_says_why(text: str, error: str) -> None:
    with pytest.raises(SelectorError) as raised:
        parse(text)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("b=2, a=1", "a=1,b=2"),
        ("x in (b,a,b)", "x in (a,b)"),
        ("x notin ( )", "x notin ()"),
        ("x in (a,,b)", "x in (,a,b)"),
        ("n > 5 , m<\t7", "m<7,n>5"),
        ("a==1", "a==1"),
        (" !a , b ", "!a,b"),
        ("a\0,b", "a,b"),
        ("a,b \0,c", "a,b"),
    ],
)
def test_selector_prints_in_canonical_form(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


NAMES = st.sampled_from(["a", "B", "a-b", "c.d", "0", "_".join("xy")])
KEYS = NAMES | st.builds("{}/{}".format, st.sampled_from(["example.com", "x"]), NAMES)
VALUES = NAMES | st.sampled_from(["", "in", "notin", "x" * 63])
NUMBERS = st.integers(0, 10**6).map(str)
REQUIREMENTS = st.one_of(
    st.builds(Requirement, KEYS, st.sampled_from(["=", "==", "!="]), st.tuples(VALUES)),
    st.builds(
        Requirement,
        KEYS,
        st.sampled_from(["in", "notin"]),
        st.sets(VALUES, min_size=1, max_size=3).map(lambda values: tuple(sorted(values))),
    ),
    st.builds(Requirement, KEYS, st.sampled_from(["exists", "!"]), st.just(())),
    st.builds(Requirement, KEYS, st.sampled_from(["gt", "lt"]), st.tuples(NUMBERS)),
)
SELECTORS = st.lists(REQUIREMENTS, max_size=5).map(Selector)


@given(SELECTORS)
def test_printed_selector_reads_as_itself(selector: Any) -> None:
    assert parse(str(selector)) == selector


def plainly_matches(requirement: Any, given_labels: dict[str, str]) -> bool:
    """Return the result of a requirement, by its definition."""
    value = given_labels.get(requirement.key)
    match requirement.operator:
        case "=" | "==" | "in":
            return value is not None and value in requirement.values
        case "!=" | "notin":
            return value is None or value not in requirement.values
        case "exists":
            return value is not None
        case "!":
            return value is None
        case "gt":
            return value is not None and value.isdigit() and int(value) > int(requirement.values[0])
        case "lt":
            return value is not None and value.isdigit() and int(value) < int(requirement.values[0])
    raise AssertionError(requirement.operator)


@given(SELECTORS, st.data())
def test_compiled_selector_means_what_its_requirements_say(selector: Any, data: Any) -> None:
    keys = [requirement.key for requirement in selector.requirements] or ["a"]
    values = [value for each in selector.requirements for value in each.values] or [""]
    given_labels = data.draw(st.dictionaries(st.sampled_from(keys), st.sampled_from(values) | NUMBERS | VALUES))
    expected = all(plainly_matches(requirement, given_labels) for requirement in selector.requirements)
    assert selector.matches(given_labels) is expected


@given(st.text("ab=!(), <>\tin\0", max_size=12))
def test_any_text_is_read_or_refused(text: Any) -> None:
    try:
        selector = parse(text)
    except SelectorError:
        return
    assert parse(str(selector)) == selector


@pytest.mark.parametrize("value", ["x", "", "9223372036854775808", "1.5", "٣", "1_0"])
def test_comparison_fails_for_what_is_no_64_bit_number(value: str) -> None:
    assert not parse("n>0").matches({"n": value})


def test_largest_number_is_compared_exactly() -> None:
    assert parse("n<9223372036854775807").matches({"n": "9223372036854775806"})
    assert not parse("n<9223372036854775807").matches({"n": "9223372036854775807"})


def test_matching_costs_what_the_fewer_of_requirements_and_labels_do() -> None:
    few, many = (
        parse("env,!gone,tier in (web,db),n>3,x!=y,m<9"),
        parse(",".join(f"!key{number}" for number in range(5_000)) + ",tier=web"),
    )
    labels = {f"label{number}": "" for number in range(5_000)} | {"env": "prod", "tier": "web", "n": "5", "m": "8"}
    assert few.matches(labels)
    assert not few.matches(labels | {"x": "y"})
    assert not few.matches({key: value for key, value in labels.items() if key != "env"})
    assert many.matches({"tier": "web"})
    assert calls(lambda: few.matches(labels)) < 50
    assert calls(lambda: many.matches({"tier": "web", "a": "b"})) < 50


def test_everything_and_nothing() -> None:
    assert labels.EVERYTHING.empty
    assert labels.EVERYTHING.matches({})
    assert not labels.NOTHING.empty
    assert not labels.NOTHING.matches({})
    assert labels.NOTHING.add(Requirement("a", "exists")) is labels.NOTHING
    assert labels.EVERYTHING != labels.NOTHING


def test_exact_match_is_found_only_for_a_single_value() -> None:
    selector = parse("a=1,b in (2),c in (3,4),d!=5,e")
    assert [selector.requires_exact_match(key) for key in "abcdef"] == ["1", "2", None, None, None, None]


def test_added_requirements_are_sorted_in() -> None:
    selector = parse("b=1").add(Requirement("a", "exists"))
    assert str(selector) == "a,b=1"
    assert not selector.matches({"b": "1"})
    assert selector.matches({"a": "", "b": "1"})


def test_label_selector_object_becomes_a_selector() -> None:
    selector = labels.from_label_selector(
        LabelSelector(
            match_labels={"a": "1"},
            match_expressions=[
                LabelSelectorRequirement(key="b", operator="In", values=["y", "x"]),
                LabelSelectorRequirement(key="c", operator="DoesNotExist"),
            ],
        )
    )
    assert str(selector) == "a=1,b in (x,y),!c"
    assert selector.matches({"a": "1", "b": "x"})
    assert not selector.matches({"a": "1", "b": "x", "c": ""})


def test_absent_label_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert labels.from_label_selector(None) == labels.NOTHING
    assert labels.from_label_selector(LabelSelector()) == labels.EVERYTHING


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        (LabelSelectorRequirement(key="a", operator="Gt"), '"Gt" is not a valid label selector operator'),
        (
            LabelSelectorRequirement(key="a", operator="In"),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            LabelSelectorRequirement(key="a", operator="Exists", values=["x"]),
            'values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
        ),
        (LabelSelectorRequirement(key="-", operator="Exists"), f'key: Invalid value: "-": name part {QUALIFIED}'),
    ],
)
def test_bad_label_selector_object_says_why(expression: LabelSelectorRequirement, error: str) -> None:
    with pytest.raises(SelectorError) as raised:
        labels.from_label_selector(LabelSelector(match_expressions=[expression]))
    assert str(raised.value) == error


def test_requirement_names_the_path_it_was_given() -> None:
    with pytest.raises(
        SelectorError, match=r"^spec\.operator: Unsupported value: \"near\": supported values: \"in\", "
    ):
        labels.new_requirement("a", "near", (), Path("spec"))


def test_several_errors_are_told_together() -> None:
    with pytest.raises(SelectorError, match=r"^\[values: Invalid value: \[\"1\",\"x\"\]: for .*, values\[1\]: "):
        labels.new_requirement("a", "gt", ("1", "x"))


def test_selectors_from_sets() -> None:
    assert str(labels.selector_from_set({"b": "-", "a": "1"})) == "a=1,b=-"
