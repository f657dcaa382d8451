"""What a pod asks for as a whole: the sums over its containers, and its quality of service class.

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
"""How much of which resource."""

QOS_RESOURCES: Final = ("cpu", "memory")
POD_LEVEL_RESOURCES: Final = ("cpu", "memory")
"""What `spec.resources` may hold, beside huge pages."""

_MILLI: Final = -3
_FINER_THAN_MILLI: Final = ("n", "u")


def all_containers(spec: core.PodSpec) -> Sequence[AnyContainer]:
    """Init containers, containers, ephemeral containers: upstream's order."""
    if spec.init_containers or spec.ephemeral_containers:
        return (*spec.init_containers, *(spec.containers or ()), *spec.ephemeral_containers)
    return spec.containers or ()


def is_sidecar(container: AnyContainer) -> bool:
    """Whether an init container is one that runs on beside the others."""
    return container.restart_policy == "Always"


def is_pod_level_resource(name: str) -> bool:
    """Whether a pod as a whole can ask for it."""
    return name in POD_LEVEL_RESOURCES or is_huge_page_resource(name)


def is_huge_page_multiple(name: str, quantity: str) -> bool:
    """Whether `quantity` is a whole number of the pages that `name` ("hugepages-2Mi") speaks of."""
    try:
        page = parse(name.removeprefix("hugepages-"))
    except QuantityError:
        return False
    if page.sign <= 0 or page.as_milli() % 1000:
        return False
    return parse(quantity).as_int() % page.as_int() == 0


def round_up_to_milli(resources: dict[str, str]) -> None:
    """Rounds what is finer than a thousandth up, which no one can ask for."""
    for name, quantity in resources.items():
        if quantity.endswith(_FINER_THAN_MILLI) or "e-" in quantity:
            resources[name] = str(parse(quantity).round_up(_MILLI))


def aggregate_requests(spec: core.PodSpec) -> dict[str, str]:
    """What all containers ask for together; see `aggregate`."""
    return {name: str(amount) for name, amount in aggregate(spec, requests_of).items()}


def aggregate_limits(spec: core.PodSpec) -> dict[str, str]:
    """What all containers may use together; see `aggregate`."""
    return {name: str(amount) for name, amount in aggregate(spec, limits_of).items()}


def requests_of(container: core.Container) -> Amounts:
    """What a container asks for."""
    return _parsed(container.resources.requests)


def limits_of(container: core.Container) -> Amounts:
    """What a container may use."""
    return _parsed(container.resources.limits)


def aggregate(spec: core.PodSpec, amounts: Callable[[core.Container], Amounts]) -> Amounts:
    """The sum over containers and sidecars, or what an init container needs with the sidecars started before it,
    whichever is more (KEP-753). `amounts` tells what counts for a container."""
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
    """What a pod takes of a node: the most of what its containers ask for and what they were given, or what the pod as
    a whole asks for, and its overhead (PodRequests, with the resources of the status). With `whole_as_reported` what
    the status reports of the pod as a whole counts too."""
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
    """What a pod asks a node for, whatever it has been given: of its containers or as a whole, and its overhead."""
    total = aggregate(spec, requests_of)
    if spec.resources is not None:
        _override(total, spec.resources.requests)
    _add(total, _parsed(spec.overhead or {}))
    return total


def limits_of_spec(spec: core.PodSpec) -> Amounts:
    """What a pod may use of a node, whatever it has been given; its overhead counts for what has a limit."""
    total = aggregate(spec, limits_of)
    if spec.resources is not None:
        _override(total, spec.resources.limits)
    _add(total, {name: amount for name, amount in _parsed(spec.overhead or {}).items() if total.get(name)})
    return total


def pod_limits(pod: core.Pod) -> Amounts:
    """What a pod may use of a node, as `pod_requests`; its overhead counts for what has a limit (PodLimits)."""
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
    """What counts for a container: the most of what is wanted and what its status reports; without what is wanted
    where the node cannot give it."""
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
    """Whether the pod as a whole asks for anything that a pod can ask for."""
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
    """Have a pod as a whole count with the most of what it asks for and what its status reports of it; without what it
    asks for where the node cannot give it."""
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
    """Guaranteed, Burstable or BestEffort, from cpu and memory of the pod if it says so, else of its containers."""
    if spec.resources is not None:
        return _qos_class([spec.resources], limits_needed=bool(spec.resources.limits))
    containers = (*(spec.containers or ()), *spec.init_containers)
    return _qos_class(map(_resources, containers), limits_needed=True)


_resources: Final = attrgetter("resources")


def _qos_class(all_resources: Iterable[core.ResourceRequirements], *, limits_needed: bool) -> str:
    """Only amounts above 0 count. Guaranteed is what may use, in billionths, as much as it asks for."""
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
