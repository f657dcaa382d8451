"""What a pod asks for as a whole: the sums over its containers, and its quality of service class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.quantity import Quantity, QuantityError, parse
from steersman.registry.core.resource_names import is_huge_page_resource

AnyContainer = core.Container | core.EphemeralContainer

QOS_RESOURCES: Final = ("cpu", "memory")
POD_LEVEL_RESOURCES: Final = ("cpu", "memory")
"""What `spec.resources` may hold, beside huge pages."""

_MILLI: Final = -3
_FINER_THAN_MILLI: Final = ("n", "u")


def all_containers(spec: core.PodSpec) -> Iterator[AnyContainer]:
    """Init containers, containers, ephemeral containers: upstream's order."""
    yield from spec.init_containers
    yield from spec.containers or ()
    yield from spec.ephemeral_containers


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
    """What all containers ask for together; see `_aggregate`."""
    return _aggregate(spec, lambda container: container.resources.requests)


def aggregate_limits(spec: core.PodSpec) -> dict[str, str]:
    """What all containers may use together; see `_aggregate`."""
    return _aggregate(spec, lambda container: container.resources.limits)


def _aggregate(spec: core.PodSpec, resources: Callable[[core.Container], dict[str, str]]) -> dict[str, str]:
    """The sum over containers and sidecars, or what an init container needs with the sidecars started before it,
    whichever is more (KEP-753)."""
    total: dict[str, Quantity] = {}
    sidecars: dict[str, Quantity] = {}
    initial: dict[str, Quantity] = {}
    for container in spec.containers or ():
        _add(total, resources(container))
    for container in spec.init_containers:
        if is_sidecar(container):
            _add(total, resources(container))
            _add(sidecars, resources(container))
            needed = sidecars
        else:
            needed = {name: parse(quantity) for name, quantity in resources(container).items()}
            for name, quantity in sidecars.items():
                needed[name] = needed[name] + quantity if name in needed else quantity
        _raise(initial, needed)
    _raise(total, initial)
    return {name: str(quantity) for name, quantity in total.items()}


def _add(total: dict[str, Quantity], resources: dict[str, str]) -> None:
    for name, text in resources.items():
        quantity = parse(text)
        total[name] = total[name] + quantity if name in total else quantity


def _raise(total: dict[str, Quantity], least: dict[str, Quantity]) -> None:
    for name, quantity in least.items():
        if name not in total or quantity > total[name]:
            total[name] = quantity


def compute_qos_class(spec: core.PodSpec) -> str:
    """Guaranteed, Burstable or BestEffort, from cpu and memory of the pod if it says so, else of its containers."""
    if spec.resources is not None:
        return _qos_class([spec.resources], limits_needed=bool(spec.resources.limits))
    containers = (*(spec.containers or ()), *spec.init_containers)
    return _qos_class([container.resources for container in containers], limits_needed=True)


def _qos_class(all_resources: Iterable[core.ResourceRequirements], *, limits_needed: bool) -> str:
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    guaranteed = True
    for resources in all_resources:
        if not resources.requests and not resources.limits:
            guaranteed = guaranteed and not limits_needed
            continue
        _add(requests, _positive(resources.requests))
        limited = _positive(resources.limits)
        _add(limits, limited)
        if limits_needed and len(limited) < len(QOS_RESOURCES):
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _positive(resources: dict[str, str]) -> dict[str, str]:
    return {name: resources[name] for name in QOS_RESOURCES if name in resources and parse(resources[name]).sign > 0}
