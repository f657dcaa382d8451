"""Templates of pods in workloads: the selector that finds their pods, and pods that are to run for good."""

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
    """A selector that must be there and select something; `kind` is for the message."""
    if selector is None:
        yield required(path)
        return
    yield from validate_label_selector(selector, path)
    if not selector.match_labels and not selector.match_expressions:
        yield invalid(path, selector, f"empty selector is invalid for {kind}")


def parse_selector(selector: LabelSelector | None) -> Selector | None:
    """The selector ready to use, None if it cannot be read."""
    try:
        return from_label_selector(selector)
    except SelectorError:
        return None


def validate_selected(selector: Selector, template: PodTemplateSpec, path: Path) -> Iterator[FieldError]:
    """A template's pods must be found by the selector; `path` is the template's."""
    labels = template.metadata.labels
    if not selector.empty and not selector.matches(labels):
        detail = "`selector` does not match template `labels`"
        yield invalid(path.child("metadata", "labels"), labels or None, detail)


def validate_replica_set_template(
    template: PodTemplateSpec, selector: Selector, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    """A template of pods that always run."""
    yield from validate_selected(selector, template, path)
    yield from validate_pod_template_spec(template, path, options)
    yield from validate_always_running(template, path, "ReplicaSet")


def validate_always_running(template: PodTemplateSpec, path: Path, kind: str) -> Iterator[FieldError]:
    """Pods that are replaced when they end may not end by themselves."""
    if template.spec.restart_policy != "Always":
        yield not_supported(path.child("spec", "restartPolicy"), template.spec.restart_policy, ["Always"])
    if template.spec.active_deadline_seconds is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden(path.child("spec", "activeDeadlineSeconds"), detail)
