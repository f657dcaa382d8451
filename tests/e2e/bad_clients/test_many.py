"""Clients that are many, or slow: thousands of idle connections, watchers and readers that never read, slow loris."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from steersman.testing import ServerProcess
from tests.e2e.bad_clients.bad_client import BadClient, eventually, memory_grows_at_most, others_are_served

pytestmark = pytest.mark.slow

HOST = b"Host: localhost\r\n"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
IDLE = 2000
_NUMBERS = count()


@pytest.fixture
def many_files() -> Iterator[Any]:
    """Raise the limit of open files as far as the machine allows, also for the server, which is a child process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * IDLE:
        pytest.skip(f"no more than {hard} open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def fill(client: Any, name: str, size: int, *, replace: bool = False) -> None:
    """Create or replace a ConfigMap of `size` bytes, each time with other content."""
    body = {"metadata": {"name": name}, "data": {"a": "x" * size, "number": str(next(_NUMBERS))}}
    method, path = ("PUT", f"{CONFIGMAPS}/{name}") if replace else ("POST", CONFIGMAPS)
    status, answer = client.request(method, path, body)
    assert status in (200, 201), answer


def test_two_thousand_idle_connections(make_server: Callable[..., ServerProcess], many_files: Any) -> None:
    server = make_server("--storage=memory")
    server.start()
    context = server.context(admin=False)
    idle = []
    try:
        with memory_grows_at_most(server, 400):
            with others_are_served(server):
                for _ in range(IDLE):
                    raw = socket.create_connection(server.address, timeout=10)
                    idle.append(context.wrap_socket(raw, server_hostname=server.address[0]))
            with server.client() as client:
                _, metrics = client.request("GET", "/metrics")
            assert f'steersman_open_connections{{protocol="http/1.1"}} {IDLE + 1}\n' in metrics.decode()
    finally:
        for each in idle:
            each.close()


def test_watchers_that_never_read_are_ended_and_cost_little(
    make_server: Callable[..., ServerProcess], connect: Callable[..., BadClient]
) -> None:
    server = make_server("--storage=memory")
    server.start()
    watchers = [connect(server) for _ in range(5)]
    with server.client() as client:
        own = watching(client)
        for watcher in watchers:
            watcher.send(f"GET {CONFIGMAPS}?watch=1 HTTP/1.1\r\n".encode() + HOST + b"\r\n")
        fill(client, "a", 1)
        eventually(lambda: watching(client) == own + 5)
        with others_are_served(server), memory_grows_at_most(server, 150):
            for _ in range(400):  # 40 MB
                fill(client, "a", 100_000, replace=True)
            eventually(lambda: watching(client) == own)


def test_a_watcher_that_never_reads_what_there_is_costs_little_either(
    make_server: Callable[..., ServerProcess], connect: Callable[..., BadClient]
) -> None:
    server = make_server("--storage=memory")
    server.start()
    with server.client() as client:
        for number in range(100):
            fill(client, f"m{number}", 100_000)
        own = watching(client)
        watcher = connect(server)
        watcher.send(f"GET {CONFIGMAPS}?watch=1 HTTP/1.1\r\n".encode() + HOST + b"\r\n")
        eventually(lambda: watching(client) == own + 1)
        with others_are_served(server), memory_grows_at_most(server, 150):
            for _ in range(400):
                fill(client, "m0", 100_000, replace=True)
            eventually(lambda: watching(client) == own)


def watching(client: Any) -> int:
    """Return the number of open watches on ConfigMaps, including the server's own."""
    _, metrics = client.request("GET", "/metrics")
    prefix = 'apiserver_registered_watchers{group="",version="v1",kind="ConfigMap"} '
    found = (line.removeprefix(prefix) for line in metrics.decode().splitlines() if line.startswith(prefix))
    return int(next(found, "0"))


def test_readers_that_never_read_a_list_cost_little(
    make_server: Callable[..., ServerProcess], connect: Callable[..., BadClient]
) -> None:
    server = make_server("--storage=memory")
    server.start()
    with server.client() as client:
        for number in range(100):
            fill(client, f"m{number}", 100_000)
    with others_are_served(server), memory_grows_at_most(server, 150):
        for _ in range(40):  # 10 MB each
            connect(server).send(f"GET {CONFIGMAPS} HTTP/1.1\r\n".encode() + HOST + b"\r\n")
        time.sleep(1)  # what is buffered is buffered by now


def test_slow_loris_is_closed_in_time_and_others_are_served(
    make_server: Callable[..., ServerProcess], connect: Callable[..., BadClient]
) -> None:
    """Heads that arrive byte by byte, and connections without a handshake, are closed after 32 s (net.limits)."""
    server = make_server("--storage=memory")
    server.start()
    silent = [socket.create_connection(server.address) for _ in range(50)]
    slow = [connect(server, admin=False) for _ in range(50)]
    for client in slow:
        client.send(b"GET /livez HTTP/1.1\r\n" + HOST + b"A: ")
    with others_are_served(server):
        deadline = time.monotonic() + 45
        while slow and time.monotonic() < deadline:
            slow = [client for client in slow if client.send(b"a")]
            time.sleep(1)
        assert not slow, "a head that never ends is waited for"
        for each in silent:
            each.settimeout(5)
            assert each.recv(1) == b""
            each.close()
