"""Request headers as handlers see them."""

from __future__ import annotations

from steersman.net.message import Headers


def test_of_a_repeated_field_the_first_counts_and_all_are_kept() -> None:
    headers = Headers.from_pairs([("accept", "a"), ("x", "1"), ("accept", "b")])
    assert headers == {"accept": "a", "x": "1"}
    assert headers.joined("accept") == "a, b"
    assert headers.joined("none") == ""
    assert headers.get_all("accept") == ["a", "b"]
    assert headers.pairs == [("accept", "a"), ("x", "1"), ("accept", "b")]


def test_what_was_taken_off_is_not_passed_on() -> None:
    headers = Headers.from_pairs([("authorization", "Bearer secret"), ("x", "1"), ("authorization", "Bearer other")])
    del headers["authorization"]
    assert headers.pairs == [("x", "1")]
    assert headers.get_all("authorization") == []


def test_a_replaced_field_is_there_once() -> None:
    headers = Headers.from_pairs([("sec-websocket-protocol", "token"), ("x", "1"), ("sec-websocket-protocol", "v4")])
    headers.replace("sec-websocket-protocol", "v4")
    assert headers.pairs == [("x", "1"), ("sec-websocket-protocol", "v4")]
    assert headers["sec-websocket-protocol"] == "v4"
