"""Resource requests and limits of whole pods, and their quality of service class.

Follows k8s.io/component-helpers `resource` and pkg/apis/core/v1/helper/qos.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.validation.resource_names import is_huge_page_resource
from steersman.machinery.values.conditions import find_condition
from steersman.machinery.values.quantity import Quantity, QuantityError, nanos, parse

AnyContainer = core.Container | core.EphemeralContainer
Amounts = dict[str, Quantity]
"""Amounts by the name of the resource."""

QOS_RESOURCES: Final = ("cpu", "memory")
POD_LEVEL_RESOURCES: Final = ("cpu", "memory")
"""Resources that `spec.resources` may have, besides huge pages."""

_MILLI: Final = -3
_FINER_THAN_MILLI: Final = ("n", "u")


def all_containers(spec: core.PodSpec) -> Sequence[AnyContainer]:
    """Return init containers, containers and ephemeral containers, in upstream's order."""
    if spec.init_containers or spec.ephemeral_containers:
        return (*spec.init_containers, *(spec.containers or ()), *spec.ephemeral_containers)
    return spec.containers or ()


def is_sidecar(container: AnyContainer) -> bool:
    """Return True if an init container is a sidecar, which keeps running beside the other containers."""
    return container.restart_policy == "Always"


def is_pod_level_resource(name: str) -> bool:
    """Return True if a pod as a whole can request the resource."""
    return name in POD_LEVEL_RESOURCES or is_huge_page_resource(name)


def is_huge_page_multiple(name: str, quantity: str) -> bool:
    """Return True if `quantity` is a multiple of the page size in `name` ("hugepages-2Mi")."""
    try:
        page = parse(name.removeprefix("hugepages-"))
    except QuantityError:
        return False
    if page.sign <= 0 or page.as_milli() % 1000:
        return False
    return parse(quantity).as_int() % page.as_int() == 0


def round_up_to_milli(resources: dict[str, str]) -> None:
    """Round amounts finer than a thousandth up, in place, as nothing finer can be requested."""
    for name, quantity in resources.items():
        if quantity.endswith(_FINER_THAN_MILLI) or "e-" in quantity:
            resources[name] = str(parse(quantity).round_up(_MILLI))


def aggregate_requests(spec: core.PodSpec) -> dict[str, str]:
    """Return the requests of all containers together; see `aggregate`."""
    return {name: str(amount) for name, amount in aggregate(spec, requests_of).items()}


def aggregate_limits(spec: core.PodSpec) -> dict[str, str]:
    """Return the limits of all containers together; see `aggregate`."""
    return {name: str(amount) for name, amount in aggregate(spec, limits_of).items()}


def requests_of(container: core.Container) -> Amounts:
    """Return the requests of a container."""
    return _parsed(container.resources.requests)


def limits_of(container: core.Container) -> Amounts:
    """Return the limits of a container."""
    return _parsed(container.resources.limits)


def aggregate(spec: core.PodSpec, amounts: Callable[[core.Container], Amounts]) -> Amounts:
    """Return the larger of two sums for each resource (KEP-753).

    One is the sum over containers and sidecars, the other the need of an init container and the sidecars started before
    it. `amounts` returns the amounts of a container.
    """
    total: Amounts = {}
    sidecars: Amounts = {}
    initial: Amounts = {}
    for container in spec.containers or ():
        _add(total, amounts(container))
    for container in spec.init_containers:
        needed = dict(amounts(container))
        if is_sidecar(container):
            _add(total, needed)
            _add(sidecars, needed)
            needed = sidecars
        else:
            _add(needed, sidecars)
        _raise(initial, needed)
    _raise(total, initial)
    return total


def pod_requests(pod: core.Pod, *, whole_as_reported: bool = True) -> Amounts:
    """Return the amounts that a pod takes from a node (PodRequests, with the resources of the status).

    For each container the larger of its requests and of its allocated resources counts. Requests of the pod as a whole
    replace the sum. The overhead is added. With `whole_as_reported` the pod-level resources in the status count, too.
    """
    given = _given(pod, requests_of, lambda status, resources: (resources.requests, status.allocated_resources))
    total = aggregate(pod.spec, given)
    if pod.spec.resources is not None:
        _override(total, pod.spec.resources.requests)
        if whole_as_reported and pod.status.resources is not None:
            reported = (pod.status.resources.requests, pod.status.allocated_resources)
            _override_by_status(total, pod, pod.spec.resources.requests, reported)
    _add(total, _parsed(pod.spec.overhead or {}))
    return total


def requests_of_spec(spec: core.PodSpec) -> Amounts:
    """Return the requests in a pod's spec, by containers or as a whole, and its overhead, without its status."""
    total = aggregate(spec, requests_of)
    if spec.resources is not None:
        _override(total, spec.resources.requests)
    _add(total, _parsed(spec.overhead or {}))
    return total


def limits_of_spec(spec: core.PodSpec) -> Amounts:
    """Return the limits in a pod's spec, without its status; the overhead is added to resources with a limit."""
    total = aggregate(spec, limits_of)
    if spec.resources is not None:
        _override(total, spec.resources.limits)
    _add(total, {name: amount for name, amount in _parsed(spec.overhead or {}).items() if total.get(name)})
    return total


def pod_limits(pod: core.Pod) -> Amounts:
    """Return the limits of a pod, with the resources of its status (PodLimits).

    The overhead is added to resources with a limit.
    """
    total = aggregate(pod.spec, _given(pod, limits_of, lambda status, resources: (resources.limits,)))
    if pod.spec.resources is not None:
        _override(total, pod.spec.resources.limits)
    _add(total, {name: amount for name, amount in _parsed(pod.spec.overhead or {}).items() if total.get(name)})
    return total


def _given(
    pod: core.Pod,
    wanted: Callable[[core.Container], Amounts],
    reported: Callable[[core.ContainerStatus, core.ResourceRequirements], tuple[dict[str, str], ...]],
) -> Callable[[core.Container], Amounts]:
    """Return a function that returns the amounts of a container: the larger of the wanted and the reported amounts.

    If the node cannot satisfy a resize, only the reported amounts count.
    """
    statuses = {each.name: each for each in (*pod.status.container_statuses, *pod.status.init_container_statuses)}
    if not statuses:
        return wanted
    infeasible = _is_resize_infeasible(pod)
    fixed = {each.name for each in pod.spec.init_containers if not is_sidecar(each)}

    def amounts(container: core.Container) -> Amounts:
        status = statuses.get(container.name)
        if status is None or status.resources is None or container.name in fixed:
            return wanted(container)
        most: Amounts = {} if infeasible else wanted(container)
        for each in reported(status, status.resources):
            _raise(most, _parsed(each))
        return most

    return amounts


def has_pod_level_resources(spec: core.PodSpec) -> bool:
    """Return True if the pod as a whole has requests or limits of resources that a pod can have."""
    resources = spec.resources
    return resources is not None and any(map(is_pod_level_resource, (*resources.requests, *resources.limits)))


def _is_resize_infeasible(pod: core.Pod) -> bool:
    pending = find_condition(pod.status.conditions, "PodResizePending")
    return pending is not None and pending.reason == "Infeasible"


def _override(total: Amounts, resources: dict[str, str]) -> None:
    total.update((name, parse(text)) for name, text in resources.items() if is_pod_level_resource(name))


def _override_by_status(
    total: Amounts, pod: core.Pod, wanted: dict[str, str], reported: tuple[dict[str, str], ...]
) -> None:
    """Replace the totals of pod-level resources by the larger of the requested and the reported amounts.

    If the node cannot satisfy a resize, only the reported amounts count.
    """
    most: Amounts = {} if _is_resize_infeasible(pod) else _parsed(wanted)
    for each in reported:
        _raise(most, _parsed(each))
    total.update((name, most.get(name, Quantity(0))) for name in wanted if is_pod_level_resource(name))


def _parsed(resources: dict[str, str]) -> Amounts:
    return {name: parse(text) for name, text in resources.items()}


def _add(total: Amounts, amounts: Amounts) -> None:
    for name, amount in amounts.items():
        total[name] = total[name] + amount if name in total else amount


def _raise(total: Amounts, least: Amounts) -> None:
    for name, quantity in least.items():
        if name not in total or quantity > total[name]:
            total[name] = quantity


def compute_qos_class(spec: core.PodSpec) -> str:
    """Return Guaranteed, Burstable or BestEffort.

    The class depends on the cpu and memory of the pod as a whole if it has `spec.resources`, otherwise of its
    containers.
    """
    if spec.resources is not None:
        return _qos_class([spec.resources], limits_needed=bool(spec.resources.limits))
    containers = (*(spec.containers or ()), *spec.init_containers)
    return _qos_class(map(_resources, containers), limits_needed=True)


_resources: Final = attrgetter("resources")


def _qos_class(all_resources: Iterable[core.ResourceRequirements], *, limits_needed: bool) -> str:
    """Return the class for these resources. Only amounts above 0 count.

    The class is Guaranteed if limits equal requests, to a billionth.
    """
    guaranteed, any_amount = True, False
    excess = dict.fromkeys(QOS_RESOURCES, 0)
    for resources in all_resources:
        for name in QOS_RESOURCES:
            request, limit = resources.requests.get(name), resources.limits.get(name)
            asked = 0 if request is None else max(nanos(request), 0)
            allowed = 0 if limit is None else max(nanos(limit), 0)
            excess[name] += allowed - asked
            any_amount = any_amount or asked > 0 or allowed > 0
            guaranteed = guaranteed and (allowed > 0 or not limits_needed)
        if any_amount and not guaranteed:
            return "Burstable"
    if not any_amount:
        return "BestEffort"
    return "Burstable" if any(excess.values()) else "Guaranteed"
