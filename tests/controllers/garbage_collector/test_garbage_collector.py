"""Tests of the garbage collector."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from steersman.api.core.v1 import ConfigMap, Namespace
from steersman.api.meta.v1 import DeleteOptions, ObjectMeta, OwnerReference
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.resources import CONFIG_MAPS, EVENTS, NAMESPACES
from steersman.controllers.garbage_collector.garbage_collector import GarbageCollector
from steersman.testing import Environment
from tests.controllers.waiting import Run, eventually

DEFINITIONS = APIResource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", dict, namespaced=False
)
WIDGETS = APIResource("example.com", "v1", "widgets", "Widget", dict)


def owner(of: ConfigMap, **more: Any) -> OwnerReference:
    return OwnerReference(api_version="v1", kind="ConfigMap", name=of.metadata.name, uid=of.metadata.uid, **more)


async def make(client: Client, name: str, *owners: OwnerReference, **metadata: Any) -> ConfigMap:
    metadata.setdefault("namespace", "default")
    return await client.create(
        CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name=name, owner_references=list(owners), **metadata))
    )


async def names(client: Client) -> set[str]:
    return {each.metadata.name for each in (await client.list(CONFIG_MAPS)).items} - {"kube-root-ca.crt"}


async def wait_for_names(client: Client, left: set[str]) -> None:
    async def are_left() -> bool:
        return await names(client) & {"a", "b", "c", "d"} == left

    await eventually(are_left)


async def test_dependents_follow_in_the_background(run: Run) -> None:
    client = await run(GarbageCollector)
    a = await make(client, "a")
    b = await make(client, "b", owner(a))
    await make(client, "c", owner(b))
    await make(client, "d")
    await client.delete(CONFIG_MAPS, "a", "default")
    await wait_for_names(client, {"d"})


async def test_in_the_foreground_dependents_go_first(run: Run) -> None:
    client = await run(GarbageCollector)
    a = await make(client, "a")
    b = await make(client, "b", owner(a, block_owner_deletion=True), finalizers=["example.com/keep"])
    await make(client, "c", owner(b, block_owner_deletion=True))
    await client.delete(CONFIG_MAPS, "a", "default", DeleteOptions(propagation_policy="Foreground"))
    await wait_for_names(client, {"a", "b"})
    waiting = await client.get(CONFIG_MAPS, "a", "default")
    assert waiting.metadata.finalizers == ["foregroundDeletion"]
    await client.patch(CONFIG_MAPS, "b", "default", {"metadata": {"finalizers": None}})
    await wait_for_names(client, set())


async def test_orphans_stay_and_lose_their_owner(run: Run) -> None:
    client = await run(GarbageCollector)
    a = await make(client, "a")
    await make(client, "b", owner(a))
    await client.delete(CONFIG_MAPS, "a", "default", DeleteOptions(propagation_policy="Orphan"))
    await wait_for_names(client, {"b"})
    assert (await client.get(CONFIG_MAPS, "b", "default")).metadata.owner_references == []


async def test_an_owner_that_never_was_is_no_owner(run: Run) -> None:
    client = await run(GarbageCollector)
    absent = OwnerReference(api_version="v1", kind="ConfigMap", name="absent", uid="0-0-0")
    await make(client, "a", absent)
    await wait_for_names(client, set())
    b = await make(client, "b")
    await make(client, "c", owner(b), absent)

    async def only_b_owns_it() -> bool:
        return [each.name for each in (await client.get(CONFIG_MAPS, "c", "default")).metadata.owner_references] == [
            "b"
        ]

    await eventually(only_b_owns_it)


async def test_an_owner_of_another_name_with_the_same_uid_is_another(run: Run) -> None:
    client = await run(GarbageCollector)
    a = await make(client, "a")
    wrong = OwnerReference(api_version="v1", kind="ConfigMap", name="other", uid=a.metadata.uid)
    await make(client, "b", wrong)
    await wait_for_names(client, {"a"})


async def test_an_owner_in_another_namespace_is_told_of(run: Run) -> None:
    client = await run(GarbageCollector)
    await client.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="other")))
    a = await make(client, "a", namespace="other")
    await make(client, "b", owner(a))

    async def messages() -> list[str]:
        return [each.message for each in (await client.list(EVENTS)).items if each.reason == "OwnerRefInvalidNamespace"]

    (message,) = await eventually(messages)
    named = f"[v1/ConfigMap, namespace: default, name: a, uid: {a.metadata.uid}]"
    assert message == f'ownerRef {named} does not exist in namespace "default"'
    await wait_for_names(client, {"a"})


async def test_custom_objects_own_and_are_owned(run: Run) -> None:
    client = await run(GarbageCollector)
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    await client.create(
        DEFINITIONS,
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [version],
            },
        },
    )

    async def create_widget() -> Any:
        try:
            return await client.create(WIDGETS, {"metadata": {"name": "w"}}, "default")
        except Exception:
            return None

    widget = await eventually(create_widget)
    reference = OwnerReference(api_version="example.com/v1", kind="Widget", name="w", uid=widget["metadata"]["uid"])
    a = await make(client, "a", reference)
    await client.create(
        WIDGETS,
        {
            "metadata": {
                "name": "x",
                "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": a.metadata.uid}],
            }
        },
        "default",
    )
    await client.delete(WIDGETS, "w", "default")
    await wait_for_names(client, set())

    async def no_widgets() -> bool:
        return (await client.list(WIDGETS)).items == []

    await eventually(no_widgets)


async def test_owners_that_never_were_are_asked_for_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()
    get = Client.get

    async def counted(self: Client, resource: APIResource[Any], name: str, namespace: str = "") -> Any:
        asked[name] += 1
        return await get(self, resource, name, namespace)

    monkeypatch.setattr(Client, "get", counted)
    client = await run(GarbageCollector)
    there = await make(client, "d")
    absent = [
        OwnerReference(api_version="v1", kind="ConfigMap", name=f"x{each}", uid=f"0-{each}") for each in range(60)
    ]
    await make(client, "a", *absent)
    await make(client, "b", *absent[::-1])
    await make(client, "c", *absent[:30], owner(there), *absent[30:])
    await wait_for_names(client, {"c", "d"})

    async def is_left_with_one() -> bool:
        return len((await client.get(CONFIG_MAPS, "c", "default")).metadata.owner_references) == 1

    await eventually(is_left_with_one)
    # Each request may be made twice at the same time: for the unobserved owner, and for the first dependent.
    assert all(asked[each.name] <= 2 for each in absent)
    assert sum(asked[each.name] for each in absent) <= 80
    assert asked["d"] == 0


async def test_the_name_of_an_owner_is_no_path(run: Run) -> None:
    """The collector may read everything: a user who writes an owner's name must not choose a request path."""
    client = await run(GarbageCollector)
    there = await make(client, "d")
    for number, name in enumerate(("default/configmaps/d", "..", "d%2Fx")):
        elsewhere = OwnerReference(api_version="v1", kind="Namespace", name=name, uid=there.metadata.uid)
        await make(client, "abc"[number], elsewhere)
    absent = OwnerReference(api_version="v1", kind="ConfigMap", name="absent", uid="0-0-0")
    await make(client, "e", absent)

    async def is_gone() -> bool:
        return "e" not in await names(client)

    await eventually(is_gone)
    assert await names(client) >= {"a", "b", "c", "d"}


async def test_an_object_with_thousands_of_owners_goes_with_the_last(run: Run) -> None:
    client = await run(GarbageCollector)
    a = await make(client, "a")
    missing = [
        OwnerReference(api_version="v1", kind="ConfigMap", name=f"none-{number}", uid=f"uid-{number}")
        for number in range(1500)
    ]
    await make(client, "b", *missing, owner(a))
    await make(client, "c", owner(a))

    async def has_one_owner() -> bool:
        return len((await client.get(CONFIG_MAPS, "b", "default")).metadata.owner_references) == 1

    await eventually(has_one_owner)
    await client.delete(CONFIG_MAPS, "a", "default")
    await wait_for_names(client, set())


async def _is_being_deleted(client: Client, name: str) -> bool:
    return (await client.get(CONFIG_MAPS, name, "default")).metadata.deletion_timestamp is not None


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
async def test_owners_that_a_snapshot_brings_back_are_owners_again(
    run: Run, shared_environment: Environment, policy: str
) -> None:
    """The dependent is never gone, so that no monitor reports it a second time."""
    client = await run(GarbageCollector)
    options = DeleteOptions(propagation_policy=policy)
    a = await make(client, "a")
    await make(client, "b", owner(a, block_owner_deletion=True), finalizers=["example.com/keep"])
    snapshot = shared_environment.snapshot()
    for _ in range(3):
        await client.delete(CONFIG_MAPS, "a", "default", options)
        await eventually(lambda: _is_being_deleted(client, "b"))
        await shared_environment.restore(snapshot)
        assert await names(client) >= {"a", "b"}
        assert not await _is_being_deleted(client, "b")


async def test_new_dependents_of_an_absent_owner_are_deleted(run: Run) -> None:
    """The absent owner is known by its first dependent, which cannot be deleted."""
    client = await run(GarbageCollector)
    absent = OwnerReference(api_version="v1", kind="ConfigMap", name="absent", uid="0-0-0")
    await make(client, "a", absent, finalizers=["example.com/keep"])
    await eventually(lambda: _is_being_deleted(client, "a"))
    await make(client, "b", absent)
    await wait_for_names(client, {"a"})
