"""Tests of NamespaceAutoProvision: namespaces are created with their first object."""

from __future__ import annotations

import pytest

from steersman.admission.interface import NamespaceState
from steersman.admission_plugins.namespace_auto_provision import NamespaceAutoProvision
from steersman.api.core.v1 import ConfigMap, Namespace
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.errors.status import StatusError, already_exists, bad_request
from steersman.machinery.identity.schema import GroupResource
from steersman.registry.core.configmaps import CONFIG_MAPS
from steersman.registry.core.namespaces import NAMESPACES
from tests.admission_plugins.writes import refusal, write_of

THERE = {"ns": NamespaceState("Active")}


def make_config_map(namespace: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="a", namespace=namespace))


async def test_a_missing_namespace_is_made() -> None:
    made: list[str] = []

    async def make(name: str) -> None:
        made.append(name)

    plugin = NamespaceAutoProvision(THERE.get, make)
    for namespace in ("new", "ns", ""):
        await plugin.admit(write_of(CONFIG_MAPS, make_config_map(namespace)))
    await plugin.admit(write_of(CONFIG_MAPS, make_config_map("dry"), dry_run=True))
    await plugin.admit(write_of(NAMESPACES, Namespace(metadata=ObjectMeta(name="x")), namespace="x"))
    assert made == ["new"]


@pytest.mark.parametrize("error", [already_exists(GroupResource("", "namespaces"), "new"), bad_request("why not")])
async def test_only_that_it_is_there_already_is_no_failure(error: StatusError) -> None:
    async def make(name: str) -> None:
        raise error

    work = NamespaceAutoProvision(THERE.get, make).admit(write_of(CONFIG_MAPS, make_config_map("new")))
    if error.reason == "AlreadyExists":
        await work
    else:
        assert await refusal(work) == 'configmaps "a" is forbidden: why not'
