"""Validation of Jobs, and of the job templates of CronJobs (kubernetes `pkg/apis/batch/validation`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from steersman.api.batch.v1 import Job, JobSpec
from steersman.api.core.v1 import Affinity, Container, PodSpec, PodTemplateSpec
from steersman.machinery.errors.field import FieldError, Path, invalid, not_supported, required, too_long
from steersman.machinery.selectors.labels import SelectorError, from_label_selector
from steersman.machinery.validation.formats import is_dns1123_label
from steersman.machinery.validation.leaves import (
    FIELD_IMMUTABLE,
    validate_immutable,
    validate_nonnegative,
    validate_supported,
)
from steersman.machinery.validation.selectors import LabelSelectorOptions, validate_label_selector
from steersman.registry.batch.policy_validation import validate_pod_failure_policy, validate_success_policy
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.pods import validate_pod_template_spec
from steersman.registry.printing.internal_form import internal_text
from steersman.registry.validation.domain_prefixed_path import validate_domain_prefixed_path

JOB_NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
CONTROLLER_UID_LABELS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
"""The legacy label and the current label of each; the selector uses the current label."""

MAX_PARALLELISM_INDEXED: Final = 100_000
MAX_FAILED_INDEXES: Final = 100_000
MANY_COMPLETIONS: Final = 100_000
MAX_PARALLELISM_OF_MANY: Final = 10_000
MAX_FAILED_INDEXES_OF_MANY: Final = 10_000
MAX_MANAGED_BY: Final = 63

_COUNTS: Final = (
    ("parallelism", "parallelism"),
    ("completions", "completions"),
    ("active_deadline_seconds", "activeDeadlineSeconds"),
    ("backoff_limit", "backoffLimit"),
    ("ttl_seconds_after_finished", "ttlSecondsAfterFinished"),
    ("backoff_limit_per_index", "backoffLimitPerIndex"),
)
_SPEC: Final = Path("spec")
_OF_MANY: Final = f"when completions are above {MANY_COMPLETIONS} and used with backoff limit per index"


def validate_job(
    job: Job, options: PodValidationOptions, *, require_prefixed_labels: bool = True
) -> Iterator[FieldError]:
    """Validate a whole job. Jobs created before the prefixed labels existed may lack them."""
    yield from _validate_generated_selector(job, require_prefixed_labels=require_prefixed_labels)
    yield from validate_spec_with_selector(job.spec, options)
    completions = job.spec.completions
    if job.spec.completion_mode == "Indexed" and completions is not None and completions > 0:
        host = f"{job.metadata.name}-{completions - 1}"
        if is_dns1123_label(host):
            detail = f"will not able to create pod with invalid DNS label: {host}"
            yield invalid(Path("metadata", "name"), job.metadata.name, detail)


def _validate_generated_selector(job: Job, *, require_prefixed_labels: bool) -> Iterator[FieldError]:
    if job.spec.manual_selector or job.spec.selector is None:
        return
    uid, name = job.metadata.uid, job.metadata.name
    if not uid:
        yield required(Path("metadata", "uid"))
    (old_uid, new_uid), (old_name, new_name) = CONTROLLER_UID_LABELS, JOB_NAME_LABELS
    expected = {old_uid: uid, old_name: name}
    if require_prefixed_labels:
        expected |= {new_uid: uid, new_name: name}
    labels, path = job.spec.template.metadata.labels, Path("spec", "template", "metadata", "labels")
    for key, value in expected.items():
        actual = labels.get(key)
        if actual is None:
            yield required(path[key], f"must be '{value}'")
        elif actual != value:
            yield invalid(path[key], labels, f"must be '{value}'")
    try:
        if not from_label_selector(job.spec.selector).matches(expected):
            yield invalid(_SPEC / "selector", job.spec.selector, "`selector` not auto-generated")
    except SelectorError:
        return


def validate_spec_with_selector(spec: JobSpec, options: PodValidationOptions) -> Iterator[FieldError]:
    """Validate a job's spec with its selector."""
    yield from validate_spec(spec, _SPEC, options)
    if spec.selector is None:
        yield required(_SPEC / "selector")
    else:
        tolerant = LabelSelectorOptions(allow_invalid_label_value=options.allow_invalid_selector_values)
        yield from validate_label_selector(spec.selector, _SPEC / "selector", tolerant)
    try:
        matches = from_label_selector(spec.selector).matches(spec.template.metadata.labels)
    except SelectorError:
        return
    if not matches:
        detail = "`selector` does not match template `labels`"
        yield invalid(_SPEC.child("template", "metadata", "labels"), spec.template.metadata.labels or None, detail)


def validate_spec(spec: JobSpec, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    """Validate a job's spec without the selector, which a cron job's template lacks."""
    for attribute, name in _COUNTS:
        value = getattr(spec, attribute)
        if value is not None:
            yield from validate_nonnegative(value, path / name)
    if spec.max_failed_indexes is not None:
        yield from validate_nonnegative(spec.max_failed_indexes, path / "maxFailedIndexes")
        if spec.backoff_limit_per_index is None:
            yield required(path / "backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec.managed_by is not None:
        yield from validate_domain_prefixed_path(spec.managed_by, path / "managedBy")
        if len(spec.managed_by.encode()) > MAX_MANAGED_BY:
            yield too_long(path / "managedBy", MAX_MANAGED_BY)
    yield from _validate_completion_mode(spec, path)
    if spec.pod_failure_policy is not None:
        yield from validate_pod_failure_policy(spec, spec.pod_failure_policy, path / "podFailurePolicy")
    if spec.success_policy is not None:
        if spec.completion_mode != "Indexed":
            shown = internal_text(spec.success_policy)
            yield invalid(path / "successPolicy", shown, "requires indexed completion mode")
        else:
            yield from validate_success_policy(spec, spec.success_policy, path / "successPolicy")
    yield from _validate_pod_replacement_policy(spec, path / "podReplacementPolicy")
    yield from validate_pod_template_spec(spec.template, path / "template", options)
    yield from _validate_restart_policy(spec, path.child("template", "spec", "restartPolicy"))


def _validate_completion_mode(spec: JobSpec, path: Path) -> Iterator[FieldError]:
    mode = spec.completion_mode
    if mode is not None and mode not in ("NonIndexed", "Indexed"):
        yield not_supported(path / "completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        yield from _validate_indexed(spec, path)
    if mode is None or mode == "NonIndexed":
        for value, name in (
            (spec.backoff_limit_per_index, "backoffLimitPerIndex"),
            (spec.max_failed_indexes, "maxFailedIndexes"),
        ):
            if value is not None:
                yield invalid(path / name, value, "requires indexed completion mode")


def _validate_indexed(spec: JobSpec, path: Path) -> Iterator[FieldError]:
    completions, parallelism, failed = spec.completions, spec.parallelism, spec.max_failed_indexes
    if completions is None:
        yield required(path / "completions", "when completion mode is Indexed")
    if parallelism is not None and parallelism > MAX_PARALLELISM_INDEXED:
        detail = f"must be less than or equal to {MAX_PARALLELISM_INDEXED} when completion mode is Indexed"
        yield invalid(path / "parallelism", parallelism, detail)
    if completions is not None and failed is not None and failed > completions:
        yield invalid(path / "maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > MAX_FAILED_INDEXES:
        yield invalid(path / "maxFailedIndexes", failed, f"must be less than or equal to {MAX_FAILED_INDEXES}")
    if completions is None or completions <= MANY_COMPLETIONS or spec.backoff_limit_per_index is None:
        return
    if failed is None:
        yield required(path / "maxFailedIndexes", f"must be specified when completions is above {MANY_COMPLETIONS}")
    if parallelism is not None and parallelism > MAX_PARALLELISM_OF_MANY:
        detail = f"must be less than or equal to {MAX_PARALLELISM_OF_MANY} {_OF_MANY}"
        yield invalid(path / "parallelism", parallelism, detail)
    if failed is not None and failed > MAX_FAILED_INDEXES_OF_MANY:
        detail = f"must be less than or equal to {MAX_FAILED_INDEXES_OF_MANY} {_OF_MANY}"
        yield invalid(path / "maxFailedIndexes", failed, detail)


def _validate_pod_replacement_policy(spec: JobSpec, path: Path) -> Iterator[FieldError]:
    policy = spec.pod_replacement_policy
    if policy is None:
        return
    supported = ("Failed", "TerminatingOrFailed") if spec.pod_failure_policy is None else ("Failed",)
    yield from validate_supported(policy, supported, path)


def _validate_restart_policy(spec: JobSpec, path: Path) -> Iterator[FieldError]:
    policy = spec.template.spec.restart_policy
    if policy in ("Always", ""):
        yield required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(path, policy, ("OnFailure", "Never"))
    elif spec.pod_failure_policy is not None and policy != "Never":
        yield invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')


def validate_job_spec_update(
    new: JobSpec, old: JobSpec, options: PodValidationOptions, *, template_mutable: bool
) -> Iterator[FieldError]:
    """Validate an update of a job's spec.

    `template_mutable` is True for a suspended job without pods, whose future pods may get other scheduling directives
    and resources.
    """
    yield from validate_spec_with_selector(new, options)
    yield from _validate_completions(new, old)
    yield from validate_immutable(new.selector, old.selector, _SPEC / "selector")
    yield from _validate_template_update(new, old, mutable=template_mutable)
    yield from validate_immutable(new.completion_mode, old.completion_mode, _SPEC / "completionMode")
    yield from _validate_unchanged(new.pod_failure_policy, old.pod_failure_policy, _SPEC / "podFailurePolicy")
    yield from validate_immutable(
        new.backoff_limit_per_index, old.backoff_limit_per_index, _SPEC / "backoffLimitPerIndex"
    )
    yield from validate_immutable(new.managed_by, old.managed_by, _SPEC / "managedBy")
    yield from _validate_unchanged(new.success_policy, old.success_policy, _SPEC / "successPolicy")


def _validate_unchanged(new: Any, old: Any, path: Path) -> Iterator[FieldError]:
    if new != old:
        yield invalid(path, internal_text(new), FIELD_IMMUTABLE)


def _validate_completions(new: JobSpec, old: JobSpec) -> Iterator[FieldError]:
    if new.completion_mode != "Indexed":
        yield from validate_immutable(new.completions, old.completions, _SPEC / "completions")
    elif new.completions not in (old.completions, None) and new.completions != new.parallelism:
        yield invalid(_SPEC / "completions", new.completions, "can only be modified in tandem with spec.parallelism")


def _validate_template_update(new: JobSpec, old: JobSpec, *, mutable: bool) -> Iterator[FieldError]:
    template, before = new.template, old.template
    if mutable:
        before = _with_directives_of(before, template)
    if old.suspend and mutable:
        expected = _with_resources_of(before.spec, template.spec)
        yield from _validate_unchanged(template.spec, expected, _SPEC.child("template", "spec"))
    else:
        yield from _validate_unchanged(template, before, _SPEC / "template")


def _with_directives_of(old: PodTemplateSpec, new: PodTemplateSpec) -> PodTemplateSpec:
    """Return `old` with the scheduling directives, labels and annotations of `new`."""
    spec, wanted = old.spec, new.spec
    spec = replace(
        spec,
        affinity=_with_node_affinity_of(spec.affinity, wanted.affinity),
        node_selector=wanted.node_selector,
        tolerations=wanted.tolerations,
        scheduling_gates=wanted.scheduling_gates,
    )
    metadata = replace(old.metadata, annotations=new.metadata.annotations, labels=new.metadata.labels)
    return replace(old, metadata=metadata, spec=spec)


def _with_node_affinity_of(old: Affinity | None, new: Affinity | None) -> Affinity | None:
    if new is not None:
        return replace(old or Affinity(), node_affinity=new.node_affinity)
    if old is None:
        return None
    without = replace(old, node_affinity=None)
    return None if without == Affinity() else without


def _with_resources_of(old: PodSpec, new: PodSpec) -> PodSpec:
    return replace(
        old,
        containers=_containers_with_resources(old.containers or [], new.containers or []),
        init_containers=_containers_with_resources(old.init_containers, new.init_containers),
    )


def _containers_with_resources(old: list[Container], new: list[Container]) -> list[Container]:
    if len(old) != len(new):
        return old
    return [
        replace(before, resources=after.resources) if before.name == after.name else before
        for before, after in zip(old, new, strict=True)
    ]
