"""A server whose caches are behind still decides by the writes of other servers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from steersman.authentication.user import UserInfo
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import Options
from steersman.storage.cache.cacher import Cacher
from steersman.storage.interface import FutureRevision, KeyValue, StorageUnavailable
from steersman.storage.memory import MemoryStorage, Snapshot
from steersman.testing.client import Client
from steersman.testing.clock import Clock
from steersman.testing.keys import make_keys
from steersman.work.parts import Part
from tests.controlplane.shared_storage import View, parts_on
from tests.first_states import shared_objects

ADMIN = UserInfo("admin", groups=("system:masters",))
ALICE = UserInfo("alice")


class Servers:
    """Two servers: writes through `other` reach `late` only when it waits for them."""

    def __init__(self, late: ControlPlane, other: ControlPlane, view: View, parts: tuple[type[Part], ...]) -> None:
        self.late, self.other = (
            Client(each, {"admin": each.token_of(ADMIN), "alice": each.token_of(ALICE)}, "admin")
            for each in (late, other)
        )
        self.plane = late
        self.view = view
        self.parts = parts

    async def make(self, path: str, name: str, **rest: Any) -> Any:
        """Create an object through the other server."""
        answer = await self.other.post(path, {"metadata": {"name": name}, **rest})
        assert answer.status == 201, answer.json()
        return answer.json()


@pytest.fixture(scope="module")
def first_states() -> list[dict[str, KeyValue]]:
    """Return a list for the objects of a start: the first two servers of the module create them, the others find them."""
    return []


@pytest.fixture
async def servers(tmp_path: Path, first_states: list[dict[str, KeyValue]]) -> AsyncIterator[Servers]:
    make_keys(tmp_path)
    store = MemoryStorage(compaction_interval=0, lease_interval=0)
    for values in first_states:
        store.restore(Snapshot(values, {}, {}))
    views: list[View] = []

    async def opened(_: Options) -> View:
        views.append(View(store))
        return views[-1]

    parts = parts_on(opened)
    planes = []
    for number in (1, 2):  # on one folder, so that they have the same keys
        options = Options(
            data_dir=tmp_path,
            listen=False,
            storage="memory",
            advertise_address=f"192.0.2.{number}",
            disable_admission_plugins=("ServiceAccount",) if number == 1 else (),
            allow_privileged=True,
            enable_admission_plugins=("PodNodeSelector", "NamespaceExists"),
        )
        planes.append(ControlPlane(options, parts=parts))
        await planes[-1].start()
    if not first_states:
        first_states.append(shared_objects(store.snapshot().values))
    other, late = planes
    views[1].hold()
    yield Servers(late, other, views[1], parts)
    for plane in reversed(planes):
        await plane.stop()
    await store.close()


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


async def test_a_namespace_made_through_another_is_there(servers: Servers) -> None:
    await servers.make("/api/v1/namespaces", "new")
    answer = await servers.late.post("/api/v1/namespaces/new/configmaps", {"metadata": {"name": "c"}})
    assert answer.status == 201
    assert servers.view.waited == 1


async def test_a_namespace_that_nobody_made_is_missing(servers: Servers) -> None:
    answer = await servers.late.post("/api/v1/namespaces/none/configmaps", {"metadata": {"name": "c"}})
    assert (answer.status, answer.json()["message"]) == (404, 'namespaces "none" not found')


async def test_what_is_deleted_in_a_new_namespace_is_judged_by_it(servers: Servers) -> None:
    await servers.make("/api/v1/namespaces", "new")
    await servers.make("/api/v1/namespaces/new/configmaps", "c")
    assert (await servers.late.delete("/api/v1/namespaces/new/configmaps/c")).status == 200


async def test_a_service_account_made_through_another_is_found(servers: Servers) -> None:
    await servers.make("/api/v1/namespaces/default/serviceaccounts", "robot")
    answer = await servers.late.post("/api/v1/namespaces/default/pods", pod(serviceAccountName="robot"))
    assert answer.status == 201, answer.json()


async def test_a_runtime_class_made_through_another_is_found(servers: Servers) -> None:
    await servers.make("/api/v1/namespaces/default/serviceaccounts", "default")
    overhead = {"podFixed": {"cpu": "1"}}
    await servers.make("/apis/node.k8s.io/v1/runtimeclasses", "kata", handler="kata", overhead=overhead)
    answer = await servers.late.post("/api/v1/namespaces/default/pods", pod(runtimeClassName="kata"))
    assert (answer.status, answer.json().get("spec", answer.json())["overhead"]) == (201, {"cpu": "1"})


async def test_the_first_quota_and_limit_range_of_a_namespace_count(servers: Servers) -> None:
    await servers.make("/api/v1/namespaces/default/serviceaccounts", "default")
    limits = [{"type": "Container", "max": {"cpu": "1"}}]
    await servers.make("/api/v1/namespaces/default/limitranges", "small", spec={"limits": limits})
    answer = await servers.late.post(
        "/api/v1/namespaces/default/pods",
        pod(containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": "2"}}}]),
    )
    assert answer.status == 403
    assert "maximum cpu usage per Container is 1" in answer.json()["message"]
    await servers.make("/api/v1/namespaces", "full")
    quota = await servers.make("/api/v1/namespaces/full/resourcequotas", "none", spec={"hard": {"configmaps": "0"}})
    quota["status"] = {"hard": {"configmaps": "0"}, "used": {"configmaps": "0"}}
    answer = await servers.other.put("/api/v1/namespaces/full/resourcequotas/none/status", quota)
    assert answer.status == 200
    answer = await servers.late.post("/api/v1/namespaces/full/configmaps", {"metadata": {"name": "c"}})
    assert answer.status == 403
    assert "exceeded quota: none" in answer.json()["message"]


async def test_two_servers_spend_one_quota_once(servers: Servers) -> None:
    quota = await servers.make("/api/v1/namespaces/default/resourcequotas", "some", spec={"hard": {"configmaps": "3"}})
    quota["status"] = {"hard": {"configmaps": "3"}, "used": {"configmaps": "0"}}
    await servers.other.put("/api/v1/namespaces/default/resourcequotas/some/status", quota)
    made = [
        (await client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"c{n}"}})).status
        for n in range(6)
        for client in ([servers.late, servers.other][n % 2],)
    ]
    assert made == [201, 201, 201, 403, 403, 403]


async def test_a_token_issued_by_another_is_good(servers: Servers) -> None:
    await servers.make("/api/v1/namespaces/default/serviceaccounts", "robot")
    path = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    token = (await servers.other.post(path, {"spec": {}})).json()["status"]["token"]
    review = {"spec": {"token": token}}
    for _ in range(2):
        answer = await servers.late.post("/apis/authentication.k8s.io/v1/tokenreviews", review)
        assert answer.json()["status"].get("authenticated") is True, answer.json()
        assert answer.json()["status"]["user"]["username"] == "system:serviceaccount:default:robot"


async def test_a_pod_is_evicted_by_the_budgets_there_are(servers: Servers) -> None:
    await servers.make("/api/v1/namespaces/default/serviceaccounts", "default")
    made = pod(nodeName="n")
    made["metadata"]["labels"] = {"app": "a"}
    assert (await servers.late.post("/api/v1/namespaces/default/pods", made)).status == 201
    stored = (await servers.late.get("/api/v1/namespaces/default/pods/p")).json()
    stored["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    assert (await servers.late.put("/api/v1/namespaces/default/pods/p/status", stored)).status == 200
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    await servers.make("/apis/policy/v1/namespaces/default/poddisruptionbudgets", "keep", spec=spec)
    answer = await servers.late.post("/api/v1/namespaces/default/pods/p/eviction", {"metadata": {"name": "p"}})
    assert answer.status == 429, answer.json()


async def test_names_that_are_taken_and_objects_that_have_changed_are_found(servers: Servers) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    made = await servers.make(path, "c")
    assert (await servers.late.get(f"{path}/c")).status == 200
    servers.view.hold()
    made["data"] = {"a": "b"}
    assert (await servers.other.put(f"{path}/c", made)).status == 200
    assert (await servers.late.put(f"{path}/c", made)).status == 409
    assert (await servers.late.post(path, {"metadata": {"name": "c"}})).status == 409
    await servers.make(path, "d")
    assert (await servers.late.delete(f"{path}/d")).status == 200
    await servers.make(path, "e")
    assert (await servers.late.post(f"{path}?dryRun=All", {"metadata": {"name": "e"}})).status == 409


CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def changed_elsewhere(servers: Servers, **changes: Any) -> Any:
    """Return the new version of an object of which the late server knows an older one with `data.a` of "1"."""
    await servers.make(CONFIG_MAPS, "c", data={"a": "1"})
    assert (await servers.late.get(f"{CONFIG_MAPS}/c")).status == 200
    servers.view.hold()
    answer = await servers.other.patch(f"{CONFIG_MAPS}/c", changes)
    assert answer.status == 200, answer.json()
    return answer.json()


async def test_what_changes_nothing_of_an_old_object_changes_the_newest(servers: Servers) -> None:
    await changed_elsewhere(servers, data={"a": "2"})
    answer = await servers.late.patch(f"{CONFIG_MAPS}/c", {"data": {"a": "1"}})
    assert (answer.status, answer.json()["data"]) == (200, {"a": "1"})
    assert (await servers.other.get(f"{CONFIG_MAPS}/c")).json() == answer.json()


async def test_an_update_of_the_newest_object_is_no_conflict(servers: Servers) -> None:
    newest = await changed_elsewhere(servers, data={"a": "2"})
    assert (await servers.late.put(f"{CONFIG_MAPS}/c", {**newest, "data": {"a": "3"}})).status == 200


async def test_a_patch_that_is_true_of_the_newest_object_alone_is_applied(servers: Servers) -> None:
    await changed_elsewhere(servers, data={"a": "2"})
    patch = [{"op": "test", "path": "/data/a", "value": "2"}, {"op": "replace", "path": "/data/a", "value": "3"}]
    answer = await servers.late.patch(f"{CONFIG_MAPS}/c", patch, "application/json-patch+json")
    assert (answer.status, answer.json().get("data")) == (200, {"a": "3"})


async def test_a_dry_run_goes_by_the_newest_object(servers: Servers) -> None:
    await changed_elsewhere(servers, data={"b": "2"})
    answer = await servers.late.patch(f"{CONFIG_MAPS}/c?dryRun=All", {"data": {"c": "3"}})
    assert answer.json()["data"] == {"a": "1", "b": "2", "c": "3"}


async def test_preconditions_are_those_of_the_newest_object(servers: Servers) -> None:
    newest = await changed_elsewhere(servers, data={"a": "2"})
    only = {"preconditions": {"resourceVersion": newest["metadata"]["resourceVersion"]}}
    assert (await servers.late.delete(f"{CONFIG_MAPS}/c", only)).status == 200


async def test_what_another_has_deleted_is_gone(servers: Servers) -> None:
    requests: tuple[Callable[[str], Awaitable[Any]], ...] = (
        servers.late.delete,
        lambda path: servers.late.patch(path, {"data": {"a": "1"}}),  # which changes nothing of what it was
        lambda path: servers.late.patch(path, {"data": {"a": "2"}}),
    )
    for request in requests:
        servers.view.release()
        await changed_elsewhere(servers)
        assert (await servers.other.delete(f"{CONFIG_MAPS}/c")).status == 200
        assert (await request(f"{CONFIG_MAPS}/c")).status == 404


async def test_a_finalizer_given_elsewhere_keeps_an_object(servers: Servers) -> None:
    await changed_elsewhere(servers, metadata={"finalizers": ["example.com/kept"]})
    answer = await servers.late.delete(f"{CONFIG_MAPS}/c")
    assert answer.status == 200
    assert answer.json()["metadata"]["finalizers"] == ["example.com/kept"]
    assert (await servers.other.get(f"{CONFIG_MAPS}/c")).json()["metadata"]["deletionTimestamp"]


def tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the delivery of other servers' writes, even to a server that waits."""
    wait_fresh = Cacher.wait_fresh

    async def fail(cacher: Cacher, revision: int, **more: Any) -> None:
        if cacher.revision < revision:
            raise FutureRevision(revision, cacher.revision)
        await wait_fresh(cacher, revision, **more)

    monkeypatch.setattr(Cacher, "wait_fresh", fail)

    async def fail_at_once(view: View, revision: int) -> None:
        if view.revision < revision:
            raise StorageUnavailable("the watch is away")

    monkeypatch.setattr(View, "wait_until", fail_at_once)


async def test_storage_answers_for_a_cache_that_is_told_nothing(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await changed_elsewhere(servers, data={"a": "2"})
    tell_nothing(monkeypatch)
    for name in "de":
        await servers.make(CONFIG_MAPS, name, data={"large": "x" * 500_000})
    newest = (await servers.other.get(CONFIG_MAPS)).json()
    waited = servers.view.waited
    assert (await servers.late.get(f"{CONFIG_MAPS}/c")).json()["data"] == {"a": "2"}
    assert (await servers.late.get(CONFIG_MAPS)).json() == newest
    assert (await servers.late.get(f"{CONFIG_MAPS}?resourceVersion=0")).json()["items"][-1]["metadata"]["name"] == "c"
    pages = (await servers.late.get(f"{CONFIG_MAPS}?limit=1")).json()
    first, end = newest["items"][0], newest["metadata"]["resourceVersion"]
    assert (pages["items"], pages["metadata"]["resourceVersion"]) == ([first], end)
    assert pages["metadata"]["remainingItemCount"] == len(newest["items"]) - 1
    named = (await servers.late.get(f"{CONFIG_MAPS}?fieldSelector=metadata.name=e&limit=1")).json()
    assert [each["metadata"]["name"] for each in named["items"]] == ["e"]
    assert servers.view.waited == waited
    counted = (await servers.late.get("/metrics")).body
    assert b'consistent_read_total{group="",resource="configmaps",success="true",fallback="true"} 4\n' in counted


async def test_writes_of_a_server_that_is_told_nothing_go_by_what_is_stored(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await servers.late.post(CONFIG_MAPS, {"metadata": {"name": "d"}})  # it has seen that there are no quotas
    await changed_elsewhere(servers, data={"a": "2"})
    tell_nothing(monkeypatch)
    patch = [{"op": "test", "path": "/data/a", "value": "2"}, {"op": "replace", "path": "/data/a", "value": "3"}]
    answer = await servers.late.patch(f"{CONFIG_MAPS}/c", patch, "application/json-patch+json")
    assert (answer.status, answer.json().get("data")) == (200, {"a": "3"})


async def test_what_a_server_is_not_told_of_can_be_deleted(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    servers.view.hold()
    tell_nothing(monkeypatch)
    await servers.make(CONFIG_MAPS, "c")
    assert (await servers.late.delete(f"{CONFIG_MAPS}/c")).status == 200
    assert (await servers.other.get(f"{CONFIG_MAPS}/c")).status == 404


RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CREATES = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}


async def codes_of_a_change(
    servers: Servers, change: Callable[[], Awaitable[Any]], *, user: str = "admin", **asked: Any
) -> tuple[int, int]:
    """Return the codes of two requests for a new ConfigMap to the late server, before and after a change by the
    other.
    """
    late = servers.late.as_user(user)
    path, body = asked.get("path", CONFIG_MAPS), {"metadata": {"name": "new"}}
    before = await late.post(f"{path}?dryRun=All", body)
    servers.view.hold()
    await change()
    return before.status, (await late.post(f"{path}?dryRun=All", body)).status


async def give(servers: Servers, verb: str = "create") -> None:
    """Give alice a right to ConfigMaps."""
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": [verb]}]
    await servers.make(f"{RBAC}/roles", "maker", rules=rules)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "maker"}
    alice = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    await servers.make(f"{RBAC}/rolebindings", "maker", roleRef=role, subjects=[alice])


async def test_a_right_given_by_another_counts(servers: Servers) -> None:
    assert await codes_of_a_change(servers, lambda: give(servers), user="alice") == (403, 201)


async def test_a_right_taken_away_by_another_counts(servers: Servers) -> None:
    await give(servers)
    take = partial(servers.other.delete, f"{RBAC}/rolebindings/maker")
    assert await codes_of_a_change(servers, take, user="alice") == (201, 403)


@pytest.mark.parametrize("kind", ["validating", "mutating"])
async def test_a_policy_of_another_counts(servers: Servers, kind: str) -> None:
    remove = {"expression": '[JSONPatch{op: "remove", path: "/data/none"}]'}
    specs: dict[str, dict[str, Any]] = {
        "validating": {"validations": [{"expression": "false"}]},
        "mutating": {
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": remove}],
            "reinvocationPolicy": "Never",
            "failurePolicy": "Fail",
        },
    }
    spec = {"matchConstraints": {"resourceRules": [CREATES]}, **specs[kind]}
    await servers.make(f"{ADMISSION}/{kind}admissionpolicies", "p", spec=spec)
    binding = {"policyName": "p", **({"validationActions": ["Deny"]} if kind == "validating" else {})}
    bind = partial(servers.make, f"{ADMISSION}/{kind}admissionpolicybindings", "p", spec=binding)
    unbind = partial(servers.other.delete, f"{ADMISSION}/{kind}admissionpolicybindings/p")
    assert await codes_of_a_change(servers, bind) == (201, 422 if kind == "validating" else 403)
    assert (await codes_of_a_change(servers, unbind))[1] == 201


@pytest.mark.parametrize("kind", ["validating", "mutating"])
async def test_a_webhook_of_another_counts(servers: Servers, kind: str) -> None:
    hook = {
        "name": "hook.example.com",
        "admissionReviewVersions": ["v1"],
        "rules": [CREATES],
        "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
    }
    path = f"{ADMISSION}/{kind}webhookconfigurations"
    assert await codes_of_a_change(servers, partial(servers.make, path, "w", webhooks=[hook])) == (201, 500)
    assert (await codes_of_a_change(servers, partial(servers.other.delete, f"{path}/w")))[1] == 201


async def test_a_quota_that_another_has_lowered_counts(servers: Servers) -> None:
    quota = await servers.make("/api/v1/namespaces/default/resourcequotas", "q", spec={"hard": {"configmaps": "9"}})
    path = "/api/v1/namespaces/default/resourcequotas/q/status"

    async def allow(hard: str) -> None:
        quota["status"] = {"hard": {"configmaps": hard}, "used": {"configmaps": "0"}}
        del quota["metadata"]["resourceVersion"]
        quota["metadata"] = (await servers.other.put(path, quota)).json()["metadata"]

    await allow("9")
    assert await codes_of_a_change(servers, partial(allow, "0")) == (201, 403)


async def test_a_namespace_that_another_has_begun_to_delete_takes_nothing(servers: Servers) -> None:
    await servers.make("/api/v1/namespaces", "going")
    delete = partial(servers.other.delete, "/api/v1/namespaces/going")
    path = "/api/v1/namespaces/going/configmaps"
    assert await codes_of_a_change(servers, delete, path=path) in ((201, 403), (201, 404))


async def test_a_definition_of_another_is_served_and_judged_by(servers: Servers) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [version],
    }
    path = "/apis/example.com/v1/namespaces/default/things"
    await servers.make(definitions, "things.example.com", spec=spec)
    assert (await servers.late.get(path)).status == 200
    servers.view.hold()
    schema["properties"]["spec"]["properties"]["a"]["maximum"] = 0
    tightened = await servers.other.patch(f"{definitions}/things.example.com", {"spec": {"versions": [version]}})
    assert tightened.status == 200, tightened.json()
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"a": 1}}
    assert (await servers.late.post(path, thing)).status == 422


async def test_a_large_definition_of_another_is_judged_by_however_long_it_takes_to_read(servers: Servers) -> None:
    """Definitions are stored in an older version, so that large ones are decoded in worker threads."""
    properties: dict[str, Any] = {"a": {"type": "integer"}, "large": {"type": "string", "description": "x" * 200_000}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    await servers.make(definitions, "things.example.com", spec=spec)
    path = "/apis/example.com/v1/namespaces/default/things"
    assert (await servers.late.get(path)).status == 200
    servers.view.hold()
    properties["a"]["maximum"] = 0
    tightened = await servers.other.patch(f"{definitions}/things.example.com", {"spec": {"versions": [version]}})
    assert tightened.status == 200, tightened.json()
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"a": 1}}
    assert (await servers.late.post(path, thing)).status == 422


async def test_a_class_of_priority_made_by_another_is_known(servers: Servers) -> None:
    await servers.make("/api/v1/namespaces/default/serviceaccounts", "default")
    await servers.make("/apis/scheduling.k8s.io/v1/priorityclasses", "high", value=1000)
    answer = await servers.late.post("/api/v1/namespaces/default/pods", pod(priorityClassName="high"))
    assert (answer.status, answer.json()["spec"]["priority"]) == (201, 1000)


async def test_reading_asks_for_the_newest_revision_once(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    current_revision = View.current_revision

    async def counting(view: View) -> int:
        nonlocal asked
        asked += view is servers.view
        return await current_revision(view)

    await servers.make(CONFIG_MAPS, "c")
    assert (await servers.late.get(f"{CONFIG_MAPS}/c")).status == 200
    monkeypatch.setattr(View, "current_revision", counting)
    for path, status in ((f"{CONFIG_MAPS}/c", 200), (CONFIG_MAPS, 200), (f"{CONFIG_MAPS}/none", 404)):
        asked = 0
        assert (await servers.late.get(path)).status == status
        assert asked == 1, path


async def test_reading_what_may_be_old_asks_before_it_is_refused_only(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await servers.make(CONFIG_MAPS, "c")
    servers.view.hold()
    waited = servers.view.waited
    old = f"{CONFIG_MAPS}?resourceVersion=0"
    assert (await servers.late.get(old)).status == 200
    assert servers.view.waited == waited
    alice = servers.late.as_user("alice")
    assert (await alice.get(old)).status == 403
    await give(servers, verb="list")
    assert (await alice.get(old)).status == 200
    names = {"plural": "things", "kind": "Thing"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    await servers.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "things.example.com", spec=spec)
    assert (await servers.late.get("/apis/example.com/v1/things?resourceVersion=0")).status == 200


async def test_probes_are_answered_whatever_becomes_of_storage(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: View) -> int:
        await asyncio.Event().wait()
        raise AssertionError

    async def probe() -> None:
        assert (await servers.late.get("/livez/ping")).status == 200
        assert (await servers.late.get("/metrics")).status == 200

    with monkeypatch.context() as patched, closing(Clock()) as clock:
        patched.setattr(View, "current_revision", never)
        probing = asyncio.ensure_future(probe())
        await clock.advance(seconds=5)  # storage is waited for, but not for so long
        assert probing.done()
        await probing


async def refused(host: str | None, port: int | None) -> None:
    """Connect until nothing listens any more. Raises OSError then."""
    while True:
        (await asyncio.open_connection(host, port))[1].close()


async def test_kept_connections_are_answered_at_the_end_while_another_server_goes_on(
    servers: Servers, tmp_path: Path
) -> None:
    options = Options(data_dir=tmp_path, secure_port=0, storage="memory", bind_address="127.0.0.1")
    ending = ControlPlane(options, parts=servers.parts)
    address = await ending.start()
    where = urlsplit(address.url)
    tls = ssl.create_default_context(cafile=address.ca)
    reader, writer = await asyncio.open_connection(where.hostname, where.port, ssl=tls)
    stopping = asyncio.ensure_future(ending.stop())
    with pytest.raises((ConnectionRefusedError, ConnectionResetError)):
        await refused(where.hostname, where.port)
    writer.write(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n")
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n"), answer
    assert b"connection: close\r\n" in answer.lower()
    writer.close()
    await stopping
