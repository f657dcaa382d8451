"""Tests of OwnerReferencesPermissionEnforcement: changes of owners, and blockOwnerDeletion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from steersman.admission.interface import CREATE, UPDATE, Operation
from steersman.admission_plugins.owner_references_permission_enforcement import (
    Mapping,
    OwnerReferencesPermissionEnforcement,
)
from steersman.api.core.v1 import ConfigMap, Pod
from steersman.machinery.codec.serializer import from_plain
from steersman.registry.core.configmaps import CONFIG_MAPS
from steersman.registry.core.pods.pods import PODS
from tests.admission_plugins.writes import Allowing, refusal, write_of

DELETE_IT = ("delete", "configmaps", "a")
FINALIZE_D = ("update", "deployments/finalizers", "d")
FINALIZE_ANYTHING = ("update", "*/finalizers", "*")


def resources_of(group: str, version: str, kind: str) -> Sequence[Mapping]:
    return {
        ("apps", "v1", "Deployment"): [Mapping("deployments", True)],
        ("", "v1", "Node"): [Mapping("nodes", False)],
    }.get((group, version, kind), [])


def owner(name: str, *, kind: str = "Deployment", version: str = "apps/v1", block: bool | None = None) -> Any:
    reference = {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}"}
    return reference if block is None else {**reference, "blockOwnerDeletion": block}


def make_config_map(*owners: Any) -> ConfigMap:
    return from_plain(ConfigMap, {"metadata": {"name": "a", "namespace": "ns", "ownerReferences": list(owners)}})


async def validate_write(authorizer: Allowing, new: ConfigMap, old: ConfigMap | None = None) -> None:
    operation: Operation = CREATE if old is None else UPDATE
    plugin = OwnerReferencesPermissionEnforcement(authorizer, resources_of)
    await plugin.validate(write_of(CONFIG_MAPS, new, operation, old=old))


async def test_owners_are_changed_by_those_who_may_delete_the_object() -> None:
    for new, old in (
        (make_config_map(owner("d")), make_config_map()),
        (make_config_map(), make_config_map(owner("d"))),
        (make_config_map(owner("d")), make_config_map(owner("e"))),
    ):
        await validate_write(Allowing(DELETE_IT), new, old)
        assert await refusal(validate_write(Allowing(), new, old)) == (
            'configmaps "a" is forbidden: cannot set an ownerRef on a resource you can\'t delete: , <nil>'
        )


async def test_new_objects_and_unchanged_owners_need_no_right() -> None:
    await validate_write(Allowing(), make_config_map(owner("d")))
    await validate_write(Allowing(), make_config_map(owner("d", block=True)), make_config_map(owner("d", block=True)))
    await validate_write(Allowing(), make_config_map())


@pytest.mark.parametrize(
    "old", [None, make_config_map(), make_config_map(owner("d")), make_config_map(owner("d", block=False))]
)
async def test_to_block_an_owner_takes_the_right_to_its_finalizers(old: ConfigMap | None) -> None:
    new = make_config_map(owner("d", block=True))
    await validate_write(Allowing(DELETE_IT, FINALIZE_D), new, old)
    assert await refusal(validate_write(Allowing(DELETE_IT), new, old)) == (
        'configmaps "a" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you '
        "can't set finalizers on: , <nil>"
    )


async def test_an_owner_that_was_blocked_stays_so_without_a_right() -> None:
    await validate_write(
        Allowing(DELETE_IT),
        make_config_map(owner("d", block=True), owner("e")),
        make_config_map(owner("d", block=True)),
    )


async def test_owners_are_judged_where_they_are() -> None:
    authorizer = Allowing(("update", "nodes/finalizers", "n"), FINALIZE_D)
    await validate_write(
        authorizer, make_config_map(owner("n", kind="Node", version="v1", block=True), owner("d", block=True))
    )
    asked = [
        (each.action.group, each.action.version, each.action.resource, each.action.namespace)
        for each in authorizer.asked[-2:]
    ]
    assert asked == [("", "v1", "nodes", ""), ("apps", "v1", "deployments", "ns")]


async def test_an_owner_of_no_known_kind_is_only_for_those_who_may_finalize_anything() -> None:
    new = make_config_map(owner("x", kind="Thing", version="example.com/v1", block=True))
    await validate_write(Allowing(FINALIZE_ANYTHING), new)
    assert await refusal(validate_write(Allowing(), new)) == (
        'configmaps "a" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for '
        'APIVersion example.com/v1 Kind Thing: no matches for kind "Thing" in version "example.com/v1"'
    )


async def test_the_status_of_pods_is_let_alone() -> None:
    plugin = OwnerReferencesPermissionEnforcement(Allowing(), resources_of)
    new = from_plain(Pod, {"metadata": {"name": "a", "namespace": "ns", "ownerReferences": [owner("d", block=True)]}})
    await plugin.validate(write_of(PODS, new, UPDATE, old=Pod(), subresource="status"))
