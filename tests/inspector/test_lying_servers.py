"""The page's front for API servers that send documents of other shapes than promised, or lists without end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from steersman.client.transport import Fields
from tests.inspector.front_client import ScriptedAnswer, Visit
from tests.lies import DISCOVERY, lies

TIME: Final = "2026-01-01T00:00:00Z"
OWNER: Final = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u2", "controller": True}
METADATA: Final = {
    "name": "x",
    "namespace": "default",
    "uid": "u",
    "resourceVersion": "5",
    "labels": {"a": "b"},
    "ownerReferences": [OWNER],
    "finalizers": ["a/b"],
    "deletionTimestamp": TIME,
}
CONTAINER: Final = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
UNSCHEDULABLE: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
WAITING: Final = {"name": "c", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "ready": False}
POD: Final = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": METADATA,
    "spec": {"nodeName": "", "containers": [CONTAINER], "tolerations": [{"key": "a"}]},
    "status": {"phase": "Pending", "conditions": [UNSCHEDULABLE], "containerStatuses": [WAITING]},
}
NODE: Final = {
    "metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z"}},
    "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "4", "memory": "1Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
EVENT: Final = {
    "metadata": METADATA,
    "involvedObject": {"kind": "Pod", "name": "x", "namespace": "default", "uid": "u"},
    "reason": "FailedScheduling",
    "message": "m",
    "type": "Warning",
    "count": 3,
    "lastTimestamp": TIME,
}
DEFAULT: Final = "/api/v1/namespaces/default"
POD_PATH: Final = f"{DEFAULT}/pods/x"
TRUTHS: Final[Mapping[str, Any]] = {
    "/api": DISCOVERY,
    "/apis": {"items": []},
    POD_PATH: POD,
    "/api/v1/nodes": {"items": [NODE]},
    "/api/v1/pods": {"items": [POD]},
    f"{DEFAULT}/pods": {"items": [POD]},
    f"{DEFAULT}/events": {"items": [EVENT]},
    "/debug/scheduling/default/x": {"decisions": [{"time": TIME, "node": "n"}]},
}
SYNCED: Final = {
    "type": "BOOKMARK",
    "object": {"metadata": {"resourceVersion": "6", "annotations": {"k8s.io/initial-events-end": "true"}}},
}
SHARE: Final = 5
"""Number of lies of which a test tells one, as all of them take seconds."""
ANSWERED: Final = (200, 400, 403, 404, 500, 502)


class _Server:
    """Transport to a server with one pod and one node, which lies about the paths in `lies`."""

    def __init__(self) -> None:
        self.lies: dict[str, bytes] = {}
        self.requests = 0

    async def send(self, method: str, target: str, fields: Fields, body: bytes) -> ScriptedAnswer:
        self.requests += 1
        path = target.partition("?")[0]
        found = self.lies.get(path)
        if found is None:
            found = json.dumps(TRUTHS.get(path, {"metadata": {"resourceVersion": "5"}, "items": []})).encode()
        return ScriptedAnswer(pieces=[found])

    async def aclose(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize("path", TRUTHS)
async def test_lies_are_explained_or_refused(visit: Visit, caplog: pytest.LogCaptureFixture, path: str) -> None:
    server = _Server()
    visitor = await visit(server)
    for lie in lies(TRUTHS[path])[::SHARE]:
        server.lies = {path: lie}
        answer = await visitor.send("GET", "/why?kind=pod&namespace=default&name=x")
        assert answer.status in ANSWERED, lie[:200]
        assert answer.json(), lie[:200]
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []


@pytest.mark.parametrize(("path", "truth"), [("/api/v1/pods", POD), ("/api/v1/nodes", NODE)])
async def test_watches_of_garbage_end_or_are_shown(
    visit: Visit, caplog: pytest.LogCaptureFixture, path: str, truth: Any
) -> None:
    end = b"\n" + json.dumps(SYNCED).encode() + b"\n"
    for lie in lies({"type": "ADDED", "object": truth})[:: 4 * SHARE]:
        server = _Server()
        server.lies = {"/api/v1/pods": end, "/api/v1/nodes": end} | {path: lie + end}
        page = await (await visit(server)).channel()
        await page.open(1, source="cluster")
        async with asyncio.timeout(10):
            message = await page.next()
            while "lines" in message and not message["lines"][0]["synced"]:
                message = await page.next()
        assert message.get("end", {"code": 503})["code"] == 503, lie[:200]
        await page.socket.close()
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []


async def test_a_list_without_end_is_an_error_after_few_requests(visit: Visit) -> None:
    server = _Server()
    server.lies = {"/api/v1/pods": json.dumps({"metadata": {"continue": "again"}, "items": [POD]}).encode()}
    answer = await (await visit(server)).send("GET", "/why")
    assert answer.json()["unread"] == ["cannot read pods: a page of pods is followed by itself"]
    assert server.requests < 100
