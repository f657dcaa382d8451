"""Tests of NamespaceLifecycle: writes in missing and terminating namespaces, and immortal namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission.interface import CREATE, DELETE, UPDATE, Attributes, Chain, NamespaceState, Operation
from steersman.admission_plugins.namespace_lifecycle import NamespaceLifecycle
from steersman.api.core.v1 import ConfigMap, Namespace
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.errors.status import StatusError
from steersman.registry.core.configmaps import CONFIG_MAPS
from steersman.registry.core.namespaces import NAMESPACES
from tests.admission_plugins.writes import refusal, write_of

PHASES = {"ns": "Active", "going": "Terminating", "default": "Active"}
LIFECYCLE = Chain((NamespaceLifecycle({name: NamespaceState(phase) for name, phase in PHASES.items()}.get),))


def make_attributes(obj: Any, operation: Operation = CREATE, **more: Any) -> Attributes:
    return write_of(NAMESPACES if isinstance(obj, Namespace) else CONFIG_MAPS, obj, operation, **more)


def make_config_map(namespace: str) -> ConfigMap:
    return from_plain(ConfigMap, {"metadata": {"name": "a", "namespace": namespace}})


def namespace(name: str) -> Namespace:
    return from_plain(Namespace, {"metadata": {"name": name}})


async def test_things_are_made_in_namespaces_that_are_there() -> None:
    await LIFECYCLE.admit(make_attributes(make_config_map("ns")))
    for operation in (CREATE, UPDATE):
        with pytest.raises(StatusError, match='namespaces "none" not found') as caught:
            await LIFECYCLE.admit(make_attributes(make_config_map("none"), operation))
        assert caught.value.code == 404


async def test_nothing_new_is_made_in_a_namespace_that_is_going() -> None:
    with pytest.raises(StatusError) as caught:
        await LIFECYCLE.admit(make_attributes(make_config_map("going")))
    assert caught.value.message == (
        'configmaps "a" is forbidden: unable to create new content in namespace going because it is being terminated'
    )
    assert [(cause.reason, cause.field) for cause in caught.value.causes] == [
        ("NamespaceTerminating", "metadata.namespace")
    ]
    for operation in (UPDATE, DELETE):
        await LIFECYCLE.admit(make_attributes(make_config_map("going"), operation))


async def test_what_is_in_no_namespace_is_let_through() -> None:
    await LIFECYCLE.admit(make_attributes(make_config_map("")))
    await LIFECYCLE.admit(make_attributes(namespace("new"), namespace="new"))


@pytest.mark.parametrize(
    ("name", "kept"), [("default", True), ("kube-system", True), ("kube-public", True), ("ns", False)]
)
async def test_the_systems_own_namespaces_are_kept(name: str, kept: bool) -> None:
    work = LIFECYCLE.admit(make_attributes(namespace(name), DELETE, namespace=name))
    if kept:
        assert await refusal(work) == f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    else:
        await work
