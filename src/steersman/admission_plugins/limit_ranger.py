"""LimitRanger: a namespace's LimitRanges set defaults of containers, and bounds of pods and claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from steersman.admission.interface import CREATE, UPDATE, Attributes, Plugin, WriteKind
from steersman.admission_plugins.declaration import Declaration
from steersman.api.core.v1 import Container, LimitRangeItem, PersistentVolumeClaim, Pod, PodSpec
from steersman.machinery.built_in.pod_resources import POD_LEVEL_RESOURCES, aggregate_limits, aggregate_requests
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.large_work.sizes import MAX_VALUES, too_many_values
from steersman.machinery.values.quantity import Quantity, parse
from steersman.rest.objects import NamespaceCache, Objects, Presence, Reading
from steersman.work.offloading import offload_if

ANNOTATION: Final = "kubernetes.io/limit-ranger"
"""Annotation of a pod that lists the defaults that were set."""

_MAX_MILLI: Final = (2**63 - 1) // 1000
"""Largest amount that is compared in thousandths (resource.MaxMilliValue). Larger ones are compared as whole numbers.
"""
_NONE: Final = Quantity(0)

_MAX_VIOLATIONS: Final = 10_000
"""Most violations in an error."""

_FindViolations = Callable[[Any, list[LimitRangeItem]], Iterator[str]]

_LIMITS: Final[Reading[list[LimitRangeItem]]] = Reading(lambda each: each.spec.limits or [], "spec.limits")


class LimitRanger(Plugin):
    """Applies LimitRanges. `limit_ranges` are those of all namespaces."""

    name = "LimitRanger"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({GroupResource("", "pods"), GroupResource("", "persistentvolumeclaims")})
    subresources = frozenset({"", "resize"})
    mutates = True
    validates = True

    def __init__(self, limit_ranges: Objects) -> None:
        self._limits = NamespaceCache(limit_ranges, _LIMITS, list)
        self._presence = Presence(limit_ranges, self.notify_work_changed)

    def has_work(self, writes: WriteKind, *, mutating: bool) -> bool:
        return not (self._presence.is_empty or (mutating and writes.resource != "pods"))

    async def admit(self, attributes: Attributes) -> None:
        """Set the default requests and limits of the containers of a pod."""
        every, is_much = await self._limits.get(attributes.action.namespace)
        if every and _is_limited(attributes):
            for limits in every:
                await offload_if(is_much, _fill_defaults, attributes.obj, limits)

    async def validate(self, attributes: Attributes) -> None:
        """Raise StatusError 403 with all violations of the first LimitRange that the object violates."""
        find = _FINDERS.get(attributes.kind.kind)
        if find is None:
            return
        every, is_much = await self._limits.get(attributes.action.namespace)
        if not every or not _is_limited(attributes):
            return
        for limits in every:
            found = await offload_if(is_much, _violations, find, attributes.obj, limits)
            if found:
                raise attributes.forbid(found[0] if len(found) == 1 else f"[{', '.join(found)}]")


def _violations(find: _FindViolations, obj: Any, limits: list[LimitRangeItem]) -> list[str]:
    """Return the distinct violations, at most 10,000."""
    return list(dict.fromkeys(islice(find(obj, limits), _MAX_VIOLATIONS)))


def _is_limited(attributes: Attributes) -> bool:
    """Return True if this write can change limited resources. Objects that are being deleted are exempt."""
    if attributes.kind.group:
        return False
    if attributes.old is not None and attributes.old.metadata.deletion_timestamp is not None:
        return False
    if attributes.action.subresource == "resize":
        return attributes.operation == UPDATE
    if attributes.action.subresource:
        return False
    return attributes.operation == CREATE or attributes.kind.kind != "Pod"


# Defaults


def _fill_defaults(pod: Pod, limits: list[LimitRangeItem]) -> None:
    """Set the defaults of one LimitRange, with an annotation that lists them and replaces that of an earlier
    LimitRange.

    Raises StatusError 413 if the pod gets more values than any object may have.
    """
    requests: dict[str, str] = {}
    bounds: dict[str, str] = {}
    for item in limits:
        if item.type == "Container":
            requests.update(item.default_request)
            bounds.update(item.default)
    changes: list[str] = []
    amounts = 0
    for what, containers in (("container", pod.spec.containers or ()), ("init container", pod.spec.init_containers)):
        for container in containers:
            changes += _fill_container(container, what, requests, bounds)
            amounts += len(container.resources.requests) + len(container.resources.limits)
            if amounts > MAX_VALUES:  # the product of many defaults and many containers
                raise too_many_values()
    if changes:
        pod.metadata.annotations[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(changes)}"


def _fill_container(container: Container, what: str, requests: dict[str, str], limits: dict[str, str]) -> Iterator[str]:
    """Set missing requests and limits, and yield texts that list them."""
    resources = container.resources
    for defaults, present, word in ((requests, resources.requests, "request"), (limits, resources.limits, "limit")):
        missing = sorted(defaults.keys() - present.keys())
        if missing:
            present.update((name, defaults[name]) for name in missing)
            yield f"{', '.join(missing)} {word} for {what} {container.name}"


# Bounds


def _pod_violations(pod: Pod, limits: list[LimitRangeItem]) -> Iterator[str]:
    spec = pod.spec
    for item in limits:
        if item.type == "Container":
            for container in (*(spec.containers or ()), *spec.init_containers):
                yield from _out_of_bounds(item, container.resources.requests, container.resources.limits)
        elif item.type == "Pod":
            yield from _out_of_bounds(item, _pod_requests(spec), _pod_limits(spec))


def _pod_requests(spec: PodSpec) -> dict[str, str]:
    requests = aggregate_requests(spec)
    _override(requests, spec.resources.requests if spec.resources is not None else {})
    return requests


def _pod_limits(spec: PodSpec) -> dict[str, str]:
    limits = aggregate_limits(spec)
    _override(limits, spec.resources.limits if spec.resources is not None else {})
    return limits


def _override(total: dict[str, str], resources: dict[str, str]) -> None:
    """Override `total` by the pod-level resources. As upstream, the plugin ignores pod-level huge pages."""
    total.update((name, resources[name]) for name in POD_LEVEL_RESOURCES if name in resources)


def _claim_violations(claim: PersistentVolumeClaim, limits: list[LimitRangeItem]) -> Iterator[str]:
    """Yield the violations of a claim. Only its requests have bounds."""
    requests = claim.spec.resources.requests
    for item in limits:
        if item.type == "PersistentVolumeClaim":
            for name in sorted(item.min):
                yield from _minimum_errors(item, name, requests, {})
            for name in sorted(item.max):
                yield from _request_above(item, name, requests)


def _out_of_bounds(item: LimitRangeItem, requests: dict[str, str], limits: dict[str, str]) -> Iterator[str]:
    for name in sorted(item.min):
        yield from _minimum_errors(item, name, requests, limits)
    for name in sorted(item.max):
        yield from _maximum_errors(item, name, requests, limits)
    for name in sorted(item.max_limit_request_ratio):
        yield from _above_ratio(item, name, requests, limits)


def _minimum_errors(item: LimitRangeItem, name: str, requests: dict[str, str], limits: dict[str, str]) -> Iterator[str]:
    text = f"minimum {name} usage per {item.type} is {item.min[name]}"
    request, limit, least = _comparable(requests.get(name), limits.get(name), item.min[name])
    if name not in requests:
        yield f"{text}.  No request is specified"
    elif request < least:
        yield f"{text}, but request is {requests[name]}"
    elif name in limits and limit < least:
        yield f"{text}, but limit is {limits[name]}"


def _maximum_errors(item: LimitRangeItem, name: str, requests: dict[str, str], limits: dict[str, str]) -> Iterator[str]:
    text = f"maximum {name} usage per {item.type} is {item.max[name]}"
    request, limit, most = _comparable(requests.get(name), limits.get(name), item.max[name])
    if name not in limits:
        yield f"{text}.  No limit is specified"
    elif limit > most:
        yield f"{text}, but limit is {limits[name]}"
    elif name in requests and request > most:
        yield f"{text}, but request is {requests[name]}"


def _request_above(item: LimitRangeItem, name: str, requests: dict[str, str]) -> Iterator[str]:
    text = f"maximum {name} usage per {item.type} is {item.max[name]}"
    request, _, most = _comparable(requests.get(name), None, item.max[name])
    if name not in requests:
        yield f"{text}.  No request is specified"
    elif request > most:
        yield f"{text}, but request is {requests[name]}"


def _above_ratio(item: LimitRangeItem, name: str, requests: dict[str, str], limits: dict[str, str]) -> Iterator[str]:
    most = item.max_limit_request_ratio[name]
    text = f"{name} max limit to request ratio per {item.type} is {most}"
    request, limit, _ = _comparable(requests.get(name), limits.get(name), most)
    if not request:
        yield f"{text}, but no request is specified or request is 0"
    elif not limit:
        yield f"{text}, but no limit is specified or limit is 0"
    elif float(limit) / float(request) * 1000 > float(parse(most).as_milli()):
        yield f"{text}, but provided ratio is {float(limit) / float(request):f}"


def _comparable(request: str | None, limit: str | None, bound: str) -> tuple[int, int, int]:
    """Return the three amounts as integers of one unit, 0 for None: thousandths if no amount overflows, else whole
    numbers.
    """
    amounts = [parse(text) if text is not None else _NONE for text in (request, limit, bound)]
    if all(amount.as_int() <= _MAX_MILLI for amount in amounts):
        first, second, third = (amount.as_milli() for amount in amounts)
    else:
        first, second, third = (amount.as_int() for amount in amounts)
    return first, second, third


_FINDERS: Final[dict[str, _FindViolations]] = {
    "Pod": _pod_violations,
    "PersistentVolumeClaim": _claim_violations,
}
"""Functions that yield the violations of an object, by kind."""


LIMIT_RANGER: Final = Declaration(
    LimitRanger, on_by_default=True, make=lambda dependencies: LimitRanger(dependencies.objects("", "limitranges"))
)
