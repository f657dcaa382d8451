"""Tests of cases of policies, webhooks and aggregated servers: the requests, and the answers of the fake peer."""

from __future__ import annotations

import http.client
import json
import ssl
from contextlib import closing
from typing import Any

import pytest

from tools.hostile import peers, policies
from tools.hostile.case import Request

SIZE = 3000


class WillingTarget:
    """Server that accepts every request and reports aggregated servers as available."""

    def existing(self, path: str, collection: str, body: dict[str, Any]) -> dict[str, Any]:
        return body

    def ask(self, request: Request) -> tuple[int, bytes]:
        return (201 if request.method == "POST" else 200), b'{"status":{"conditions":[{"reason":"Passed"}]}}'


def _asked(path: str, body: Any = None) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the default one reads the system's authorities, in 40 ms
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", peers.peer().port, context=context, timeout=20)
    with closing(connection):
        connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body))
        return connection.getresponse().read()


def test_every_policy_is_written_and_enforced() -> None:
    for case in policies.cases():
        message = case.make(SIZE, WillingTarget())
        assert isinstance(message, Request), case.name
        sent = json.loads(message.body)
        if case.name.endswith("/create"):
            assert message.size < 4 * SIZE + 3000, case.name
            assert sent["spec"]["matchConstraints"]["objectSelector"]["matchLabels"] == policies.LABEL
        else:
            assert sent["metadata"]["labels"] == policies.LABEL


def test_every_webhook_is_configured_and_asked() -> None:
    for case in peers.webhooks():
        message = case.make(SIZE, WillingTarget())
        assert isinstance(message, Request), case.name
        json.loads(message.body)


def test_every_document_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "ASKED_FOR_DOCUMENTS", 0.0)
    for case in peers.aggregated():
        message = case.make(SIZE, WillingTarget())
        assert isinstance(message, Request), case.name
        path = {"discovery": "/apis", "openapi-v2": "/openapi/v2"}.get(case.name.split("/")[1], "/openapi/v3")
        assert len(_asked(path)) > 2, case.name


@pytest.mark.parametrize("name", ["ok", "warnings", "denial", "causes", "operations", "copies", "values", "long-path"])
def test_the_peer_answers_reviews(name: str) -> None:
    peers.peer().size = SIZE
    document = json.loads(_asked(f"/{name}/more?timeout=5s", {"request": {"uid": "u"}}))
    assert document["response"]["uid"] == "u"
