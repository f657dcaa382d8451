"""Validation of workloads: their selectors, and templates of pods that must run indefinitely."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.core.v1 import PodTemplateSpec
from steersman.api.meta.v1 import LabelSelector
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, not_supported, required
from steersman.machinery.selectors.labels import Selector, SelectorError, from_label_selector
from steersman.machinery.validation.selectors import validate_label_selector
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.pods import validate_pod_template_spec


def validate_selector(selector: LabelSelector | None, path: Path, kind: str) -> Iterator[FieldError]:
    """Validate a selector that must not be missing or empty; `kind` is named in the error."""
    if selector is None:
        yield required(path)
        return
    yield from validate_label_selector(selector, path)
    if not selector.match_labels and not selector.match_expressions:
        yield invalid(path, selector, f"empty selector is invalid for {kind}")


def parse_selector(selector: LabelSelector | None) -> Selector | None:
    """Return the parsed selector, None if it cannot be parsed."""
    try:
        return from_label_selector(selector)
    except SelectorError:
        return None


def validate_selected(selector: Selector, template: PodTemplateSpec, path: Path) -> Iterator[FieldError]:
    """Validate that the selector matches a template's labels; `path` is the template's."""
    labels = template.metadata.labels
    if not selector.empty and not selector.matches(labels):
        detail = "`selector` does not match template `labels`"
        yield invalid(path.child("metadata", "labels"), labels or None, detail)


def validate_replica_set_template(
    template: PodTemplateSpec, selector: Selector, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    """Validate the template of a ReplicaSet."""
    yield from validate_selected(selector, template, path)
    yield from validate_pod_template_spec(template, path, options)
    yield from validate_always_running(template, path, "ReplicaSet")


def validate_always_running(template: PodTemplateSpec, path: Path, kind: str) -> Iterator[FieldError]:
    """Forbid pods that may end by themselves, as the workload replaces pods that end."""
    if template.spec.restart_policy != "Always":
        yield not_supported(path.child("spec", "restartPolicy"), template.spec.restart_policy, ["Always"])
    if template.spec.active_deadline_seconds is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden(path.child("spec", "activeDeadlineSeconds"), detail)
