"""Validation of requests, limits, claims and resize policies of containers and pods."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from msgspec.structs import replace

from steersman.api.core import v1 as core
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.built_in.pod_resources import (
    aggregate_limits,
    aggregate_requests,
    is_huge_page_multiple,
    is_pod_level_resource,
)
from steersman.machinery.errors.field import (
    FORBIDDEN,
    FieldError,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from steersman.machinery.validation.leaves import (
    validate_choice,
    validate_dns1123_label,
    validate_name,
    validate_unique,
)
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.validation.resource_names import (
    is_huge_page_resource,
    is_overcommit_allowed,
    validate_container_resource_name,
    validate_quantity,
    validate_resource_name,
)
from steersman.machinery.values.quantity import nanos, parse
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.printing.internal_form import internal_text

MIRROR_POD: Final = "kubernetes.io/config.mirror"
RESIZABLE: Final = ("cpu", "memory")
RESIZE_POLICIES: Final = ("NotRequired", "RestartContainer")

_POD_LEVEL_NAMES: Final = ("cpu", "hugepages-", "memory")

NameRule = Callable[[str, Path], Iterator[FieldError]]


def validate_container_resources(
    resources: core.ResourceRequirements,
    claims: Collection[str],
    path: Path,
    options: PodValidationOptions,
    validate_name: NameRule = validate_container_resource_name,
) -> Iterator[FieldError]:
    """Validate the resources of a container; `claims` are the names of the pod's resource claims."""
    requests, limits = resources.requests, resources.limits
    has_others = False
    for name, limit in limits.items():
        # The names that nearly all containers use need no check but that of the sign.
        if name not in RESIZABLE or limit.startswith("-"):
            has_others = True
            yield from _validate_amount(name, limit, validate_name, (path / "limits")[name], options)
    for name, request in requests.items():
        if name not in RESIZABLE or request.startswith("-"):
            has_others = True
            here = (path / "requests")[name]
            yield from validate_name(name, here)
            yield from validate_quantity(name, request, here)
            yield from _validate_request(name, request, limits.get(name), path)
            yield from _validate_huge_pages(name, request, here, options)
        elif name in limits and nanos(request) > nanos(limits[name]):
            yield from _validate_request(name, request, limits[name], path)
    if has_others:
        names = requests.keys() | limits.keys()
        if any(map(is_huge_page_resource, names)) and not {"cpu", "memory"} & names:
            yield forbidden(path, "HugePages require cpu or memory")
    if resources.claims:
        yield from _validate_claim_names(resources.claims, claims, path / "claims")


def _validate_amount(
    name: str, quantity: str, validate_name: NameRule, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    yield from validate_name(name, path)
    yield from validate_quantity(name, quantity, path)
    yield from _validate_huge_pages(name, quantity, path, options)


def _validate_huge_pages(name: str, quantity: str, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    if not is_huge_page_resource(name) or options.allow_indivisible_huge_pages:
        return
    if not is_huge_page_multiple(name, quantity):
        yield invalid(path, quantity, f"{quantity} is not positive integer multiple of {name}")


def _validate_request(name: str, request: str, limit: str | None, path: Path) -> Iterator[FieldError]:
    if limit is None:
        if not is_overcommit_allowed(name):
            yield required(path / "limits", "Limit must be set for non overcommitable resources")
    elif request != limit:
        requested, most = nanos(request), nanos(limit)
        if requested != most and not is_overcommit_allowed(name):
            yield invalid(path / "requests", request, f"must be equal to {name} limit of {limit}")
        elif requested > most:
            yield invalid(path / "requests", request, f"must be less than or equal to {name} limit of {limit}")


def _validate_claim_names(
    claims: list[core.ResourceClaim], pod_claims: Collection[str], path: Path
) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        here = path[index]
        if not claim.name:
            yield required(here)
            continue
        if claim.name in seen:
            yield duplicate(here, claim.name)
        else:
            yield from _validate_claim_request(claim, seen, here)
        if claim.name not in pod_claims:
            names = f": {', '.join(sorted(pod_claims))}" if pod_claims else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{names}"
            yield replace(not_found(here, claim.name), detail=detail)


def _validate_claim_request(claim: core.ResourceClaim, seen: set[str], path: Path) -> Iterator[FieldError]:
    key = claim.name
    if claim.request:
        yield from validate_dns1123_label(claim.request, path / "request")
        key = f"{claim.name}/{claim.request}"
    if key in seen:
        yield duplicate(path, key)
    elif not claim.request:
        for other in seen:
            if other.partition("/")[0] == claim.name:
                yield duplicate(path, claim.name)
    seen.add(key)


def _validate_pod_resource_name(name: str, path: Path) -> Iterator[FieldError]:
    faults = list(validate_resource_name(name, path))
    yield from faults
    if not faults and not is_pod_level_resource(name):
        yield not_supported(path, name, _POD_LEVEL_NAMES)


def validate_pod_resources(
    spec: core.PodSpec, claims: Collection[str], path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    """Validate pod-level resources (KEP-2837)."""
    resources = spec.resources
    if resources is None:
        return
    here = path / "resources"
    if spec.os is not None and spec.os.name == "windows":
        yield forbidden(here, "may not be set for a windows pod")
        return
    if resources.claims:
        yield forbidden(here / "claims", "claims may not be set for Resources at pod-level")
    yield from validate_container_resources(resources, claims, here, options, _validate_pod_resource_name)
    yield from _validate_totals(spec, resources, here)


def _validate_totals(spec: core.PodSpec, resources: core.ResourceRequirements, path: Path) -> Iterator[FieldError]:
    """Validate that the containers' total requests, and each container's limits, fit into those of the pod."""
    for name, total in aggregate_requests(spec).items():
        request = resources.requests.get(name)
        if request is not None and parse(total) > parse(request):
            text = f"must be greater than or equal to aggregate container requests of {total}"
            yield invalid((path / "requests")[name], request, text)
    for name, total in aggregate_limits(spec).items():
        limit = resources.limits.get(name)
        if is_huge_page_resource(name) and limit is not None and parse(total) > parse(limit):
            text = f"must be greater than or equal to aggregate container limits of {total}"
            yield invalid((path / "limits")[name], limit, text)
    for index, container in enumerate(spec.containers or ()):
        for name, limit in container.resources.limits.items():
            most = resources.limits.get(name)
            if most is not None and parse(limit) > parse(most):
                here = (path / "containers")[index][name] / "limits"
                yield invalid(here, limit, f"must be less than or equal to pod limits of {most}")


def validate_overhead(overhead: dict[str, str], path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    """Validate the overhead of the runtime."""
    limits = core.ResourceRequirements(limits=overhead)
    yield from validate_container_resources(limits, (), path, options)


def validate_resize_policies(
    policies: list[core.ContainerResizePolicy], path: Path, pod_restart_policy: str
) -> Iterator[FieldError]:
    """Validate the policies that say which resource changes restart a container."""
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        yield from validate_unique(policy.resource_name, seen, path[index])
        yield from validate_choice(policy.resource_name, RESIZABLE, path)
        yield from validate_choice(policy.restart_policy, RESIZE_POLICIES, path)
        if pod_restart_policy == "Never" and policy.restart_policy != "NotRequired":
            text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield invalid(path, policy.restart_policy, text)


def validate_resource_claims(
    metadata: ObjectMeta | None, claims: list[core.PodResourceClaim], path: Path
) -> Iterator[FieldError]:
    """Validate the resource claims of a pod."""
    is_static = metadata is not None and MIRROR_POD in metadata.annotations
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        if is_static:
            yield FieldError(FORBIDDEN, "[]", detail="static pods do not support resource claims")
        else:
            yield from _validate_resource_claim(claim, seen, path[index])


def _validate_resource_claim(claim: core.PodResourceClaim, seen: set[str], path: Path) -> Iterator[FieldError]:
    if not claim.name:
        yield required(path / "name")
    elif claim.name in seen:
        yield duplicate(path / "name", claim.name)
    else:
        yield from validate_dns1123_label(claim.name, path / "name")
        seen.add(claim.name)
    name, template = claim.resource_claim_name, claim.resource_claim_template_name
    if name is not None and template is not None:
        text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        yield invalid(path, internal_text(claim), text)
    if name is None and template is None:
        text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        yield invalid(path, internal_text(claim), text)
    if name is not None:
        yield from validate_name(name_is_dns_subdomain, name, path / "resourceClaimName")
    if template is not None:
        yield from validate_name(name_is_dns_subdomain, template, path / "resourceClaimTemplateName")
