"""Tests that the messages in the table of docs/webhooks.md occur as the table says."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from steersman.testing import Client
from tests.admission_plugins.webhook.admission_hook import MUTATING, VALIDATING, AdmissionHook, Request, configure
from tests.docs.markdown_documents import ROOT, Document
from tests.https_hook import http_response

ROWS = [cell for cell, _ in Document(ROOT / "docs" / "webhooks.md").table("Solve problems")]
UNTRIED = "certificate has expired"
"""Message that is not tested: it needs an expired certificate."""
SERVICES = (
    {"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 80}]}},
    {"metadata": {"name": "other"}, "spec": {"type": "ExternalName", "externalName": "localhost"}},
)


HEAD = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}


def _review(members: dict[str, Any]) -> Callable[[Request], bytes]:
    return lambda request: http_response(200, json.dumps(members).encode(), "application/json")


def _without_kind(request: Request) -> bytes:
    return _review({"response": {"uid": request["uid"], "allowed": True}})(request)


def _html_response(code: int, body: bytes) -> Callable[[Request], bytes]:
    return lambda request: http_response(code, body, "text/html")


ANSWERS: dict[str, Callable[[Request], Any]] = {
    "could not find the requested": _html_response(404, b"<h1>not found</h1>"),
    "an error on the server": _html_response(500, b"trouble"),
    "couldn't get version/kind": _html_response(200, b"<h1>hello</h1>"),
    "expected webhook response of": _without_kind,
    "webhook response was absent": _review(HEAD),
    "expected response.uid": _review({**HEAD, "response": {"uid": "x", "allowed": True}}),
    "but not response.patchType": lambda request: {"allowed": True, "patch": "W10="},
    "illegal base64 data": lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": "[]"},
}
"""Answers of the webhook, by a part of the message."""
PLACES: dict[str, Callable[[AdmissionHook], dict[str, Any]]] = {
    "connection refused": lambda hook: {"url": "https://127.0.0.1:1/w"},
    "unknown authority": lambda hook: {"url": f"{hook.root}/w", "caBundle": None},
    "is valid for": lambda hook: {"service": {"namespace": "default", "name": "other", "port": hook.port}},
    'service "hook" not found': lambda hook: {"service": {"namespace": "kube-system", "name": "hook"}},
    "no service port 443": lambda hook: {"service": {"namespace": "default", "name": "hook"}},
}
"""Client configurations of the webhook, by a part of the message."""


@pytest_asyncio.fixture(loop_scope="session")
async def http() -> AsyncIterator[int]:
    """Yield the port of a server that speaks plain HTTP."""

    def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(http_response(400, b"", "text/plain"))
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def _message(client: Client, hook: AdmissionHook, which: str, **config: Any) -> str:
    """Return the error message for a request that a webhook with this configuration gets."""
    webhook = hook.webhook("/w", "configmaps", timeoutSeconds=1)
    client_config = {"caBundle": hook.ca_bundle, **(config or {"url": f"{hook.root}/w"})}
    webhook["clientConfig"] = {name: value for name, value in client_config.items() if value}
    await configure(client, which, webhook)
    answer = await client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "x"}})
    assert answer.status == 500, answer.body
    return str(answer.json()["message"])


def _row_matches(row: str, message: str) -> bool:
    """Return True if one of the texts of a row is in the message; `...` stands for any text."""
    texts = re.findall(r"`([^`]+)`", row)
    return any(re.search(".*".join(map(re.escape, text.split("..."))), message) for text in texts)


def _find_row(part: str) -> str:
    (row,) = (each for each in ROWS if part in each)
    return row


@pytest.mark.parametrize("part", ANSWERS)
async def test_an_answer_is_complained_of(client: Client, hook: AdmissionHook, part: str) -> None:
    hook.answers["/w"] = ANSWERS[part]
    message = await _message(client, hook, MUTATING)
    assert _row_matches(_find_row(part), message), message


@pytest.mark.parametrize("part", PLACES)
async def test_a_place_is_complained_of(client: Client, hook: AdmissionHook, part: str) -> None:
    for service in SERVICES:
        assert (await client.post("/api/v1/namespaces/default/services", service)).status == 201
    message = await _message(client, hook, VALIDATING, **PLACES[part](hook))
    assert _row_matches(_find_row(part), message), message


async def test_a_webhook_that_speaks_no_tls(client: Client, hook: AdmissionHook, http: int) -> None:
    message = await _message(client, hook, VALIDATING, url=f"https://127.0.0.1:{http}/w")
    assert _row_matches(_find_row("does not look like a TLS handshake"), message), message


async def test_a_webhook_that_does_not_answer(client: Client, hook: AdmissionHook) -> None:
    hook.held = asyncio.Event()
    message = await _message(client, hook, VALIDATING)
    hook.held.set()
    assert _row_matches(_find_row("context deadline exceeded"), message), message


def test_every_row_is_tried() -> None:
    tried = {*ANSWERS, *PLACES, "does not look like a TLS handshake", "context deadline exceeded", UNTRIED}
    assert [row for row in ROWS if not any(part in row for part in tried)] == []
