"""All type errors are reported in the reference implementation's words and in the order of the text."""

from __future__ import annotations

from itertools import pairwise

import pytest

from steersman.cel.expression import compile_expression
from steersman.cel.types import Type, format_type, list_of, map_of, optional_of, type_param
from tests.cel.cel_sample import ENVIRONMENT, error_of


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("o.inner", "Inner"),
        ("o.map.k", "string"),
        ("o.?map.?k", "optional_type(string)"),
        ("o.inners.map(x, [x.count])", "list(list(int))"),
        ("[]", "list(dyn)"),
        ("[[], [1]]", "list(list(int))"),
        ("{'a': null}", "map(string, null)"),
        ("true ? optional.none() : optional.of(1)", "optional_type(int)"),
        ("x.anything + 1", "int"),
        ("x + x", "dyn"),
        ("type(o.t)", "type(timestamp)"),
        ("o.any", "dyn"),
        ("o.map.transformMap(k, v, v.size())", "map(string, int)"),
        ("[1u].sum()", "uint"),
        ("o.inner.namespace", "string"),
        ("a.b", "int"),
    ],
)
def test_expressions_have_types(text: str, type: str) -> None:
    assert format_type(compile_expression(text, ENVIRONMENT).type) == type


def test_all_errors_are_told_each_with_its_place() -> None:
    assert error_of("foo(1) &&\n  o.i == 'a' &&\to.zz") == (
        "ERROR: <input>:1:4: undeclared reference to 'foo' (in container '')\n"
        " | foo(1) &&\n"
        " | ...^\n"
        "ERROR: <input>:2:7: found no matching overload for '_==_' applied to '(int, string)'\n"
        " |   o.i == 'a' && o.zz\n"
        " | ......^\n"
        "ERROR: <input>:2:18: undefined field 'zz'\n"
        " |   o.i == 'a' && o.zz\n"
        " | .................^"
    )


def test_wide_characters_have_wide_marks() -> None:
    assert error_of("'日本' + foo").endswith("\n | '日本' + foo\n | .．．....^")


_NO_INTEGER = "decimal clause can only be used on integers, was given "
_NO_RANGE = "cannot be range of a comprehension (must be list, map, or dynamic)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "o.i.all(x, true)",
            f"expression of type 'int' {_NO_RANGE}",
        ),
        ("o.i.foo", "type 'int' does not support field selection"),
        ("[1].all(x, 1)", "expected type 'bool' but found 'int'"),
        ("[1, 'a']", "expected type 'int' but found 'string'"),
        ("[?1]", "expected type 'optional_type(int)' but found 'int'"),
        ("Obj{i: 'a'}", "expected type of field 'i' is 'int' but provided type is 'string'"),
        ("int{}", "'int' is not a message type"),
        ("i{}", "'int' is not a type"),
        ("'a'.contains(1)", "found no matching overload for 'contains' applied to 'string.(int)'"),
        ("o.s.matches('[')", "invalid matches argument"),
        ("duration('1')", "invalid duration argument"),
        ("timestamp('now')", "invalid timestamp argument"),
        (
            "'%d'.format(['a'])",
            "error during formatting: decimal clause can only be used on integers, was given string",
        ),
        (
            "1.5.all(x, y, x)",
            f"expression of type 'double' {_NO_RANGE}",
        ),
    ],
)
def test_what_does_not_fit_is_named(text: str, message: str) -> None:
    assert error_of(text).split("\n")[0].split(": ", 2)[2] == message


def test_only_what_format_is_given_may_mix_types() -> None:
    assert error_of("'%s %s'.format([1, 'a'])") == ""
    assert error_of("[1, 'a'].size()") != ""


def test_equal_types_are_one_object() -> None:
    one = map_of(type_param("K"), list_of(optional_of(type_param("V"))))
    other = Type(one.kind, "map", (type_param("K"), list_of(optional_of(type_param("V")))))
    assert one is other
    assert not one.is_concrete
    assert one.size == 5


def test_types_that_double_at_each_step_are_refused() -> None:
    names = [f"a{index}" for index in range(60)]
    maps = "".join(f"optional.of({{{name}: {name}}}).optMap({after}, " for name, after in pairwise(names))
    text = f"optional.of(1).optMap(a0, {maps}true{')' * 60}"
    assert "type is too large" in error_of(text)


def test_macros_that_double_their_target_are_refused() -> None:
    assert error_of("optional.of(1)" + ".optMap(x, x)" * 200) == "ERROR: <input>:-1:0: expression is too large"
