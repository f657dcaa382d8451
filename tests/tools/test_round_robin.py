"""Tests of tools/round_robin: connections to one address go to the servers behind it in turn."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tools.round_robin import RoundRobin


class Echo:
    """Server that sends its name to each client, and then echoes its input, until `end`."""

    def __init__(self, name: str, port: int = 0) -> None:
        self._name = name.encode()
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port = int(self._listening.getsockname()[1])
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._open.append(connection)
            connection.sendall(self._name)
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        try:
            while data := connection.recv(100):
                connection.sendall(data)
        except OSError:
            return

    def end(self) -> None:
        """End the server and all its connections, as kill -9 does."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()
        for each in self._open:
            each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def servers(stack: ExitStack) -> dict[str, Echo]:
    return {name: Echo(name) for name in ("a", "b")}


@pytest.fixture
def balancer(servers: dict[str, Echo], stack: ExitStack) -> RoundRobin:
    made = RoundRobin([("127.0.0.1", each.port) for each in servers.values()])
    stack.callback(made.close)
    return made


def connected(balancer: RoundRobin, stack: ExitStack) -> tuple[socket.socket, str]:
    """Return a connection, and the name of the server that accepted it, "" if none did."""
    connection = stack.enter_context(socket.create_connection(("127.0.0.1", balancer.port), timeout=10))
    return connection, connection.recv(1).decode()


def test_connections_are_for_the_servers_in_turn(balancer: RoundRobin, stack: ExitStack) -> None:
    assert [connected(balancer, stack)[1] for _ in range(4)] == ["a", "b", "a", "b"]


def test_a_server_that_has_ended_is_passed_over_until_it_is_there_again(
    balancer: RoundRobin, servers: dict[str, Echo], stack: ExitStack
) -> None:
    servers["a"].end()
    assert [connected(balancer, stack)[1] for _ in range(3)] == ["b", "b", "b"]
    Echo("a", servers["a"].port)
    assert {connected(balancer, stack)[1] for _ in range(2)} == {"a", "b"}


def test_a_connection_ends_with_its_server_and_stays_when_another_ends(
    balancer: RoundRobin, servers: dict[str, Echo], stack: ExitStack
) -> None:
    (of_a, _), (of_b, name) = connected(balancer, stack), connected(balancer, stack)
    assert name == "b"
    servers["a"].end()
    assert of_a.recv(1) == b""
    of_b.sendall(b"x")
    assert of_b.recv(1) == b"x"


def test_a_connection_that_no_server_takes_is_closed(
    balancer: RoundRobin, servers: dict[str, Echo], stack: ExitStack
) -> None:
    for each in servers.values():
        each.end()
    assert connected(balancer, stack)[1] == ""


def test_answers_come_late_on_connections_that_have_said_so(servers: dict[str, Echo], stack: ExitStack) -> None:
    balancer = RoundRobin([("127.0.0.1", servers["a"].port)], late=b"watch", seconds=0.1)
    stack.callback(balancer.close)
    usual, late = (connected(balancer, stack)[0] for _ in range(2))
    late.sendall(b"watch")
    usual.sendall(b"other")
    assert usual.recv(5) == b"other"
    late.setblocking(False)
    with pytest.raises(BlockingIOError):
        late.recv(5)
    late.settimeout(10)
    assert late.recv(5) == b"watch"
