"""Tests of the webhook client: it reaches a real HTTPS server by a kubeconfig, with errors as in client-go."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from msgspec.structs import replace

from steersman.machinery.errors.status import StatusError
from steersman.net.client.answer import Answer
from steersman.net.client.transport import Address, Sender
from steersman.server.certificates import CertificateFiles
from steersman.webhooks.client import MAX_ANSWER_BYTES, WebhookClient, WebhookError
from steersman.webhooks.kubeconfig import Endpoint, KubeconfigError, load_kubeconfig, load_logins

WRONG = "json: cannot unmarshal {} into Go struct field {} of type {}"


class Hook:
    """A webhook that sends the responses in `answers`, one for each request, and the last one from then on.

    It keeps the requests.
    """

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.client_certificates: list[Any] = []
        self.port = 0

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        given = {"content-length": str(len(body)), "content-type": "application/json"} | headers
        head = "".join(f"{key.replace('_', '-')}: {value}\r\n" for key, value in given.items())
        self.answers.append(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *fields = head.strip().split("\r\n")
        headers = {key.lower(): value for key, _, value in (each.partition(": ") for each in fields)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.asked.append((line, headers, body))
        self.client_certificates.append(writer.get_extra_info("peercert"))
        writer.write(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])
        writer.close()


@pytest_asyncio.fixture
async def hook(hook_files: CertificateFiles) -> AsyncIterator[Hook]:
    found = Hook()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(hook_files.server, hook_files.server_key)
    context.load_verify_locations(hook_files.ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    async with await asyncio.start_server(found.serve, "127.0.0.1", 0, ssl=context) as server:
        found.port = server.sockets[0].getsockname()[1]
        yield found


def write_kubeconfig(folder: Path, cluster: dict[str, Any], user: dict[str, Any] | None = None, **more: Any) -> Path:
    config = {
        "clusters": [{"name": "h", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "c", "context": {"cluster": "h", "user": "u"}}],
        "current-context": "c",
        **more,
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


class RecordedSleeps(list[float]):
    """Records requested sleeps without sleeping."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def client(hook: Hook, hook_files: CertificateFiles, tmp_path: Path) -> WebhookClient:
    cluster = {"server": f"https://127.0.0.1:{hook.port}/policy", "certificate-authority": str(hook_files.ca)}
    return WebhookClient(load_kubeconfig(write_kubeconfig(tmp_path, cluster)), 1.0, RecordedSleeps())


def recorded_sleeps(client: WebhookClient) -> RecordedSleeps:
    found = client._sleep
    assert isinstance(found, RecordedSleeps)
    return found


async def test_json_is_posted_and_the_answer_given(client: WebhookClient, hook: Hook) -> None:
    hook.answer(200, b"{}")
    assert await client.post(b"body") == b"{}"
    ((line, headers, body),) = hook.asked
    assert (line, body) == ("POST /policy?timeout=30s HTTP/1.1", b"body")
    assert headers["content-type"] == "application/json"
    assert headers["host"] == f"127.0.0.1:{hook.port}"
    assert "authorization" not in headers


async def test_the_user_of_the_kubeconfig_is_shown(hook: Hook, hook_files: CertificateFiles, tmp_path: Path) -> None:
    hook.answer(200, b"{}")
    (tmp_path / "token").write_text("from-file\n")
    pair = base64.b64encode(b"me:secret").decode()
    inline = {
        "client-certificate-data": base64.b64encode(hook_files.admin.read_bytes()).decode(),
        "client-key-data": base64.b64encode(hook_files.admin_key.read_bytes()).decode(),
    }
    authority = base64.b64encode(hook_files.ca.read_bytes()).decode()
    for user, expected in (
        ({"token": "t"}, "Bearer t"),
        ({"token": "t", "tokenFile": "token"}, "Bearer from-file"),
        ({"username": "me", "password": "secret"}, f"Basic {pair}"),
        ({}, None),
        (inline, None),
    ):
        cluster = {"server": f"https://127.0.0.1:{hook.port}", "certificate-authority-data": authority}
        endpoint = load_kubeconfig(write_kubeconfig(tmp_path, cluster, user))
        await WebhookClient(endpoint, 1.0).post(b"")
        assert hook.asked[-1][1].get("authorization") == expected
    assert [bool(each) for each in hook.client_certificates] == [False, False, False, False, True]


async def test_a_token_is_read_anew_when_its_file_has_changed_and_kept_while_it_cannot_be(
    hook: Hook, hook_files: CertificateFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steersman.work.followed_files.CHECK_EVERY", 0.0)
    hook.answer(200, b"{}")
    authority = base64.b64encode(hook_files.ca.read_bytes()).decode()
    cluster = {"server": f"https://127.0.0.1:{hook.port}", "certificate-authority-data": authority}
    endpoint = load_kubeconfig(write_kubeconfig(tmp_path, cluster, {"tokenFile": "token"}))
    client = WebhookClient(endpoint, 1.0)
    with pytest.raises(WebhookError):
        await client.post(b"")
    shown = []
    for text in ("one", "two, longer", ""):
        (tmp_path / "token").write_text(text)
        await client.post(b"")
        shown.append(hook.asked[-1][1].get("authorization"))
    assert shown == ["Bearer one", "Bearer two, longer", "Bearer two, longer"]


async def test_the_query_of_an_address_is_shown_to_the_server_alone(hook: Hook, tmp_path: Path) -> None:
    server = f"https://127.0.0.1:{hook.port}/x?key=secret"
    endpoint = load_kubeconfig(write_kubeconfig(tmp_path, {"server": server, "insecure-skip-tls-verify": True}))
    with pytest.raises(WebhookError) as caught:
        await WebhookClient(replace(endpoint, address=Address("127.0.0.1", 9, True)), 1.0).post(b"")
    assert str(caught.value).startswith(f'Post "https://127.0.0.1:{hook.port}/x?timeout=30s": ')
    hook.answer(307, location="https://elsewhere/?key=secret")
    with pytest.raises(WebhookError, match='not followed: "https://elsewhere/"'):
        await WebhookClient(endpoint, None).post(b"")
    hook.answers.clear()
    hook.answer(200, b"{}")
    await WebhookClient(endpoint, 1.0).post(b"")
    assert hook.asked[-1][0] == "POST /x?key=secret&timeout=30s HTTP/1.1"


@pytest.mark.parametrize("server", ["https://me:secret@h:no/?key=secret", "ftp://me:secret@h", "me:secret@h/x?secret"])
def test_an_address_that_cannot_be_used_is_told_without_its_secrets(server: str, tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError) as caught:
        load_kubeconfig(write_kubeconfig(tmp_path, {"server": server}))
    assert "secret" not in str(caught.value)


async def test_the_password_of_an_address_is_shown_to_the_server_alone(hook: Hook, tmp_path: Path) -> None:
    server = f"https://me:se%2Fcret@127.0.0.1:{hook.port}/x"
    endpoint = load_kubeconfig(
        write_kubeconfig(tmp_path, {"server": server, "insecure-skip-tls-verify": True}, {"token": "t"})
    )
    with pytest.raises(WebhookError) as caught:
        await WebhookClient(replace(endpoint, address=Address("127.0.0.1", 9, True)), 1.0).post(b"")
    assert str(caught.value).startswith(f'Post "https://me:***@127.0.0.1:{hook.port}/x?timeout=30s": ')
    hook.answer(200, b"{}")
    await WebhookClient(endpoint, 1.0).post(b"")
    headers = hook.asked[-1][1]
    assert headers["authorization"] == f"Basic {base64.b64encode(b'me:se/cret').decode()}"
    assert headers["host"] == f"127.0.0.1:{hook.port}"


async def test_a_server_nobody_vouches_for_is_not_asked(hook: Hook, tmp_path: Path) -> None:
    url = f"https://127.0.0.1:{hook.port}"
    endpoint = load_kubeconfig(write_kubeconfig(tmp_path, {"server": url}))
    with pytest.raises(WebhookError) as caught:
        await WebhookClient(endpoint, 1.0).post(b"")
    assert str(caught.value) == (
        f'Post "{url}?timeout=30s": tls: failed to verify certificate: x509: certificate signed by unknown authority'
    )
    hook.answer(200, b"{}")
    endpoint = load_kubeconfig(write_kubeconfig(tmp_path, {"server": url, "insecure-skip-tls-verify": True}))
    assert await WebhookClient(endpoint, 1.0).post(b"") == b"{}"


@pytest.mark.parametrize(
    ("status", "attempts", "reason", "text"),
    [
        (404, 1, "NotFound", "the server could not find the requested resource"),
        (401, 1, "Unauthorized", "the server has asked for the client to provide credentials"),
        (500, 5, "InternalError", 'an error on the server ("unknown") has prevented the request from succeeding'),
        (429, 5, "TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    ],
)
async def test_what_may_pass_is_tried_five_times(
    client: WebhookClient, hook: Hook, status: int, attempts: int, reason: str, text: str
) -> None:
    hook.answer(status, b"{}")
    with pytest.raises(StatusError) as caught:
        await client.post(b"")
    assert (caught.value.code, caught.value.reason, caught.value.message) == (status, reason, text)
    assert len(hook.asked) == attempts
    told = recorded_sleeps(client)
    assert len(told) == attempts - 1
    assert all(1.5**step <= wait <= 1.2 * 1.5**step for step, wait in enumerate(told))


async def test_a_webhook_may_say_when_to_come_back(client: WebhookClient, hook: Hook) -> None:
    hook.answer(503, b"", retry_after="7")
    hook.answer(429, b"", retry_after="3")
    hook.answer(200, b"{}")
    assert await client.post(b"") == b"{}"
    assert recorded_sleeps(client) == [7, 3]


class WaitingSender:
    """A sender that waits for an event before each request."""

    def __init__(self, inner: Sender) -> None:
        self.waits = asyncio.Event()
        self.may_send = asyncio.Event()
        self._inner = inner

    def close(self) -> None:
        self._inner.close()

    async def send(self, *arguments: Any, **more: Any) -> Answer:
        self.waits.set()
        await self.may_send.wait()
        return await self._inner.send(*arguments, **more)


async def test_calls_that_wait_in_another_sender_hold_up_no_usual_ones(
    hook: Hook, hook_files: CertificateFiles, tmp_path: Path
) -> None:
    cluster = {"server": f"https://127.0.0.1:{hook.port}/", "certificate-authority": str(hook_files.ca)}
    client = WebhookClient(load_kubeconfig(write_kubeconfig(tmp_path, cluster)), 1.0, at_once=1)
    hook.answer(200, b"{}")
    waiting: asyncio.Future[WaitingSender] = asyncio.get_running_loop().create_future()

    def through(inner: Sender) -> WaitingSender:
        waiting.set_result(WaitingSender(inner))
        return waiting.result()

    slow = asyncio.create_task(client.post(b"slow", through=through))
    sender = await waiting
    await sender.waits.wait()
    assert await client.post(b"usual") == b"{}"
    assert not slow.done()
    sender.may_send.set()
    assert await slow == b"{}"
    client.close()


async def test_a_status_is_the_error_that_it_is(client: WebhookClient, hook: Hook) -> None:
    told = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": "no",
        "reason": "Forbidden",
        "code": 403,
    }
    hook.answer(500, json.dumps(told).encode())
    with pytest.raises(StatusError) as caught:
        await client.post(b"")
    assert (caught.value.code, caught.value.reason, caught.value.message) == (403, "Forbidden", "no")
    assert len(hook.asked) == 1


async def test_an_answer_must_have_a_body_of_some_length(client: WebhookClient, hook: Hook) -> None:
    hook.answer(200)
    with pytest.raises(WebhookError) as caught:
        await client.post(b"")
    assert str(caught.value) == "0-length response with status code: 200 and content type: application/json"
    hook.answers = []
    hook.answer(200, b"x" * (MAX_ANSWER_BYTES + 1))
    with pytest.raises(WebhookError) as caught:
        await client.post(b"")
    assert str(caught.value) == f"the answer is longer than {MAX_ANSWER_BYTES} bytes"
    hook.answers = [b""]
    with pytest.raises(WebhookError) as caught:
        await client.post(b"")
    assert str(caught.value).endswith('/policy?timeout=30s": EOF')


def test_addresses_need_no_scheme(tmp_path: Path) -> None:
    def at(server: str, **cluster: Any) -> Endpoint:
        return load_kubeconfig(write_kubeconfig(tmp_path, {"server": server, **cluster}))

    plain = at("a.example")
    assert (plain.address, plain.target) == (Address("a.example", 80, False), "/")
    safe = at("a.example:8443", **{"insecure-skip-tls-verify": True, "tls-server-name": "b.example"})
    assert (safe.address, safe.server_name) == (Address("a.example", 8443, True), "b.example")
    assert at("https://a.example/x?y=z").target == "/x?y=z"


NOTHING = (
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
)


@pytest.mark.parametrize(
    ("cluster", "more", "why"),
    [
        ({}, {}, 'invalid configuration: no server found for cluster "h"'),
        ({"server": "a"}, {"current-context": ""}, NOTHING),
        ({"server": "a"}, {"clusters": []}, NOTHING),
        (
            {"server": "a"},
            {"current-context": "d"},
            "invalid configuration: [context was not found for specified context: d, cluster has no server defined]",
        ),
        ({"insecure-skip-tls-verify": True}, {}, 'invalid configuration: no server found for cluster "h"'),
        (
            {"server": "a", "certificate-authority": "/nope"},
            {},
            "invalid configuration: unable to read certificate-authority /nope for h due to open /nope: no such file or "
            "directory",
        ),
        (
            {"server": "a", "certificate-authority-data": "YQ==", "insecure-skip-tls-verify": True},
            {},
            "specifying a root certificates file with the insecure flag is not allowed",
        ),
        (
            {"server": "a"},
            {"users": [{"name": "u", "user": {"client-certificate-data": "YQ=="}}]},
            "invalid configuration: client-key-data or client-key must be specified for u to use the clientCert "
            "authentication method.",
        ),
        ({"server": "foo:1/x"}, {}, 'host must be a URL or a host:port pair: "foo:1/x"'),
        (
            {"server": "a"},
            {"users": [{"name": "u", "user": {"exec": {"command": "x"}}}]},
            "not supported yet: exec in ",
        ),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_told_why(
    tmp_path: Path, cluster: dict[str, Any], more: dict[str, Any], why: str
) -> None:
    with pytest.raises(KubeconfigError) as caught:
        load_kubeconfig(write_kubeconfig(tmp_path, cluster, **more))
    assert str(caught.value).startswith(why)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("clusters: foo", WRONG.format("string", "Config.clusters", "[]v1.NamedCluster")),
        ("users: [5]", WRONG.format("number", "Config.users", "v1.NamedAuthInfo")),
        ("contexts: [{context: 5}]", WRONG.format("number", "NamedContext.contexts.context", "v1.Context")),
        ("clusters: [{cluster: {server: 5}}]", WRONG.format("number", "Cluster.clusters.cluster.server", "string")),
        (
            "clusters: [{cluster: {insecure-skip-tls-verify: 'true'}}]",
            WRONG.format("string", "Cluster.clusters.cluster.insecure-skip-tls-verify", "bool"),
        ),
        ("users: [{user: {exec: 5}}]", WRONG.format("number", "AuthInfo.users.user.exec", "v1.ExecConfig")),
        ("users: [{user: {as-groups: 5}}]", WRONG.format("number", "AuthInfo.users.user.as-groups", "[]string")),
        ("preferences: {colors: 5}", WRONG.format("number", "Preferences.preferences.colors", "bool")),
        ("current-context: 5", WRONG.format("number", "Config.current-context", "string")),
        ("clusters: [{cluster: {certificate-authority-data: '!!'}}]", "illegal base64 data at input byte 0"),
        ("apiVersion: v2", 'no kind "Config" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"'),
        ("kind: Foo", 'no kind "Foo" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"'),
        (
            "users: [{name: u, user: {token: secret}}, {name: u}]",
            'error converting *[]NamedAuthInfo into *map[string]*api.AuthInfo: duplicate name "u" in list',
        ),
    ],
)
def test_a_kubeconfig_is_read_by_its_types(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    for read in (load_kubeconfig, load_logins):
        with pytest.raises(KubeconfigError) as caught:
            read(path)
        assert str(caught.value) == f'error loading config file "{path}": {why}'


def test_a_kubeconfig_may_say_what_is_not_known_and_not_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        "unknown: 5\nclusters: [{name: c, cluster: {server: 'http://a:1', server: 'http://b:1', more: 1}}]\n"
        "contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\nusers: null\n"
    )
    assert load_kubeconfig(path).url == "http://b:1"


def test_a_kubeconfig_that_cannot_be_read_is_told_why(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    with pytest.raises(KubeconfigError) as caught:
        load_kubeconfig(path)
    assert str(caught.value) == f"stat {path}: no such file or directory"
    path.write_text("a: [")
    with pytest.raises(KubeconfigError) as caught:
        load_kubeconfig(path)
    assert str(caught.value) == (
        f'error loading config file "{path}": yaml: line 1: did not find expected node content'
    )


@pytest.mark.parametrize(
    ("status", "line", "body"),
    [
        (307, "POST /there?timeout=30s HTTP/1.1", b"body"),
        (308, "POST /there?timeout=30s HTTP/1.1", b"body"),
        (302, "GET /there?timeout=30s HTTP/1.1", b""),
    ],
)
async def test_redirects_are_followed(client: WebhookClient, hook: Hook, status: int, line: str, body: bytes) -> None:
    hook.answer(status, b"moved", location="/there?timeout=30s")
    hook.answer(200, b"{}")
    assert await client.post(b"body") == b"{}"
    assert [(each[0], each[2]) for each in hook.asked] == [("POST /policy?timeout=30s HTTP/1.1", b"body"), (line, body)]


async def test_redirects_come_to_an_end(client: WebhookClient, hook: Hook) -> None:
    for _ in range(11):
        hook.answer(307, b"", location="/policy")
    with pytest.raises(WebhookError, match=r": stopped after 10 redirects$"):
        await client.post(b"body")


@pytest.mark.parametrize("location", ["/" + "a" * 20_000, "/a b"])
async def test_a_redirect_is_a_url_of_bounded_length(client: WebhookClient, hook: Hook, location: str) -> None:
    hook.answer(307, b"", location=location)
    with pytest.raises(WebhookError, match=r": failed to parse Location header: it has "):
        await client.post(b"body")
    assert len(hook.asked) == 1


@pytest.mark.parametrize(
    "location", ["https://127.0.0.1:1/x", "http://{host}/x", "//elsewhere/x", "https://{host}.example.com/x"]
)
async def test_a_webhook_does_not_choose_other_servers(client: WebhookClient, hook: Hook, location: str) -> None:
    hook.answer(307, b"", location=location.format(host=f"127.0.0.1:{hook.port}"))
    with pytest.raises(WebhookError, match=r": redirects to other servers are not followed: "):
        await client.post(b"body")
    assert len(hook.asked) == 1
