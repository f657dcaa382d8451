"""Tests of values in configurations: JSON values are stored, other values appear in errors as Go prints them."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission_rules.answers import AuthorizerAnswers
from steersman.admission_rules.environments import environment
from steersman.admission_rules.evaluation import BUDGET, Activation
from steersman.admission_rules.expressions import compile_admission
from steersman.admission_rules.mutating import APPLY
from steersman.admission_rules.native import NoTextKey, native_fields
from steersman.machinery.errors.go_print import GoValue
from tests.admission_rules.requests import Authorizer, inputs

OBJECT = {"list": ["a", None, ["b"]], "map": {"a": None, "b": {"c": [1]}}}
ELSEWHERE = "0xc000000000"


def fields(expression: str) -> dict[str, Any]:
    """Return the fields of the object that an expression creates from OBJECT."""
    compiled = compile_admission(expression, environment(params=False, authorizer=True, patches=True), APPLY)
    given, answers = inputs(OBJECT), AuthorizerAnswers(Authorizer().ask)
    evaluation = Activation(given, answers, BUDGET).evaluate(compiled)
    assert not evaluation.error, evaluation.error
    return native_fields(evaluation.value, given)


def value(expression: str) -> Any:
    """Return the native value of a field with an expression's value."""
    return fields(f"Object{{a: {expression}}}")["a"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1", 1),
        ("-1.5", -1.5),
        ("true", True),
        ("'a'", "a"),
        ("int", "int"),
        ("type('a')", "string"),
        ("optional.of('a')", "a"),
        ("optional.none()", None),
        ("[dyn('a'), dyn(1)]", ["a", 1]),
        ("{'a': 1}", {"a": 1}),
        ("optional.of([1])", [1]),
        ("['a'] + ['b']", ["a", "b"]),
        ("['a'].map(x, x + 'b')", ["ab"]),
        ("Object.a{b: Object.a.b{c: [1]}}", {"b": {"c": [1]}}),
        ("[Object.a{b: 1}]", [{"b": 1}]),
        ("{'a': Object.a{b: 1}}", {"a": {"b": 1}}),
        ("object.list", ["a", None, ["b"]]),
        ("object.map", {"a": None, "b": {"c": [1]}}),
        ("[object.list]", [["a", None, ["b"]]]),
        ("{'a': object.list}", {"a": ["a", None, ["b"]]}),
        ("[object.map.b]", [{"c": [1]}]),
        ("object.list.filter(x, x == ['b'])", [["b"]]),
    ],
)
def test_what_json_has_is_taken(expression: str, expected: Any) -> None:
    assert value(expression) == expected


def test_nothing_is_shared_with_the_inputs() -> None:
    found = fields("Object{a: object.list, b: object.map}")
    found["a"][2].append(1)
    found["b"]["b"]["c"].append(2)
    assert OBJECT == {"list": ["a", None, ["b"]], "map": {"a": None, "b": {"c": [1]}}}


@pytest.mark.parametrize(
    ("expression", "shown", "source", "kind"),
    [
        ("null", "NULL_VALUE", "0", "structpb.NullValue"),
        ("10u", "10", "0xa", "uint64"),
        ("b'xy'", "[120 121]", "[]uint8{0x78, 0x79}", "[]uint8"),
        ("duration('90m')", "1h30m0s", "5400000000000", "time.Duration"),
        (
            "timestamp('2020-01-02T03:04:05.006Z')",
            "2020-01-02 03:04:05.006 +0000 UTC",
            "time.Date(2020, time.January, 2, 3, 4, 5, 6000000, time.UTC)",
            "time.Time",
        ),
        (
            "timestamp('0001-12-01T00:00:00Z')",
            "0001-12-01 00:00:00 +0000 UTC",
            "time.Date(1, time.December, 1, 0, 0, 0, 0, time.UTC)",
            "time.Time",
        ),
        ("quantity('1Ki')", "1Ki", f"(*resource.Quantity)({ELSEWHERE})", "*resource.Quantity"),
        ("url('https://a.b/c')", "https://a.b/c", f"(*url.URL)({ELSEWHERE})", "*url.URL"),
        (
            "semver('1.2.3-a.1+b')",
            "1.2.3-a.1+b",
            'semver.Version{Major:0x1, Minor:0x2, Patch:0x3, Pre:[]semver.PRVersion{semver.PRVersion{VersionStr:"a", '
            'VersionNum:0x0, IsNum:false}, semver.PRVersion{VersionStr:"", VersionNum:0x1, IsNum:true}}, '
            'Build:[]string{"b"}}',
            "semver.Version",
        ),
        (
            "ip('1.2.3.4')",
            "1.2.3.4",
            "netip.Addr{addr:netip.uint128{hi:0x0, lo:0xffff01020304}, "
            f"z:unique.Handle[net/netip.addrDetail]{{value:(*netip.addrDetail)({ELSEWHERE})}}}}",
            "netip.Addr",
        ),
        ("authorizer", "no such overload", f"(*types.Err)({ELSEWHERE})", "*types.Err"),
        ("JSONPatch{op: 'add'}", ELSEWHERE, f"(*mutation.JSONPatchVal)({ELSEWHERE})", "*mutation.JSONPatchVal"),
        ("'a b'.split(' ')", "[a b]", '[]string{"a", "b"}', "[]string"),
        ("'a b'.split(' ') + []", "[a b]", '[]string{"a", "b"}', "[]string"),
        ("[] + 'a b'.split(' ')", "[a b]", '[]string{"a", "b"}', "[]string"),
    ],
)
def test_what_json_has_not_is_as_go_prints_it(expression: str, shown: str, source: str, kind: str) -> None:
    assert value(expression) == GoValue(shown, source, kind)


@pytest.mark.parametrize(
    ("expression", "shown", "source"),
    [
        ("{'l': [dyn('a'), dyn(1)]}", "[a 1]", '[]ref.Val{"a", 1}'),
        (
            "{'l': [dyn(1u), dyn(null), dyn(b'x'), dyn(1.5), dyn(true)]}",
            "[1 0 [120] 1.5 true]",
            "[]ref.Val{0x1, 0, types.Bytes{0x78}, 1.5, true}",
        ),
        (
            "{'l': {'b': dyn(1), 'a': dyn([2, 3])}}",
            "map[a:[2, 3] b:1]",
            f'map[ref.Val]ref.Val{{"a":(*types.baseList)({ELSEWHERE}), "b":1}}',
        ),
        (
            "{'l': {'m': dyn(object.map.b), 'n': dyn(authorizer)}}",
            "map[m:{c: [1]} n:no such overload]",
            f'map[ref.Val]ref.Val{{"m":(*types.baseMap)({ELSEWHERE}), "n":(*types.Err)({ELSEWHERE})}}',
        ),
        ("{'l': {'m': {'k': 'v'}}}", "map[m:{k: v}]", f'map[ref.Val]ref.Val{{"m":(*types.baseMap)({ELSEWHERE})}}'),
        (
            "{'l': [dyn(duration('1s')), dyn(timestamp('2020-01-01T00:00:00Z'))]}",
            "[1s 2020-01-01 00:00:00 +0000 UTC]",
            "[]ref.Val{types.Duration{Duration:1000000000}, time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)}",
        ),
    ],
)
def test_lists_and_maps_that_are_made_within_others_are_none_to_go(expression: str, shown: str, source: str) -> None:
    found = value(expression)["l"]
    assert (found.value, found.source) == (shown, source)


def test_a_map_with_keys_that_are_no_texts_makes_no_object() -> None:
    with pytest.raises(NoTextKey):
        fields("Object{a: {1: 'x'}}")
    assert fields("Object{a: [Object.a{b: {1: 'x'}}]}")["a"][0].type == "*types.Err"
