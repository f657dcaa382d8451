"""ResourcePoolStatusRequests: requests for the number of free devices in a driver's pools, answered once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.meta.v1 import Condition
from steersman.api.resource.v1alpha3 import (
    PoolStatus,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
)
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import (
    FieldError,
    Path,
    Verbatim,
    duplicate,
    go_json,
    invalid,
    required,
    too_long,
    too_many,
)
from steersman.machinery.validation.conditions import validate_conditions
from steersman.machinery.validation.formats import byte_length, is_long_name, is_long_name_caseless
from steersman.machinery.validation.leaves import FIELD_IMMUTABLE, validate_with
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.values import times
from steersman.registry.printing.internal_form import internal_text
from steersman.registry.resource.names import MAX_POOL_NAME
from steersman.rest.context import Context
from steersman.rest.resource import Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000
MAX_POOLS: Final = 1000
MAX_CONDITIONS: Final = 10
MAX_VALIDATION_ERROR: Final = 256
"""Bytes."""


def set_defaults(request: ResourcePoolStatusRequest) -> None:
    """Set the defaults: at most a hundred pools."""
    if request.spec.limit is None:
        request.spec.limit = DEFAULT_LIMIT


def _validate_driver(driver: str, path: Path) -> Iterator[FieldError]:
    if not driver:
        yield required(path)
        return
    yield from validate_with(is_long_name_caseless, driver, path)


def _validate_pool_name(name: str, path: Path) -> Iterator[FieldError]:
    """Validate a pool name: subdomains joined by slashes."""
    if byte_length(name) > MAX_POOL_NAME:
        yield too_long(path, MAX_POOL_NAME)
    for index, segment in enumerate(name.split("/")):
        if not segment:
            yield invalid(path, name, f"segment {index}: must not be empty")
            continue
        for message in is_long_name(segment):
            yield invalid(path, segment, f"segment {index}: {message}")


def _at_least(minimum: int, value: int | None, path: Path) -> Iterator[FieldError]:
    if value is not None and value < minimum:
        yield invalid(path, value, f"must be greater than or equal to {minimum}")


def _validate_spec(spec: ResourcePoolStatusRequestSpec) -> Iterator[FieldError]:
    path = Path("spec")
    yield from _validate_driver(spec.driver, path / "driver")
    if spec.pool_name is not None:
        yield from _validate_pool_name(spec.pool_name, path / "poolName")
    if spec.limit is not None and spec.limit > MAX_LIMIT:
        yield invalid(path / "limit", spec.limit, f"must be less than or equal to {MAX_LIMIT}")
    yield from _at_least(1, spec.limit, path / "limit")


def _validate_pool(pool: PoolStatus, path: Path) -> Iterator[FieldError]:
    yield from _validate_driver(pool.driver, path / "driver")
    if not pool.pool_name:
        yield required(path / "poolName")
    else:
        yield from _validate_pool_name(pool.pool_name, path / "poolName")
    if not pool.generation:
        yield required(path / "generation")
    yield from _at_least(0, pool.generation, path / "generation")
    yield from _at_least(1, pool.resource_slice_count, path / "resourceSliceCount")
    yield from _at_least(0, pool.total_devices, path / "totalDevices")
    yield from _at_least(0, pool.allocated_devices, path / "allocatedDevices")
    yield from _at_least(0, pool.available_devices, path / "availableDevices")
    yield from _at_least(0, pool.unavailable_devices, path / "unavailableDevices")
    if pool.node_name is not None:
        yield from validate_with(is_long_name, pool.node_name, path / "nodeName")
    if pool.validation_error is not None and byte_length(pool.validation_error) > MAX_VALIDATION_ERROR:
        yield too_long(path / "validationError", MAX_VALIDATION_ERROR)


def _validate_answer(
    status: ResourcePoolStatusRequestStatus, old: ResourcePoolStatusRequestStatus | None
) -> Iterator[FieldError]:
    """Validate an answer; parts that equal the old answer's are not validated."""
    path = Path("status")
    if old is None or status.pool_count != old.pool_count:
        if status.pool_count is None:
            yield required(path / "poolCount")
        yield from _at_least(0, status.pool_count, path / "poolCount")
    if old is None or status.pools != old.pools:
        if len(status.pools) > MAX_POOLS:
            yield too_many(path / "pools", len(status.pools), MAX_POOLS)
        else:
            for index, pool in enumerate(status.pools):
                yield from _validate_pool(pool, (path / "pools")[index])
    if old is None or status.conditions != old.conditions:
        if len(status.conditions) > MAX_CONDITIONS:
            yield too_many(path / "conditions", len(status.conditions), MAX_CONDITIONS)
        else:
            yield from _unique(status.conditions, path / "conditions")


def _unique(conditions: list[Condition], path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        if condition.type in seen:
            yield duplicate(path[index], condition)
        seen.add(condition.type)


class ResourcePoolStatusRequestStrategy(Strategy[ResourcePoolStatusRequest]):
    allow_unconditional_update = False
    resets = ("status",)

    def prepare_for_create(self, ctx: Context, request: ResourcePoolStatusRequest) -> None:
        request.status = None

    def validate(self, ctx: Context, request: ResourcePoolStatusRequest) -> Iterator[FieldError]:
        return _validate_spec(request.spec)

    def validate_update(
        self, ctx: Context, new: ResourcePoolStatusRequest, old: ResourcePoolStatusRequest
    ) -> Iterator[FieldError]:
        if new.spec != old.spec:
            yield invalid(Path("spec"), None, FIELD_IMMUTABLE)


class ResourcePoolStatusRequestStatusStrategy(StatusStrategy[ResourcePoolStatusRequest]):
    allow_unconditional_update = False
    resets = ("spec", "metadata")

    def validate_update(
        self, ctx: Context, new: ResourcePoolStatusRequest, old: ResourcePoolStatusRequest
    ) -> Iterator[FieldError]:
        """Validate the answer, which can be written only once."""
        status = new.status
        if old.status is not None:
            if status != old.status:
                yield invalid(Path("status"), _internal(status), FIELD_IMMUTABLE)
        elif status is not None:
            yield from validate_conditions(status.conditions, Path("status", "conditions"))
        if status is not None and status != old.status:
            yield from _validate_answer(status, old.status)


def _internal(status: ResourcePoolStatusRequestStatus | None) -> Verbatim | None:
    if status is None:
        return None
    pools = internal_text(status.pools) if status.pools else "null"
    conditions = go_json(status.conditions or None)
    return Verbatim(f'{{"PoolCount":{go_json(status.pool_count)},"Pools":{pools},"Conditions":{conditions}}}')


def _condition(request: ResourcePoolStatusRequest) -> Condition | None:
    """Return the first condition that ends the request."""
    conditions = request.status.conditions if request.status is not None else []
    return next((each for each in conditions if each.type in ("Complete", "Failed") and each.status == "True"), None)


def _sum(request: ResourcePoolStatusRequest, name: str) -> str:
    """Return the sum over all pools, `-` if it is unknown."""
    condition = _condition(request)
    if request.status is None or (condition is not None and condition.type == "Failed"):
        return "-"
    return str(sum(getattr(pool, name) or 0 for pool in request.status.pools))


def _errors(request: ResourcePoolStatusRequest) -> str:
    condition = _condition(request)
    if request.status is None or (condition is not None and condition.type == "Failed"):
        return "-"
    return str(sum(pool.validation_error is not None for pool in request.status.pools))


def _pools(request: ResourcePoolStatusRequest) -> int:
    return 0 if request.status is None else request.status.pool_count or 0


def _status(request: ResourcePoolStatusRequest) -> str:
    condition = _condition(request)
    if condition is None:
        return "Pending"
    shown = len(request.status.pools) if request.status is not None else 0
    if condition.type == "Complete" and _pools(request) > shown:
        return f"Complete ({shown}/{_pools(request)} pools)"
    return condition.type


def _completed(request: ResourcePoolStatusRequest) -> str:
    condition = _condition(request)
    if condition is None or condition.type == "Failed":
        return "<none>"
    return times.age(condition.last_transition_time, times.unix_now())


RESOURCE_POOL_STATUS_REQUESTS: Final = Resource(
    kind=built_in(ResourcePoolStatusRequest, default=set_defaults),
    plural="resourcepoolstatusrequests",
    namespaced=False,
    strategy=ResourcePoolStatusRequestStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column("Driver", lambda r: r.spec.driver, description="The driver to query pools for."),
        Column("Total", lambda r: _sum(r, "total_devices"), description="Total number of devices across all pools."),
        Column(
            "Available",
            lambda r: _sum(r, "available_devices"),
            description="Number of available devices across all pools.",
        ),
        Column(
            "Allocated",
            lambda r: _sum(r, "allocated_devices"),
            description="Number of allocated devices across all pools.",
        ),
        Column(
            "Unavailable",
            lambda r: _sum(r, "unavailable_devices"),
            description="Number of unavailable devices across all pools.",
        ),
        Column("Errors", _errors, description="Number of pools with validation errors."),
        Column("Pools", _pools, type="integer", description="Total number of matching pools."),
        Column("Status", _status, description="Processing status."),
        Column("Completed", _completed, description="Time since the observation completed."),
    ),
    subresources=(Subresource(name="status", strategy=ResourcePoolStatusRequestStatusStrategy()),),
    returns_deleted_object=True,
    storage_version_hash="iy583CtMwdY=",
)
