"""Tests of NodeRestriction: the affected users, and errors about missing pods."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from steersman.admission.interface import CREATE, DELETE, Attributes
from steersman.admission_plugins.node_restriction.plugin import NodeRestriction
from steersman.api.core.v1 import ConfigMap, Pod
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import NODES, UserInfo
from steersman.machinery.errors.status import StatusError
from steersman.registry.core.configmaps import CONFIG_MAPS
from steersman.registry.core.pods.pods import PODS
from tests.admission_plugins.writes import refusal, write_of


class EmptyResource:
    """A resource without objects."""

    def read_cached(self, namespace: str, name: str, reading: Any) -> None:
        return None


def plugin() -> NodeRestriction:
    nothing: Any = EmptyResource()
    return NodeRestriction(nothing, nothing, nothing, lambda old, new: "")


def by_node(attributes: Attributes, name: str) -> Attributes:
    return replace(attributes, user=UserInfo(f"system:node:{name}", groups=(NODES,)))


async def test_a_node_without_a_name_writes_nothing() -> None:
    write = write_of(CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name="a", namespace="b")))
    await plugin().admit(write)
    await plugin().admit(by_node(write, "n"))
    assert 'could not determine node from user "system:node:"' in await refusal(plugin().admit(by_node(write, "")))
    assert plugin().resources is None
    assert CREATE in plugin().operations


async def test_a_pod_that_is_not_there_is_told_in_the_singular() -> None:
    write = write_of(PODS, Pod(metadata=ObjectMeta(name="a", namespace="b")), DELETE)
    with pytest.raises(StatusError) as caught:
        await plugin().admit(by_node(write, "n"))
    assert (caught.value.code, caught.value.message) == (404, 'pod "a" not found')
