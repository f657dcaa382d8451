"""Extended resources that devices of a DeviceClass provide (plugins/dynamicresources extendeddynamicresources.go).

On a node without such a resource of its own, a pod that requests it gets devices by a claim that the scheduler makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from steersman.api.core.v1 import Container, ContainerExtendedResourceRequest, Node, Pod
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.api.resource.v1 import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from steersman.machinery.built_in.pod_resources import is_sidecar
from steersman.machinery.built_in.quota.pods import IMPLICIT_CLASS
from steersman.machinery.values.quantity import QuantityError, parse
from steersman.scheduler.demand.requests import requested_by

ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of claims for extended resources."""

ClassOf = Callable[[str], DeviceClass | None]
"""Returns the class whose devices provide a resource."""


class ClassNames:
    """DeviceClasses by the names of the extended resources that they provide."""

    def __init__(self) -> None:
        self._classes: dict[str, DeviceClass] = {}
        self._by_resource: dict[str, set[str]] = {}
        """Names of classes by resource."""

    def changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        """Follow a change of a class."""
        if old is not None:
            self._classes.pop(old.metadata.name, None)
            for resource in _resources_of(old):
                names = self._by_resource.get(resource, set())
                names.discard(old.metadata.name)
                if not names:
                    self._by_resource.pop(resource, None)
        if new is not None:
            self._classes[new.metadata.name] = new
            for resource in _resources_of(new):
                self._by_resource.setdefault(resource, set()).add(new.metadata.name)

    def class_of(self, resource: str) -> DeviceClass | None:
        """Return the class that provides a resource: of several the youngest, then the one with the lowest name."""
        names = self._by_resource.get(resource)
        if not names:
            return None
        classes = sorted((self._classes[name] for name in names), key=lambda each: each.metadata.name)
        return max(classes, key=lambda each: each.metadata.creation_timestamp or "")

    def requested_by(self, pod: Pod) -> frozenset[str]:
        """Return the extended resources that a pod requests and devices of a class provide."""
        if not self._by_resource:
            return frozenset()
        scalars = requested_by(pod.spec).total.scalars
        return frozenset(name for name, amount in scalars.items() if amount and name in self._by_resource)


def _resources_of(found: DeviceClass) -> Iterator[str]:
    yield f"{IMPLICIT_CLASS}{found.metadata.name}"
    if found.spec.extended_resource_name:
        yield found.spec.extended_resource_name


class ExtendedClaim(Struct, frozen=True):
    """Claim of a pod for extended resources, which is not stored yet, and the requests of each container in it."""

    claim: ResourceClaim
    mappings: Sequence[ContainerExtendedResourceRequest]


def is_extended_claim_of(claim: ResourceClaim, pod: Pod) -> bool:
    """Return True if a stored claim was made for the extended resources of a pod."""
    return claim.metadata.annotations.get(ANNOTATION) == "true" and any(
        each.controller and each.uid == pod.metadata.uid for each in claim.metadata.owner_references
    )


def needed_on(node: Node, resources: frozenset[str]) -> tuple[str, ...]:
    """Return the resources that a node does not have itself, in order."""
    return tuple(sorted(name for name in resources if not _amount(node.status.allocatable.get(name, "0"))))


def extended_claim(pod: Pod, resources: Sequence[str], class_of: ClassOf) -> ExtendedClaim:
    """Return the claim for these resources of a pod. Containers that run one after the other share devices."""
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in resources:
        found = class_of(resource)
        if found is not None:
            of_resource = _of_resource(pod, resource, found.metadata.name)
            requests += of_resource.requests
            mappings += of_resource.mappings
    metadata = pod.metadata
    owner = OwnerReference(api_version="v1", kind="Pod", name=metadata.name, uid=metadata.uid, controller=True)
    claim = ResourceClaim(
        metadata=ObjectMeta(
            generate_name=f"{metadata.name}-extended-resources-",
            namespace=metadata.namespace,
            uid=f"extended-resources/{metadata.uid}",
            owner_references=[owner],
            annotations={ANNOTATION: "true"},
        ),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=sorted(requests, key=lambda each: each.name))),
    )
    return ExtendedClaim(claim, mappings)


class _OfResource(NamedTuple):
    requests: list[DeviceRequest]
    mappings: list[ContainerExtendedResourceRequest]


def _of_resource(pod: Pod, resource: str, class_name: str) -> _OfResource:
    """Return the requests of a pod's containers for one resource.

    An init container takes devices of the later long-lived containers first. For what it needs beyond, all init
    containers share the largest request.
    """
    spec = pod.spec
    containers = [*spec.init_containers, *(spec.containers or ())]
    is_short = [index < len(spec.init_containers) and not is_sidecar(each) for index, each in enumerate(containers)]
    of_long: dict[int, DeviceRequest] = {}
    long_mappings: list[ContainerExtendedResourceRequest] = []
    for index, container in enumerate(containers):
        if not is_short[index] and (request := _request(index, container, resource, class_name, ())) is not None:
            of_long[index] = request
            long_mappings.append(_mapping(container, resource, request.name))
    largest: DeviceRequest | None = None
    own: set[str] = set()
    short_mappings: list[ContainerExtendedResourceRequest] = []
    for index, container in enumerate(containers):
        if not is_short[index] or not _count_of(container, resource):
            continue
        reused: list[DeviceRequest] = []
        for later in sorted(of_long):
            if later >= index and _sum(reused) < _count_of(container, resource):
                reused.append(of_long[later])
        short_mappings += [_mapping(container, resource, each.name) for each in reused]
        request = _request(index, container, resource, class_name, reused)
        if request is not None:
            own.add(request.name)
            short_mappings.append(_mapping(container, resource, request.name))
            if largest is None or _sum([largest]) < _sum([request]):
                largest = request
    if largest is not None:
        shared = largest.name
        short_mappings = [
            replace(each, request_name=shared) if each.request_name in own else each for each in short_mappings
        ]
    requests = [*(() if largest is None else (largest,)), *(of_long[index] for index in sorted(of_long))]
    return _OfResource(requests, [*long_mappings, *short_mappings])


def _request(
    index: int, container: Container, resource: str, class_name: str, reused: Sequence[DeviceRequest]
) -> DeviceRequest | None:
    """Return the request of a container for devices beyond those of others that it uses; None if it needs none."""
    count = _count_of(container, resource) - _sum(reused)
    if count <= 0:
        return None
    number = sorted(container.resources.requests).index(resource)
    exactly = ExactDeviceRequest(device_class_name=class_name, allocation_mode="ExactCount", count=count)
    return DeviceRequest(name=f"container-{index}-request-{number}", exactly=exactly)


def _mapping(container: Container, resource: str, request: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(container_name=container.name, resource_name=resource, request_name=request)


def _sum(requests: Sequence[DeviceRequest]) -> int:
    return sum(each.exactly.count for each in requests if each.exactly is not None)


def _count_of(container: Container, resource: str) -> int:
    return _amount(container.resources.requests.get(resource, "0"))


def _amount(text: str) -> int:
    try:
        return parse(text).as_int()
    except QuantityError:
        return 0


def status_of(name: str, mappings: Sequence[ContainerExtendedResourceRequest]) -> Mapping[str, object]:
    """Return the part of a pod's status about its claim for extended resources, as plain data."""
    requests = [
        {
            "containerName": each.container_name,
            "resourceName": each.resource_name,
            "requestName": each.request_name,
        }
        for each in mappings
    ]
    return {"extendedResourceClaimStatus": {"resourceClaimName": name, "requestMappings": requests}}
