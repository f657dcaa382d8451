"""From text to tree: precedence, literals, macros, bounds; any text at all gives a tree or errors."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steersman.cel import ast
from steersman.cel.ast import Expr
from steersman.cel.errors import CompileError, Errors, Source
from steersman.cel.expression import compile_expression
from steersman.cel.macros import STANDARD_MACROS
from steersman.cel.nesting import allows_nesting
from steersman.cel.parser import MAX_CODE_POINTS, parse
from steersman.cel.values import UInt
from tests.cel.cel_sample import ENVIRONMENT


def read(text: str) -> Expr:
    errors = Errors(Source(text))
    tree = allows_nesting(parse)(text, STANDARD_MACROS, errors)
    assert not errors, errors.text()
    return tree


def error_of(text: str) -> str:
    errors = Errors(Source(text))
    allows_nesting(parse)(text, STANDARD_MACROS, errors)
    return errors.text()


_INFIX = re.compile("_(.+)_")


def render(node: Expr) -> str:
    """Return the text of a tree with all parentheses and with macros expanded."""
    match node:
        case ast.Literal():
            return literal(node.value)
        case ast.Ident():
            return node.name
        case ast.Select():
            inner = f"{render(node.operand)}.{node.field}"
            return f"has({inner})" if node.test_only else inner
        case ast.Call():
            return render_call(node)
        case ast.CreateList():
            return (
                f"[{', '.join(('?' if i in node.optional else '') + render(e) for i, e in enumerate(node.elements))}]"
            )
        case ast.CreateMap():
            pairs = (f"{'?' if e.optional else ''}{render(e.key)}: {render(e.value)}" for e in node.entries)
            return f"{{{', '.join(pairs)}}}"
        case ast.CreateStruct():
            fields = (f"{'?' if f.optional else ''}{f.name}: {render(f.value)}" for f in node.fields)
            return f"{node.type_name}{{{', '.join(fields)}}}"
        case ast.Comprehension():
            parts = (node.range, node.init, node.condition, node.step, node.result)
            return f"loop({node.variable}, {node.accumulator}, {', '.join(map(render, parts))})"
    raise AssertionError(node)


def render_call(node: ast.Call) -> str:
    args = [render(arg) for arg in node.args]
    if node.target is not None:
        return f"{render(node.target)}.{node.function}({', '.join(args)})"
    match node.function:
        case ast.Operator.CONDITIONAL:
            return f"({args[0]} ? {args[1]} : {args[2]})"
        case ast.Operator.INDEX:
            return f"{args[0]}[{args[1]}]"
        case ast.Operator.OPTIONAL_INDEX:
            return f"{args[0]}[?{args[1]}]"
        case ast.Operator.OPTIONAL_SELECT:
            return f"{args[0]}.?{node.args[1].value}"  # type: ignore[attr-defined]
        case ast.Operator.IN:
            return f"({args[0]} in {args[1]})"
        case ast.Operator.NOT | ast.Operator.NEGATE:
            return f"({node.function[0]}({args[0]}))"
    infix = _INFIX.fullmatch(node.function)
    return f"({args[0]} {infix[1]} {args[1]})" if infix else f"{node.function}({', '.join(args)})"


def literal(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case UInt():
            return f"{int(value)}u"
        case str():
            return '"' + "".join(f"\\U{ord(each):08x}" for each in value) + '"'
        case bytes():
            return 'b"' + "".join(f"\\x{each:02x}" for each in value) + '"'
    return repr(value)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1 + 2 * 3 - 4", "((1 + (2 * 3)) - 4)"),
        ("a == b && c || d ? e : f ? g : h", "((((a == b) && c) || d) ? e : (f ? g : h))"),
        ("!!a || ---b", "(a || (-(b)))"),
        ("- 1 - -1", "(-1 - -1)"),
        ("--1", "1"),
        ("a.b[0].?c[?d].e(1)", "a.b[0].?c[?d].e(1)"),
        ("a in b == c in d", "(((a in b) == c) in d)"),
        ("[1, ?a,]", "[1, ?a]"),
        ("{?1: 2, 'a': b,}", '{?1: 2, "\\U00000061": b}'),
        ("a.b.C{x: 1, ?y: z}", "a.b.C{x: 1, ?y: z}"),
        (".a.b(c)", ".a.b(c)"),
        ("[].all(x, y)", "loop(x, @result, [], true, @not_strictly_false(@result), (@result && y), @result)"),
        ("has(a.b.c)", "has(a.b.c)"),
    ],
)
def test_text_becomes_a_tree(text: str, tree: str) -> None:
    assert render(read(text)) == tree


def test_long_chains_of_logic_become_shallow_trees() -> None:
    assert render(read(" && ".join("abcde"))) == "(((a && b) && c) && (d && e))"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x10", 16),
        ("-0x10", -16),
        ("18446744073709551615u", UInt(2**64 - 1)),
        ("1e3", 1000.0),
        (".5", 0.5),
        (r"'\u00fc\U0001F600\x41\101\n\`\?'", "ü😀AA\n`?"),
        (r"b'\xff\377ü'", b"\xff\xff\xc3\xbc"),
        (r"r'\n'", r"\n"),
        ('"""a\n"b"""', 'a\n"b'),
        ("R'''x'''", "x"),
    ],
)
def test_literals_are_read(text: str, value: Any) -> None:
    node = read(text)
    assert isinstance(node, ast.Literal)
    assert (type(node.value), node.value) == (type(value), value)


def test_nodes_know_where_they_start() -> None:
    tree = read("a.b +\n foo(c)")
    assert isinstance(tree, ast.Call)
    assert [tree.offset, *(arg.offset for arg in tree.args)] == [4, 1, 10]


@pytest.mark.parametrize(("opening", "closing"), [("(", ")"), ("[", "]")], ids=["()", "[]"])
def test_nesting_is_read_up_to_250_deep(opening: str, closing: str) -> None:
    read(opening * 249 + "1" + closing * 249)
    too_deep = "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"
    assert error_of(opening * 250 + "1" + closing * 250) == too_deep


def test_chains_are_read_up_to_250_long() -> None:
    read("1" + "+1" * 250)
    assert error_of("1" + "+1" * 251) == "ERROR: <input>:-1:0: max recursion depth exceeded"
    assert error_of("a" + "[0]" * 251) == "ERROR: <input>:-1:0: max recursion depth exceeded"


def test_a_text_has_a_largest_size() -> None:
    assert error_of("1" * (MAX_CODE_POINTS + 1)) == (
        "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
    )


def test_after_a_hundred_errors_there_are_no_more() -> None:
    lines = [line for line in error_of("@ " * 150).split("\n") if line.startswith("ERROR") or "truncated" in line]
    assert len(lines) == 101
    assert lines[-1] == "1 more errors were truncated"


def test_reading_invalid_text_ends_after_a_number_of_steps() -> None:
    assert error_of("-1[" * 240 + "0" + "+0" * 4000) == "ERROR: <input>:-1:0: Syntax error: expression is too complex"


names = st.sampled_from(["a", "b_1", "foo", "x.y"])
literals = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**64 - 1).map(UInt),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.binary(max_size=5),
).map(literal)


def _composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "in", "&&", "||"])
    return st.one_of(
        st.tuples(inner, operators, inner).map(lambda each: f"({each[0]} {each[1]} {each[2]})"),
        st.tuples(inner, inner, inner).map(lambda each: f"({each[0]} ? {each[1]} : {each[2]})"),
        inner.map(lambda each: f"!({each})"),
        inner.map(lambda each: f"-({each})"),
        st.lists(inner, max_size=3).map(lambda each: f"[{', '.join(each)}]"),
        st.tuples(inner, inner).map(lambda each: f"{{{each[0]}: {each[1]}}}"),
        st.tuples(inner, inner).map(lambda each: f"({each[0]})[{each[1]}]"),
        inner.map(lambda each: f"({each}).f"),
        inner.map(lambda each: f"({each}).?f"),
        st.tuples(inner, st.lists(inner, max_size=2)).map(lambda each: f"({each[0]}).g({', '.join(each[1])})"),
    )


@given(st.recursive(st.one_of(names, literals), _composed, max_leaves=12))
@settings(deadline=None)
def test_a_tree_written_out_is_read_as_the_same_tree(text: str) -> None:
    written = render(read(text))
    assert render(read(written)) == written


_PIECES = """
. , : ? ! - + * / % ( ) [ ] { } == < && || in true null 1 2.5 0x 3u ' " ''' b'x' r'y' a foo has map all if ` @ / //
x.y (1 [1 {1: a? b.c( -1 1. .. cel ü \ud7ff
"""
_pieces = st.sampled_from([*_PIECES.split(), "\\", "\n", "\t", " "])


@given(st.one_of(st.text(max_size=40), st.lists(_pieces, max_size=25).map("".join)))
@example("")
@example("'\ue000' 1")
@example("-1[-1[-1")
@settings(deadline=None)
def test_any_text_is_an_expression_or_has_errors(text: str) -> None:
    found = error_in(text)
    assert found is None or found.startswith("ERROR: <input>:")


def error_in(text: str) -> str | None:
    try:
        compile_expression(text, ENVIRONMENT)
    except CompileError as error:
        return str(error)
    return None
