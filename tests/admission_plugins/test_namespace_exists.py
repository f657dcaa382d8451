"""Tests of NamespaceExists: writes in missing namespaces."""

from __future__ import annotations

import pytest

from steersman.admission.interface import CREATE, DELETE, UPDATE, NamespaceState
from steersman.admission_plugins.namespace_exists import NamespaceExists
from steersman.api.core.v1 import ConfigMap, Namespace
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.errors.status import StatusError
from steersman.registry.core.configmaps import CONFIG_MAPS
from steersman.registry.core.namespaces import NAMESPACES
from tests.admission_plugins.writes import write_of

PLUGIN = NamespaceExists({"ns": NamespaceState("Active"), "going": NamespaceState("Terminating")}.get)


def make_config_map(namespace: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="a", namespace=namespace))


async def test_every_write_in_a_missing_namespace_is_refused() -> None:
    for operation in (CREATE, UPDATE, DELETE):
        with pytest.raises(StatusError) as caught:
            await PLUGIN.validate(write_of(CONFIG_MAPS, make_config_map("none"), operation))
        assert (caught.value.code, caught.value.message) == (404, 'namespaces "none" not found')


async def test_namespaces_that_are_there_are_enough() -> None:
    for namespace in ("ns", "going", ""):
        await PLUGIN.validate(write_of(CONFIG_MAPS, make_config_map(namespace)))
    await PLUGIN.validate(write_of(NAMESPACES, Namespace(metadata=ObjectMeta(name="new")), namespace="new"))
