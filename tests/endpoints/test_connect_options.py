"""Options of connect requests: parsing of queries, and encoding."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core.v1 import PodExecOptions, PodPortForwardOptions, PodProxyOptions
from steersman.endpoints.connect_options import ask_for, read_options
from steersman.endpoints.request import Request
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.status import StatusError
from steersman.net.body import EMPTY_BODY
from steersman.net.message import Headers, Peer
from steersman.net.message import Request as HttpRequest
from steersman.rest.resource import Subresource


def request(query: str, subpath: str = "") -> Request:
    found = Request(HttpRequest("GET", "/x", query, Headers(), EMPTY_BODY, Peer()))
    found.subpath = subpath
    return found


def read(kind: Any, query: str, subpath: str = "", *, with_path: bool = False) -> Any:
    below: Subresource[Any] = Subresource(name="x", kind=built_in(kind), connect_path=with_path)
    return read_options(below, built_in(kind), request(query, subpath))


def test_flags_are_true_unless_they_say_otherwise() -> None:
    found = read(PodExecOptions, "stdin=&stdout=1&stderr=false&tty=0&container=c&command=a&command=b&kind=X")
    assert found == PodExecOptions(stdin=True, stdout=True, container="c", command=["a", "b"])


def test_the_path_is_what_follows_the_subresource() -> None:
    assert read(PodProxyOptions, "path=/other", "a/b", with_path=True) == PodProxyOptions(path="/a/b")
    assert read(PodProxyOptions, "", with_path=True) == PodProxyOptions()


def test_ports() -> None:
    assert read(PodPortForwardOptions, "ports=80,443&ports=8080").ports == [80, 443, 8080]


@pytest.mark.parametrize(
    ("text", "why"), [("x", "invalid syntax"), ("-1", "invalid syntax"), ("65536", "value out of range")]
)
def test_ports_that_are_none(text: str, why: str) -> None:
    with pytest.raises(StatusError) as caught:
        read(PodPortForwardOptions, f"ports={text}")
    said = f'cannot convert to []int32: strconv.ParseUint: parsing "{text}": {why}'
    assert (caught.value.code, caught.value.message) == (400, said)


def test_other_options_are_asked_for_beside_what_is_no_option() -> None:
    asked = request("command=rm&command=%2D%2Dall&stdout=true&timeout=5s")
    ask_for(PodExecOptions(stdin=True, command=["ls", "a b"]), asked)
    assert asked.query.pairs == [("stdin", "true"), ("command", "ls"), ("command", "a b"), ("timeout", "5s")]


def test_where_a_request_goes_cannot_be_changed() -> None:
    with pytest.raises(StatusError, match=r"the path of a connection cannot be changed"):
        ask_for(PodProxyOptions(path="/b"), request("", "a"))
