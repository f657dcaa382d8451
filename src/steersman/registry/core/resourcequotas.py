"""ResourceQuotas: limits on a namespace's usage. A controller and the admission plugin write the status."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core.v1 import (
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceQuotaStatus,
    ScopedResourceSelectorRequirement,
)
from steersman.kinds.built_in import built_in
from steersman.machinery.built_in.pod_resources import round_up_to_milli
from steersman.machinery.errors.field import FieldError, Path, invalid, required
from steersman.machinery.validation.leaves import FIELD_IMMUTABLE
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.validation.resource_names import (
    is_quota_resource,
    validate_quantity,
    validate_quota_resource_name,
)
from steersman.machinery.values.quantity import parse
from steersman.registry.printing.go_struct import go_struct
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import Strategy

_PODS: Final = frozenset({"pods"})
_POD_COMPUTE: Final = _PODS | {"cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"}
_CLAIMS: Final = frozenset({"persistentvolumeclaims", "requests.storage"})

SCOPES: Final = {
    "Terminating": _POD_COMPUTE,
    "NotTerminating": _POD_COMPUTE,
    "BestEffort": _PODS,
    "NotBestEffort": _POD_COMPUTE,
    "PriorityClass": _POD_COMPUTE,
    "CrossNamespacePodAffinity": _POD_COMPUTE,
    "VolumeAttributesClass": _CLAIMS,
}
"""Every scope, with the resources that a quota of this scope can limit."""
_EXISTS_ONLY: Final = frozenset(
    {"Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity"}
)
_CONFLICTS: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_EXISTS_TEXT: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_COMPARED: Final = ("cpu", "memory", "storage", "ephemeral-storage")

_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")


def _validate_quantities(quantities: dict[str, str], path: Path) -> Iterator[FieldError]:
    for name, quantity in quantities.items():
        yield from validate_quota_resource_name(name, path[name])
        yield from validate_quantity(name, quantity, path[name])


def _validate_status(status: ResourceQuotaStatus) -> Iterator[FieldError]:
    yield from _validate_quantities(status.hard, _STATUS / "hard")
    yield from _validate_quantities(status.used, _STATUS / "used")


def _validate_spec(spec: ResourceQuotaSpec) -> Iterator[FieldError]:
    yield from _validate_quantities(spec.hard, _SPEC / "hard")
    path = _SPEC / "scopes"
    unscoped = _Unscoped(spec)
    for scope in spec.scopes:
        if scope not in SCOPES:
            yield invalid(path, spec.scopes, "unsupported scope")
        for _ in range(unscoped(scope)):
            yield invalid(path, spec.scopes, "unsupported scope applied to resource")
    yield from _validate_conflicts(spec, set(spec.scopes), path)
    if spec.scope_selector is not None:
        yield from _validate_scope_selector(spec, _SPEC.child("scopeSelector", "matchExpressions"))


class _Unscoped:
    """Counts the limited resources to which a scope does not apply, once for each scope."""

    def __init__(self, spec: ResourceQuotaSpec) -> None:
        self._limited = spec.hard
        self._counts: dict[str, int] = {}

    def __call__(self, scope: str) -> int:
        allowed = SCOPES.get(scope)
        if allowed is None:
            return 0
        count = self._counts.get(scope)
        if count is None:
            count = sum(is_quota_resource(name) and name not in allowed for name in self._limited)
            self._counts[scope] = count
        return count


def _validate_conflicts(spec: ResourceQuotaSpec, scopes: set[str], path: Path) -> Iterator[FieldError]:
    for pair in _CONFLICTS:
        if pair <= scopes:
            yield invalid(path, spec.scopes, "conflicting scopes")


def _validate_scope_selector(spec: ResourceQuotaSpec, path: Path) -> Iterator[FieldError]:
    assert spec.scope_selector is not None
    requirements = spec.scope_selector.match_expressions
    unscoped = _Unscoped(spec)
    shown: object = None
    for requirement in requirements:
        if requirement.scope_name not in SCOPES:
            yield invalid(path / "scopeName", requirement.scope_name, "unsupported scope")
        for _ in range(unscoped(requirement.scope_name)):
            shown = shown or go_struct(MatchExpressions=[_go_value(each) for each in requirements])
            yield invalid(path, shown, "unsupported scope applied to resource")
        yield from _validate_requirement(requirement, path)
    yield from _validate_conflicts(spec, {each.scope_name for each in requirements}, path)


def _validate_requirement(requirement: ScopedResourceSelectorRequirement, path: Path) -> Iterator[FieldError]:
    operator = requirement.operator
    if requirement.scope_name in _EXISTS_ONLY and operator != "Exists":
        yield invalid(path / "operator", operator, _EXISTS_TEXT)
    if operator in ("In", "NotIn"):
        if not requirement.values:
            detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            yield required(path / "values", detail)
    elif operator in ("Exists", "DoesNotExist"):
        if requirement.values:
            detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            yield invalid(path / "values", requirement.values, detail)
    else:
        yield invalid(path / "operator", operator, "not a valid selector operator")


def _go_value(requirement: ScopedResourceSelectorRequirement) -> object:
    """Return a requirement in the form that upstream's messages print."""
    return go_struct(ScopeName=requirement.scope_name, Operator=requirement.operator, Values=requirement.values or None)


class ResourceQuotaStrategy(Strategy[ResourceQuota]):
    resets = ("status",)

    def validate(self, ctx: Context, obj: ResourceQuota) -> Iterator[FieldError]:
        yield from _validate_spec(obj.spec)
        yield from _validate_status(obj.status)

    def warnings_on_create(self, ctx: Context, obj: ResourceQuota) -> Iterator[str]:
        hard = obj.spec.hard
        for resource in _COMPARED:
            name = f"requests.{resource}"
            if name not in hard and resource in ("cpu", "memory"):
                name = resource
            request, limit = hard.get(name), hard.get(f"limits.{resource}")
            if request is not None and limit is not None and parse(request) > parse(limit):
                yield f"ResourceQuota {name} ({request}) should be less than limits.{resource} ({limit})"

    def validate_update(self, ctx: Context, new: ResourceQuota, old: ResourceQuota) -> Iterator[FieldError]:
        yield from _validate_spec(new.spec)
        if set(new.spec.scopes) != set(old.spec.scopes):
            yield invalid(_SPEC / "scopes", new.spec.scopes or None, FIELD_IMMUTABLE)


class ResourceQuotaStatusStrategy(ResourceQuotaStrategy):
    resets = ("spec",)

    def validate_update(self, ctx: Context, new: ResourceQuota, old: ResourceQuota) -> Iterator[FieldError]:
        return _validate_status(new.status)


def default_resource_quota(quota: ResourceQuota) -> None:
    """Round quantities up to thousandths (SetDefaults_ResourceList)."""
    round_up_to_milli(quota.spec.hard)
    round_up_to_milli(quota.status.hard)
    round_up_to_milli(quota.status.used)


def _used_of_hard(quota: ResourceQuota, *, limits: bool) -> str:
    """Return the cell of used/hard amounts, for requests or for limits."""
    status = quota.status
    return ", ".join(
        f"{name}: {status.used.get(name, '0')}/{status.hard[name]}"
        for name in sorted(status.hard)
        if name.startswith("limits.") is limits
    )


RESOURCE_QUOTAS: Final = Resource(
    kind=built_in(ResourceQuota, default=default_resource_quota),
    plural="resourcequotas",
    short_names=("quota",),
    strategy=ResourceQuotaStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column(
            "Request",
            lambda quota: _used_of_hard(quota, limits=False),
            description="Request represents a minimum amount of cpu/memory that a container may consume.",
        ),
        Column(
            "Limit",
            lambda quota: _used_of_hard(quota, limits=True),
            description="Limits control the maximum amount of cpu/memory that a container may use independent of "
            "contention on the node.",
        ),
        AGE,
    ),
    subresources=(Subresource(name="status", strategy=ResourceQuotaStatusStrategy()),),
    storage_version_hash="8uhSgffRX6w=",
    returns_deleted_object=True,
)
