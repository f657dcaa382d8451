"""Broken, endless and oversized HTTP/1.1: a clear answer or a closed connection, and others served meanwhile."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from steersman.testing import ServerProcess
from tests.e2e.bad_clients.bad_client import PATIENCE, BadClient, memory_grows_at_most, others_are_served

HOST = b"Host: localhost\r\n"
CONFIGMAPS = b"/api/v1/namespaces/default/configmaps"
POST = b"POST " + CONFIGMAPS + b" HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"

MALFORMED = {
    "no http at all": b"\x16\x03\x01\x00\xa5 hello there\r\n\r\n",
    "one word": b"GET\r\n\r\n",
    "unknown version": b"GET / HTTP/9.9\r\n" + HOST + b"\r\n",
    "a space in the path": b"GET /a b c HTTP/1.1\r\n" + HOST + b"\r\n",
    "a control character in the path": b"GET /\x00 HTTP/1.1\r\n" + HOST + b"\r\n",
    "a NUL in a value": b"GET /livez HTTP/1.1\r\n" + HOST + b"A: b\x00c\r\n\r\n",
    "a space in a name": b"GET /livez HTTP/1.1\r\n" + HOST + b"A b: c\r\n\r\n",
    "no name": b"GET /livez HTTP/1.1\r\n" + HOST + b": c\r\n\r\n",
    "no colon": b"GET /livez HTTP/1.1\r\n" + HOST + b"abc\r\n\r\n",
    "no host": b"GET /livez HTTP/1.1\r\n\r\n",
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a negative length": POST + b"Content-Length: -2\r\n\r\n{}",
    "a length that is no number": POST + b"Content-Length: two\r\n\r\n{}",
    "an enormous length": POST + b"Content-Length: 99999999999999999999999\r\n\r\n{}",
    "an unknown transfer coding": POST + b"Transfer-Encoding: gzip\r\n\r\n{}",
    "a chunk size that is no number": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "an enormous chunk": POST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}",
}


def test_malformed_requests_are_refused_and_their_connections_closed(
    server: ServerProcess, connect: Callable[..., BadClient]
) -> None:
    clients = {kind: connect() for kind in MALFORMED}
    with others_are_served(server):
        for kind, client in clients.items():
            client.send(MALFORMED[kind])
        answers = {kind: client.rest() for kind, client in clients.items()}  # each lingers for a second
    refused = (b"HTTP/1.1 4", b"HTTP/1.1 5")
    assert {kind: answer for kind, answer in answers.items() if answer and not answer.startswith(refused)} == {}
    assert not [kind for kind, answer in answers.items() if b"Traceback" in answer]


def test_a_head_of_ten_mebibytes_is_not_read_to_its_end(
    server: ServerProcess, connect: Callable[..., BadClient]
) -> None:
    with others_are_served(server), memory_grows_at_most(server, 30):
        clients = [connect(admin=False) for _ in range(2)]
        fields = (b"A: " + b"a" * (10 << 20) + b"\r\n", b"A: aaaaaaaa\r\n" * (10 << 17))
        for client, field in zip(clients, fields, strict=True):
            client.send(b"GET /livez HTTP/1.1\r\n" + HOST)
            client.send(field + b"\r\n")
        for client in clients:  # each lingers for a second
            answer = client.rest()
            assert answer == b"" or answer.startswith(b"HTTP/1.1 431 "), answer[:200]


@pytest.mark.slow
def test_a_head_that_never_ends_is_cut_off(server: ServerProcess, connect: Callable[..., BadClient]) -> None:
    client = connect(admin=False)
    client.send(b"GET /livez HTTP/1.1\r\n" + HOST)
    with others_are_served(server), memory_grows_at_most(server, 30):
        client.send_until_closed(lambda number: b"A: " + b"b" * 1000 + b"\r\n")


def test_a_path_of_a_mebibyte_is_refused(server: ServerProcess, connect: Callable[..., BadClient]) -> None:
    client = connect()
    client.send(b"GET /" + b"a" * (2 << 20) + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    answer = client.rest()
    assert answer == b"" or answer.split(b" ")[1] in (b"414", b"431"), answer[:200]


def test_a_body_of_four_mebibytes_is_413(server: ServerProcess) -> None:
    body = {"metadata": {"name": "big"}, "data": {"a": "a" * (4 << 20)}}
    with others_are_served(server), memory_grows_at_most(server, 60), server.client() as client:
        status, answer = client.request("POST", CONFIGMAPS.decode(), body)
    assert status == 413
    document = json.loads(answer)
    assert (document["kind"], document["reason"]) == ("Status", "RequestEntityTooLarge")


@pytest.mark.slow
def test_a_body_that_never_ends_is_cut_off(server: ServerProcess, connect: Callable[..., BadClient]) -> None:
    client = connect()
    with others_are_served(server), memory_grows_at_most(server, 60):
        client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n")
        piece = b"10000\r\n" + b'"' * 0x10000 + b"\r\n"
        client.send_until_closed(lambda number: piece)
        answer = client.rest()
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413 "), answer[:200]


def test_a_body_that_stops_coming_ends_with_the_requests_time(
    make_server: Callable[..., ServerProcess], connect: Callable[..., BadClient]
) -> None:
    server = make_server("--request-timeout=1s")
    server.start()
    client = connect(server)
    with others_are_served(server):
        client.send(POST + b"Content-Length: 1000\r\n\r\n{")
        began = time.monotonic()
        answer = client.receive()
    assert 0.9 < time.monotonic() - began < PATIENCE / 2
    assert answer.startswith(b"HTTP/1.1 504 "), answer[:200]


@pytest.mark.slow
def test_a_body_that_comes_a_byte_at_a_time_ends_with_the_requests_time(
    make_server: Callable[..., ServerProcess], connect: Callable[..., BadClient]
) -> None:
    server = make_server("--request-timeout=1s")
    server.start()
    client = connect(server)
    client.send(POST + b"Content-Length: 100000\r\n\r\n{")
    began = time.monotonic()
    while time.monotonic() - began < 2.0:
        assert client.send(b" ")
        time.sleep(0.05)
    assert client.receive().startswith(b"HTTP/1.1 504 ")


def test_a_client_that_goes_away_in_the_middle_leaves_nothing_behind(
    server: ServerProcess, connect: Callable[..., BadClient]
) -> None:
    for _ in range(50):
        client = connect()
        client.send(POST + b"Content-Length: 1000\r\n\r\n{")
        client.close()
    with others_are_served(server), server.client() as asking:
        assert asking.request("GET", "/readyz") == (200, b"ok")


def test_pipelined_requests_are_answered_in_order_and_no_others_wait(
    server: ServerProcess, connect: Callable[..., BadClient]
) -> None:
    client = connect(admin=False)
    count = 2000
    with others_are_served(server):
        client.send((b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n") * (count - 1))
        client.send(b"GET /livez HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
        assert client.rest().count(b"HTTP/1.1 200 ") == count
