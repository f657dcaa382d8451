"""Validation of in-place resizing of a pod: only cpu and memory of its containers, or of the pod, may change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from steersman.api.core import v1 as core
from steersman.machinery.built_in.pod_resources import compute_qos_class, is_sidecar
from steersman.machinery.errors.field import FORBIDDEN, FieldError, Path, forbidden, invalid
from steersman.machinery.values.quantity import parse
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.pods import validate_pod
from steersman.registry.pod_template.validation.resources import MIRROR_POD, RESIZABLE

_SPEC: Final = Path("spec")
_ONLY_CPU_AND_MEMORY: Final = "only cpu and memory resources are mutable"


def validate_pod_resize(new: core.Pod, old: core.Pod, options: PodValidationOptions) -> Iterator[FieldError]:
    """Validate an update through `/resize`. The store validates the metadata."""
    if MIRROR_POD in old.metadata.annotations:
        yield FieldError(FORBIDDEN, "[]", detail="static pods cannot be resized")
        return
    if old.spec.os is not None and old.spec.os.name == "windows":
        yield FieldError(FORBIDDEN, "[]", detail="windows pods cannot be resized")
        return
    errors = [*validate_pod(new, options), *_validate_pod_as_a_whole(new, old)]
    order = list(_validate_order(new.spec, old.spec))
    if order:
        yield from errors + order
        return
    errors += _validate_containers(new.spec, old.spec)
    yield from errors
    if not errors and not _same_but_for_resources(new.spec, old.spec):
        yield forbidden(_SPEC, _ONLY_CPU_AND_MEMORY)


def _validate_pod_as_a_whole(new: core.Pod, old: core.Pod) -> Iterator[FieldError]:
    if (old.status.qos_class or compute_qos_class(old.spec)) != compute_qos_class(new.spec):
        yield invalid(_SPEC, new.status.qos_class, "Pod QOS Class may not change as a result of resizing")
    running = next((c for c in old.status.container_statuses if c.state.running is not None), None)
    if running is not None and running.resources is None:
        yield forbidden(_SPEC, "Pod running on node without support for resize")
    if _has_resources(new.spec) or _has_resources(old.spec):
        yield from _validate_pod_level(new.spec.resources, old.spec.resources)
    if old.status.node_allocatable_resource_claim_statuses:
        yield forbidden(_SPEC, "pods with node allocatable resource claims cannot be resized")


def _has_resources(spec: core.PodSpec) -> bool:
    return spec.resources is not None and bool(spec.resources.requests or spec.resources.limits)


def _validate_pod_level(
    new: core.ResourceRequirements | None, old: core.ResourceRequirements | None
) -> Iterator[FieldError]:
    path = _SPEC / "resources"
    if old is not None:
        if new is None:
            yield forbidden(path, "pod-level resources cannot be removed")
            return
        if old.requests.keys() - new.requests.keys():
            yield forbidden(path / "requests", "pod-level resource requests cannot be removed")
        if old.limits.keys() - new.limits.keys():
            yield forbidden(path / "limits", "pod-level resource limits cannot be removed")
    if not _same(_masked(new, old), old):
        yield forbidden(_SPEC, "only cpu and memory resources are mutable at pod-level")


def _masked(
    new: core.ResourceRequirements | None, old: core.ResourceRequirements | None
) -> core.ResourceRequirements | None:
    """Return `new` with the cpu and memory of `old`; None if the result is empty and `old` was None."""
    if new is None:
        return None
    before = old or core.ResourceRequirements()
    masked = replace(
        new,
        requests=_with_resizable_of(new.requests, before.requests),
        limits=_with_resizable_of(new.limits, before.limits),
    )
    return None if old is None and masked == core.ResourceRequirements() else masked


def _with_resizable_of(new: dict[str, str], old: dict[str, str]) -> dict[str, str]:
    kept = {name: quantity for name, quantity in new.items() if name not in RESIZABLE}
    return kept | {name: old[name] for name in RESIZABLE if name in old}


def _same(new: core.ResourceRequirements | None, old: core.ResourceRequirements | None) -> bool:
    """Return True if both request equal amounts, in whatever units."""
    if new is None or old is None:
        return new is old
    return (
        _amounts(new.requests) == _amounts(old.requests)
        and _amounts(new.limits) == _amounts(old.limits)
        and new.claims == old.claims
    )


def _amounts(resources: dict[str, str]) -> dict[str, object]:
    return {name: parse(quantity) for name, quantity in resources.items()}


def _validate_order(new: core.PodSpec, old: core.PodSpec) -> Iterator[FieldError]:
    for name, containers, before in (
        ("containers", new.containers or [], old.containers or []),
        ("initContainers", new.init_containers, old.init_containers),
    ):
        if len(containers) != len(before):
            yield forbidden(_SPEC / name, f"{name} may not be added or removed on resize")
            continue
        for index, (container, then) in enumerate(zip(containers, before, strict=True)):
            if container.name != then.name:
                here = (_SPEC / name)[index] / "name"
                yield forbidden(here, f"{name} may not be renamed or reordered on resize")


def _validate_containers(new: core.PodSpec, old: core.PodSpec) -> Iterator[FieldError]:
    inits = list(zip(new.init_containers, old.init_containers, strict=True))
    regular = list(zip(new.containers or [], old.containers or [], strict=True))
    for name, pairs in (("initContainers", inits), ("containers", regular)):
        for index, (container, before) in enumerate(pairs):
            here = (_SPEC / name)[index] / "resources"
            if before.resources.requests.keys() - container.resources.requests.keys():
                yield forbidden(here / "requests", "resource requests cannot be removed")
            if before.resources.limits.keys() - container.resources.limits.keys():
                yield forbidden(here / "limits", "resource limits cannot be removed")
    for container, before in regular:
        if not _same_container(container, before):
            yield forbidden(_SPEC, _ONLY_CPU_AND_MEMORY)
    for index, (container, before) in enumerate(inits):
        here = (_SPEC / "initContainers")[index]
        if not _same_container(container, before):
            text = "only cpu and memory resources for init or sidecar containers are mutable"
            yield forbidden(here, text)
        if container != before and not is_sidecar(container):
            for policy in container.resize_policy:
                if policy.restart_policy == "RestartContainer":
                    text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
                    yield forbidden(here, text)


def _same_container(new: core.Container, old: core.Container) -> bool:
    """Return True if only cpu and memory changed.

    Upstream removes claims from the new container before it compares, so a container with claims cannot be resized.
    """
    masked = _masked(replace(new.resources, claims=[]), old.resources)
    return _same(masked, old.resources) and replace(new, resources=old.resources) == old


def _same_but_for_resources(new: core.PodSpec, old: core.PodSpec) -> bool:
    """Return True if the rest of the spec is unchanged; empty resources differ from no resources."""
    masked = _masked(new.resources, old.resources) if _has_resources(new) or _has_resources(old) else new.resources
    rest = replace(new, containers=old.containers, init_containers=old.init_containers, resources=old.resources)
    return _same(masked, old.resources) and rest == old
