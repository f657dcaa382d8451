"""LimitRanges: defaults and bounds for the resources of containers, pods and claims in a namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core.v1 import LimitRange, LimitRangeItem
from steersman.kinds.built_in import built_in
from steersman.machinery.built_in.pod_resources import round_up_to_milli
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, required
from steersman.machinery.identity.names import new_uid
from steersman.machinery.validation.formats import is_qualified_name
from steersman.machinery.validation.leaves import validate_unique
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.validation.resource_names import (
    is_overcommit_allowed,
    validate_container_resource_name,
    validate_resource_name,
)
from steersman.machinery.values.quantity import Quantity, parse
from steersman.registry.columns import CREATED_AT
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.rest.strategy import Strategy

POD: Final = "Pod"
CONTAINER: Final = "Container"
CLAIM: Final = "PersistentVolumeClaim"

_LIMITS: Final = Path("spec", "limits")
ONE: Final = Quantity(1)


class LimitRangeStrategy(Strategy[LimitRange]):
    allow_create_on_update = True

    def prepare_for_create(self, ctx: Context, obj: LimitRange) -> None:
        if not obj.metadata.name:
            obj.metadata.name = new_uid()

    def validate(self, ctx: Context, obj: LimitRange) -> Iterator[FieldError]:
        seen: set[str] = set()
        for index, item in enumerate(obj.spec.limits or ()):
            path = _LIMITS[index]
            yield from _validate_type(item.type, path / "type")
            yield from validate_unique(item.type, seen, path / "type")
            yield from _validate_names(item, path)
            for name in _names(item):
                yield from _validate_bounds(item, name, path)

    def validate_update(self, ctx: Context, new: LimitRange, old: LimitRange) -> Iterator[FieldError]:
        return self.validate(ctx, new)


def _validate_type(name: str, path: Path) -> Iterator[FieldError]:
    faults = is_qualified_name(name)
    for message in faults:
        yield invalid(path, name, message)
    if not faults and "/" not in name and name not in (POD, CONTAINER, CLAIM):
        yield invalid(path, name, "must be a standard limit type or fully qualified")


def _validate_names(item: LimitRangeItem, path: Path) -> Iterator[FieldError]:
    """Validate the resource names in every map of an item."""
    check = validate_container_resource_name if item.type in (POD, CONTAINER) else validate_resource_name
    for member, quantities in (("max", item.max), ("min", item.min)):
        for name in quantities:
            yield from check(name, path.child(member)[name])
    for member, quantities in (("default", item.default), ("defaultRequest", item.default_request)):
        if item.type == POD:
            if quantities:
                yield forbidden(path / member, "may not be specified when `type` is 'Pod'")
            continue
        for name in quantities:
            yield from check(name, path.child(member)[name])
    if item.type == CLAIM and "storage" not in item.min and "storage" not in item.max:
        yield required(path / "limits", "either minimum or maximum storage value is required, but neither was provided")
    for name in item.max_limit_request_ratio:
        yield from check(name, path.child("maxLimitRequestRatio")[name])


def _names(item: LimitRangeItem) -> list[str]:
    """Return the name of every resource in an item, without repetitions."""
    maps = [item.max, item.min, item.max_limit_request_ratio]
    if item.type != POD:
        maps += [item.default, item.default_request]
    return list(dict.fromkeys(name for quantities in maps for name in quantities))


def _validate_bounds(item: LimitRangeItem, name: str, path: Path) -> Iterator[FieldError]:
    """Validate min <= default request <= default <= max, and that the ratio is possible."""
    low, high = item.min.get(name), item.max.get(name)
    limit, request = (None, None) if item.type == POD else (item.default.get(name), item.default_request.get(name))
    ratio = item.max_limit_request_ratio.get(name)
    if _above(low, high):
        yield invalid(path.child("min")[name], low, f"min value {low} is greater than max value {high}")
    if _above(low, request):
        detail = f"min value {low} is greater than default request value {request}"
        yield invalid(path.child("defaultRequest")[name], request, detail)
    if _above(request, high):
        detail = f"default request value {request} is greater than max value {high}"
        yield invalid(path.child("defaultRequest")[name], request, detail)
    if _above(request, limit):
        detail = f"default request value {request} is greater than default limit value {limit}"
        yield invalid(path.child("defaultRequest")[name], request, detail)
    if _above(low, limit):
        yield invalid(path.child("default")[name], low, f"min value {low} is greater than default value {limit}")
    if _above(limit, high):
        yield invalid(path.child("default")[name], high, f"default value {limit} is greater than max value {high}")
    if ratio is not None:
        yield from _validate_ratio(ratio, low, high, path.child("maxLimitRequestRatio")[name])
    if limit is not None and request is not None and not is_overcommit_allowed(name) and parse(limit) != parse(request):
        detail = f"default value {limit} must equal to defaultRequest value {request} in {name}"
        yield invalid(path.child("defaultRequest")[name], request, detail)


def _above(left: str | None, right: str | None) -> bool:
    return left is not None and right is not None and parse(left) > parse(right)


_MAX_MILLI: Final = (2**63 - 1) // 1000
"""Bound below which amounts are compared in thousandths (upstream's MaxMilliValue)."""


def _validate_ratio(ratio: str, low: str | None, high: str | None, path: Path) -> Iterator[FieldError]:
    if parse(ratio) < ONE:
        yield invalid(path, ratio, f"ratio {ratio} is less than 1")
    if low is None or high is None:
        return
    limit_ratio, least, most = (parse(each) for each in (ratio, low, high))
    allowed, bottom, top = limit_ratio.as_int() * 1000, least.as_int(), most.as_int()
    if all(each.as_int() < _MAX_MILLI for each in (limit_ratio, least, most)):
        allowed, bottom, top = limit_ratio.as_milli(), least.as_milli(), most.as_milli()
    if not bottom:  # Go's floats give infinity or NaN, which is never greater
        return
    if allowed / 1000 > top / bottom:
        yield invalid(path, ratio, f"ratio {ratio} is greater than max/min = {top / bottom:f}")


def default_limit_range(limit_range: LimitRange) -> None:
    """SetDefaults_LimitRangeItem: container limits follow from max, requests from limits and min."""
    for item in limit_range.spec.limits or ():
        if item.type == CONTAINER:
            item.default = {**item.max, **item.default}
            item.default_request = {**item.min, **item.default, **item.default_request}
        for resources in (item.max, item.min, item.default, item.default_request, item.max_limit_request_ratio):
            round_up_to_milli(resources)


LIMIT_RANGES: Final = Resource(
    kind=built_in(LimitRange, default=default_limit_range),
    plural="limitranges",
    short_names=("limits",),
    strategy=LimitRangeStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(CREATED_AT,),
    storage_version_hash="EBKMFVe6cwo=",
)
