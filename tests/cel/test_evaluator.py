"""Values: arithmetic that overflows, errors that logic absorbs, comparisons across numbers, times, loops."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.cel.steps import ProgramError
from steersman.cel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    EvaluationError,
    Map,
    UInt,
    compare_numbers,
    equal,
    format_double,
)
from tests.cel.cel_sample import evaluate, plain


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("o.i + 9223372036854775807", "integer overflow"),
        ("-(o.i - 9223372036854775807 - 8)", "integer overflow"),
        ("uint(o.i) - 8u", "unsigned integer overflow"),
        ("o.i / (o.i - 7)", "division by zero"),
        ("o.i % (o.i - 7)", "modulus by zero"),
        ("o.list[3]", "index out of bounds: 3"),
        ("o.map['zz']", "no such key: zz"),
        ("o.map[?'zz'].value()", "optional.none() dereference"),
        ("dyn('a') + 1", "no such overload"),
        ("dyn('a') - 1", "no such overload"),
        ("-dyn('a')", "no such overload"),
        ("size(dyn(duration('1s')))", "no such overload"),
        ("size(dyn(1))", "no such overload: size"),
        ("-dyn(true)", "no such overload"),
        ("-dyn(1u)", "no such overload: -_"),
        ("-dyn([1])", "no such overload: -_"),
        ("dyn(1)[0]", "no such key: 0"),
        ("dyn(1)[type(o)]", "invalid qualifier type: *types.Type"),
        ("dyn(duration('1s'))['a']", "no such key: a"),
        ("dyn(quantity('1')).exists(x, true)", "got 'cel.Quantity', expected iterable type"),
        ("dyn(type(1)).all(x, true)", "got '*types.Type', expected iterable type"),
        ("dyn(o.i).trim()", "no such overload: trim(int)"),
        ("o.s.startsWith(dyn(o.i))", "no such overload"),
        ("dyn(quantity('1')) == o.s", "no such overload"),
        ("int(x.nothing)", "no such key: nothing"),
        ("duration(dyn(o.i))", "type conversion error from 'int' to 'google.protobuf.Duration'"),
        ("x.n + 1", "no such overload: _+_"),
        ("x.a && true", "no such overload"),
        ("int(o.d * 1e30)", "integer overflow"),
        ("int(o.s)", "type conversion error from 'string' to 'int'"),
        ("timestamp('9999-12-31T23:59:59Z') + o.dur", "timestamp overflow"),
        ("o.s.substring(12)", "index out of range: 12"),
        ("o.ints.filter(e, e > 9).max()", "max called on empty list"),
        (
            "quantity(o.s)",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ("semver(o.s)", "No Major.Minor.Patch elements found"),
        ("cidr('10.0.0.0/8').containsIP('ten')", "no such overload"),
        (
            "cidr('10.0.0.0/8').containsCIDR('ten')",
            "network address parse error during conversion from string: "
            "network address parse error during conversion from string: netip.ParsePrefix(\"ten\"): no '/'",
        ),
    ],
)
def test_what_has_no_value_fails(text: str, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        evaluate(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["int('x')", "int(null)", "string(b'\\xff')", "'a'.find('[')"])
def test_constants_without_a_value_make_no_program(text: str) -> None:
    with pytest.raises(ProgramError):
        evaluate(text)


_FAILS = "(1 / (o.i - 7) > 0)"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"{_FAILS} || true", True),
        (f"true || {_FAILS}", True),
        (f"{_FAILS} && false", False),
        (f"false && {_FAILS}", False),
        ("[0, 1].exists(e, 1 / e > 0)", True),
        ("[0, 2].all(e, 1 / e > 0)", False),
    ],
)
def test_logic_does_without_an_operand_that_fails(text: str, value: bool) -> None:
    assert evaluate(text) is value


@pytest.mark.parametrize("text", [f"{_FAILS} || false", f"{_FAILS} && true", "[0].exists(e, 1 / e > 0)"])
def test_logic_fails_if_only_the_failed_operand_could_tell(text: str) -> None:
    with pytest.raises(EvaluationError, match="division by zero"):
        evaluate(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dyn(1) == 1u && dyn(1u) == 1.0 && dyn(1.0) == 1", True),
        ("dyn(1) == dyn('1')", False),
        ("9223372036854775807 < 9223372036854775808u", True),
        ("-1 < 0u && 1.5 > 1u", True),
        ("0.0 / 0.0 == 0.0 / 0.0", False),
        ("{1: 'a'}[dyn(1.0)]", "a"),
        ("o.t.getHours('America/New_York')", 7),
        ("o.t.getMinutes('+05:45')", 15),
        ("o.t.getDayOfWeek()", 4),
        ("string(o.t - duration('123456789ns'))", "2024-02-29T12:30:45Z"),
        ("string(duration('1h30m15s5ms'))", "5415.005s"),
        ("'%s|%5s'.size()", 6),
        ("'%.2f %s'.format([1234.567, [1, {'a': true}]])", '1,234.57 [1, {"a":true}]'),
        ("o.list.filter(e, e != 'a').map(e, e + '!')", ["b!", "c!"]),
        ("[[1, 2], [3]].map(l, l.map(e, e * 2))", [[2, 4], [6]]),
        ("o.map.transformMap(k, v, v + k) == {'k1': 'v1k1', 'k2': 'v2k2'}", True),
        ("ip('::1').isLoopback() && cidr('10.0.0.0/8').containsIP('10.1.2.3')", True),
        ("url('https://u@[::1]:8443/a%20b?q=1&q=2#f').getHostname()", "::1"),
        ("semver('1.10.0').isGreaterThan(semver('1.9.0-rc.1'))", True),
        ("format.dns1123Label().validate('A').hasValue()", True),
    ],
)
def test_expressions_have_values(text: str, value: Any) -> None:
    assert evaluate(text) == value


_integers = st.integers(MIN_INT, MAX_INT)
_numbers = st.one_of(_integers, st.integers(0, MAX_UINT).map(UInt), st.floats(allow_nan=False))


@given(_integers, _integers)
@settings(deadline=None)
def test_division_and_rest_belong_together(left: int, right: int) -> None:
    text = f"dyn({left}) / dyn({right}) * dyn({right}) + dyn({left}) % dyn({right})"
    if right == 0 or (left == MIN_INT and right == -1):
        with pytest.raises(EvaluationError):
            evaluate(text)
    else:
        assert evaluate(text) == left


@given(_numbers, _numbers)
def test_the_order_of_numbers_turns_with_their_places(left: Any, right: Any) -> None:
    assert compare_numbers(left, right) == -compare_numbers(right, left)
    assert equal(left, right) is equal(right, left)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_printed_doubles_are_read_as_the_same(value: float) -> None:
    assert math.copysign(1, float(format_double(value))) == math.copysign(1, value)
    assert float(format_double(value)) == value


@given(st.lists(st.tuples(st.one_of(_integers, st.booleans(), st.text(max_size=3)), _integers), max_size=6))
def test_maps_keep_numbers_and_truth_apart(pairs: list[tuple[Any, int]]) -> None:
    made = Map(pairs)
    for key, value in pairs:
        last = [each for other, each in pairs if other == key and type(other) is type(key)][-1]
        found = made.find(key)
        assert found is not None
        assert found[1] == last or value == found[1]
    assert equal(made, Map(reversed(list(made.items()))))


def test_a_bound_value_is_only_made_when_it_is_asked_for() -> None:
    assert evaluate("optional.of(1).optMap(v, true || v == 1 / 0)").value is True


def test_a_bound_value_is_of_what_names_stand_for_where_it_is_bound() -> None:
    assert evaluate("optional.of(i).optMap(v, [7].map(i, i + v)).value()") == [49]
    assert evaluate("optional.of(i).optFlatMap(v, optional.of(v).optMap(i, [v, i + 1])).value()") == [42, 43]
    assert evaluate("[1, 2].map(i, optional.of(i).optMap(v, [5].map(i, v)).value())") == [[1], [2]]


def test_values_are_plain_python() -> None:
    assert plain(evaluate("[dyn(1), dyn(2u), dyn(3.5), dyn(null)]")) == [
        {"int": "1"},
        {"uint": "2"},
        {"double": "3.5"},
        {"null": True},
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-dyn(duration('1s')) == duration('-1s')", True),
        ("dyn(quantity('1'))[?'a'].hasValue()", False),
        ("'a b'.split(' ') == ['a', 'b'] && ['a', 'b'] == 'a b'.split(' ')", True),
        ("'a b'.split(' ') != ['a', 'c'] && 'a b'.split(' ') != 'a b c'.split(' ')", True),
        ("'a b'.split(' ') + ['c'] == ['a', 'b', 'c'] && ['c'] + 'a b'.split(' ') == ['c', 'a', 'b']", True),
        ("type('a b'.split(' ')) == list && 'a' in 'a b'.split(' ') && 'a b'.split(' ').map(x, x) == ['a', 'b']", True),
    ],
)
def test_texts_and_lengths_of_time(text: str, expected: bool) -> None:
    assert evaluate(text) is expected


@pytest.mark.parametrize(
    ("index", "kind"),
    [
        ("null", "types.Null"),
        ("b'a'", "types.Bytes"),
        ("[1]", "*types.baseList"),
        ("{'a': 1}", "*types.baseMap"),
        ("type(1)", "*types.Type"),
        ("duration('1s')", "types.Duration"),
        ("timestamp('2020-01-01T00:00:00Z')", "types.Timestamp"),
    ],
)
def test_a_constant_that_is_no_index_makes_no_program(index: str, kind: str) -> None:
    with pytest.raises(ProgramError) as caught:
        evaluate(f"dyn(o)[{index}]")
    assert str(caught.value) == f"invalid qualifier type: {kind}"
