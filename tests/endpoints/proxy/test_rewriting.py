"""Rewriting of links in proxied pages and redirects, as upstream does it."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.endpoints.proxy import rewriting
from steersman.endpoints.proxy.location import encoded_query, escaped_path, join_preserving_trailing_slash
from steersman.endpoints.proxy.rewriting import Rewriter
from steersman.machinery.errors.status import StatusError
from steersman.net.ascii import lower
from tests.noted import noted

REWRITER = Rewriter("/api/v1/nodes/n/proxy", "10.0.0.1:80", "api.example.org")


def pieces_of(page: str) -> rewriting.Pieces:
    """Return a page with its links rewritten."""
    pieces = rewriting.Pieces()
    for _ in REWRITER.tags(page, pieces):
        pass
    return pieces


def page_of(text: str) -> str:
    return "".join(pieces_of(text).joined())


@pytest.mark.parametrize(
    ("url", "rewritten"),
    [
        ("/a", "/api/v1/nodes/n/proxy/a"),
        ("/a/", "/api/v1/nodes/n/proxy/a/"),
        ("/a?b=c#d", "/api/v1/nodes/n/proxy/a?b=c#d"),
        ("http://10.0.0.1:80/a", "/api/v1/nodes/n/proxy/a"),
        ("https://api.example.org/a", "https://api.example.org/api/v1/nodes/n/proxy/a"),
        ("/api/v1/nodes/n/proxy/a", "/api/v1/nodes/n/proxy/a"),
        ("/ä?ä", "/api/v1/nodes/n/proxy/%C3%A4?ä"),
        ("/\udcff%ff", "/api/v1/nodes/n/proxy/%FF%FF"),
        ("/a%2Fb", "/api/v1/nodes/n/proxy/a/b"),
        ("a", "a"),
        ("../a", "../a"),
        ("http://elsewhere/a", "http://elsewhere/a"),
        ("mailto:a@b", "mailto:a@b"),
        ("http://[broken/", "http://[broken/"),
    ],
)
def test_urls_of_the_backend_lead_through_the_server(url: str, rewritten: str) -> None:
    assert REWRITER.url(url) == rewritten


@pytest.mark.parametrize(
    ("page", "rewritten"),
    [
        ('<a href="/x">y</a>', '<a href="/api/v1/nodes/n/proxy/x">y</a>'),
        ("<A HREF=/x>", '<a href="/api/v1/nodes/n/proxy/x">'),
        ("<img src='/x?a=1&amp;b=2'/>", '<img src="/api/v1/nodes/n/proxy/x?a=1&amp;b=2"/>'),
        ('<p title="/x">', '<p title="/x">'),
        ('<!-- <a href="/x"> -->', '<!-- <a href="/x"> -->'),
        ('<script>"<a href=/x>"</script>', '<script>"<a href=/x>"</script>'),
        ("<textarea><a href=/x></textarea>", "<textarea><a href=/x></textarea>"),
        ("<!DOCTYPE html>1 < 2 &amp; 3", "<!DOCTYPE html>1 < 2 &amp; 3"),
        ("<a href", "<a href"),
        ("<a href='/x>", "<a href='/x>"),
        ('<a "=/x href=/x>', '<a "="/x" href="/api/v1/nodes/n/proxy/x">'),
        ("<a\u00a0href=/x>", '<a\u00a0href= x="">'),
        ("<script></\u017fcript><a href=/x>", "<script></\u017fcript><a href=/x>"),
        ("<LIN\u212a href=/x>", '<lin\u212a href="/x">'),
        ("<p title='&#65;&#x42;&#67&amp;lt;&#38;lt;'>", '<p title="ABC&amp;lt;&amp;lt;">'),
        ("<p title='&#0;&#xD800;&#x110000;&#128;&#129;&#4294967361;'>", '<p title="\ufffd\ufffd\ufffd\u20ac\x81A">'),
        (f"<p title='&#{'1' * 5000};&#x{'f' * 5000};&#{'9' * 5000}'>", '<p title="\ufffd\ufffd\ufffd">'),
        ("<input disabled formaction=/x>", '<input disabled="" formaction="/api/v1/nodes/n/proxy/x">'),
    ],
)
def test_links_of_a_page(page: str, rewritten: str) -> None:
    assert page_of(page) == rewritten


def test_all_members_of_a_compressed_page_are_read() -> None:
    assert rewriting.page_text(gzip.compress(b"a") + gzip.compress(b"b"), "gzip") == "ab"


@pytest.mark.parametrize("url", ["http://[::1", "http://a b/", "http://h:x/a", "/%zz"])
def test_a_redirect_to_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(StatusError, match="error trying to parse Location header: parse ") as refused:
        REWRITER.with_redirect([("location", url)])
    assert refused.value.code == 500


@given(st.text(alphabet="<>/!-= \"'aA\n&;", max_size=200))
def test_every_page_comes_out(page: str) -> None:
    assert isinstance(page_of(page), str)


@given(st.text(alphabet="ab c/&;", max_size=100))
def test_text_stays_as_it_is(text: str) -> None:
    assert page_of(text) == text


def test_paths_and_queries_are_written_as_go_does() -> None:
    assert escaped_path("/a b/ä:@?") == "/a%20b/%C3%A4:@%3F"
    assert encoded_query([("b", "1 2"), ("a", "x&y"), ("b", "0")]) == "a=x%26y&b=1+2&b=0"
    assert join_preserving_trailing_slash("", "/a//b/../c/") == "/a/c/"
    assert join_preserving_trailing_slash("", "/a/../../b") == "/b"
    assert join_preserving_trailing_slash("", "") == ""


@pytest.mark.parametrize(
    "filling", ["<", "&", "a", "<!-", "&amp;", "&#38", "< ", " ", "/", "a ", 'b="" ', "K", "=", "-"]
)
@pytest.mark.parametrize(
    "around",
    [
        "{}<a href='/x'>",
        "<a title='{}'>",
        "<script>{}</script ><a href='/x'>",
        "<a {}href='/x'>",
        "<a{}><a href='/x'>",
        "<a title={}/ href='/x'>",
        "<a href='/x'{}",
        "<!--{}--><a href='/x'>",
    ],
)
def test_large_pages_are_the_same_though_they_are_looked_at_a_window_at_a_time(
    around: str, filling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for more in range(min(len(filling), 3)):  # so that windows end at each character of the filling
        page = around.format("x" * more + filling * (80_000 // len(filling)))
        expected = page_of(page)
        monkeypatch.setattr(rewriting, "WINDOW", 1 << 30)
        monkeypatch.setattr(rewriting, "SHORT", 1 << 30)
        assert page_of(page) == expected
        monkeypatch.undo()


def test_no_call_of_the_standard_library_gets_more_than_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    original = rewriting.REFERENCE

    class Noted:
        def sub(self, meant: Any, text: str) -> str:
            sizes.append(len(text))
            return original.sub(meant, text)

    monkeypatch.setattr(rewriting, "REFERENCE", Noted())
    page_of('<a title="' + "&" * 1_000_000 + '">')
    assert len(sizes) > 30
    assert max(sizes) <= rewriting.WINDOW


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        "<a {}>".format("a " * 100_000),
        "<a {}>".format(" " * 200_000),
        "<{}>".format("A" * 200_000),
        "<a>" * 70_000,
        "<a {}='{}'>".format("A" * 200_000, "x" * 200_000),
        "<a b={}>".format("x" * 200_000),
        "\u00e4" * 200_000,
    ],
)
def test_pages_are_rewritten_a_part_at_a_time(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(rewriting, "lower", noted(lower, lambda text: asked.append(len(text))))

    class Noting:
        """A pattern that records the size of the input of each call."""

        def __init__(self, pattern: re.Pattern[str]) -> None:
            self._pattern = pattern

        def __getattr__(self, name: str) -> Callable[[str, int, int], re.Match[str] | None]:
            def call(text: str, at: int, end: int) -> re.Match[str] | None:
                asked.append(min(len(text), end) - at)
                match: re.Match[str] | None = getattr(self._pattern, name)(text, at, end)
                return match

            return call

        def sub(self, meant: Callable[[re.Match[str]], str], text: str) -> str:
            asked.append(len(text))
            return self._pattern.sub(meant, text)

    for name, value in vars(rewriting).copy().items():
        if hasattr(value, "fullmatch") and value is not re:
            monkeypatch.setattr(rewriting, name, Noting(value))
    rewriting.page_body(pieces_of(rewriting.page_text(page.encode(), "")), "")
    assert max(asked) <= rewriting.WINDOW + 8
    assert max(map(len, pieces_of("<a {}>".format("a " * 100_000)).joined())) < 100_000


def test_a_page_of_many_tags_is_worked_on_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "STEP", 0.0)
    page = "<a href='/x'>" * 100
    pieces = rewriting.Pieces()
    tags = REWRITER.tags(page, pieces)
    steps = 0
    while rewriting.goes_on(tags):
        steps += 1
    assert steps > 50
    assert "".join(pieces.joined()) == page_of(page)
