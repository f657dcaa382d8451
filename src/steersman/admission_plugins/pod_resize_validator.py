"""PodResizeValidator: a running pod may not be resized beyond the allocatable resources of its node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from steersman.admission.interface import UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration, PluginDependencies
from steersman.machinery.built_in.pod_resources import requests_of_spec
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import Cause, StatusError
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.values.quantity import Quantity, parse
from steersman.rest.objects import Reading

_PODS: Final = GroupResource("", "pods")
_NOTHING: Final = Quantity(0)


class Host(NamedTuple):
    """Operating system and allocatable resources of a node; `os` is "" if it is unknown."""

    os: str
    cpu: Quantity
    memory: Quantity


def host_of(node: Any) -> Host:
    """Return the parts of a node that resizes depend on."""
    allocatable = node.status.allocatable
    return Host(
        node.metadata.labels.get("kubernetes.io/os", "linux"),
        parse(allocatable.get("cpu", "0")),
        parse(allocatable.get("memory", "0")),
    )


class PodResizeValidator(Plugin):
    """Checks resizes of pods. `find` returns the `host_of` a node, None if the node does not exist."""

    name = "PodResizeValidator"
    operations = frozenset({UPDATE})
    resources = frozenset({_PODS})
    subresources = frozenset({"resize"})
    validates = True

    def __init__(self, find: Callable[[str], Host | None]) -> None:
        self._find = find

    async def validate(self, attributes: Attributes) -> None:
        """Raise StatusError 403 if the node is missing, too small, or not Linux."""
        pod = attributes.obj
        name = pod.spec.node_name
        if not name or pod.metadata.generation == attributes.old.metadata.generation:
            return
        node = self._find(name)
        if node is None:
            raise attributes.forbid(f"node {quote(name)} not found")
        if node.os != "linux":
            why = f"pod resize is only supported on linux nodes, node {quote(name)} is {quote(node.os)}"
            raise _refused(attributes, why, "UnsupportedPlatform")
        requests = requests_of_spec(pod.spec)
        cpu, memory = requests.get("cpu", _NOTHING), requests.get("memory", _NOTHING)
        short = []
        if cpu > node.cpu:
            short.append(f"cpu, requested: {cpu.as_milli()}, allocatable: {node.cpu.as_milli()}")
        if memory > node.memory:
            short.append(f"memory, requested: {memory.as_int()}, allocatable: {node.memory.as_int()}")
        if short:
            why = f"node didn't have enough allocatable resources: {'; '.join(short)}"
            raise _refused(attributes, why, "NodeCapacity")


def _refused(attributes: Attributes, why: str, reason: str) -> StatusError:
    error = attributes.forbid(why)
    error.causes = (Cause(reason),)
    return error


def _make(dependencies: PluginDependencies) -> PodResizeValidator:
    return PodResizeValidator(dependencies.reader("nodes", Reading(host_of, "metadata.labels", "status.allocatable")))


POD_RESIZE_VALIDATOR: Final = Declaration(PodResizeValidator, on_by_default=True, make=_make)
