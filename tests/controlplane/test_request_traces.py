"""/debug/requests of a whole server: which requests are traced, their steps, filters, bounds and rights."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import pytest

from steersman.authorization.rbac import RbacAuthorizer
from steersman.controlplane.control_plane import ControlPlane
from steersman.endpoints.query import NO_QUERY
from steersman.server.request_paths import MOST_STREAMS, RequestStream, install_request_paths, matcher
from steersman.server.request_traces import KEPT, KEPT_MARKS, LINGER, RequestTraces
from steersman.testing import Client, Environment
from steersman.tracing.readers import Readers
from tests.tracing.answers import Answer

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ClientOf = Callable[..., Client]
StartControlPlane = Callable[..., Awaitable[ControlPlane]]


@pytest.fixture
async def client(start_control_plane: StartControlPlane, client_of: ClientOf) -> Client:
    return client_of(await start_control_plane())


@pytest.fixture
def shared_client(shared_environment: Environment) -> Client:
    """Return a client of the server that tests of single answers share; it may have kept requests of earlier tests."""
    return shared_environment.client()


async def recent(client: Client, query: str = "") -> list[dict[str, Any]]:
    answer = await client.get(f"/debug/requests{query}")
    assert answer.status == 200, answer.body
    found: list[dict[str, Any]] = answer.json()["requests"]
    return found


async def traced(client: Client, query: str) -> dict[str, Any]:
    """Return the newest request that the filters match, with its steps."""
    newest = (await recent(client, query))[-1]
    body: dict[str, Any] = (await client.get(f"/debug/requests/{newest['id']}")).json()
    return body


def step(found: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the first step of this name, at any depth."""
    waiting = [*found["steps"]]
    while waiting:
        each: dict[str, Any] = waiting.pop(0)
        if each["name"] == name:
            return each
        waiting[:0] = each.get("steps", ())
    raise AssertionError(f"{name} is not among {[each['name'] for each in found['steps']]}")


async def test_requests_are_kept_only_after_somebody_has_read(client: Client) -> None:
    await client.get(CONFIG_MAPS)
    assert await recent(client) == []
    await client.get(CONFIG_MAPS, **{"user-agent": "probe/1"})
    (found,) = await recent(client)
    shown = ("verb", "method", "path", "resource", "namespace", "user", "userAgent", "code")
    assert {name: found[name] for name in shown} == {
        "verb": "list",
        "method": "GET",
        "path": CONFIG_MAPS,
        "resource": "configmaps",
        "namespace": "default",
        "user": "admin",
        "userAgent": "probe/1",
        "code": 200,
    }
    assert found["bytes"] > 0
    assert found["milliseconds"] > 0


async def test_a_creation_tells_each_step_and_what_plugins_changed_but_no_value(client: Client) -> None:
    await recent(client)
    secret = {"metadata": {"name": "s"}, "stringData": {"key": "topsecret"}}
    assert (await client.post("/api/v1/namespaces/default/secrets", secret)).status == 201
    found = await traced(client, "?verb=create&resource=secrets")
    names = [each["name"] for each in found["steps"]]
    assert names[0] == "reception"
    assert names[-6:] == [
        "authentication",
        "audit",
        "constrainedimpersonation",
        "priorityandfairness",
        "authorization",
        "Create",
    ]
    assert found["name"] == "s"
    assert step(found, "authentication")["attributes"]["user"] == "admin"
    assert step(found, "authorization")["attributes"]["decision"] == "allow"
    assert step(found, "priorityandfairness")["attributes"]["priorityLevel"] == "exempt"
    stored = step(found, "Create etcd3")
    assert stored["attributes"]["key"] == "/secrets/default/s"
    assert [each["name"] for each in stored["events"]] == ["About to Encode", "Encode succeeded", "Txn call succeeded"]
    assert "topsecret" not in json.dumps(found)

    await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert (await client.post("/api/v1/namespaces/default/pods", pod)).status == 201
    priority = step(await traced(client, "?verb=create&resource=pods"), "admission Priority")
    assert priority["attributes"] == {"phase": "admit", "changed": "spec.priority spec.preemptionPolicy"}


async def test_a_refused_request_tells_who_refused_it(
    start_control_plane: StartControlPlane, client_of: ClientOf
) -> None:
    plane = await start_control_plane()
    admin, alice = client_of(plane), client_of(plane, "alice")
    await recent(admin)
    assert (await alice.get(CONFIG_MAPS)).status == 403
    assert (await alice.get("/debug/requests")).status == 403
    found = await traced(admin, "?user=alice&failed=true")
    assert found["code"] == 403
    assert step(found, "authorization")["attributes"]["decision"] == "no opinion"
    (first,) = [each for each in (await recent(admin, "?user=alice")) if each["path"] == CONFIG_MAPS]
    authenticated = step((await admin.get(f"/debug/requests/{first['id']}")).json(), "authentication")["attributes"]
    assert authenticated["authenticator"] == "StaticTokens"
    assert (await admin.get(CONFIG_MAPS)).status == 200
    allowed = step(await traced(admin, "?user=admin"), "authorization")["attributes"]
    assert (allowed["decision"], allowed["authorizer"]) == ("allow", "PrivilegedGroupAuthorizer")


async def test_the_rule_that_allowed_a_request_stands_beside_its_binding(
    start_control_plane: StartControlPlane, client_of: ClientOf
) -> None:
    plane = await start_control_plane()
    admin, alice = client_of(plane), client_of(plane, "alice")
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    rules = [
        {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*"]},
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["other"]},
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]},
    ]
    await admin.post(f"{rbac}/roles", {"metadata": {"name": "reader"}, "rules": rules})
    binding = {
        "metadata": {"name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    }
    await admin.post(f"{rbac}/rolebindings", binding)
    await recent(admin)
    assert (await alice.get(f"{CONFIG_MAPS}/absent")).status == 404
    assert (await alice.get("/version")).status == 200
    by_rule = step(await traced(admin, "?user=alice&code=404"), "authorization")["attributes"]
    assert by_rule["reason"].startswith('RBAC: allowed by RoleBinding "readers/default" of Role "reader"')
    assert by_rule["rule"] == 'rules[2]: {"verbs":["get","list"],"apiGroups":[""],"resources":["configmaps"]}'
    by_path = step(await traced(admin, "?user=alice&code=200"), "authorization")["attributes"]
    assert by_path["rule"].startswith('rules[0]: {"verbs":["get"],"nonResourceURLs":[')
    await admin.put(f"{rbac}/roles/reader", {"metadata": {"name": "reader"}, "rules": rules[:2]})
    changed = step(await traced(admin, "?user=alice&code=404"), "authorization")["attributes"]
    assert "reason" in changed
    assert "rule" not in changed


async def test_an_update_tells_its_revision_and_a_conflict_its_reason(client: Client) -> None:
    await recent(client)
    await client.post(CONFIG_MAPS, {"metadata": {"name": "c"}})
    changed = (await client.put(f"{CONFIG_MAPS}/c", {"metadata": {"name": "c"}, "data": {"a": "b"}})).json()
    update = step(await traced(client, "?verb=update"), "GuaranteedUpdate etcd3")
    assert str(update["attributes"]["revision"]) == changed["metadata"]["resourceVersion"]
    stale = {"metadata": {"name": "c", "resourceVersion": "1"}}
    assert (await client.put(f"{CONFIG_MAPS}/c", stale)).status == 409
    update = step(await traced(client, "?verb=update&code=409"), "GuaranteedUpdate etcd3")
    assert update["attributes"]["error"] == "Conflict"


async def test_lines_tell_writes_without_a_change_and_lists_with_a_limit_or_a_selector(client: Client) -> None:
    await recent(client)
    body = {"metadata": {"name": "c"}, "data": {"a": "b"}}
    await client.post(CONFIG_MAPS, body)
    for data in ({"a": "b"}, {"a": "c"}):
        await client.patch(f"{CONFIG_MAPS}/c", {"data": data}, **{"content-type": "application/merge-patch+json"})
    found = [each["unchanged"] for each in await recent(client, "?resource=configmaps")]
    assert found == [False, True, False]
    for query in ("", "?limit=1", "?labelSelector=a%3Db", "?fieldSelector=metadata.name%3Dc", "?limit=0"):
        await client.get(f"{CONFIG_MAPS}{query}")
    assert [each["limited"] for each in await recent(client, "?verb=list")] == [False, True, True, True, False]


async def test_filters(client: Client) -> None:
    await client.post(CONFIG_MAPS, {"metadata": {"name": "c"}})
    await recent(client)
    await client.get(CONFIG_MAPS)
    await client.get(f"{CONFIG_MAPS}/c", **{"user-agent": "kubectl of mine"})
    await client.get(f"{CONFIG_MAPS}/absent")
    expected = {
        "?user=admin": 3,
        "?user=nobody": 0,
        "?verb=list": 1,
        "?verb=list,get": 3,
        "?resource=configmaps": 3,
        "?resource=configmaps/status": 0,
        "?namespace=default&verb=get": 2,
        "?userAgent=mine": 1,
        "?code=404": 1,
        "?code=4xx": 1,
        "?code=2xx": 2,
        "?failed=true": 1,
        "?slow=10m": 0,
        "?slow=1ns": 3,
    }
    assert {query: len(await recent(client, query)) for query in expected} == expected


@pytest.mark.parametrize("query", ["?code=4x", "?code=abc", "?slow=5", "?slow=" + "1" * 1000, "?code=%F0%9F%98%80xx"])
async def test_malformed_filters_are_refused(shared_client: Client, query: str) -> None:
    assert (await shared_client.get(f"/debug/requests{query}")).status == 400


@pytest.mark.parametrize("name", ["failed", "watch"])
async def test_a_boolean_is_true_or_false(shared_client: Client, name: str) -> None:
    refused = await shared_client.get(f"/debug/requests?{name}=maybe")
    assert (refused.status, refused.json()["message"]) == (400, f"{name} must be true or false: 'maybe'")
    for no in ("", "0", "false"):
        assert "requests" in (await shared_client.get(f"/debug/requests?{name}={no}")).json()


async def test_an_id_is_found_by_its_end_and_an_unknown_one_is_404(client: Client) -> None:
    await recent(client)
    await client.get(CONFIG_MAPS, **{"audit-id": "chosen-by-the-client"})
    assert (await client.get("/debug/requests/by-the-client")).json()["id"] == "chosen-by-the-client"
    assert (await client.get("/debug/requests/unknown")).status == 404


@pytest.mark.parametrize("audit_id", ["with space", "a/b/c", "per%cent", "q?x=1", "<b>x</b>"])
async def test_an_id_that_a_path_must_escape_is_found(shared_client: Client, audit_id: str) -> None:
    await recent(shared_client)
    await shared_client.get(CONFIG_MAPS, **{"audit-id": audit_id})
    assert (await shared_client.get(f"/debug/requests/{quote(audit_id, safe='')}")).json()["id"] == audit_id


@pytest.mark.parametrize("path", ["/debug/requests", "/debug/requests?watch=true", "/debug/requests/abcd"])
async def test_only_reads_are_answered(shared_client: Client, path: str) -> None:
    assert (await shared_client.post(path, {})).status == 405


async def test_a_stream_has_a_line_for_each_request_at_its_end(client: Client) -> None:
    response = await client.open("GET", "/debug/requests?watch=true&verb=get&resource=configmaps")
    pieces = aiter(response)
    await client.get(f"{CONFIG_MAPS}/absent")
    await client.get(CONFIG_MAPS)
    line = json.loads(await anext(pieces))
    assert (line["verb"], line["name"], line["code"]) == ("get", "absent", 404)
    await response.aclose()


async def test_an_answer_of_one_of_several_workers_says_so(client: Client) -> None:
    assert "steersman-worker" not in (await client.get("/debug/requests")).headers
    server = client.plane.server
    assert server is not None
    for path in ("/debug/requests", "/debug/requests/"):
        server.paths.pop(path, None)
        server.prefixes.pop(path, None)
    install_request_paths(server, RequestTraces(server.traces), RbacAuthorizer().rule_behind, "2 of 4")
    for path in ("/debug/requests", "/debug/requests/unknown"):
        assert (await client.get(path)).headers["steersman-worker"] == "2 of 4"


async def test_streams_are_limited(client: Client) -> None:
    opened = [await client.open("GET", "/debug/requests?watch=true") for _ in range(MOST_STREAMS)]
    assert (await client.get("/debug/requests?watch=true")).status == 429
    for each in opened:
        await each.aclose()


def ended(readers: Readers, path: str = "/") -> None:
    trace = readers.begin({})
    assert trace is not None
    trace.answered = Answer({"path": path})
    trace.ended = trace.began
    readers.end(trace)


async def test_the_ring_is_bounded_by_requests_and_by_their_steps() -> None:
    readers = Readers()
    traces = RequestTraces(readers, always=True)
    for _ in range(KEPT + 10):
        ended(readers)
    assert len(traces.recent()) == KEPT
    for _ in range(30):
        trace = readers.begin({})
        assert trace is not None
        for _ in range(2_700):
            trace.add_event("read")
        trace.ended = trace.began
        readers.end(trace)
    kept = traces.recent()
    assert len(kept) == KEPT
    assert sum(each.size for each in kept) <= KEPT_MARKS
    assert kept[-30].dropped == 2_700
    assert kept[-1].size == 2_700


async def test_requests_of_readers_are_not_kept(client: Client) -> None:
    await recent(client)
    await client.get("/debug/requests/x")
    assert await recent(client) == []


async def test_tracing_ends_a_minute_after_the_last_read(monkeypatch: pytest.MonkeyPatch) -> None:
    readers = Readers()
    traces = RequestTraces(readers)
    assert readers.begin({}) is None
    later: list[tuple[float, Callable[[], None]]] = []

    class Timer:
        def cancel(self) -> None:
            later.clear()

    def call_later(after: float, call: Callable[[], None]) -> Timer:
        later.append((after, call))
        return Timer()

    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", call_later)
    leave = traces.subscribe(lambda trace, is_open: None)
    ended(readers)
    later[0][1]()
    assert len(traces.recent()) == 1, "a subscriber keeps them"
    leave()
    ((after, rest),) = later
    assert after == LINGER
    rest()
    assert readers.begin({}) is None


async def test_a_slow_reader_is_told_how_many_requests_it_has_missed(plane_with_stream: Any) -> None:
    server, writer, stream = plane_with_stream
    writer.buffered = 2 << 20
    ended(server.traces)
    writer.buffered = 0
    ended(server.traces, "/healthz")
    stream.finish()
    lines = [json.loads(each) for each in b"".join(writer.written).splitlines()]
    assert lines[0] == {"dropped": 1}
    assert lines[1]["path"] == "/healthz"


class Writer:
    """The open body of a stream whose client reads nothing."""

    def __init__(self) -> None:
        self.buffered = 0
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def end(self) -> None:
        pass


@pytest.fixture
async def plane_with_stream(start_control_plane: StartControlPlane) -> Any:
    plane: ControlPlane = await start_control_plane()
    server = plane.server
    assert server is not None
    writer = Writer()
    stream = RequestStream(server, RequestTraces(server.traces), matcher(NO_QUERY))
    stream.start(writer)  # type: ignore[arg-type]
    yield server, writer, stream
    stream.closed()
