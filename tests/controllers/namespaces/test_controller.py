"""Tests of the namespace controller."""

from __future__ import annotations

from steersman.api.core.v1 import ConfigMap, Namespace, Secret
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.resources import CONFIG_MAPS, NAMESPACES, SECRETS
from steersman.controllers.namespaces.controller import NamespaceController
from tests.controllers.waiting import Run, eventually


async def namespaces(client: Client) -> dict[str, Namespace]:
    return {each.metadata.name: each for each in (await client.list(NAMESPACES)).items}


async def test_a_namespace_goes_with_all_that_is_in_it(run: Run) -> None:
    client = await run(NamespaceController)
    await client.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="a")))
    await client.create(CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name="one", namespace="a")))
    await client.create(SECRETS, Secret(metadata=ObjectMeta(name="one", namespace="a")))
    await client.create(CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name="stays", namespace="default")))
    await client.delete(NAMESPACES, "a")
    await eventually(lambda: _gone(client, "a"))
    assert (await client.list(SECRETS)).items == []
    assert [each.metadata.name for each in (await client.list(CONFIG_MAPS, "default")).items] == ["stays"]


async def _gone(client: Client, name: str) -> bool:
    return name not in await namespaces(client)


async def test_what_finalizers_keep_is_told_of_and_waited_for(run: Run) -> None:
    client = await run(NamespaceController)
    await client.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="a")))
    kept = ConfigMap(metadata=ObjectMeta(name="kept", namespace="a", finalizers=["example.com/keep"]))
    await client.create(CONFIG_MAPS, kept)
    await client.delete(NAMESPACES, "a")

    async def conditions_by_type() -> dict[str, tuple[str, str, str]]:
        conditions = (await namespaces(client))["a"].status.conditions
        return {each.type: (each.status, each.reason, each.message) for each in conditions}

    conditions = await eventually(conditions_by_type)
    assert conditions == {
        "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered", "All resources successfully discovered"),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/keep in 1 resource instances",
        ),
    }
    await client.patch(CONFIG_MAPS, "kept", "a", {"metadata": {"finalizers": None}})
    await client.patch(NAMESPACES, "a", "", {"metadata": {"labels": {"look": "again"}}})
    await eventually(lambda: _gone(client, "a"))


async def test_another_finalizer_keeps_the_namespace(run: Run) -> None:
    client = await run(NamespaceController)
    namespace = Namespace(metadata=ObjectMeta(name="a"))
    namespace.spec.finalizers = ["kubernetes", "example.com/mine"]
    await client.create(NAMESPACES, namespace)
    await client.delete(NAMESPACES, "a")

    async def left() -> bool:
        return (await namespaces(client))["a"].spec.finalizers == ["example.com/mine"]

    await eventually(left)
