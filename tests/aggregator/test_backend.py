"""Requests forwarded to an aggregated server, and its answers."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from steersman.aggregator.backend import identity_fields
from steersman.authentication.user import UserInfo
from steersman.net.message import BodyAborted
from steersman.server.certificates import CertificateFiles
from steersman.testing import Client, Environment
from tests.aggregator.extension_server import (
    API_SERVICES,
    NAME,
    ROOT,
    THINGS,
    ExtensionServer,
    Received,
    publish,
    response,
    until,
    until_reason,
)

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def echo(request: Received) -> bytes:
    return response({"target": request.target, "body": request.body.decode(), "fields": request.fields})


async def test_who_sends_a_request_is_told_and_nothing_else_is_believed(
    things: Client, behind: ExtensionServer
) -> None:
    behind.paths[THINGS] = echo
    told = (await things.get(THINGS, x_remote_user="other", x_remote_group="evil", x_remote_extra_a="b")).json()[
        "fields"
    ]
    assert told["x-remote-user"] == ["admin"]
    assert told["x-remote-group"] == ["system:masters", "system:authenticated"]
    assert not [name for name in told if name.startswith("x-remote-extra-a") or name == "authorization"]


async def test_fields_say_where_a_request_came_from(things: Client, behind: ExtensionServer) -> None:
    behind.paths[THINGS] = echo
    told = (await things.get(THINGS, x_forwarded_host="evil", x_forwarded_for="192.0.2.7")).json()["fields"]
    place = f"{behind.host}:{behind.port}"
    assert told["host"] == told["x-forwarded-host"] == [place]
    assert told["x-forwarded-proto"] == ["https"]
    assert told["x-forwarded-uri"] == [THINGS]
    assert told["x-forwarded-for"] == ["192.0.2.7, 127.0.0.1"]
    assert len(told["audit-id"]) == 1


async def test_what_goes_in_a_circle_is_passed_on_no_more(things: Client, behind: ExtensionServer) -> None:
    behind.paths[THINGS] = echo
    assert (await things.get(THINGS, x_forwarded_for=", ".join(["192.0.2.7"] * 16))).status == 200
    refused = await things.get(THINGS, x_forwarded_for=", ".join(["192.0.2.7"] * 17))
    assert (refused.status, refused.body) == (503, b"service unavailable\n")
    assert len(behind.requests_for(THINGS)) == 1


def test_keys_of_extra_fields_are_escaped() -> None:
    user = UserInfo("a", "u", (), {"example.com/a b%é": ("1", "2")})
    assert identity_fields(user) == [
        ("X-Remote-User", "a"),
        ("X-Remote-Uid", "u"),
        ("X-Remote-Extra-example.com%2Fa%20b%25%C3%A9", "1"),
        ("X-Remote-Extra-example.com%2Fa%20b%25%C3%A9", "2"),
    ]


async def test_a_user_needs_the_right_before_anything_is_passed_on(things: Client, behind: ExtensionServer) -> None:
    alice = things.as_user("alice")
    answer = await alice.get(THINGS)
    assert answer.status == 403
    assert 'cannot list resource "things" in API group "things.example.com"' in answer.json()["message"]
    assert not behind.requests_for(THINGS)
    rules = [{"apiGroups": ["things.example.com"], "resources": ["things"], "verbs": ["list"]}]
    await things.post(f"{RBAC}/clusterroles", {"metadata": {"name": "things"}, "rules": rules})
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "things"}
    binding = {"metadata": {"name": "things"}, "roleRef": role, "subjects": [subject]}
    await things.post(f"{RBAC}/clusterrolebindings", binding)
    behind.paths[THINGS] = echo
    assert (await alice.get(THINGS)).json()["fields"]["x-remote-user"] == ["alice"]
    assert (await alice.get(f"{THINGS}/a")).status == 403


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [
        ("?b=2&a=1&b=1", "?a=1&b=2&b=1"),
        ("?a=x%20y&c=%zz&d;e=1&f", "?a=x+y&f="),
        ("?watch=1", "?watch=1"),
        ("", ""),
    ],
)
async def test_queries_arrive_as_go_writes_them(
    things: Client, behind: ExtensionServer, sent: str, arrives: str
) -> None:
    behind.paths[THINGS] = echo
    assert (await things.get(THINGS + sent)).json()["target"] == THINGS + arrives


async def test_what_is_judged_is_what_arrives(things: Client, behind: ExtensionServer) -> None:
    path = f"{ROOT}/namespaces/default/things/a%2Fb%20c"
    behind.paths[f"{THINGS}/a/b%20c"] = echo
    assert (await things.get(path)).json()["target"] == f"{THINGS}/a/b%20c"
    # the name ends before the slash, for authorization and for the aggregated server
    refused = (await things.as_user("alice").get(path)).json()
    assert refused["details"] == {"group": "things.example.com", "kind": "things", "name": "a"}


async def test_bodies_arrive_whole_and_in_pieces(things: Client, behind: ExtensionServer) -> None:
    behind.paths[THINGS] = echo
    assert (await things.post(THINGS, {"a": 1})).json()["body"] == '{"a": 1}'

    async def pieces() -> Any:
        for each in (b"one ", b"two ", b"x" * 100_000):
            yield each

    told = (await things.raw("POST", THINGS, pieces())).json()
    assert told["body"] == "one two " + "x" * 100_000


async def test_answers_come_back_as_they_are(things: Client, behind: ExtensionServer) -> None:
    behind.paths[THINGS] = response(
        "short", "418 I am a teapot", "X-Extra: 1", "Access-Control-Allow-Origin: *", "Connection: X-Hop", "X-Hop: 1"
    )
    answer = await things.get(THINGS)
    assert (answer.status, answer.body, answer.headers["x-extra"]) == (418, b"short", "1")
    assert "access-control-allow-origin" not in answer.headers
    assert "x-hop" not in answer.headers


@pytest.mark.parametrize("status", ["302 Found", "307 Temporary Redirect"])
async def test_redirects_are_refused(things: Client, behind: ExtensionServer, status: str) -> None:
    behind.paths[THINGS] = response("there", status, "Location: https://example.com/")
    answer = await things.get(THINGS)
    assert answer.status == 502
    assert answer.body == b"the backend attempted to redirect this request, which is not permitted"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", "EOF"),
        (
            b"no HTTP at all\r\n\r\n",
            'net/http: HTTP/1.x transport connection broken: malformed HTTP status code "HTTP"',
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
            'net/http: HTTP/1.x transport connection broken: bad Content-Length "many"',
        ),
    ],
)
async def test_a_server_that_speaks_no_http_is_told_of(
    things: Client, behind: ExtensionServer, raw: bytes, text: str
) -> None:
    behind.paths[THINGS] = raw
    answer = await things.post(THINGS, {})
    assert (answer.status, answer.body.decode()) == (503, f"error trying to reach service: {text}\n")


async def test_an_answer_that_is_cut_off_is_cut_off(things: Client, behind: ExtensionServer) -> None:
    def half(_: Received) -> bytes:
        for each in list(behind._open):
            asyncio.get_running_loop().call_later(0.01, each.close)
        return b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"

    behind.paths[THINGS] = half
    with pytest.raises(BodyAborted):
        await things.get(THINGS)


async def test_a_server_that_is_gone_is_told_of(things: Client, behind: ExtensionServer) -> None:
    await behind.stop()
    answer = await things.get(THINGS)
    place = f"{behind.host}:{behind.port}"
    assert answer.status == 503
    assert answer.body.decode() in (
        f"error trying to reach service: dial tcp {place}: connect: connection refused\n",
        "service unavailable\n",
    )


async def test_connections_are_kept_and_those_that_were_closed_meanwhile_are_found_out(
    things: Client, behind: ExtensionServer
) -> None:
    behind.paths[THINGS] = response("a")
    await things.get(THINGS)
    before = behind.connections
    for _ in range(20):
        assert (await things.get(THINGS)).status == 200
    assert behind.connections <= before + 2  # the connections for requests of its documents
    for each in list(behind._open):
        each.close()
    assert (await things.get(THINGS)).status == 200


async def test_many_calls_leave_no_connections(things: Client, behind: ExtensionServer) -> None:
    behind.paths[THINGS] = response("a")
    behind.paths[f"{THINGS}/gone"] = b""
    for _ in range(15):
        await asyncio.gather(*(things.get(f"{THINGS}/gone" if number % 5 == 0 else THINGS) for number in range(10)))
    assert behind.open <= 25


async def test_a_watch_is_passed_on_as_it_comes_until_its_client_leaves(
    things: Client, behind: ExtensionServer
) -> None:
    behind.paths[THINGS] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n"
    watch = await things.open("GET", f"{THINGS}?watch=1")
    assert await anext(aiter(watch)) == b"first"
    assert THINGS not in behind.ended
    await watch.aclose()

    async def is_closed() -> bool:
        return THINGS in behind.ended

    await until(is_closed)


@pytest.mark.asyncio(loop_scope="session")
async def test_watches_end_with_the_server(own_things: Client, behind: ExtensionServer) -> None:
    behind.paths[THINGS] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n"
    watch = await own_things.open("GET", f"{THINGS}?watch=1")
    pieces = aiter(watch)
    await anext(pieces)
    server = own_things.plane.server
    assert server is not None
    async with asyncio.timeout(20):
        await server.stop()
        with pytest.raises((BodyAborted, StopAsyncIteration)):
            await anext(pieces)


async def test_a_list_of_resources_must_come_soon(
    things: Client, behind: ExtensionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steersman.aggregator.backend.DISCOVERY_TIMEOUT", 0.05)
    behind.held = asyncio.Event()
    answer = await things.get(ROOT)
    assert (answer.status, answer.body) == (503, b"error trying to reach service: context deadline exceeded\n")
    behind.held.set()


async def test_the_client_certificate_is_shown(things: Client, behind: ExtensionServer) -> None:
    behind.paths[THINGS] = response("a")
    await things.get(THINGS)
    names = dict(pair for each in behind.subjects[-1]["subject"] for pair in each)
    assert names["organizationName"] == "system:masters"


async def test_a_certificate_of_nobody_known_is_told_of(client: Client, behind: ExtensionServer) -> None:
    await publish(client, behind, caBundle="", insecureSkipTLSVerify=False)
    found = await until_reason(client, "FailedDiscoveryCheck")
    url = f"https://{behind.host}:{behind.port}{ROOT}"
    assert found["message"] == (
        f'failing or missing response from {url}: Get "{url}": tls: failed to verify certificate: x509: certificate '
        "signed by unknown authority"
    )


async def test_an_authority_that_is_none_is_told_of(things: Client, behind: ExtensionServer) -> None:
    patch = {"spec": {"caBundle": "bm8="}}
    assert (await things.patch(f"{API_SERVICES}/{NAME}", patch)).status == 200
    answer = await things.get(THINGS)
    assert (answer.status, answer.body) == (500, b"unable to parse bytes as PEM block\n")


@pytest.mark.asyncio(loop_scope="session")
async def test_a_connection_with_another_protocol_becomes_one(
    keys_folder: Path, files: CertificateFiles, behind: ExtensionServer
) -> None:
    behind.paths[f"{THINGS}/a/exec"] = (
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\nfirst "
    )
    async with Environment(folder=keys_folder, listen=True) as environment:
        client = environment.client()
        await publish(client, behind)
        await until_reason(client, "Passed")
        host, _, port = environment.url.removeprefix("https://").partition(":")
        context = ssl.create_default_context(cafile=str(environment.ca))
        reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
        fields = [
            f"Authorization: Bearer {environment.token()}",
            "Connection: Upgrade",
            "Upgrade: shout",
            "X-Remote-User: other",
            "X-Remote-Extra-A: b",
        ]
        head = "\r\n".join([f"POST {THINGS}/a/exec?stdin=1 HTTP/1.1", "Host: here", *fields])
        writer.write(head.encode() + b"\r\n\r\n")
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 101 ")
        assert b"upgrade: shout" in answer.lower()
        writer.write(b"hello")
        assert await reader.readexactly(11) == b"first HELLO"
        writer.close()
        (request,) = behind.requests_for(f"{THINGS}/a/exec")
        assert request.target == f"{THINGS}/a/exec?stdin=1"
        assert request.fields["x-remote-user"] == ["admin"]
        assert "x-remote-extra-a" not in request.fields
        assert "authorization" not in request.fields
