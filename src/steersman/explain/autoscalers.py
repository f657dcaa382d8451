"""HorizontalPodAutoscalers that do not scale."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from steersman.api.autoscaling.v2 import HorizontalPodAutoscaler, MetricTarget, MetricValueStatus
from steersman.client.api_resource import APIResource
from steersman.client.resources import HORIZONTAL_POD_AUTOSCALERS
from steersman.explain.commands import kubectl, patch
from steersman.explain.explainer import Explainer
from steersman.explain.finding import (
    Finding,
    Reference,
    Suggestion,
    at_condition,
    at_field,
    error,
    note,
    reference,
    warning,
)
from steersman.explain.kind_names import UnknownKind, find_resource
from steersman.explain.plain import plain_data
from steersman.explain.world import World
from steersman.machinery.go.strings import to_lower
from steersman.machinery.values.conditions import find_condition
from steersman.machinery.values.quantity import Quantity

_TOLERANCE: Final = 0.1
"""Tolerance of kube-controller-manager by default (--horizontal-pod-autoscaler-tolerance)."""
_SOURCES: Final = ("resource", "container_resource", "pods", "object", "external")
_REQUESTS_MISSING: Final = "missing request for "


class Ratio(NamedTuple):
    """Current and target value of a metric."""

    name: str
    current: str
    target: str
    ratio: float


def _summarize(autoscaler: HorizontalPodAutoscaler) -> str:
    spec, status = autoscaler.spec, autoscaler.status
    target = f"{spec.scale_target_ref.kind}/{spec.scale_target_ref.name}"
    least = 1 if spec.min_replicas is None else spec.min_replicas
    return f"{target}: {status.current_replicas} replicas, wants {status.desired_replicas}, bounds {least} to {spec.max_replicas}"


def autoscaler_fault(autoscaler: HorizontalPodAutoscaler) -> str:
    """Return the reason why an autoscaler is unhealthy, "" if it is not."""
    for each in autoscaler.status.conditions:
        if each.type in ("AbleToScale", "ScalingActive") and each.status == "False":
            return f"{each.type} is False: {each.reason}: {each.message}"
    limited = find_condition(autoscaler.status.conditions, "ScalingLimited")
    if limited is not None and limited.status == "True" and limited.reason == "TooManyReplicas":
        return f"needs more than maxReplicas ({autoscaler.spec.max_replicas})"
    return ""


async def _check_target(
    world: World, resource: APIResource[Any], autoscaler: HorizontalPodAutoscaler
) -> AsyncIterator[Finding]:
    subject, ref = reference(resource, autoscaler), autoscaler.spec.scale_target_ref
    field = at_field(subject, ".spec.scaleTargetRef", ref)
    group = ref.api_version.rpartition("/")[0]
    try:
        found = find_resource(f"{ref.kind}.{group}" if group else ref.kind, (await world.resources()).served)
    except UnknownKind:
        yield error(
            "TargetKindUnknown", f"its target is of kind {ref.kind} of {ref.api_version}, which is not served", field
        )
        return
    target = await world.get(plain_data(found.resource), ref.name, autoscaler.metadata.namespace)
    if target is None:
        yield error("TargetMissing", f"its target {ref.kind}/{ref.name} does not exist", field)
        return
    replicas = (target.get("spec") or {}).get("replicas")
    if replicas == 0:
        of_target = reference(found.resource, target)
        line = kubectl("scale", f"{to_lower(ref.kind)}/{ref.name}", "--replicas=1", namespace=subject.namespace)
        yield error(
            "TargetScaledToZero",
            f"its target {ref.kind}/{ref.name} is scaled to 0, which switches autoscaling off",
            at_field(of_target, ".spec.replicas", 0),
            suggestions=(Suggestion("scale it to 1", line),),
        )


async def _check_conditions(
    _: World, resource: APIResource[Any], autoscaler: HorizontalPodAutoscaler
) -> AsyncIterator[Finding]:
    subject = reference(resource, autoscaler)
    if not autoscaler.status.conditions:
        text = "it has no conditions: its controller has not processed it"
        yield warning("NotProcessed", text, at_field(subject, ".status.conditions", None))
    for each in autoscaler.status.conditions:
        if (
            each.type in ("AbleToScale", "ScalingActive")
            and each.status == "False"
            and each.reason != "ScalingDisabled"
        ):
            text = f"{each.type} is False ({each.reason}): {each.message}"
            yield error(
                each.reason or each.type, text, at_condition(subject, each), suggestions=_help_for(each.message)
            )
        elif each.type == "AbleToScale" and each.reason in ("ScaleDownStabilized", "ScaleUpStabilized"):
            text = f"it waits with scaling ({each.reason}): {each.message}{_window(autoscaler, each.reason)}"
            yield note(each.reason, text, at_condition(subject, each))
        elif each.type == "ScalingLimited" and each.status == "True":
            yield _limited(autoscaler, subject, each)


def _help_for(message: str) -> tuple[Suggestion, ...]:
    if _REQUESTS_MISSING in message:
        what = message.partition(_REQUESTS_MISSING)[2].split(" ")[0]
        return (Suggestion(f"set resources.requests.{what} on every container of the pods"),)
    if "the server could not find the requested resource (get pods.metrics.k8s.io)" in message:
        return (Suggestion("install metrics-server: nobody serves metrics.k8s.io"),)
    if "no custom metrics API" in message or "custom.metrics.k8s.io" in message:
        return (Suggestion("install an adapter that serves custom.metrics.k8s.io"),)
    if "external.metrics.k8s.io" in message:
        return (Suggestion("install an adapter that serves external.metrics.k8s.io"),)
    return ()


def _window(autoscaler: HorizontalPodAutoscaler, reason: str) -> str:
    behavior = autoscaler.spec.behavior
    rules = (
        None if behavior is None else (behavior.scale_down if reason == "ScaleDownStabilized" else behavior.scale_up)
    )
    seconds = None if rules is None else rules.stabilization_window_seconds
    usual = 300 if reason == "ScaleDownStabilized" else 0
    return f"; the window is {usual if seconds is None else seconds} s"


def _limited(autoscaler: HorizontalPodAutoscaler, subject: Reference, condition: Any) -> Finding:
    spec = autoscaler.spec
    evidence = [at_condition(subject, condition)]
    if condition.reason == "TooManyReplicas":
        evidence.append(at_field(subject, ".spec.maxReplicas", spec.max_replicas))
        text = f"it is at its upper bound, maxReplicas {spec.max_replicas}: {condition.message}"
        suggestion = patch("raise the bound", subject, {"spec": {"maxReplicas": spec.max_replicas * 2}})
        return warning("AtMaximum", text, *evidence, suggestions=(suggestion,))
    if condition.reason == "TooFewReplicas":
        evidence.append(at_field(subject, ".spec.minReplicas", spec.min_replicas))
        return note("AtMinimum", f"it is at its lower bound: {condition.message}", *evidence)
    return note("ScalingLimited", f"scaling is limited ({condition.reason}): {condition.message}", *evidence)


async def _check_tolerance(
    _: World, resource: APIResource[Any], autoscaler: HorizontalPodAutoscaler
) -> AsyncIterator[Finding]:
    """Yield current and target value of each metric, and if the difference is within the tolerance."""
    subject = reference(resource, autoscaler)
    up, down = _tolerances(autoscaler)
    for number, each in ratios(autoscaler):
        within = 1 - down <= each.ratio <= 1 + up
        means = f"within the tolerance ({up:g} up, {down:g} down): no scaling" if within else "outside of the tolerance"
        text = f"metric {each.name}: {each.current} of {each.target}, ratio {each.ratio:.2f}, {means}"
        yield note("MetricValue", text, at_field(subject, f".status.currentMetrics[{number}]", each.current))
    missing = len(autoscaler.spec.metrics) - len(autoscaler.status.current_metrics or ())
    if missing > 0 and autoscaler.status.conditions:
        text = f"{missing} of {len(autoscaler.spec.metrics)} metrics have no value"
        yield warning(
            "MetricsMissing", text, at_field(subject, ".status.currentMetrics", autoscaler.status.current_metrics)
        )


def _tolerances(autoscaler: HorizontalPodAutoscaler) -> tuple[float, float]:
    behavior = autoscaler.spec.behavior
    both = (behavior.scale_up, behavior.scale_down) if behavior is not None else (None, None)
    up, down = (
        _TOLERANCE if each is None or each.tolerance is None else Quantity.of(each.tolerance).as_float()
        for each in both
    )
    return up, down


def ratios(autoscaler: HorizontalPodAutoscaler) -> Iterator[tuple[int, Ratio]]:
    """Yield number and values of each metric that has both a current and a target value of the same form."""
    current = list(autoscaler.status.current_metrics or ())
    for each in autoscaler.spec.metrics:
        source = _source(each)
        if source is None:
            continue
        name = _metric_name(source)
        for number, status in enumerate(current):
            measured = _source(status)
            if measured is None or status.type != each.type or _metric_name(measured) != name:
                continue
            ratio = _ratio(name, measured.current, source.target)
            if ratio is not None:
                yield number, ratio
            break


def _source(metric: Any) -> Any:
    return next((each for name in _SOURCES if (each := getattr(metric, name)) is not None), None)


def _metric_name(source: Any) -> str:
    if isinstance(source, msgspec.Struct) and hasattr(source, "metric"):
        return str(source.metric.name)
    container = getattr(source, "container", "")
    return f"{source.name} of container {container}" if container else str(source.name)


def _ratio(name: str, current: MetricValueStatus, target: MetricTarget) -> Ratio | None:
    if target.average_utilization and current.average_utilization is not None:
        now, wanted = current.average_utilization, target.average_utilization
        return Ratio(name, f"{now}%", f"{wanted}%", now / wanted)
    pairs: Sequence[tuple[str | None, str | None]] = (
        (current.average_value, target.average_value),
        (current.value, target.value),
    )
    for value, goal in pairs:
        if value is not None and goal is not None and (wanted_value := Quantity.of(goal).as_float()):
            return Ratio(name, value, goal, Quantity.of(value).as_float() / wanted_value)
    return None


AUTOSCALER: Final = Explainer(
    HORIZONTAL_POD_AUTOSCALERS, _summarize, (_check_target, _check_conditions, _check_tolerance), autoscaler_fault
)
