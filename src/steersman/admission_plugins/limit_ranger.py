"""LimitRanger: the LimitRanges of a namespace give containers their defaults, and bound pods and claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from steersman.admission.interface import CREATE, UPDATE, Attributes, Plugin, Writes
from steersman.admission_plugins.declaration import Declaration
from steersman.api.core.v1 import Container, LimitRangeItem, PersistentVolumeClaim, Pod, PodSpec
from steersman.machinery.built_in.pod_resources import POD_LEVEL_RESOURCES, aggregate_limits, aggregate_requests
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.large_work.sizes import MAX_VALUES, too_many_values
from steersman.machinery.values.quantity import Quantity, parse
from steersman.rest.objects import NamespaceCache, Objects, Presence, Reading
from steersman.work.offloading import offload_if

ANNOTATION: Final = "kubernetes.io/limit-ranger"
"""Says on a pod which defaults it was given."""

_MAX_MILLI: Final = (2**63 - 1) // 1000
"""Above this, whole units are compared (resource.MaxMilliValue)."""
_NONE: Final = Quantity(0)

_MAX_FOUND: Final = 10_000
"""Faults that are told."""

_Find = Callable[[Any, list[LimitRangeItem]], Iterator[str]]

_LIMITS: Final[Reading[list[LimitRangeItem]]] = Reading(lambda each: each.spec.limits or [], "spec.limits")


class LimitRanger(Plugin):
    """`limit_ranges` are all LimitRanges there are."""

    name = "LimitRanger"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({GroupResource("", "pods"), GroupResource("", "persistentvolumeclaims")})
    subresources = frozenset({"", "resize"})
    mutates = True
    validates = True

    def __init__(self, limit_ranges: Objects) -> None:
        self._limits = NamespaceCache(limit_ranges, _LIMITS, list)
        self._presence = Presence(limit_ranges, self.work_changed)

    def has_work(self, writes: Writes, *, mutating: bool) -> bool:
        return not (self._presence.is_empty or (mutating and writes.resource != "pods"))

    async def admit(self, attributes: Attributes) -> None:
        """Gives the containers of a pod the defaults for what they do not ask for themselves."""
        every, is_much = await self._limits.get(attributes.action.namespace)
        if every and _looks_at(attributes):
            for limits in every:
                await offload_if(is_much, _fill_defaults, attributes.obj, limits)

    async def validate(self, attributes: Attributes) -> None:
        """403 with everything that one LimitRange finds wrong."""
        find = _FINDERS.get(attributes.kind.kind)
        if find is None:
            return
        every, is_much = await self._limits.get(attributes.action.namespace)
        if not every or not _looks_at(attributes):
            return
        for limits in every:
            found = await offload_if(is_much, _found, find, attributes.obj, limits)
            if found:
                raise attributes.forbid(found[0] if len(found) == 1 else f"[{', '.join(found)}]")


def _found(find: _Find, obj: Any, limits: list[LimitRangeItem]) -> list[str]:
    """What is wrong, each once; of more than anybody reads only the first."""
    return list(dict.fromkeys(islice(find(obj, limits), _MAX_FOUND)))


def _looks_at(attributes: Attributes) -> bool:
    """Whether this write can change what is limited. What is being deleted is let through."""
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
    """What one LimitRange adds, with an annotation that says so; that of the last one stays.

    Raises StatusError 413 for more than any object may have.
    """
    requests: dict[str, str] = {}
    bounds: dict[str, str] = {}
    for item in limits:
        if item.type == "Container":
            requests.update(item.default_request)
            bounds.update(item.default)
    told: list[str] = []
    amounts = 0
    for what, containers in (("container", pod.spec.containers or ()), ("init container", pod.spec.init_containers)):
        for container in containers:
            told += _fill_container(container, what, requests, bounds)
            amounts += len(container.resources.requests) + len(container.resources.limits)
            if amounts > MAX_VALUES:  # many defaults for many containers
                raise too_many_values()
    if told:
        pod.metadata.annotations[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(told)}"


def _fill_container(container: Container, what: str, requests: dict[str, str], limits: dict[str, str]) -> Iterator[str]:
    """Fills in what is missing, and tells what that was."""
    resources = container.resources
    for defaults, present, word in ((requests, resources.requests, "request"), (limits, resources.limits, "limit")):
        missing = sorted(defaults.keys() - present.keys())
        if missing:
            present.update((name, defaults[name]) for name in missing)
            yield f"{', '.join(missing)} {word} for {what} {container.name}"


# Bounds


def _find_in_pod(pod: Pod, limits: list[LimitRangeItem]) -> Iterator[str]:
    spec = pod.spec
    for item in limits:
        if item.type == "Container":
            for container in (*(spec.containers or ()), *spec.init_containers):
                yield from _outside(item, container.resources.requests, container.resources.limits)
        elif item.type == "Pod":
            yield from _outside(item, _pod_requests(spec), _pod_limits(spec))


def _pod_requests(spec: PodSpec) -> dict[str, str]:
    requests = aggregate_requests(spec)
    _override(requests, spec.resources.requests if spec.resources is not None else {})
    return requests


def _pod_limits(spec: PodSpec) -> dict[str, str]:
    limits = aggregate_limits(spec)
    _override(limits, spec.resources.limits if spec.resources is not None else {})
    return limits


def _override(total: dict[str, str], resources: dict[str, str]) -> None:
    """Of what the pod as a whole asks for, this plugin knows nothing of huge pages."""
    total.update((name, resources[name]) for name in POD_LEVEL_RESOURCES if name in resources)


def _find_in_claim(claim: PersistentVolumeClaim, limits: list[LimitRangeItem]) -> Iterator[str]:
    """Only what a claim requests is bounded."""
    requests = claim.spec.resources.requests
    for item in limits:
        if item.type == "PersistentVolumeClaim":
            for name in sorted(item.min):
                yield from _below(item, name, requests, {})
            for name in sorted(item.max):
                yield from _request_above(item, name, requests)


def _outside(item: LimitRangeItem, requests: dict[str, str], limits: dict[str, str]) -> Iterator[str]:
    for name in sorted(item.min):
        yield from _below(item, name, requests, limits)
    for name in sorted(item.max):
        yield from _above(item, name, requests, limits)
    for name in sorted(item.max_limit_request_ratio):
        yield from _too_far_apart(item, name, requests, limits)


def _below(item: LimitRangeItem, name: str, requests: dict[str, str], limits: dict[str, str]) -> Iterator[str]:
    text = f"minimum {name} usage per {item.type} is {item.min[name]}"
    request, limit, least = _comparable(requests.get(name), limits.get(name), item.min[name])
    if name not in requests:
        yield f"{text}.  No request is specified"
    elif request < least:
        yield f"{text}, but request is {requests[name]}"
    elif name in limits and limit < least:
        yield f"{text}, but limit is {limits[name]}"


def _above(item: LimitRangeItem, name: str, requests: dict[str, str], limits: dict[str, str]) -> Iterator[str]:
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


def _too_far_apart(item: LimitRangeItem, name: str, requests: dict[str, str], limits: dict[str, str]) -> Iterator[str]:
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
    """The three as numbers of one unit, 0 for what is not there: thousandths where these do not overflow."""
    amounts = [parse(text) if text is not None else _NONE for text in (request, limit, bound)]
    if all(amount.as_int() <= _MAX_MILLI for amount in amounts):
        first, second, third = (amount.as_milli() for amount in amounts)
    else:
        first, second, third = (amount.as_int() for amount in amounts)
    return first, second, third


_FINDERS: Final[dict[str, _Find]] = {
    "Pod": _find_in_pod,
    "PersistentVolumeClaim": _find_in_claim,
}
"""By kind, what is wrong with an object of it."""


LIMIT_RANGER: Final = Declaration(
    LimitRanger, on_by_default=True, make=lambda server: LimitRanger(server.objects("", "limitranges"))
)
