"""JSONPath templates as k8s.io/client-go reads them."""

import pytest

from steersman.machinery.json_path.parser import (
    EXISTS,
    Action,
    Boolean,
    Field,
    Filter,
    Identifier,
    JSONPathError,
    Number,
    Recursive,
    Slice,
    Text,
    Union,
    Wildcard,
    parse,
)


@pytest.mark.parametrize(
    ("template", "nodes"),
    [
        ("", ()),
        ("plain", (Text("plain"),)),
        ("{.a.b}", (Action((Field("a"), Field("b"))),)),
        ("a{.b}c{.d}", (Text("a"), Action((Field("b"),)), Text("c"), Action((Field("d"),)))),
        ("{$.a}", (Action((Field("a"),)),)),
        ("{@.a}", (Action((Field("a"),)),)),
        ("{.a\\.b}", (Action((Field("a.b"),)),)),
        ("{.a['b']}", (Action((Field("a"), Field("b"))),)),
        ("{.a['b\\.c']}", (Action((Field("a"), Field("b.c"))),)),
        ("{.*}", (Action((Wildcard(),)),)),
        ("{..a}", (Action((Recursive(), Field("a"))),)),
        ("{..}", (Action((Recursive(),)),)),
        ("{.a[0]}", (Action((Field("a"), Slice(0, 1, None, single=True))),)),
        ("{.a[-1]}", (Action((Field("a"), Slice(-1, 0, None, single=True))),)),
        ("{.a[]}", (Action((Field("a"), Slice(None, 1, None, single=True))),)),
        ("{.a[*]}", (Action((Field("a"), Slice(None, None, None, single=False))),)),
        ("{.a[1:2:3]}", (Action((Field("a"), Slice(1, 2, 3, single=False))),)),
        ("{.a[::2]}", (Action((Field("a"), Slice(None, None, 2, single=False))),)),
        ("{1}", (Action((Number(1),)),)),
        ("{-1.5}", (Action((Number(-1.5),)),)),
        ("{true}", (Action((Boolean(True),)),)),
        ("{range .a}", (Action((Identifier("range"), Field("a"))),)),
        ('{"a\\"b"}', (Action((Text('a"b'),)),)),
        ("{'a\\x41\\u00e9\\101'}", (Action((Text("aAéA"),)),)),
        (
            "{.a[0,'b']}",
            (Action((Field("a"), Union((Action((Slice(0, 1, None, single=True),)), Action((Field("b"),)))))),),
        ),
        (
            "{[?(@.a==1)]}",
            (Action((Filter(Action((Field("a"),)), Action((Number(1),)), "=="),)),),
        ),
        ("{[?(@.a)]}", (Action((Filter(Action((Field("a"),)), Action(()), EXISTS),)),)),
        ("{[?(@.a==')]')]}", (Action((Filter(Action((Field("a"),)), Action((Text(")]"),)), "=="),)),)),
    ],
)
def test_a_template_is_read(template: str, nodes: object) -> None:
    assert parse(template) == nodes


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{.a", "unclosed action"),
        ("{.a\n}", "unclosed action"),
        ("{.a[}", "unterminated array"),
        ("{.a[x]}", "invalid array index x"),
        ("{.a[1:2:3:4]}", "invalid array index 1:2:3:4"),
        ("{.a[-]}", "array index - is not a number"),
        ("{.a[99999999999999999999]}", "array index 99999999999999999999 is not a number"),
        ("{.a[1,x]}", "invalid array index x"),
        ("{.a[?(@.b]}", "unterminated filter"),
        ("{.a[?(@.b)}", "unclosed array expect ]"),
        ("{.a]}", "unrecognized character in action: U+005D ']'"),
        ("{#}", "unrecognized character in action: U+0023 '#'"),
        ("{\x07}", "unrecognized character in action: U+0007"),
        ("{+}", "cannot parse number +"),
        ("{1.2.3}", "cannot parse number 1.2.3"),
        ("{....a}", "invalid multiple recursive descent"),
        ("{'a}", "unterminated quoted string"),
        ("{'a\\q'}", "unquote string 'a\\q' error invalid syntax"),
        ("{'a\\400'}", "unquote string 'a\\400' error invalid syntax"),
        ("{'a\\ud800'}", "unquote string 'a\\ud800' error invalid syntax"),
    ],
)
def test_what_cannot_be_read_is_told_in_the_same_words(template: str, message: str) -> None:
    with pytest.raises(JSONPathError) as caught:
        parse(template)
    assert str(caught.value) == message


def test_a_long_template_is_read_in_one_pass() -> None:
    (action,) = parse("{" + ".a" * 100_000 + "}")
    assert isinstance(action, Action)
    assert len(action.nodes) == 100_000
