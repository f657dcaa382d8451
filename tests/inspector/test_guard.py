"""Tests of the access to the page: token, session, and checks of where a request comes from."""

from __future__ import annotations

import asyncio
import logging

import pytest
from websockets.exceptions import InvalidStatus

from steersman.client.transport import Transport
from steersman.inspector.guard import HEADER, Guard, Refused
from steersman.net.message import Headers
from tests.inspector.front_client import SCRIPT, Page, ScriptedAnswer, ScriptedServer, Visit, Visitor

VERSION = "/k8s/version"


@pytest.fixture
def server() -> ScriptedServer:
    return ScriptedServer(ScriptedAnswer(pieces=[b"{}"]))


@pytest.fixture
async def visitor(visit: Visit, server: ScriptedServer) -> Visitor:
    return await visit(server)


async def test_a_token_opens_one_session_and_is_replaced_by_another(visitor: Visitor) -> None:
    assert (await visitor.send("GET", VERSION)).status == 200
    assert len(visitor.addresses) == 2
    other = Visitor(ScriptedServer(ScriptedAnswer()))
    other.port, other.addresses = visitor.port, visitor.addresses[:1]
    assert (await other.enter()).status == 403
    other.addresses = visitor.addresses
    answer = await other.enter()
    assert answer.status == 200
    assert other.cookie != visitor.cookie
    assert (await other.send("GET", VERSION)).status == 200
    cookie = answer.header("set-cookie")
    assert "; HttpOnly" in cookie
    assert "; SameSite=Strict" in cookie
    assert "Domain" not in cookie


@pytest.mark.parametrize("token", ["", "x", "%ff", "a" * 5_000, "%00", "%C3%BC"])
async def test_other_tokens_open_nothing(visitor: Visitor, token: str) -> None:
    answer = await visitor.send("GET", f"/?token={token}", headers={"cookie": ""})
    assert answer.status == 403
    assert b"The terminal shows the new one" in answer.body
    assert not answer.header("set-cookie")


async def test_a_used_address_leads_a_session_on(visitor: Visitor) -> None:
    answer = await visitor.send("GET", "/?token=used", headers={})
    assert answer.status == 200
    assert b'url=/"' in answer.body
    assert answer.header("referrer-policy") == "no-referrer"
    assert answer.header("cache-control") == "no-store"


async def test_a_token_is_not_used_up_by_requests_that_are_refused(visitor: Visitor) -> None:
    before = visitor.token
    await visitor.send("GET", f"/?token={before}", host="evil.example")
    await visitor.send("POST", f"/?token={before}", headers={})
    await visitor.send("HEAD", f"/?token={before}", headers={})
    assert visitor.token == before


def test_the_oldest_sessions_end() -> None:
    tokens: list[str] = []
    guard = Guard(80, tokens.append)
    cookies = [guard.open_session(tokens[-1]).partition(";")[0] for _ in range(17)]
    guard.check_session(Headers.from_pairs([("cookie", cookies[1])]))
    with pytest.raises(Refused):
        guard.check_session(Headers.from_pairs([("cookie", cookies[0])]))


async def test_a_session_is_found_among_cookies_of_other_ports(visitor: Visitor) -> None:
    others = "steersman-inspector-1=x; a=b; =; ;; "
    assert (await visitor.send("GET", VERSION, headers={**SCRIPT, "cookie": others + visitor.cookie})).status == 200
    name, _, value = visitor.cookie.partition("=")
    for cookie in (others, f"{name}=", f"{name}={value}x", f"{name}x={value}", value, f"{name.upper()}={value}"):
        assert (await visitor.send("GET", VERSION, headers={**SCRIPT, "cookie": cookie})).status == 401, cookie


async def test_very_long_cookies_are_not_searched(visitor: Visitor) -> None:
    fitting = "; ".join((visitor.cookie, "a=" + "x" * (8_190 - len(visitor.cookie) - 2)))
    assert (await visitor.send("GET", VERSION, headers={**SCRIPT, "cookie": fitting})).status == 200
    assert (await visitor.send("GET", VERSION, headers={**SCRIPT, "cookie": fitting + "xxx"})).status == 401


HOSTS = ["evil.example:{}", "127.0.0.1.evil:{}", "127.0.0.1", "127.0.0.1:1", "[::1]:{}", "0.0.0.0:{}", "127.1:{}"]
HOSTS += ["localhost", "localhost.:{}", "localhost.evil:{}", "127.0.0.1:{}x", "2130706433:{}", "127.0.0.1:{},evil"]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("target", ["/", VERSION, "/info", "/?token={token}"])
async def test_other_names_of_the_host_are_refused(visitor: Visitor, host: str, target: str) -> None:
    target = target.format(token=visitor.token)
    answer = await visitor.send("GET", target, host=host.format(visitor.port))
    assert answer.status in (400, 421)
    assert len(visitor.addresses) == 2


async def test_the_host_may_be_called_localhost(visitor: Visitor) -> None:
    assert (await visitor.send("GET", VERSION, host=f"localhost:{visitor.port}")).status == 200


async def test_a_request_needs_a_host(visitor: Visitor) -> None:
    assert (await visitor.send("GET", VERSION, host="", version="1.0")).status == 421
    assert (await visitor.send("GET", VERSION, version="1.0")).status == 200


async def test_the_host_of_an_absolute_target_counts(visitor: Visitor, server: ScriptedServer) -> None:
    server.requests.clear()
    for target in (
        "http://evil/k8s/version",
        f"http://evil:{visitor.port}/k8s/version",
        f"http://{visitor.host}@evil/",
    ):
        assert (await visitor.send("GET", target)).status == 421
    assert server.requests == []
    assert (await visitor.send("GET", f"http://{visitor.host}/k8s/version", host="evil")).status == 200
    assert server.requests[0][1] == "/version"


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:{port}"},
        {"origin": "http://127.0.0.1"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "http://localhost:{port}"},
        {"origin": ""},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": ""},
    ],
)
async def test_requests_of_other_pages_are_refused(
    visitor: Visitor, server: ScriptedServer, headers: dict[str, str]
) -> None:
    server.requests.clear()
    headers = {**SCRIPT, **{name: value.format(port=visitor.port) for name, value in headers.items()}}
    for target in (VERSION, "/info", "/why", "/k8s/api/v1/namespaces/a?x=/info"):
        answer = await visitor.send("GET", target, headers=headers)
        assert answer.status == 403, target
        assert not answer.header("access-control-allow-origin")
    assert (await visitor.send("POST", "/what-if", headers=headers, body=b"{}")).status == 403
    assert server.requests == []


async def test_the_own_origin_is_accepted(visitor: Visitor) -> None:
    origin = {"origin": f"http://{visitor.host}"}
    assert (await visitor.send("GET", VERSION, headers={**SCRIPT, **origin})).status == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_a_form_of_another_page_does_nothing(visitor: Visitor, server: ScriptedServer, kind: str) -> None:
    """A browser sends such requests without asking, and with cookies where it knows no SameSite."""
    server.requests.clear()
    answer = await visitor.send("POST", "/k8s/api/v1/namespaces", headers={"content-type": kind}, body=b'{"a":"=b"}')
    assert answer.status == 403
    assert server.requests == []


async def test_a_preflight_is_refused(visitor: Visitor) -> None:
    headers = {"origin": "http://evil", "access-control-request-headers": HEADER, "cookie": ""}
    answer = await visitor.send("OPTIONS", VERSION, headers={**headers, "access-control-request-method": "POST"})
    assert answer.status == 401
    assert not any(name.lower().startswith("access-control") for name, _ in answer.headers)


@pytest.mark.parametrize(
    "target", ["/", "/info", "/channel", "/why", VERSION, "/assets/x.js", "/index.html", "/nothing"]
)
async def test_without_a_session_nothing_is_shown(visitor: Visitor, target: str) -> None:
    answer = await visitor.send("GET", target, headers={**SCRIPT, "cookie": ""})
    assert answer.status == 401
    assert b"terminal" in answer.body


@pytest.mark.parametrize("options", [{"origin": None}, {"origin": "http://evil"}, {"origin": "null"}])
async def test_a_channel_of_another_page_is_refused(visitor: Visitor, options: dict[str, str]) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await visitor.channel(**options)
    assert refused.value.response.status_code == 403


async def test_a_channel_needs_a_session_and_the_site(visitor: Visitor) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await visitor.channel(headers={"cookie": "x=y"})
    assert refused.value.response.status_code == 401
    with pytest.raises(InvalidStatus) as refused:
        await visitor.channel(headers={"sec-fetch-site": "cross-site"})
    assert refused.value.response.status_code == 403
    page = await visitor.channel()
    assert isinstance(page, Page)
    await page.socket.close()
    answer = await visitor.send("GET", "/channel", headers={"origin": f"http://{visitor.host}"})
    assert answer.status == 426


@pytest.mark.parametrize(
    "target",
    [
        "//evil/x",
        "/../etc/passwd",
        "/k8s",
        "/k8sx/version",
        "/K8S/version",
        "/%6b8s/version",
        "/assets/../index.html",
        "/.",
        "/assets/%2e%2e/index.html",
        "/assets//",
        "/page_files.py",
        "/..%2fguard.py",
        "/index.html%00",
        "*",
    ],
)
async def test_other_paths_do_not_exist(visitor: Visitor, server: ScriptedServer, target: str) -> None:
    server.requests.clear()
    answer = await visitor.send("GET", target)
    assert answer.status in (400, 404)
    assert server.requests == []


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "OPTIONS", "PURGE"])
async def test_other_methods_are_refused(visitor: Visitor, server: ScriptedServer, method: str) -> None:
    server.requests.clear()
    for target in ("/", VERSION, "/info") if method != "CONNECT" else (f"{visitor.host}", "evil:80", "/k8s/version"):
        assert (await visitor.send(method, target)).status in (400, 405, 421)
    assert server.requests == []


async def test_the_token_and_the_session_are_in_no_log(
    visit: Visit, transport: Transport, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    visitor = await visit(transport)
    secrets = [visitor.token, visitor.addresses[0].partition("token=")[2], visitor.cookie.partition("=")[2]]
    asyncio.get_running_loop().set_debug(True)
    await visitor.send("GET", VERSION)
    await visitor.send("GET", "/?token=x", headers={})
    await visitor.send("GET", f"/nothing?token={visitor.token}")
    page = await visitor.channel()
    await page.open(1, "/api/v1/namespaces?watch=1")
    await page.lines(1)
    await page.socket.close()
    asyncio.get_running_loop().set_debug(False)
    assert all(len(each) > 40 for each in secrets)
    lines = [each.getMessage() for each in caplog.records if not each.name.startswith("websockets.client")]
    assert lines
    assert not any(secret in line for secret in secrets for line in lines)
