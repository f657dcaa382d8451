"""Watches over WebSockets, as browsers open them, on a server process."""

from __future__ import annotations

import base64
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from steersman.testing import ServerProcess

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def of_one(name: str) -> str:
    return f"{CONFIGMAPS}?watch=1&fieldSelector=metadata.name%3D{name}&timeoutSeconds=20"


def opened(server: ServerProcess, path: str, *, admin: bool = True, **options: Any) -> ClientConnection:
    host, port = server.address
    context = server.context(admin=admin, alpn=("http/1.1",))
    options.setdefault("origin", "https://example.com")
    connection: ClientConnection = connect(f"wss://{host}:{port}{path}", ssl=context, proxy=None, **options)
    return connection


def test_events_are_messages(server: ServerProcess) -> None:
    with opened(server, of_one("w")) as watch, server.client() as client:
        assert client.json("POST", CONFIGMAPS, {"metadata": {"name": "w"}})[0] == 201
        event = watch.recv(timeout=5)
        assert isinstance(event, str)
        assert event.endswith("}\n")
        added = json.loads(event)
        assert (added["type"], added["object"]["metadata"]["name"]) == ("ADDED", "w")
        assert client.request("DELETE", f"{CONFIGMAPS}/w")[0] == 200
        assert json.loads(watch.recv(timeout=5))["type"] == "DELETED"


def test_protobuf_events_are_binary_messages_without_a_length(server: ServerProcess) -> None:
    headers = {"Accept": "application/vnd.kubernetes.protobuf"}
    with opened(server, of_one("p"), additional_headers=headers) as watch, server.client() as client:
        assert client.json("POST", CONFIGMAPS, {"metadata": {"name": "p"}})[0] == 201
        event = watch.recv(timeout=5)
        assert isinstance(event, bytes)
        assert event.startswith(b"\n\x05ADDED\x12")
        assert b"k8s\0" in event


def test_the_end_of_a_watch_closes_properly(server: ServerProcess) -> None:
    with opened(
        server, f"{CONFIGMAPS}?watch=1&fieldSelector=metadata.name%3Dnone&resourceVersion=0&timeoutSeconds=1"
    ) as watch:
        assert [json.loads(event)["object"]["metadata"]["name"] for event in watch] == []
        assert watch.close_code == 1000


def test_a_token_may_come_as_a_protocol(make_server: Callable[..., ServerProcess], tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('secret,admin,admin,"system:masters"\n')
    server = make_server(f"--token-auth-file={tokens}")
    server.start()
    encoded = base64.urlsafe_b64encode(b"secret").decode().rstrip("=")
    protocols = [f"base64url.bearer.authorization.k8s.io.{encoded}", "base64.binary.k8s.io"]
    path = f"{CONFIGMAPS}?watch=1&timeoutSeconds=1"
    with opened(server, path, admin=False, subprotocols=protocols) as watch:
        assert watch.subprotocol == "base64.binary.k8s.io"


def test_refusals_come_before_the_upgrade(server: ServerProcess) -> None:
    for query, status in (("labelSelector=!!", 400), ("resourceVersion=x", 500)):
        with pytest.raises(InvalidStatus) as caught:
            opened(server, f"{CONFIGMAPS}?watch=1&{query}")
        assert caught.value.response.status_code == status
    with pytest.raises(InvalidStatus) as caught:
        opened(server, of_one("p"), origin=None)
    assert caught.value.response.status_code == 403


def test_a_stop_ends_the_watch(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server()
    server.start()
    with opened(server, f"{CONFIGMAPS}?watch=1&timeoutSeconds=600") as watch:
        server.signal(signal.SIGTERM)  # comes while the connection is being taken over
        assert server.wait() == 0
        assert list(watch) == []
