"""Resource amounts as integers: requests of pods, capacity of nodes (framework.Resource)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Final

from msgspec import Struct, field

from steersman.api.core import v1 as core
from steersman.machinery.built_in.pod_resources import Amounts, aggregate, pod_requests, requests_of, requests_of_spec
from steersman.machinery.codec.serializer import encode
from steersman.machinery.validation.resource_names import is_extended_resource, is_huge_page_resource
from steersman.machinery.values.quantity import Quantity, parse

_MOST_KNOWN: Final = 4096
_LONGEST_KEY: Final = 1024
"""Bytes of a cache key; longer keys are replaced by their digests."""
_NON_ZERO: Final = {"cpu": parse("100m"), "memory": parse("200Mi")}
"""Amounts that a container without requests counts with in scores."""


class Resources(Struct, frozen=True):
    """Resource amounts: CPU in thousandths, memory and storage in bytes, other resources in their own units."""

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    pods: int = 0
    scalars: Mapping[str, int] = field(default_factory=dict)


class Requests(Struct, frozen=True):
    """Requests of a pod, and the CPU and memory that it counts with in scores, with defaults where it has
    no requests.
    """

    total: Resources
    non_zero_milli_cpu: int
    non_zero_memory: int


def is_scalar(name: str) -> bool:
    """Return True if a resource is counted besides CPU, memory and storage."""
    if name in _PLAIN:
        return False
    return (
        is_extended_resource(name)
        or is_huge_page_resource(name)
        or "kubernetes.io/" in name
        or name.startswith("attachable-volumes-")
    )


def allocatable(node: core.Node) -> Resources:
    """Return the allocatable resources of a node."""
    return _resources({name: parse(text) for name, text in node.status.allocatable.items()})


def requested_by(spec: core.PodSpec) -> Requests:
    """Return the requests of a pod without a node."""
    return _known(spec, b"", lambda: _of(requests_of_spec(spec), spec, requests_of))


def used_by(pod: core.Pod) -> Requests:
    """Return the resources that a pod uses on its node: the larger of its requests and its allocation."""
    status = pod.status
    given = [
        (each.name, each.resources, each.allocated_resources)
        for each in (*status.container_statuses, *status.init_container_statuses)
        if each.resources is not None
    ]
    if not given:
        return requested_by(pod.spec)
    infeasible = [each.reason for each in status.conditions if each.type == "PodResizePending"]
    whole = (status.resources, status.allocated_resources) if pod.spec.resources is not None else None
    return _known(pod.spec, encode((given, infeasible, whole)), lambda: _of(pod_requests(pod), pod.spec, requests_of))


def _known(spec: core.PodSpec, more: bytes, read: Callable[[], Requests]) -> Requests:
    """Return cached requests of pods with the same containers, or the result of `read`."""
    containers = [
        (each.name, each.restart_policy, each.resources) for each in (*(spec.containers or ()), *spec.init_containers)
    ]
    key = encode((containers, len(spec.init_containers), spec.overhead, spec.resources)), more
    if len(key[0]) + len(more) > _LONGEST_KEY:
        key = sha256(key[0]).digest(), sha256(more).digest()
    found = _requests.get(key)
    if found is None:
        found = _requests[key] = read()
        if len(_requests) > _MOST_KNOWN:
            _requests.popitem(last=False)
    return found


_requests: OrderedDict[tuple[bytes, bytes], Requests] = OrderedDict()
"""Cache of requests. Worker threads use it, too, which a BoundedCache does not allow."""


def _of(total: Amounts, spec: core.PodSpec, amounts: Callable[[core.Container], Amounts]) -> Requests:
    of_pod = spec.resources.requests if spec.resources is not None else {}
    missing = {name: amount for name, amount in _NON_ZERO.items() if not of_pod or name not in total}

    def non_zero(container: core.Container) -> Amounts:
        return {**missing, **amounts(container)}

    counted = aggregate(spec, non_zero) if missing else total
    requested = _resources(total)
    overhead = spec.overhead or {}
    milli_cpu = _counted(counted, total, of_pod, overhead, "cpu").as_milli()
    memory = _counted(counted, total, of_pod, overhead, "memory").as_int()
    return Requests(requested, milli_cpu, memory)


def _counted(
    counted: Amounts, total: Amounts, of_pod: Mapping[str, str], overhead: Mapping[str, str], name: str
) -> Quantity:
    if counted is total or name in of_pod:
        return total.get(name, _NOTHING)
    amount = counted.get(name, _NOTHING)
    return amount + parse(overhead[name]) if name in overhead else amount


_NOTHING: Final = Quantity(0)


def _resources(amounts: Amounts) -> Resources:
    scalars = {name: amount.as_int() for name, amount in amounts.items() if is_scalar(name)}
    cpu, memory, storage, pods = (amounts.get(name, _NOTHING) for name in _PLAIN)
    return Resources(cpu.as_milli(), memory.as_int(), storage.as_int(), pods.as_int(), scalars)


_PLAIN: Final = ("cpu", "memory", "ephemeral-storage", "pods")
