"""Resources of a pod as a whole in its status: those allocated and those in effect.

Follows pkg/kubelet `kubelet_pods.go` (convertToAPIPodLevelResourcesStatus) and pkg/kubelet/cm (ResourceConfigForPod).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from steersman.api.core.v1 import Container, Pod, PodStatus, ResourceRequirements
from steersman.machinery.built_in.pod_resources import compute_qos_class, limits_of_spec, requests_of_spec
from steersman.machinery.values.quantity import Quantity, nanos

_SHOWN: Final = ("cpu", "memory")
"""Resources that the pod's control group shows."""
_LEAST_CPU: Final = 2 * 10**6
"""Billionths of a CPU up to which a request is not reported, unless the pod itself has the request."""


def allocated_of(pod: Pod) -> dict[str, str]:
    """Return the resources that a pod has allocated when it has all that it asks for."""
    return {} if _requests_nothing(pod) else _texts(requests_of_spec(pod.spec))


def resources_of(pod: Pod, phase: str) -> ResourceRequirements:
    """Return the resources of a pod that are in effect when it has all that it asks for."""
    if _requests_nothing(pod):
        return ResourceRequirements()
    own = pod.spec.resources or ResourceRequirements()
    requests, limits = _texts(requests_of_spec(pod.spec)), _texts(limits_of_spec(pod.spec))
    if phase != "Running":
        return ResourceRequirements(requests=requests, limits=limits, claims=list(own.claims))
    seen: dict[str, str] = {name: requests[name] for name in _SHOWN if name in requests}
    if nanos(seen.get("cpu", "0")) <= _LEAST_CPU and "cpu" not in own.requests:
        seen.pop("cpu", None)
    bounded: dict[str, str] = {name: limits[name] for name in _SHOWN if name in limits and _is_bounded(pod, name)}
    return ResourceRequirements(
        requests={**own.requests, **seen}, limits={**own.limits, **bounded}, claims=list(own.claims)
    )


def _requests_nothing(pod: Pod) -> bool:
    spec = pod.spec
    return (
        spec.resources is None
        and not spec.overhead
        and not any(
            each.resources.requests or each.resources.limits
            for each in (*(spec.containers or ()), *spec.init_containers)
        )
    )


def differs(pod: Pod, status: PodStatus) -> bool:
    """Return True if the resources of the pod as a whole differ from those in effect."""
    wants, has = pod.spec.resources, status.resources
    if wants is None or has is None:
        return False
    pairs = ((wants.requests, has.requests), (wants.limits, has.limits))
    return any(
        name in _SHOWN and nanos(amount) != nanos(there.get(name, "0"))
        for asked, there in pairs
        for name, amount in asked.items()
    )


def limits_in(pod_level: ResourceRequirements | None, container: ResourceRequirements) -> Mapping[str, str]:
    """Return the limits of a container, with those of the pod where the container has none."""
    return container.limits if pod_level is None else {**pod_level.limits, **container.limits}


def _is_bounded(pod: Pod, name: str) -> bool:
    """Return True if the pod's control group has a limit for a resource: by the pod or by each of its containers."""
    if pod.spec.resources is not None and nanos(pod.spec.resources.limits.get(name, "0")):
        return True
    if compute_qos_class(pod.spec) == "Guaranteed":
        return True
    containers: tuple[Container, ...] = (*(pod.spec.containers or ()), *pod.spec.init_containers)
    return all(nanos(each.resources.limits.get(name, "0")) for each in containers)


def _texts(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}
