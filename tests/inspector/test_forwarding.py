"""Tests of the page's requests to the API server: what is passed on, and what is passed back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from steersman.client.client import Client
from steersman.client.resources import CONFIG_MAPS
from steersman.client.transport import Unreachable
from steersman.inspector.forwarding import AGENT
from steersman.net.message import Request, Response
from steersman.net.server import HttpServer
from tests.inspector.front_client import SCRIPT, ScriptedAnswer, ScriptedServer, Visit, Visitor, plain_transport


async def test_objects_are_written_and_read(visitor: Visitor, client: Client) -> None:
    body = json.dumps({"metadata": {"name": "a"}, "data": {"x": "<script>alert(1)</script>"}}).encode()
    target = "/k8s/api/v1/namespaces/default/configmaps"
    made = await visitor.send("POST", target, headers={**SCRIPT, "content-type": "application/json"}, body=body)
    assert made.status == 201
    read = await visitor.send("GET", f"{target}/a", headers={**SCRIPT, "accept": "application/yaml"})
    assert read.header("content-type") == "application/yaml"
    assert b"<script>alert(1)</script>" in read.body
    await client.delete(CONFIG_MAPS, "a", "default")
    gone = await visitor.send("GET", f"{target}/a")
    assert gone.status == 404
    assert gone.json()["reason"] == "NotFound"


async def test_only_harmless_fields_of_a_request_are_passed_on(visit: Visit) -> None:
    server = ScriptedServer(ScriptedAnswer(pieces=[b"{}"]))
    visitor = await visit(server)
    fields = {"impersonate-user": "root", "impersonate-group": "system:masters", "authorization": "Bearer x"}
    fields |= {"x-remote-user": "root", "x-forwarded-for": "1.1.1.1", "accept-encoding": "gzip", "range": "bytes=0-1"}
    fields |= {"accept": "application/json", "content-type": "application/merge-patch+json", "user-agent": "Browser"}
    fields |= {"upgrade": "spdy", "te": "trailers", "traceparent": "00-1-1-01", "if-none-match": "x", "referer": "x"}
    answer = await visitor.send("PATCH", "/k8s/a?b=c&d", headers={**SCRIPT, **fields}, body=b'{"a":1}')
    assert answer.status == 200
    given = {"user-agent": AGENT, "accept": "application/json", "content-type": "application/merge-patch+json"}
    assert server.requests == [("PATCH", "/a?b=c&d", given, b'{"a":1}')]


async def test_only_harmless_fields_of_an_answer_are_passed_back(visit: Visit) -> None:
    fields = {"set-cookie": "a=b", "location": "http://evil/", "content-type": "text/html", "refresh": "0;url=x"}
    fields |= {"access-control-allow-origin": "*", "clear-site-data": '"*"', "service-worker-allowed": "/"}
    fields |= {"content-security-policy": "default-src *", "warning": '299 - "old"', "retry-after": "1", "link": "x"}
    visitor = await visit(ScriptedServer(ScriptedAnswer(302, fields, [b"<script>"])))
    answer = await visitor.send("GET", "/k8s/api/v1/namespaces/a/pods/b/proxy/")
    assert answer.status == 302
    names = {name.lower() for name, _ in answer.headers}
    assert not names & {"set-cookie", "location", "refresh", "access-control-allow-origin", "clear-site-data", "link"}
    assert "service-worker-allowed" not in names
    assert (answer.header("warning"), answer.header("retry-after")) == ('299 - "old"', "1")
    assert answer.header("content-security-policy") == "default-src 'none'; sandbox"


@pytest.mark.parametrize("kind", ["text/html", "TEXT/HTML; charset=x", "image/svg+xml", "text/javascript", "", "a"])
async def test_documents_of_pods_are_inert(visit: Visit, kind: str) -> None:
    headers = {"content-type": kind} if kind else {"x": "y"}
    visitor = await visit(ScriptedServer(ScriptedAnswer(200, headers, [b"<script>"])))
    answer = await visitor.send("GET", "/k8s/api/v1/namespaces/a/pods/b/proxy/")
    assert answer.header("content-disposition") == "attachment"
    assert answer.header("content-security-policy") == "default-src 'none'; sandbox"
    assert answer.header("x-content-type-options") == "nosniff"
    assert answer.header("cache-control") == "no-store"
    assert answer.header("cross-origin-resource-policy") == "same-origin"


async def test_long_bodies_are_refused(visit: Visit) -> None:
    server = ScriptedServer(ScriptedAnswer(pieces=[b"{}"]))
    visitor = await visit(server)
    assert (await visitor.send("POST", "/k8s/a", body=b"x" * (8 << 20))).status == 200
    assert (await visitor.send("POST", "/k8s/a", body=b"x" * ((8 << 20) + 1))).status == 413
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "target",
    ["/k8s/../x", "/k8s/a/..", "/k8s/a/./b", "/k8s/%2e%2E/x", "/k8s/.%2e/x", "/k8s/%2e", "/k8s/a/..?b", "/k8s//../a"],
)
async def test_paths_do_not_lead_out_of_the_server(visit: Visit, target: str) -> None:
    server = ScriptedServer(ScriptedAnswer())
    visitor = await visit(server)
    assert (await visitor.send("GET", target)).status == 400
    assert server.requests == []


@pytest.mark.parametrize(
    ("target", "passed"),
    [
        ("/k8s/", "/"),
        ("/k8s//evil.example/x", "//evil.example/x"),
        ("/k8s/a%2F..%2Fb", "/a%2F..%2Fb"),
        ("/k8s/a?x=/../y", "/a?x=/../y"),
        ("/k8s/a...b/..c", "/a...b/..c"),
        ("/k8s/a?", "/a"),
    ],
)
async def test_paths_are_passed_on_as_they_are(visit: Visit, target: str, passed: str) -> None:
    server = ScriptedServer(ScriptedAnswer(pieces=[b"{}"]))
    visitor = await visit(server)
    assert (await visitor.send("GET", target)).status == 200
    assert server.requests[0][1] == passed


async def test_a_server_that_does_not_answer_is_a_bad_gateway(visit: Visit) -> None:
    visitor = await visit(ScriptedServer(Unreachable("connection refused")))
    answer = await visitor.send("GET", "/k8s/version")
    assert answer.status == 502
    assert answer.json()["message"] == "The API server does not answer: connection refused"


async def test_an_answer_that_is_cut_off_is_cut_off_for_the_page(visit: Visit) -> None:
    answer = ScriptedAnswer(pieces=[b'{"a":', Unreachable("cut off")])
    visitor = await visit(ScriptedServer(answer))
    with pytest.raises(Exception, match="IncompleteRead"):
        await visitor.send("GET", "/k8s/version")
    assert answer.closed


async def test_head_is_answered_by_the_page_itself_only(visitor: Visitor) -> None:
    assert (await visitor.send("HEAD", "/k8s/version")).status == 405
    answer = await visitor.send("HEAD", "/info")
    assert (answer.status, answer.body) == (200, b"")


async def test_a_page_that_leaves_ends_its_request_to_the_server(visit: Visit, tmp_path: Path) -> None:
    begun, left = asyncio.Event(), asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        try:
            yield b"{"
            begun.set()
            await asyncio.Event().wait()
        finally:
            left.set()

    async def handler(request: Request) -> Response:
        return Response(200, [("content-type", "application/json")], pieces())

    server = HttpServer(handler)
    _, port = await server.start("127.0.0.1", 0)
    visitor = await visit(plain_transport(tmp_path, port))
    request = asyncio.create_task(visitor.send("GET", "/k8s/version"))
    async with asyncio.timeout(10):
        await begun.wait()
        request.cancel()
        await left.wait()
    await server.close()
