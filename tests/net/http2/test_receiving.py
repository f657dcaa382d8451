"""The receiving half of HTTP/2, common to server and client: window accounting and limits on floods."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import steersman
from steersman.net.client.http2.connection import Http2Connection as ClientConnection
from steersman.net.http2.connection import Http2Connection as ServerConnection
from steersman.net.http2.flood import FrameBudget
from steersman.net.http2.flow_control import CLOSED_WINDOW, ReceiveWindow
from steersman.net.http2.frames import ConnectionFault, ErrorCode
from steersman.net.http2.receiving import Receiving

SOURCES = Path(steersman.__file__).parent


def test_what_is_read_is_announced_once_there_is_enough_of_it() -> None:
    window = ReceiveWindow(100, 50)
    window.left -= 80
    assert window.give_back(49) == 0
    assert (window.left, window.unannounced) == (20, 49)
    assert window.give_back(11) == 60
    assert (window.left, window.unannounced) == (80, 0)


def test_a_stream_without_a_body_takes_nothing() -> None:
    assert CLOSED_WINDOW.left == 0


def test_a_budget_is_filled_up_again_with_time() -> None:
    now = 1000.0
    budget = FrameBudget("frames", (3, 2), lambda: now)
    for _ in range(3):
        budget.spend()
    with pytest.raises(ConnectionFault, match="too many frames") as caught:
        budget.spend()
    assert caught.value.code is ErrorCode.ENHANCE_YOUR_CALM
    now += 1.0
    budget.spend()
    budget.spend()
    now += 1000.0
    for _ in range(3):
        budget.spend()
    with pytest.raises(ConnectionFault):
        budget.spend()


def test_both_sides_read_frames_by_one_reader() -> None:
    """No other class reads frames; what server and client add to it is declared in `Receiving`."""
    for connection in (ServerConnection, ClientConnection):
        assert issubclass(connection, Receiving)
        for name in vars(Receiving):
            if name.startswith("_on_") or name in ("_ON_FRAME", "_parse", "_widen"):
                assert getattr(connection, name) is getattr(Receiving, name), name
    readers = {path.name for path in SOURCES.rglob("*.py") if "unpack_head(" in path.read_text()}
    assert readers == {"receiving.py"}


def test_grpc_is_spoken_by_one_client() -> None:
    """Only tests import grpcio."""
    pattern = re.compile(r"^\s*(?:import|from) grpc\b", re.MULTILINE)
    assert not [path for path in SOURCES.rglob("*.py") if pattern.search(path.read_text())]
