"""Queries: parsed as in Go, at low cost for any length."""

from __future__ import annotations

from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.endpoints import query as module
from steersman.endpoints.query import first_parameter, first_parameters, parse_query, truthy
from steersman.endpoints.request import Request
from steersman.machinery.go.urls import unescape
from steersman.net.body import EMPTY_BODY
from steersman.net.message import Headers, Peer
from steersman.net.message import Request as HttpRequest
from tests.counted_work import calls
from tests.noted import noted


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", []),
        ("a=1&b=2&a=3", [("a", "1"), ("b", "2"), ("a", "3")]),
        ("a", [("a", "")]),
        ("a=&=b&&", [("a", ""), ("", "b")]),
        ("a=b=c", [("a", "b=c")]),
        ("a+b=c+d", [("a b", "c d")]),
        ("%61=%2B%26", [("a", "+&")]),
        ("a=%zz&b=1", [("b", "1")]),
        ("a=%2&b=1", [("b", "1")]),
        ("a=1;b=2&c=3", [("c", "3")]),
        ("a=%e2%82%ac", [("a", "€")]),
    ],
)
def test_queries_are_read_as_go_reads_them(text: str, pairs: list[tuple[str, str]]) -> None:
    query = parse_query(text)
    assert query.pairs == pairs
    assert query == dict(reversed(pairs))
    assert query.get_all("a") == [value for key, value in pairs if key == "a"]


@pytest.mark.parametrize(
    ("text", "value"),
    [(None, False), ("", True), ("false", False), ("FALSE", False), ("0", False), ("true", True), ("no", True)],
)
def test_how_a_boolean_reads(text: str | None, value: bool) -> None:
    assert truthy(text) is value


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_escaped_is_unescaped_again_however_long(text: str) -> None:
    long = text * 100
    assert unescape(quote(long, safe="")) == long
    assert unescape("".join(f"%{byte:02x}" for byte in long.encode())) == long
    assert parse_query(f"a={quote_plus(long)}").get("a", "") == long


def test_an_escape_that_is_none_stays() -> None:
    assert unescape("%zz" + "%41" * 100 + "%") == "%zz" + "A" * 100 + "%"
    assert unescape("=41%3d" + "%41" * 100) == "=41=" + "A" * 100
    assert unescape("%ff%fe" * 100) == "\ufffd" * 200


_ODD = st.sampled_from(["a", "b", "watch", "%77atch", "w%61tc%68", "%zz", "=", "==", "&", ";", "+", "1", "%3D", "%26"])


@given(st.lists(_ODD).map("".join), st.sampled_from(["watch", "a", "b"]))
def test_one_parameter_reads_as_it_does_among_all(text: str, name: str) -> None:
    assert first_parameter(text, name) == parse_query(text).get(name)


@given(st.lists(_ODD, min_size=70).map("".join), st.sampled_from(["watch", "a", "b"]))
def test_a_query_of_many_escapes_reads_as_one_of_few(text: str, name: str) -> None:
    many = f"{text}&{'%41' * 100}=1"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "FEW_ESCAPES", len(many))
        slowly = parse_query(many)
    assert (parse_query(many), parse_query(many).pairs) == (slowly, slowly.pairs)
    assert first_parameter(many, name) == slowly.get(name)


def test_what_stands_for_separators_meanwhile_is_read_as_any_text() -> None:
    text = f"{'%41' * 100}==%3D%26&b=%0a%25+"
    assert parse_query(text).pairs == [("A" * 100, "==&"), ("b", "\n% ")]


@pytest.mark.parametrize("name", ["%41" * 16, "w%61%74%63%69", "%77%61%74%63%69"])
def test_work_on_a_query_does_not_grow_with_its_escapes(name: str) -> None:
    """A megabyte of escapes costs some calls per parameter, whatever the parameter's name."""
    text = "&".join([f"{name}={'%41' * 16}"] * 9_999)
    assert calls(lambda: parse_query(text)) < 8 * 9_999
    assert calls(lambda: first_parameter(text, "watch")) < 10 * 9_999


def test_a_query_of_too_many_parameters_has_none() -> None:
    most = "a=1" + "&" * 9_999
    assert parse_query(most) == {"a": "1"}
    assert first_parameter(most, "a") == "1"
    assert parse_query(most + "&") == {}
    assert first_parameter(most + "&", "a") is None


def test_of_a_long_query_only_what_is_asked_for_is_unescaped(monkeypatch: pytest.MonkeyPatch) -> None:
    unescaped: list[str] = []
    monkeypatch.setattr(module, "unescape_parameter", noted(unescape, unescaped.append))
    text = "&".join([f"x{number}=" + "%41" * 30 for number in range(9_000)] + ["%77atch=1", "t=%41"])
    assert first_parameter(text, "watch") == "1"
    assert unescaped == ["%77atch", "1"]


def test_some_parameters_of_a_long_query_are_read_without_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steersman.endpoints.request.parse_query", lambda text: pytest.fail("the whole query is read"))
    long = "labelSelector=" + "a," * 1_000 + "&limit=5&limit=6&continue=%41"
    request = Request(HttpRequest("GET", "/x", long, Headers(), EMPTY_BODY, Peer()))
    found = request.parameters(("limit", "continue", "resourceVersion"))
    assert (dict(found), found.pairs) == ({"limit": "5", "continue": "A"}, [("limit", "5"), ("continue", "A")])


@given(st.lists(st.sampled_from(["a=1", "%61=2", "b=%41", "c=%zz", "%62=3", "d=;", "a"]), max_size=200))
def test_some_parameters_of_a_query_are_those_of_the_whole(parts: list[str]) -> None:
    text = "&".join(parts)
    whole, some = parse_query(text), first_parameters(text, ("a", "b"))
    assert (some.get("a"), some.get("b")) == (whole.get("a"), whole.get("b"))


def test_nothing_is_made_of_a_long_value_that_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "parse_query", lambda text: pytest.fail("the whole query is read"))
    unescaped: list[str] = []
    monkeypatch.setattr(module, "unescape_parameter", noted(unescape, unescaped.append))
    text = f"a={'%41' * 10_000}&l{'%41' * 10_000}=1&%6cimit=%35&watch"
    assert dict(first_parameters(text, ("limit", "watch", "b"))) == {"limit": "5", "watch": ""}
    assert max(map(len, unescaped)) < 10


@given(st.lists(st.sampled_from(["a=1", "%61=2", "b=%41", "c=%zz", "%62=3", "d=;", "a", "=a", ""]), max_size=70))
def test_a_parameter_of_a_long_query_is_that_of_the_whole(parts: list[str]) -> None:
    text = "&".join([*parts, "x=" + "y" * 5_000])
    whole = parse_query(text)
    for name in ("a", "b", "x"):
        assert first_parameter(text, name) == whole.get(name)


def test_a_query_of_many_escapes_is_read_once_for_all_names(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(module, "parse_query", noted(parse_query, read.append))
    text = "&".join(["%62=1"] * 1000)
    assert first_parameters(text, ("a", "b", "c", "d")).get("b") == "1"
    assert read == [text]
