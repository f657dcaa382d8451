"""YAML as go-yaml v2 reads and writes it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.codec.yaml import MAX_BYTES_FROM_ALIASES, YAMLError, from_json, json_as_yaml, load, to_json
from steersman.machinery.errors.status import StatusError
from steersman.machinery.large_work.nesting import MAX_DEPTH


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yes", True),
        ("On", True),
        ("n", False),
        ("~", None),
        ("", None),
        ("NULL", None),
        ("0777", 511),
        ("0o17", 15),
        ("0x1F", 31),
        ("-0b11", -3),
        ("1_000", 1000),
        ("08", 8),
        ("1e3", 1000),
        ("1.50", 1.5),
        ("10:20", "10:20"),
        ("2024-01-01", "2024-01-01"),
        ("18446744073709551615", 18446744073709551615),
        ("'5'", "5"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("=", "="),
        ("1.2.3", "1.2.3"),
        ("_1", "_1"),
        ("+1", 1),
        ("!custom 5", "5"),
    ],
)
def test_scalars_stand_for_what_go_yaml_takes_them_for(text: str, expected: Any) -> None:
    value, _ = load(f"a: {text}\n".encode())
    assert json.loads(to_json(value)) == {"a": expected}


def test_a_slash_after_a_backslash_is_no_escape_elsewhere() -> None:
    assert load(rb"""{a: "\\/", b: '\/', c: \/}""")[0] == {"a": "\\/", "b": "\\/", "c": "\\/"}


def test_keys_become_text() -> None:
    assert load(b"1: a\ntrue: b\n1.5: c\n")[0] == {"1": "a", "true": "b", "1.5": "c"}


def test_aliases_and_merges_are_followed() -> None:
    value, repeated = load(b"a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2\n")
    assert value == {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}}
    assert repeated == ""


def test_only_the_first_document_is_read() -> None:
    assert load(b"---\na: 1\n---\nb: 2\n")[0] == {"a": 1}
    assert load(b"# nothing\n")[0] is None


def test_repeated_keys_are_told_with_their_lines() -> None:
    value, repeated = load(b"a: 1\na: 2\nb:\n  c: 1\n  c: 2\n")
    assert value == {"a": 2, "b": {"c": 2}}
    assert repeated == (
        'yaml: unmarshal errors:\n  line 2: key "a" already set in map\n  line 5: key "c" already set in map'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a: b: c\n", "yaml: mapping values are not allowed in this context"),
        (b"a: 1\nb: c: d\n", "yaml: line 2: mapping values are not allowed in this context"),
        (b"\ta: 1\n", "yaml: found character that cannot start any token"),
        (b"a: *nope\n", "yaml: unknown anchor 'nope' referenced"),
        (rb'a: "x\/"', "yaml: found unknown escape character"),
        (b'a: 1\nb: "x\n  \\\\\\/"', "yaml: line 3: found unknown escape character"),
        (b"? [a, {b: 1}]\n: c\n", 'yaml: invalid map key: []interface {}{"a", map[interface {}]interface {}{"b":1}}'),
        (b"a: &x [*x]\n", "yaml: anchor 'x' value contains itself"),
        (b"<<: x\n", "yaml: map merge requires map or sequence of maps as the value"),
        (b"a: \xff\n", "yaml: invalid leading UTF-8 octet"),
        (b"a: \x01\n", "yaml: control characters are not allowed"),
    ],
)
def test_what_is_not_yaml_is_refused_in_go_yamls_words(text: bytes, message: str) -> None:
    with pytest.raises(YAMLError) as caught:
        load(text)
    assert str(caught.value) == message


def test_numbers_json_does_not_have_are_refused() -> None:
    with pytest.raises(YAMLError, match="unsupported value: NaN"):
        to_json(load(b"a: .nan")[0])


def test_a_document_that_grows_by_its_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    with pytest.raises(YAMLError, match="excessive aliasing"):
        load("\n".join(lines).encode())


def test_nesting_without_end_is_an_error_and_no_crash() -> None:
    with pytest.raises(YAMLError):
        load(b"[" * 50_000)


@pytest.mark.parametrize("text", ["waiting...", "...", "a\n...\n", "a\n\n", "\n...\n", "x " * 50 + "..."])
def test_dots_at_the_end_of_a_text_are_not_the_end_of_the_document(text: str) -> None:
    written = from_json(json.dumps({"message": text}).encode())
    assert not written.endswith(b"\n...\n")
    assert load(written) == ({"message": text}, "")


def test_objects_are_written_with_sorted_keys_and_quotes_where_needed() -> None:
    data = {
        "kind": "ConfigMap",
        "data": {
            "a10": "1",
            "a2": "yes",
            "b.c": "x",
            "multi": "a\nb\n",
            "time": "2024-01-01T00:00:00Z",
            "colon": "a: b",
        },
        "empty": {},
        "list": [{"b": 1, "a": None}, [], "é"],
        "base60": "1:20",
        "float": 1234567.5,
    }
    assert from_json(json.dumps(data, ensure_ascii=False).encode()).decode() == (
        'base60: "1:20"\n'
        "data:\n"
        '  a2: "yes"\n'
        '  a10: "1"\n'
        "  b.c: x\n"
        "  colon: 'a: b'\n"
        "  multi: |\n"
        "    a\n"
        "    b\n"
        '  time: "2024-01-01T00:00:00Z"\n'
        "empty: {}\n"
        "float: 1.2345675e+06\n"
        "kind: ConfigMap\n"
        "list:\n"
        "- a: null\n"
        "  b: 1\n"
        "- []\n"
        "- é\n"
    )


@given(st.text())
def test_json_for_yaml_is_read_back_with_any_characters(text: str) -> None:
    assert load(json_as_yaml({"text": text}))[0] == {"text": text}


TEXT = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x2FFF, exclude_characters="\x7f\x85\u2028\u2029"))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | TEXT
    | st.sampled_from(["no", "0x1", "1e3", "a\n", "~"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


@given(JSON.filter(lambda value: isinstance(value, dict | list)))
def test_what_is_written_is_read_back(value: Any) -> None:
    def printable(text: str) -> bool:
        return all(not 0x7F <= ord(char) < 0xA0 for char in text)

    text = json.dumps(value, ensure_ascii=False)
    if printable(text):
        assert load(from_json(text.encode()))[0] == value


def test_levels_behind_aliases_count() -> None:
    half = MAX_DEPTH // 2
    deep = f"a: &a {'[' * half}{']' * half}\n"
    assert load(f"{deep}b: {'[' * (half - 1)}*a{']' * (half - 1)}".encode())
    with pytest.raises(YAMLError, match="exceeded max depth"):
        load(f"{deep}b: {'[' * half}*a{']' * half}".encode())


@pytest.mark.parametrize(("width", "is_allowed"), [(6, True), (8, False)])
def test_the_share_of_aliased_nodes_is_bounded_as_by_go_yaml(width: int, is_allowed: bool) -> None:
    lines = [f"a0: &a0 [{', '.join(['x'] * width)}]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]" for level in (1, 2, 3)]
    text = "\n".join(lines).encode()
    if is_allowed:
        assert load(text)
    else:
        with pytest.raises(YAMLError, match="excessive aliasing"):
            load(text)


@pytest.mark.parametrize(("char", "size"), [("x", 1), ("\u00e9", 2), ("\u6f22", 3), ("\\x01", 6)])
def test_texts_behind_aliases_are_bounded_by_their_bytes_in_json(char: str, size: int) -> None:
    text = f'a: &a "{char * (3_000 // size)}"\n'
    count = MAX_BYTES_FROM_ALIASES // 3_002
    aliases = [f"b{number}: *a\n" for number in range(count + 2)]
    assert load((text + "".join(aliases[:count])).encode())
    with pytest.raises(YAMLError, match="excessive aliasing"):
        load((text + "".join(aliases)).encode())


def test_objects_behind_aliases_count_as_those_of_a_body() -> None:
    items = ", ".join(["{}"] * 600)
    rows = "".join(f"b{number}: *a\n" for number in range(60))
    with pytest.raises(StatusError, match="limit is 32768 objects and lists"):
        load(f"a: &a [{items}]\n{rows}".encode())
