"""Filters around the handlers of a small server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from steersman.authentication.user import UserInfo
from steersman.endpoints import request as request_module
from steersman.endpoints.filters.authentication import with_authentication
from steersman.endpoints.filters.max_in_flight import with_max_in_flight
from steersman.endpoints.metrics import RequestMetrics
from steersman.endpoints.query import parse_query
from steersman.endpoints.request import Request
from steersman.endpoints.request_info import request_info
from steersman.machinery.identity.action import Action
from steersman.machinery.metrics import Registry
from steersman.net import connection
from steersman.net.body import EMPTY_BODY
from steersman.net.message import Headers, Peer, Response
from steersman.net.message import Request as HttpRequest
from tests.endpoints.small_server import SmallServer
from tests.noted import noted

NOTES = "/api/v1/namespaces/ns/configmaps"


class Hanging:
    """A handler that answers when the test says so, and records how it ended."""

    def __init__(self) -> None:
        self.running = 0
        self.cancelled = 0
        self.go_on = asyncio.Event()
        self._one_more = asyncio.Event()

    async def __call__(self, request: Request) -> Response:
        self.running += 1
        self._one_more.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        return Response(200, [], b"done")

    async def reached(self, count: int) -> None:
        """Wait until `count` requests are in the handler."""
        while self.running < count:
            self._one_more.clear()
            await self._one_more.wait()


async def panicking(request: Request) -> Response:
    raise RuntimeError("a secret")


# Users in metrics


@pytest.mark.parametrize(
    ("username", "label"),
    [
        ("admin", "admin"),
        ("jane", "other"),
        ("a" * 100_000, "other"),
        ("jane@acme.com", "email_id"),
        ("system:serviceaccount:ns:sa-1", "other"),
        ("system:serviceaccount:kube-system:default", "system:serviceaccount:kube-system:default"),
    ],
)
async def test_metrics_do_not_grow_with_the_names_of_users(username: str, label: str) -> None:
    class Known:
        def authenticate(self, credentials: object) -> UserInfo:
            return UserInfo(username)

    async def done(request: Request) -> Response:
        return Response(200, [], b"")

    metrics = RequestMetrics(Registry())
    filtered = with_authentication(Known(), metrics)
    for _ in range(2):  # the second time the token is remembered
        headers = Headers.from_pairs([("authorization", "Bearer t")])
        request = Request(HttpRequest("GET", NOTES, "", headers, EMPTY_BODY, Peer()))
        request.info = request_info("GET", NOTES, "")
        await filtered(request, done)
    assert metrics.authentications.value((label,)) == 2


# Deadlines


async def test_a_handler_that_hangs_gets_504_and_is_cancelled(
    start_server: Callable[..., Awaitable[SmallServer]],
) -> None:
    hanging = Hanging()
    small: SmallServer = await start_server({"/hang": hanging}, request_timeout=0.02)
    answer = await small.get("/hang", accept="application/json")
    assert answer.status == 504
    assert answer.json()["reason"] == "Timeout"
    assert answer.json()["message"] == "Timeout: request did not complete within the allotted timeout"
    assert (hanging.running, hanging.cancelled) == (0, 1)
    hanging.go_on.set()
    assert (await small.get("/hang")).text == "done"


async def test_a_client_may_ask_for_less_time(start_server: Callable[..., Awaitable[SmallServer]]) -> None:
    hanging = Hanging()
    small: SmallServer = await start_server({"/hang": hanging})
    assert (await small.get("/hang?timeout=20ms")).status == 504
    assert hanging.cancelled == 1


@pytest.mark.parametrize("text", ["1h", "0s", "-1s", "0", ""])
async def test_a_client_gets_no_more_than_the_servers_time(
    start_server: Callable[..., Awaitable[SmallServer]], text: str
) -> None:
    small: SmallServer = await start_server({"/hang": Hanging()}, request_timeout=0.02)
    assert (await small.get(f"/hang?timeout={text}")).status == 504


async def test_a_time_that_is_none_is_refused(small: SmallServer) -> None:
    answer = await small.get("/version?timeout=soon", accept="application/json")
    assert answer.status == 400
    why = 'invalid timeout specified in the request URL - time: invalid duration "soon"'
    assert answer.json()["message"] == why


async def test_a_client_that_goes_away_cancels_its_handler(start_server: Callable[..., Awaitable[SmallServer]]) -> None:
    hanging = Hanging()
    small: SmallServer = await start_server({"/hang": hanging})
    request = asyncio.ensure_future(small.get("/hang"))
    await hanging.reached(1)
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    assert (hanging.running, hanging.cancelled) == (0, 1)
    assert small.server.requests.running == 0


# Limits


async def test_over_the_limit_requests_are_refused_but_for_administrators(
    start_server: Callable[..., Awaitable[SmallServer]],
) -> None:
    hanging = Hanging()
    small: SmallServer = await start_server(
        {"/hang": hanging}, max_requests_in_flight=2, max_mutating_requests_in_flight=1
    )
    reads = [asyncio.ensure_future(small.get("/hang")) for _ in range(2)]
    await hanging.reached(2)
    refused = await small.get("/hang")
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert refused.text == "Too many requests, please try again later.\n"
    assert (await small.get(NOTES)).status == 429
    assert (await small.get(NOTES, user="root")).status == 200
    write = asyncio.ensure_future(small.ask("POST", "/hang"))
    await hanging.reached(3)
    assert (await small.ask("POST", NOTES, {"metadata": {"name": "a"}})).status == 429
    assert (await small.ask("POST", NOTES, {"metadata": {"name": "a"}}, user="root")).status == 201
    hanging.go_on.set()
    assert [answer.status for answer in await asyncio.gather(*reads, write)] == [200] * 3
    assert (await small.get(NOTES)).status == 200
    assert (await small.ask("POST", NOTES, {"metadata": {"name": "b"}})).status == 201


async def test_long_running_requests_do_not_count(start_server: Callable[..., Awaitable[SmallServer]]) -> None:
    small: SmallServer = await start_server(max_requests_in_flight=1)
    watches = [await small.open("GET", f"{NOTES}?watch=1") for _ in range(3)]
    assert [watch.status for watch in watches] == [200] * 3
    assert (await small.get(NOTES)).status == 200
    for watch in watches:
        await watch.aclose()


async def test_places_are_free_again_after_timeouts_and_failures(
    start_server: Callable[..., Awaitable[SmallServer]],
) -> None:
    paths = {"/hang": Hanging(), "/panic": panicking}
    small: SmallServer = await start_server(paths, max_requests_in_flight=1, request_timeout=0.02)
    for path, status in (("/hang", 504), ("/panic", 500), ("/hang", 504), ("/panic", 500)):
        assert (await small.get(path)).status == status


async def test_a_large_answer_keeps_its_place_until_it_has_left() -> None:
    metrics = RequestMetrics(Registry())
    limit = with_max_in_flight(1, 1, metrics)

    def read() -> Request:
        message = HttpRequest("GET", NOTES, "", Headers(), EMPTY_BODY, Peer())
        request = Request(message)
        request.info = request_info("GET", NOTES, "")
        request.user = UserInfo("somebody")
        return request

    async def answer(request: Request) -> Response:
        return Response(200, [], b"x" * 5000)

    first, second = read(), read()
    assert (await limit(first, answer)).status == 200
    assert (await limit(second, answer)).status == 429
    connection.notify_end(first.http)
    connection.notify_end(first.http)
    assert (await limit(second, answer)).status == 200
    assert (await limit(read(), answer)).status == 429, "told twice, a place is given back once"


# Failures


async def test_a_programming_error_is_logged_and_told_to_nobody(
    start_server: Callable[..., Awaitable[SmallServer]], caplog: pytest.LogCaptureFixture
) -> None:
    small: SmallServer = await start_server({"/panic": panicking})
    answer = await small.get("/panic")
    assert answer.status == 500
    assert answer.text == "This request caused apiserver to panic. Look in the logs for details.\n"
    assert answer.headers["audit-id"]
    assert "a secret" in caplog.text
    assert small.server.requests.running == 0


@pytest.mark.parametrize("path", ["/api/v1/watch", "/api/v1/watch?a=<b>&c=d"])
async def test_a_path_that_cannot_be_understood_is_a_server_error(small: SmallServer, path: str) -> None:
    answer = await small.get(path)
    assert answer.status == 500
    shown = path.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert answer.text == (
        f'Internal Server Error: "{shown}": failed to create RequestInfo: '
        f"unable to determine kind and namespace from url, {shown}\n"
    )


async def test_a_cache_that_is_not_there_yet_is_asked_again_later(small: SmallServer) -> None:
    await small.stores["configmaps"].stop()
    for method, path in (("GET", ""), ("GET", "/a"), ("GET", "?watch=1"), ("DELETE", "/a")):
        answer = await small.ask(method, NOTES + path, accept="application/json")
        assert (answer.status, answer.headers["retry-after"]) == (429, "1")
        assert answer.json()["message"] == "storage is (re)initializing"
    await small.stores["configmaps"].start()
    assert (await small.get(NOTES)).status == 200


# Authentication and authorization


async def test_who_sends_a_request_is_found_out(small: SmallServer) -> None:
    for token, name in (("alice", "alice"), ("slow", "alice"), ("", "system:anonymous")):
        assert (await small.get(NOTES, user=token)).status == 200
        assert small.rights.asked[-1].user.name == name


async def test_what_proves_an_identity_is_not_passed_on(start_server: Callable[..., Awaitable[SmallServer]]) -> None:
    seen: dict[str, Any] = {}

    async def handler(request: Request) -> Response:
        seen.update(request.headers)
        return Response(200)

    small: SmallServer = await start_server({"/show": handler})
    await small.get("/show", user="alice", x_other="1")
    assert seen == {"x-other": "1"}


@pytest.mark.parametrize("user", ["nobody", ""])
async def test_credentials_that_are_not_good_are_refused(small: SmallServer, user: str) -> None:
    answer = await small.get("/private", user=user, accept="application/json")
    assert answer.status == 401
    assert answer.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }
    assert not small.rights.asked


async def test_what_is_not_allowed_is_refused(small: SmallServer) -> None:
    answer = await small.get(f"{NOTES}/a", user="mallory", accept="application/json")
    assert answer.status == 403
    assert answer.json()["message"] == (
        'configmaps "a" is forbidden: User "mallory" cannot get resource "configmaps" in API group "" in the namespace '
        '"ns": not her'
    )
    answer = await small.get("/version", user="mallory", accept="application/json")
    assert answer.json()["message"] == 'forbidden: User "mallory" cannot get path "/version": not her'
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_rights_that_cannot_be_found_out_are_a_server_error(
    small: SmallServer, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await small.get(NOTES, user="unsure")
    assert answer.status == 500
    assert "the database is away" in answer.text
    assert "failed" in caplog.text


async def test_the_action_to_be_judged_is_that_of_the_request(small: SmallServer) -> None:
    await small.ask("DELETE", "/api/v1/namespaces/ns/configmaps?labelSelector=a")
    await small.get("/apis/scheduling.k8s.io/v1/priorityclasses/x", user="alice")
    await small.ask("PUT", "/metrics/")
    first, second, third = small.rights.asked
    assert first.action == Action("deletecollection", "", "v1", "configmaps", namespace="ns")
    assert second.action == Action("get", "scheduling.k8s.io", "v1", "priorityclasses", name="x")
    assert [each.path for each in (first, second)] == [None, None]
    assert (third.action, third.path) == (Action("put"), "/metrics/")


# Headers


async def test_every_answer_has_an_audit_id_and_is_not_to_be_kept(small: SmallServer) -> None:
    first, second = await small.get(NOTES), await small.get("/nowhere")
    assert first.headers["audit-id"] != second.headers["audit-id"]
    given = await small.get(NOTES, audit_id="mine")
    assert given.headers["audit-id"] == "mine"
    assert len((await small.get(NOTES, audit_id="x" * 500)).headers["audit-id"]) == 500
    for answer in (first, second, given):
        assert answer.headers["cache-control"] == "no-cache, private"


async def test_transport_security_is_told_where_it_is_configured(
    start_server: Callable[..., Awaitable[SmallServer]],
) -> None:
    small: SmallServer = await start_server(strict_transport_security="max-age=31536000,includeSubDomains")
    assert (await small.get(NOTES)).headers["strict-transport-security"] == "max-age=31536000; includeSubDomains"


async def test_browsers_of_allowed_origins_are_let_in(start_server: Callable[..., Awaitable[SmallServer]]) -> None:
    small: SmallServer = await start_server(cors_allowed_origins=(r"//localhost:\d+$", "example\\.com$"))
    answer = await small.get(NOTES, origin="http://localhost:8080")
    assert answer.headers["access-control-allow-origin"] == "http://localhost:8080"
    assert answer.headers["access-control-allow-credentials"] == "true"
    preflight = await small.ask("OPTIONS", NOTES, origin="https://example.com", user="nobody")
    assert preflight.status == 204
    assert "PATCH" in preflight.headers["access-control-allow-methods"]
    for origin in ("http://localhost:8080.evil.org", ""):
        other = await small.ask("OPTIONS", NOTES, origin=origin)
        assert other.status == 405
        assert "access-control-allow-origin" not in other.headers


async def test_warnings_of_handlers_are_sent(start_server: Callable[..., Awaitable[SmallServer]]) -> None:
    async def handler(request: Request) -> Response:
        request.warnings += ["one", "two", "one"]
        return Response(200)

    small: SmallServer = await start_server({"/warn": handler})
    assert (await small.get("/warn")).headers.get_all("warning") == ['299 - "one"', '299 - "two"']


# Start and shutdown


async def test_before_everything_is_installed_nothing_is_said_to_be_missing(small: SmallServer) -> None:
    small.server.lifecycle.serving = False
    answer = await small.get("/nowhere", accept="application/json")
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    assert (await small.get(NOTES)).status == 200
    small.server.lifecycle.serving = True
    assert (await small.get("/nowhere")).status == 404


async def test_a_server_that_is_going_down_finishes_what_it_has_begun(
    start_server: Callable[..., Awaitable[SmallServer]],
) -> None:
    hanging = Hanging()
    small: SmallServer = await start_server({"/hang": hanging}, shutdown_send_retry_after=True)
    watch = await small.open("GET", f"{NOTES}?watch=1")
    request = asyncio.ensure_future(small.get("/hang"))
    await hanging.reached(1)
    stopping = asyncio.ensure_future(small.server.stop())
    assert await watch.read() == b""
    refused = await small.get(NOTES)
    assert (refused.status, refused.headers["retry-after"]) == (429, "5")
    assert (await small.get("/metrics")).status in (404, 503)
    assert not stopping.done()
    hanging.go_on.set()
    assert (await request).text == "done"
    await stopping


async def test_a_watch_is_refused_while_the_server_is_going_down(small: SmallServer) -> None:
    small.server.lifecycle.shutting_down = True
    assert (await small.get(f"{NOTES}?watch=1")).status == 503
    assert (await small.get(NOTES)).status == 200


# Impersonation


async def who(request: Request) -> Response:
    """Answer with the request user and the identity headers that are left."""
    user = request.user
    left = [name for name, _ in request.headers.pairs if name.startswith("impersonate-")]
    return Response(200, [], json.dumps([user.name, user.uid, user.groups, dict(user.extra), left]).encode())


async def test_a_request_is_carried_out_as_the_user_that_its_headers_name(
    start_server: Callable[..., Awaitable[SmallServer]],
) -> None:
    small: SmallServer = await start_server({"/who": who})
    headers = [
        ("authorization", "Bearer alice"),
        ("impersonate-user", "bob"),
        ("impersonate-uid", "7"),
        ("impersonate-group", "dev"),
        ("impersonate-group", "ops, or dev"),
        ("impersonate-extra-acme.io%2fscope", "a"),
        ("impersonate-extra-acme.io%2fscope", "b"),
        ("impersonate-extra-100%", "yes"),
    ]
    response = await small.client.request("GET", "/who", headers, b"")
    groups = ["dev", "ops, or dev", "system:authenticated"]
    extra = {"acme.io/scope": ["a", "b"], "100%": ["yes"]}
    assert json.loads(await response.read()) == ["bob", "7", groups, extra, []]
    assert small.rights.asked[-1].user.name == "bob"


async def test_the_headers_that_name_a_user_are_gone_through_once(
    start_server: Callable[..., Awaitable[SmallServer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    small: SmallServer = await start_server({"/who": who})
    asked: list[str] = []
    get_all = Headers.get_all
    monkeypatch.setattr(Headers, "get_all", noted(get_all, lambda self, name: asked.append(name)))
    extra = [(f"impersonate-extra-{number}", "a") for number in range(900)]
    headers = [("authorization", "Bearer alice"), ("impersonate-user", "bob"), *extra]
    response = await small.client.request("GET", "/who", headers, b"")
    assert len(json.loads(await response.read())[3]) == 900
    assert len(asked) < 10


async def test_before_it_is_known_who_asks_a_long_query_is_not_read(
    start_server: Callable[..., Awaitable[SmallServer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    small: SmallServer = await start_server()
    read: list[int] = []
    monkeypatch.setattr(request_module, "parse_query", noted(parse_query, lambda text: read.append(len(text))))
    query = "&".join(["a%41=%42"] * 9_000) + "&fieldSelector=metadata.name=a"
    assert (await small.get(f"{NOTES}?{query}", user="nobody")).status == 401
    assert (await small.get(f"{NOTES}?{query}", user="mallory")).status == 403
    assert small.rights.asked[-1].action.name == "a"
    assert read == []
    assert (await small.get(f"{NOTES}?{query}", user="alice")).status == 200
    assert read == [len(query)]


async def test_a_path_with_an_escape_that_is_none_is_no_request(small: SmallServer) -> None:
    for path in ("/%", "/version%2", f"{NOTES}/%zz"):
        answer = await small.get(path)
        assert (answer.status, answer.text) == (400, "400 Bad Request")


async def test_a_long_origin_is_nobodys(start_server: Callable[..., Awaitable[SmallServer]]) -> None:
    small: SmallServer = await start_server(cors_allowed_origins=("^https://a",))
    assert "access-control-allow-origin" in (await small.get("/version", origin="https://a.example.com")).headers
    assert "access-control-allow-origin" not in (await small.get("/version", origin="https://a" * 1000)).headers


async def test_who_may_not_act_as_another_is_refused(start_server: Callable[..., Awaitable[SmallServer]]) -> None:
    small: SmallServer = await start_server({"/who": who})
    answer = await small.get("/who", user="mallory", impersonate_user="alice")
    assert answer.status == 403
    assert answer.json()["message"] == (
        'forbidden: User "mallory" cannot impersonate-on:user-info:get path "/who": not her'
    )


async def test_groups_without_a_user_are_refused(start_server: Callable[..., Awaitable[SmallServer]]) -> None:
    small: SmallServer = await start_server({"/who": who})
    answer = await small.get("/who", user="root", impersonate_extra_a="b")
    assert answer.status == 400
    assert answer.json()["message"] == (
        'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string(nil), '
        'Extra:map[string][]string{"a":[]string{"b"}}} without impersonating a user name'
    )


async def test_a_timeout_that_is_too_long_to_read_is_refused_unread(small: SmallServer) -> None:
    long = "1h" * 500
    assert (await small.get(f"/api/v1/namespaces/ns/configmaps?timeout={long}")).status == 200
    answer = await small.get(f"/api/v1/namespaces/ns/configmaps?timeout={long}1h")
    why = f'time: invalid duration "{long}1h"'
    assert (answer.status, answer.json()["message"]) == (400, f"invalid timeout specified in the request URL - {why}")
