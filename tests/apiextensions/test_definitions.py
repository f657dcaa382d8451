"""Stored definitions: their names, conditions, objects and deletion."""

from __future__ import annotations

import asyncio
import weakref
from pathlib import Path
from typing import Any

import pytest

from steersman.apiextensions import definitions
from steersman.kinds.custom import CustomKind
from steersman.rest.context import Context
from steersman.store.stored_objects import StoredObjects
from steersman.testing import Environment
from tests.apiextensions.cluster import DEFINITIONS, GROUP, Cluster, condition, definition, version

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


async def test_a_definition_is_named_and_established_in_one_write(cluster: Cluster) -> None:
    found = await cluster.define(definition())
    names = {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}
    assert found["status"]["acceptedNames"] == names
    accepted, established = condition(found, "NamesAccepted"), condition(found, "Established")
    assert (accepted["reason"], accepted["message"]) == ("NoConflicts", "no conflicts found")
    assert (established["reason"], established["message"]) == (
        "InitialNamesAccepted",
        "the initial names have been accepted",
    )
    owners = {(each["manager"], each.get("subresource", "")) for each in found["metadata"]["managedFields"]}
    assert ("kube-apiserver", "status") in owners


async def test_a_name_goes_to_the_next_who_wants_it_when_it_is_free(cluster: Cluster) -> None:
    await cluster.define(definition())
    second = definition(plural="bars", kind="Foo")
    assert (await cluster.client.post(DEFINITIONS, second)).status == 201
    name = second["metadata"]["name"]
    refused = await cluster.until(name, lambda found: bool(condition(found, "NamesAccepted")))
    assert condition(refused, "NamesAccepted")["reason"] == "ListKindConflict"
    assert condition(refused, "Established")["reason"] == "NotAccepted"
    assert (await cluster.client.get(cluster.path(plural="bars"))).status == 404
    await cluster.client.delete(f"{DEFINITIONS}/foos.{GROUP}")
    await cluster.until(name, lambda found: condition(found, "Established")["status"] == "True")
    assert (await cluster.client.get(cluster.path(plural="bars"))).status == 200


async def test_who_gives_up_the_names_it_was_refused_is_still_refused_until_it_wants_another(cluster: Cluster) -> None:
    await cluster.define(definition())
    names = {"plural": "bars", "kind": "Bar"}
    second = definition(names=names | {"shortNames": ["foos"]}, plural="bars")
    assert (await cluster.client.post(DEFINITIONS, second)).status == 201
    name = second["metadata"]["name"]
    await cluster.until(name, lambda found: condition(found, "NamesAccepted").get("reason") == "ShortNamesConflict")
    await cluster.change(name, {"spec": {"names": {"shortNames": None}}})
    await cluster.define(definition(plural="others", kind="Other"))  # which is looked at after it
    found = (await cluster.client.get(f"{DEFINITIONS}/{name}")).json()
    assert condition(found, "NamesAccepted")["reason"] == "ShortNamesConflict"
    await cluster.change(name, {"spec": {"names": {"shortNames": ["b"]}}})
    await cluster.until(name, lambda found: condition(found, "Established")["status"] == "True")


async def test_a_version_that_is_refused_all_names_is_listed_and_has_nothing(cluster: Cluster) -> None:
    await cluster.define(definition(version("v1")))
    refused = definition(version("v2"), names={"plural": "bars", "kind": "Bar", "singular": "foos"}, plural="bars")
    assert (await cluster.client.post(DEFINITIONS, refused)).status == 201
    await cluster.answers(f"{SERVICES}/v2.{GROUP}", 200)
    listed = (await cluster.client.get(f"/apis/{GROUP}")).json()
    assert [each["version"] for each in listed["versions"]] == ["v2", "v1"]
    assert (await cluster.client.get(f"/apis/{GROUP}/v2")).status == 404
    await cluster.client.delete(f"{DEFINITIONS}/bars.{GROUP}")
    await cluster.answers(f"{SERVICES}/v2.{GROUP}", 404)


async def test_discovery_names_the_kinds_and_verbs_of_custom_resources(cluster: Cluster) -> None:
    below = {"status": {}, "scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"}}
    await cluster.define(definition(version("v1", subresources=below)))
    await cluster.create({"metadata": {"name": "a", "finalizers": ["example.com/stay"]}})

    async def discovered() -> dict[str, Any]:
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        groups = (await cluster.client.get("/apis", accept=accept)).json()["items"]
        [found] = [each for each in groups if each["metadata"]["name"] == GROUP]
        resource: dict[str, Any] = found["versions"][0]["resources"][0]
        return resource

    resource = await discovered()
    own = {"group": GROUP, "version": "v1", "kind": "Foo"}
    assert resource["responseKind"] == own
    assert [each["responseKind"] for each in resource["subresources"]] == [
        own,
        {"group": "autoscaling", "version": "v1", "kind": "Scale"},
    ]
    assert {"create", "patch", "update"} < set(resource["verbs"])
    await cluster.client.delete(f"{DEFINITIONS}/foos.{GROUP}")
    await cluster.until(f"foos.{GROUP}", lambda found: condition(found, "Terminating").get("status") == "True")
    verbs = ["delete", "deletecollection", "get", "list", "watch"]
    assert (await discovered())["verbs"] == verbs
    assert (await cluster.client.get(f"/apis/{GROUP}/v1")).json()["resources"][0]["verbs"] == verbs


async def test_objects_go_before_their_definition_does(cluster: Cluster) -> None:
    await cluster.define(definition())
    assert (await cluster.create({"metadata": {"name": "a", "finalizers": ["example.com/stay"]}})).status == 201
    name = f"foos.{GROUP}"
    await cluster.client.delete(f"{DEFINITIONS}/{name}")
    going = await cluster.until(
        name, lambda found: condition(found, "Terminating").get("reason") == "InstanceDeletionInProgress"
    )
    assert going["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    refused = await cluster.create({"metadata": {"name": "b"}})
    assert refused.status == 403
    assert "create not allowed while custom resource definition is terminating" in refused.json()["message"]
    assert (await cluster.client.patch(f"{cluster.path()}/a", {"metadata": {"finalizers": None}})).status == 200
    await cluster.answers(f"{DEFINITIONS}/{name}", 404)
    await cluster.answers(cluster.path(), 404)


async def test_what_was_compiled_is_forgotten_some_time_after_its_definition_is_gone(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "COOL_DELAY", 0.0)
    rules = [{"rule": "self.a != 'b'"}]
    spec = {"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-validations": rules}
    await cluster.define(definition(version("v1", {"type": "object", "properties": {"spec": spec}})))
    server = cluster.client.plane.server
    assert server is not None
    entry = server.catalogue.entry(GROUP, "foos")
    assert entry is not None
    kind = entry.resource.kind
    assert isinstance(kind, CustomKind)
    assert (await cluster.create({"metadata": {"name": "a"}, "spec": {"a": "c"}})).status == 201
    schema = weakref.ref(kind.structural.root)
    await cluster.client.delete(f"{DEFINITIONS}/foos.{GROUP}")
    async with asyncio.timeout(20):
        while schema() is not None:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.001)
    assert kind.is_cold


async def test_what_waits_for_its_finalizers_is_deleted_once(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleting thousands of objects again at every check blocked the event loop for half a second each time."""
    await cluster.define(definition())
    for name in ("a", "b"):
        body = {"metadata": {"name": name, "finalizers": ["example.com/stay"]}}
        assert (await cluster.create(body)).status == 201
    deleted: list[str] = []
    looks = asyncio.Event()
    delete_each, sleep = definitions.Definitions.delete_each, asyncio.sleep

    async def counting(self: Any, names: Any, *more: Any) -> None:
        deleted.extend(name for _, name in names)
        await delete_each(self, names, *more)

    async def looking(seconds: float) -> None:
        if seconds >= definitions.CHECKS.wait(2):
            looks.set()
        await sleep(min(seconds, 0.001))

    monkeypatch.setattr(definitions.Definitions, "delete_each", counting)
    monkeypatch.setattr(asyncio, "sleep", looking)
    await cluster.client.delete(f"{DEFINITIONS}/foos.{GROUP}")
    await asyncio.wait_for(looks.wait(), 20)
    assert sorted(deleted) == ["a", "b"]


@pytest.mark.parametrize("is_changed", [False, True])
async def test_what_is_still_being_created_when_a_definition_goes_is_not_left_behind(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, is_changed: bool
) -> None:
    """Otherwise the object would reappear with the next definition of this name."""
    name = f"foos.{GROUP}"
    await cluster.define(definition())
    judged, goes_on = asyncio.Event(), asyncio.Event()
    encoded = StoredObjects.encoded

    async def slowly(store: StoredObjects[Any], ctx: Context, obj: Any) -> bytes:
        if obj.metadata.name == "late":
            judged.set()
            await goes_on.wait()
        return await encoded(store, ctx, obj)

    monkeypatch.setattr(StoredObjects, "encoded", slowly)
    creating = asyncio.ensure_future(cluster.create({"metadata": {"name": "late"}}))
    await judged.wait()
    if is_changed:
        await cluster.change(name, {"spec": {"names": {"shortNames": ["f"]}}})
        await cluster.until(name, lambda found: found["status"]["acceptedNames"].get("shortNames") == ["f"])
    await cluster.client.delete(f"{DEFINITIONS}/{name}")
    await cluster.answers(f"{DEFINITIONS}/{name}", 404)
    goes_on.set()
    refused = await creating
    assert refused.status == 403, refused.body
    await cluster.define(definition())
    assert (await cluster.client.get(cluster.path())).json()["items"] == []


async def test_a_change_of_a_definition_ends_watches_and_holds_for_what_is_stored(cluster: Cluster) -> None:
    await cluster.define(definition())
    assert (await cluster.create({"metadata": {"name": "a"}, "spec": {"a": 1, "b": 2}})).status == 201
    watch = aiter(await cluster.client.open("GET", f"{cluster.path()}?watch=true"))
    assert b'"ADDED"' in await anext(watch)
    narrow = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "c": {"type": "string", "default": "new"}},
            }
        },
    }
    await cluster.change(f"foos.{GROUP}", {"spec": {"versions": [version("v1", narrow)]}})
    async with asyncio.timeout(10):
        assert [piece async for piece in watch] == []
    body = (await cluster.client.get(f"{cluster.path()}/a")).json()
    assert body["spec"] == {"a": 1, "c": "new"}


def _typed(color: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": {"color": {"type": color}}}}}


async def test_owners_of_what_fits_the_schema_of_today_no_more_are_forgotten_with_the_next_write(
    cluster: Cluster,
) -> None:
    await cluster.define(definition(version("v1", _typed("string"))))
    for name in "ab":
        assert (await cluster.create({"metadata": {"name": name}, "spec": {"color": "red"}})).status == 201
    await cluster.change(f"foos.{GROUP}", {"spec": {"versions": [version("v1", _typed("integer"))]}})
    await cluster.until(f"foos.{GROUP}", lambda found: found["metadata"]["generation"] == 2)
    for name, patch in (("a", {"metadata": {"labels": {"a": "b"}}}), ("b", {"spec": {"color": 1}})):
        changed = await cluster.client.patch(f"{cluster.path()}/{name}", patch)
        assert changed.status == 200
        assert "managedFields" not in changed.json()["metadata"]


async def test_owners_who_wrote_in_a_version_that_is_served_no_more_stay(cluster: Cluster) -> None:
    body = definition(version("v1"), version("v2", storage=False))
    await cluster.define(body)
    assert (await cluster.create({"metadata": {"name": "a"}, "spec": {"a": 1}}, "v2")).status == 201
    unserved = [version("v1"), version("v2", storage=False, served=False)]
    await cluster.change(f"foos.{GROUP}", {"spec": {"versions": unserved}})
    await cluster.answers(cluster.path("v2"), 404)
    changed = (await cluster.client.patch(f"{cluster.path()}/a", {"spec": {"b": 1}})).json()
    owned = {each["apiVersion"]: each["fieldsV1"] for each in changed["metadata"]["managedFields"]}
    assert owned == {f"{GROUP}/v2": {"f:spec": {".": {}, "f:a": {}}}, f"{GROUP}/v1": {"f:spec": {"f:b": {}}}}


async def test_a_status_that_changes_alone_ends_no_watch(cluster: Cluster) -> None:
    await cluster.define(definition())
    watch = aiter(await cluster.client.open("GET", f"{cluster.path()}?watch=true"))
    await cluster.change(f"foos.{GROUP}", {"metadata": {"labels": {"a": "b"}}})
    await cluster.create({"metadata": {"name": "a"}})
    async with asyncio.timeout(10):
        assert b'"ADDED"' in await anext(watch)


async def test_group_versions_have_api_services_while_they_are_served(cluster: Cluster) -> None:
    await cluster.define(definition())
    await cluster.define(definition(plural="bars", kind="Bar"))
    service = await cluster.answers(f"{SERVICES}/v1.{GROUP}", 200)
    assert service["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "true"}
    assert service["spec"] == {"group": GROUP, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100}
    await cluster.client.delete(f"{DEFINITIONS}/foos.{GROUP}")
    await cluster.answers(cluster.path(), 404)
    assert (await cluster.client.get(f"{SERVICES}/v1.{GROUP}")).status == 200
    await cluster.client.delete(f"{DEFINITIONS}/bars.{GROUP}")
    await cluster.answers(f"{SERVICES}/v1.{GROUP}", 404)


async def test_a_protected_group_needs_an_approval(cluster: Cluster) -> None:
    body = definition()
    body["metadata"] |= {
        "name": "foos.test.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/x/1"},
    }
    body["spec"]["group"] = "test.k8s.io"
    found = await cluster.define(body)
    conformant = condition(found, "KubernetesAPIApprovalPolicyConformant")
    assert (conformant["status"], conformant["reason"]) == ("True", "ApprovedAnnotation")
    changed = {"metadata": {"annotations": {"api-approved.kubernetes.io": "unapproved, an experiment"}}}
    await cluster.change("foos.test.k8s.io", changed)
    await cluster.until(
        "foos.test.k8s.io",
        lambda found: condition(found, "KubernetesAPIApprovalPolicyConformant")["reason"] == "UnapprovedAnnotation",
    )


@pytest.mark.slow
async def test_definitions_are_served_before_the_server_listens(tmp_path: Path) -> None:
    async with Environment(folder=tmp_path, storage="sqlite") as environment:
        cluster = Cluster(environment.client())
        await cluster.define(definition())
        assert (await cluster.create({"metadata": {"name": "a"}})).status == 201
    async with Environment(folder=tmp_path, storage="sqlite") as environment:
        cluster = Cluster(environment.client())
        assert (await cluster.client.get(f"{cluster.path()}/a")).status == 200


async def test_a_request_is_judged_by_the_definition_that_was_acknowledged_before_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds however long a server takes to build the resource of a definition."""
    await cluster.define(definition())
    look = definitions.Definitions.sync_definition
    seen = asyncio.Event()

    async def slowly(self: Any, name: str) -> None:
        await seen.wait()
        await look(self, name)

    monkeypatch.setattr(definitions.Definitions, "sync_definition", slowly)
    spec = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 0}}}
    refused = version("v1", schema={"type": "object", "properties": {"spec": spec}})
    found = (await cluster.client.get(f"{DEFINITIONS}/foos.{GROUP}")).json()
    found["spec"]["versions"] = [refused]
    assert (await cluster.client.put(f"{DEFINITIONS}/foos.{GROUP}", found)).status == 200
    assert (await cluster.client.post(DEFINITIONS, definition(plural="bars", kind="Bar"))).status == 201
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": {"a": 1}}
    judged = asyncio.ensure_future(cluster.client.post(cluster.path(), body))
    listed = asyncio.ensure_future(cluster.client.get(cluster.path(plural="bars")))
    assert (await cluster.client.get("/apis/apps/v1")).status == 200  # others do not wait
    assert not judged.done()
    seen.set()
    assert (await judged).status == 422
    assert (await listed).status == 200


async def test_a_definition_that_cannot_be_looked_at_keeps_nobody_waiting_for_ever(
    own_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(self: Any, name: str) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(definitions, "LONGEST_WAIT", 0.01)
    monkeypatch.setattr(definitions.Definitions, "sync_definition", never)
    assert (await own_cluster.client.post(DEFINITIONS, definition())).status == 201
    assert (await own_cluster.client.get(own_cluster.path())).status == 404


async def test_requests_do_not_wait_for_other_definitions_of_their_group(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cluster.define(definition())
    assert (await cluster.client.get(cluster.path())).status == 200  # waits for the sync that its status has queued
    seen = asyncio.Event()

    async def never(self: Any, name: str) -> None:
        await seen.wait()

    monkeypatch.setattr(definitions.Definitions, "sync_definition", never)
    monkeypatch.setattr(definitions, "LONGEST_WAIT", 60.0)
    assert (await cluster.client.post(DEFINITIONS, definition(plural="bars", kind="Bar"))).status == 201
    listed = asyncio.ensure_future(cluster.client.get(cluster.path(plural="bars")))
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Foo", "metadata": {"name": "a"}}
    assert (await cluster.client.post(cluster.path(), body)).status == 201
    assert not listed.done()
    seen.set()
    assert (await listed).status == 404
