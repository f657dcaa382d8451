"""A server that has not heard yet of what was written through another judges requests by it nevertheless."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from steersman.authentication.user import UserInfo
from steersman.controlplane import control_plane
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import Options
from steersman.storage.cache.cacher import Cacher
from steersman.storage.interface import FutureRevision
from steersman.storage.memory import MemoryStorage
from steersman.testing.client import Client
from tests.controlplane.shared_storage import View

ADMIN = UserInfo("admin", groups=("system:masters",))


class Servers:
    """Two servers: what is written through `other` comes to `late` only when that waits for it."""

    def __init__(self, late: ControlPlane, other: ControlPlane, view: View) -> None:
        self.late, self.other = (Client(each, {"admin": each.token_of(ADMIN)}, "admin") for each in (late, other))
        self.plane = late
        self.view = view

    async def make(self, path: str, name: str, **rest: Any) -> Any:
        """Has the other server make an object."""
        answer = await self.other.post(path, {"metadata": {"name": name}, **rest})
        assert answer.status == 201, answer.json()
        return answer.json()


@pytest.fixture
async def servers(tmp_path, monkeypatch) -> AsyncIterator[Servers]:
    store = MemoryStorage(compaction_interval=0, lease_interval=0)
    views: list[View] = []

    async def opened(options: Options, _: object) -> View:
        views.append(View(store))
        return views[-1]

    monkeypatch.setattr(control_plane, "open_storage", opened)
    planes = []
    for number in (1, 2):  # on one folder, so that they have the same keys
        options = Options(
            data_dir=tmp_path, listen=False, storage="memory", advertise_address=f"192.0.2.{number}",
            disable_admission_plugins=("ServiceAccount",) if number == 1 else (), allow_privileged=True,
            enable_admission_plugins=("PodNodeSelector", "NamespaceExists"),
        )  # fmt: skip
        planes.append(ControlPlane(options))
        await planes[-1].start()
    other, late = planes
    views[1].hold()
    yield Servers(late, other, views[1])
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
    """The other server's newest of an object of which the late one knows an older one, with `data.a` of "1"."""
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
    for request in (
        lambda path: servers.late.delete(path),
        lambda path: servers.late.patch(path, {"data": {"a": "1"}}),  # which changes nothing of what it was
        lambda path: servers.late.patch(path, {"data": {"a": "2"}}),
    ):
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
    """From here on a server is not told of what others write, however long it waits."""
    wait_fresh = Cacher.wait_fresh

    async def fail(cacher: Cacher, revision: int, **more: Any) -> None:
        if cacher.revision < revision:
            raise FutureRevision(revision, cacher.revision)
        await wait_fresh(cacher, revision, **more)

    monkeypatch.setattr(Cacher, "wait_fresh", fail)


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
