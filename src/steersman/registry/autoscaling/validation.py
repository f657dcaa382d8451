"""Validation of HorizontalPodAutoscalers (kubernetes `pkg/apis/autoscaling/validation`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from steersman.api.autoscaling.v2 import (
    ContainerResourceMetricSource,
    CrossVersionObjectReference,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    HPAScalingPolicy,
    HPAScalingRules,
    MetricIdentifier,
    MetricSpec,
    MetricTarget,
    ResourceMetricSource,
)
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, not_supported, required
from steersman.machinery.validation.formats import is_dns1123_label, is_path_segment_name
from steersman.machinery.validation.leaves import NOT_NEGATIVE, validate_required, validate_supported, validate_with
from steersman.machinery.validation.resource_names import validate_container_resource_name
from steersman.machinery.values.quantity import parse

MAX_PERIOD_SECONDS: Final = 1800
MAX_STABILIZATION_SECONDS: Final = 3600
SELECT_POLICIES: Final = ("Disabled", "Max", "Min")
POLICY_TYPES: Final = ("Percent", "Pods")
SOURCE_TYPES: Final = ("ContainerResource", "External", "Object", "Pods", "Resource")
TARGET_TYPES: Final = ("Utilization", "Value", "AverageValue")

_SOURCES: Final = {
    "Object": ("object", "object"),
    "External": ("external", "external"),
    "Pods": ("pods", "pods"),
    "Resource": ("resource", "resource"),
    "ContainerResource": ("container_resource", "containerResource"),
}
"""Type of a metric -> attribute and JSON name of its source, in order of validation."""
_ONE_OF_TWO: Final = "must set either a target raw value or a target utilization"
_NOT_BOTH: Final = "may not set both a target raw value and a target utilization"


def validate_autoscaler(new: HorizontalPodAutoscaler, old: HorizontalPodAutoscaler | None) -> Iterator[FieldError]:
    """Validate a new autoscaler, or one that replaces `old` and may keep values that older servers accepted."""
    spec, path = new.spec, Path("spec")
    lowest = 0 if old is not None and old.spec.min_replicas == 0 else 1
    yield from _validate_replicas(spec, path, lowest)
    target, before = spec.scale_target_ref, None if old is None else old.spec.scale_target_ref
    kept = before is not None and (before.api_version, before.kind) == (target.api_version, target.kind)
    yield from _validate_reference(
        target, path / "scaleTargetRef", check_version=not kept, group_needed=target.kind != "ReplicationController"
    )
    yield from _validate_metrics(spec, path / "metrics", check_version=not _has_bad_object_version(old))
    if spec.behavior is not None:
        for rules, name in ((spec.behavior.scale_up, "scaleUp"), (spec.behavior.scale_down, "scaleDown")):
            if rules is not None:
                yield from _validate_rules(rules, path / "behavior" / name)


def _validate_replicas(spec: HorizontalPodAutoscalerSpec, path: Path, lowest: int) -> Iterator[FieldError]:
    least, most = spec.min_replicas, spec.max_replicas
    if least is not None and least < lowest:
        yield invalid(path / "minReplicas", least, f"must be greater than or equal to {lowest}")
    if most == 0:
        yield required(path / "maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield invalid(path / "maxReplicas", most, "must be greater than or equal to 1")
    if least is not None and most < least:
        yield invalid(path / "maxReplicas", most, "must be greater than or equal to `minReplicas`")


def _has_bad_object_version(autoscaler: HorizontalPodAutoscaler | None) -> bool:
    return autoscaler is not None and any(
        metric.type == "Object" and metric.object is not None and _version_error(metric.object.described_object, False)
        for metric in autoscaler.spec.metrics
    )


def _version_error(reference: CrossVersionObjectReference, group_needed: bool) -> str:
    """Return an error text for the apiVersion, "" if it is valid."""
    slashes = reference.api_version.count("/")
    if slashes > 1:
        return f"unexpected GroupVersion string: {reference.api_version}"
    group = reference.api_version.partition("/")[0] if slashes else ""
    return "apiVersion must specify API group" if group_needed and not group else ""


def _validate_reference(
    reference: CrossVersionObjectReference, path: Path, *, check_version: bool, group_needed: bool
) -> Iterator[FieldError]:
    for value, name in ((reference.kind, "kind"), (reference.name, "name")):
        yield from validate_required(is_path_segment_name, value, path / name)
    if check_version and (error := _version_error(reference, group_needed)):
        yield invalid(path / "apiVersion", reference.api_version, error)


def _validate_metrics(spec: HorizontalPodAutoscalerSpec, path: Path, *, check_version: bool) -> Iterator[FieldError]:
    for index, metric in enumerate(spec.metrics):
        yield from _validate_metric(metric, path[index], check_version=check_version)
    if spec.min_replicas == 0 and not any(metric.type in ("Object", "External") for metric in spec.metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden(path, detail)


def _validate_metric(metric: MetricSpec, path: Path, *, check_version: bool) -> Iterator[FieldError]:
    if not metric.type:
        yield required(path / "type", "must specify a metric source type")
    yield from validate_supported(metric.type, SOURCE_TYPES, path / "type")
    present = [names for names in _SOURCES.values() if getattr(metric, names[0]) is not None]
    if present:
        attribute, name = present[0]
        yield from _validate_source(metric, attribute, path / name, check_version=check_version)
    expected = _SOURCES.get(metric.type)
    if expected is None:
        yield not_supported(path / "type", metric.type, SOURCE_TYPES)
    elif expected not in present:
        yield required(path / expected[1], "must populate information for the given metric source")
    if len(present) != 1:
        for names in present:
            if names != expected:
                yield forbidden(path / names[1], "must populate the given metric source only")


def _validate_source(metric: MetricSpec, attribute: str, path: Path, *, check_version: bool) -> Iterator[FieldError]:
    if attribute == "resource":
        yield from _validate_resource(metric.resource, path)
        return
    if attribute == "container_resource":
        yield from _validate_container_resource(metric.container_resource, path)
        return
    source: Any = getattr(metric, attribute)
    if attribute == "object":
        yield from _validate_reference(
            source.described_object, path / "describedObject", check_version=check_version, group_needed=False
        )
    yield from _validate_identifier(source.metric, path / "metric")
    yield from _validate_target(source.target, path / "target")
    yield from _validate_values(source.target, attribute, path / "target")


def _validate_values(target: MetricTarget, attribute: str, path: Path) -> Iterator[FieldError]:
    value, average = target.value, target.average_value
    if attribute == "pods":
        if average is None:
            yield required(path / "averageValue", "must specify a positive target averageValue")
    elif attribute == "object":
        if value is None and average is None:
            yield required(path / "averageValue", "must set either a target value or averageValue")
    elif value is None and average is None:
        yield required(path / "averageValue", "must set either a target value for metric or a per-pod target")
    elif value is not None and average is not None:
        yield forbidden(path / "value", "may not set both a target value for metric and a per-pod target")


def _validate_container_resource(source: ContainerResourceMetricSource | None, path: Path) -> Iterator[FieldError]:
    if source is None:
        return
    if not source.name:
        yield required(path / "name", "must specify a resource name")
    else:
        yield from validate_container_resource_name(source.name, path / "name")
    if not source.container:
        yield required(path / "container", "must specify a container")
    else:
        yield from validate_with(is_dns1123_label, source.container, path / "container")
    yield from _validate_utilization(source.target, path / "target")


def _validate_resource(source: ResourceMetricSource | None, path: Path) -> Iterator[FieldError]:
    if source is None:
        return
    if not source.name:
        yield required(path / "name", "must specify a resource name")
    yield from _validate_utilization(source.target, path / "target")


def _validate_utilization(target: MetricTarget, path: Path) -> Iterator[FieldError]:
    yield from _validate_target(target, path)
    if target.average_utilization is None and target.average_value is None:
        yield required(path / "averageUtilization", _ONE_OF_TWO)
    if target.average_utilization is not None and target.average_value is not None:
        yield forbidden(path / "averageValue", _NOT_BOTH)


def _validate_target(target: MetricTarget, path: Path) -> Iterator[FieldError]:
    if not target.type:
        yield required(path / "type", "must specify a metric target type")
    if target.type not in TARGET_TYPES:
        yield invalid(path / "type", target.type, "must be either Utilization, Value, or AverageValue")
    for value, name in ((target.value, "value"), (target.average_value, "averageValue")):
        if value is not None and parse(value).sign != 1:
            yield invalid(path / name, value, "must be positive")
    if target.average_utilization is not None and target.average_utilization < 1:
        yield invalid(path / "averageUtilization", target.average_utilization, "must be greater than 0")


def _validate_identifier(metric: MetricIdentifier, path: Path) -> Iterator[FieldError]:
    if not metric.name:
        yield required(path / "name", "must specify a metric name")
    for message in is_path_segment_name(metric.name) if metric.name else ():
        yield invalid(path / "name", metric.name, message)


def _validate_rules(rules: HPAScalingRules, path: Path) -> Iterator[FieldError]:
    window = rules.stabilization_window_seconds
    if window is not None and window < 0:
        yield invalid(path / "stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    if window is not None and window > MAX_STABILIZATION_SECONDS:
        detail = f"must be less than or equal to {MAX_STABILIZATION_SECONDS}"
        yield invalid(path / "stabilizationWindowSeconds", window, detail)
    if rules.select_policy is not None and rules.select_policy not in SELECT_POLICIES:
        yield not_supported(path / "selectPolicy", rules.select_policy, SELECT_POLICIES)
    if not rules.policies:
        yield required(path / "policies", "must specify at least one Policy")
    for index, policy in enumerate(rules.policies or ()):
        yield from _validate_policy(policy, (path / "policies")[index])
    if rules.tolerance is not None and parse(rules.tolerance).sign < 0:
        yield invalid(path / "tolerance", rules.tolerance, NOT_NEGATIVE)


def _validate_policy(policy: HPAScalingPolicy, path: Path) -> Iterator[FieldError]:
    yield from validate_supported(policy.type, POLICY_TYPES, path / "type")
    if policy.value <= 0:
        yield invalid(path / "value", policy.value, "must be greater than zero")
    if policy.period_seconds <= 0:
        yield invalid(path / "periodSeconds", policy.period_seconds, "must be greater than zero")
    if policy.period_seconds > MAX_PERIOD_SECONDS:
        detail = f"must be less than or equal to {MAX_PERIOD_SECONDS}"
        yield invalid(path / "periodSeconds", policy.period_seconds, detail)
