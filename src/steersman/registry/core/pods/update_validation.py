"""Validation of updates of a pod.

Images, the deadline, additional tolerations and the removal of gates are allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from steersman.api.core import v1 as core
from steersman.machinery.errors.field import FORBIDDEN, FieldError, Path, forbidden, invalid, quote, required
from steersman.machinery.go.strings import trim_space
from steersman.machinery.validation.formats import inclusive_range_error
from steersman.registry.pod_template.validation.containers import is_usual_image
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.pods import validate_pod, validate_pod_annotations
from steersman.registry.pod_template.validation.profiles import APP_ARMOR_CONTAINER
from steersman.registry.pod_template.validation.resources import MIRROR_POD
from steersman.registry.pod_template.validation.scheduling import validate_tolerations
from steersman.registry.printing.internal_form import internal_diff, internal_text

_SPEC: Final = Path("spec")
_ANNOTATIONS: Final = Path("metadata", "annotations")
_MAX_INT32: Final = (1 << 31) - 1
_UPDATABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_NO_PADDING: Final = "must not have leading or trailing whitespace"


def validate_pod_update(new: core.Pod, old: core.Pod, options: PodValidationOptions) -> Iterator[FieldError]:
    """Validate an update by a user. The store validates the metadata."""
    is_valid = True
    for error in validate_pod(new, options):
        is_valid = False
        yield error
    if new.metadata.annotations or old.metadata.annotations:
        yield from validate_annotation_update(new, old, options)
    before, after = old.spec, new.spec
    for containers, old_containers, name in (
        (after.containers or [], before.containers or [], "containers"),
        (after.init_containers, before.init_containers, "initContainers"),
    ):
        if len(containers) != len(old_containers):
            yield forbidden(_SPEC / name, "pod updates may not add or remove containers")
            return
        if containers:
            yield from _validate_images(containers, _SPEC / name)
    if after.active_deadline_seconds is not None or before.active_deadline_seconds is not None:
        deadline, refused = _validate_deadline(after.active_deadline_seconds, before.active_deadline_seconds)
        yield from deadline
        if refused:
            return
    if not is_valid or after.tolerations != before.tolerations:  # the tolerations of a valid pod are valid
        yield from _validate_tolerations(after.tolerations, before.tolerations, options)
    if after.scheduling_gates:
        yield from _validate_gates(after.scheduling_gates, before.scheduling_gates)
    if after != before:
        yield from _validate_unchanged(after, before)


def validate_annotation_update(new: core.Pod, old: core.Pod, options: PodValidationOptions) -> Iterator[FieldError]:
    """Forbid changes of AppArmor and mirror pod annotations."""
    now, then = new.metadata.annotations, old.metadata.annotations
    for key, value in then.items():
        if now.get(key) == value:
            continue
        if key.startswith(APP_ARMOR_CONTAINER):
            yield forbidden(_ANNOTATIONS[key], "may not remove or update AppArmor annotations")
        if key == MIRROR_POD:
            yield forbidden(_ANNOTATIONS[key], "may not remove or update mirror pod annotation")
    for key in now:
        if key in then:
            continue
        if key.startswith(APP_ARMOR_CONTAINER):
            yield forbidden(_ANNOTATIONS[key], "may not add AppArmor annotations")
        if key == MIRROR_POD:
            yield forbidden(_ANNOTATIONS[key], "may not add mirror pod annotation")
    yield from validate_pod_annotations(now, new.spec, _ANNOTATIONS, options)


def _validate_images(containers: list[core.Container], path: Path) -> Iterator[FieldError]:
    for index, container in enumerate(containers):
        if not container.image:
            yield required(path[index] / "image")
        if not is_usual_image(container.image) and trim_space(container.image) != container.image:
            yield invalid(path[index] / "image", container.image, _NO_PADDING)


def _validate_deadline(new: int | None, old: int | None) -> tuple[list[FieldError], bool]:
    """Return errors of a change of the deadline, which may only be set or come nearer.

    The flag is True if upstream stops validating here.
    """
    path = _SPEC / "activeDeadlineSeconds"
    if new is None:
        if old is None:
            return [], False
        return [invalid(path, None, "must not update from a positive integer to nil value")], False
    if not 0 <= new <= _MAX_INT32:
        return [invalid(path, new, inclusive_range_error(0, _MAX_INT32))], True
    if old is not None and old < new:
        return [invalid(path, new, "must be less than or equal to previous value")], True
    return [], False


def _validate_tolerations(
    new: list[core.Toleration], old: list[core.Toleration], options: PodValidationOptions
) -> Iterator[FieldError]:
    """Forbid changes of existing tolerations except their `tolerationSeconds`."""
    path = _SPEC / "tolerations"
    if new != old:
        kept = {_toleration_key(toleration) for toleration in new}
        if any(_toleration_key(toleration) not in kept for toleration in old):
            yield forbidden(path, "existing toleration can not be modified except its tolerationSeconds")
            return
    yield from validate_tolerations(new, path, options)


def _toleration_key(toleration: core.Toleration) -> tuple[str, str, str, str]:
    return toleration.key, toleration.operator, toleration.value, toleration.effect


def _validate_gates(new: list[core.PodSchedulingGate], old: list[core.PodSchedulingGate]) -> Iterator[FieldError]:
    known = {gate.name for gate in old}
    for name, index in {gate.name: index for index, gate in enumerate(new)}.items():
        if name not in known:
            text = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield forbidden((_SPEC / "schedulingGates")[index] / "name", text)


def _validate_unchanged(new: core.PodSpec, old: core.PodSpec) -> Iterator[FieldError]:
    """Undo the allowed changes, and refuse and show all others."""
    munged = replace(
        new,
        containers=_with_images_of(new.containers or [], old.containers or []),
        init_containers=_with_images_of(new.init_containers, old.init_containers),
        active_deadline_seconds=old.active_deadline_seconds,
        scheduling_gates=old.scheduling_gates,
        tolerations=old.tolerations,
    )
    before = old.termination_grace_period_seconds
    if before is not None and before < 0 and munged.termination_grace_period_seconds == 1:
        munged.termination_grace_period_seconds = before
    if old.scheduling_gates:
        yield from _validate_gated_changes(munged, old)
    if munged != old:
        diff = internal_diff(old, munged)
        yield forbidden(_SPEC, f"pod updates may not change fields other than {_UPDATABLE}\n{diff}")


def _with_images_of(containers: list[core.Container], old: list[core.Container]) -> list[core.Container]:
    return [replace(now, image=then.image) for now, then in zip(containers, old, strict=True)]


def _validate_gated_changes(munged: core.PodSpec, old: core.PodSpec) -> Iterator[FieldError]:
    """Allow a gated pod to be narrowed down to fewer nodes, and undo these changes in `munged`."""
    if munged.node_selector != old.node_selector:
        if any(munged.node_selector.get(key) != value for key, value in old.node_selector.items()):
            text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            yield invalid(_SPEC / "nodeSelector", dict(sorted(munged.node_selector.items())), text)
        munged.node_selector = old.node_selector
    before = old.affinity.node_affinity if old.affinity is not None else None
    affinity = munged.affinity
    after = affinity.node_affinity if affinity is not None else None
    if before == after:
        return
    yield from _validate_node_affinity_change(after, before)
    if affinity is None:
        munged.affinity = core.Affinity(node_affinity=before)
    elif old.affinity is None and affinity.pod_affinity is None and affinity.pod_anti_affinity is None:
        munged.affinity = None
    else:
        munged.affinity = replace(affinity, node_affinity=before)


def _validate_node_affinity_change(
    new: core.NodeAffinity | None, old: core.NodeAffinity | None
) -> Iterator[FieldError]:
    then, now = _required_terms(old), _required_terms(new)
    if not then:
        return
    path = _SPEC.child(
        "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"
    )
    if len(then) != len(now):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield invalid(path, internal_text(now), text)
        return
    for index, (term, before) in enumerate(zip(now, then, strict=True)):
        if not _only_adds(term, before):
            text = "only additions are allowed (no mutations or deletions)"
            yield invalid(path[index], internal_text(term), text)


def _required_terms(affinity: core.NodeAffinity | None) -> list[core.NodeSelectorTerm]:
    needed = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return (needed.node_selector_terms or []) if needed is not None else []


def _only_adds(new: core.NodeSelectorTerm, old: core.NodeSelectorTerm) -> bool:
    """Return True if the requirements of `new` begin with those of `old`. An empty term matches no node."""
    if not old.match_expressions and not old.match_fields:
        return not new.match_expressions and not new.match_fields
    return (
        new.match_expressions[: len(old.match_expressions)] == old.match_expressions
        and new.match_fields[: len(old.match_fields)] == old.match_fields
    )


def validate_ephemeral_containers_update(
    new: core.Pod, old: core.Pod, options: PodValidationOptions
) -> Iterator[FieldError]:
    """Allow ephemeral containers to be added, but not changed or removed; static pods have none."""
    if MIRROR_POD in old.metadata.annotations:
        yield FieldError(FORBIDDEN, "[]", detail="static pods do not support ephemeral containers")
        return
    yield from validate_pod(new, options)
    yield from validate_annotation_update(new, old, options)
    path = _SPEC / "ephemeralContainers"
    now = {container.name: container for container in new.spec.ephemeral_containers}
    for container in old.spec.ephemeral_containers:
        kept = now.get(container.name)
        if kept is None:
            yield forbidden(path, f"existing ephemeral containers {quote(container.name)} may not be removed\n")
        elif kept != container:
            diff = internal_diff(container, kept)
            yield forbidden(path, f"existing ephemeral containers {quote(container.name)} may not be changed\n{diff}")
