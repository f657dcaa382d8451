"""Conversion of HorizontalPodAutoscalers between autoscaling/v2, the stored version, and autoscaling/v1.

Fields that v1 does not have are in annotations, as upstream writes them: metrics, their statuses and conditions in v1's
own form, the behavior in the form of upstream's internal type.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Final, TypeVar

import msgspec

from steersman.api.autoscaling import v1, v2
from steersman.api.meta.v1 import LabelSelector, ObjectMeta
from steersman.api.scalars import Int32, Quantity, Time, Wire, nil, zero_quantity
from steersman.machinery.codec.serializer import decode_scalar, encode
from steersman.machinery.go.strings import to_lower
from steersman.machinery.values.quantity import parse

T = TypeVar("T")

METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"
CURRENT_METRICS: Final = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS: Final = "autoscaling.alpha.kubernetes.io/conditions"
BEHAVIOR: Final = "autoscaling.alpha.kubernetes.io/behavior"
ANNOTATIONS: Final = (
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
)

DEFAULT_CPU_UTILIZATION: Final = 80


class Annotated(Wire, forbid_unknown_fields=False):
    """The base class of types in annotations."""


class ObjectMetricSource(Annotated):
    target: v1.CrossVersionObjectReference = msgspec.field(default_factory=v1.CrossVersionObjectReference)
    metric_name: str = msgspec.field(default_factory=str)
    target_value: Quantity = msgspec.field(default_factory=zero_quantity)
    selector: LabelSelector | None = None
    average_value: Quantity | None = None


class PodsMetricSource(Annotated):
    metric_name: str = msgspec.field(default_factory=str)
    target_average_value: Quantity = msgspec.field(default_factory=zero_quantity)
    selector: LabelSelector | None = None


class ResourceMetricSource(Annotated):
    name: str = msgspec.field(default_factory=str)
    target_average_utilization: Int32 | None = None
    target_average_value: Quantity | None = None


class ContainerResourceMetricSource(ResourceMetricSource):
    container: str = msgspec.field(default_factory=str)


class ExternalMetricSource(Annotated):
    metric_name: str = msgspec.field(default_factory=str)
    metric_selector: LabelSelector | None = None
    target_value: Quantity | None = None
    target_average_value: Quantity | None = None


class MetricSpec(Annotated):
    type: str = msgspec.field(default_factory=str)
    object: ObjectMetricSource | None = None
    pods: PodsMetricSource | None = None
    resource: ResourceMetricSource | None = None
    container_resource: ContainerResourceMetricSource | None = None
    external: ExternalMetricSource | None = None


class ObjectMetricStatus(Annotated):
    target: v1.CrossVersionObjectReference = msgspec.field(default_factory=v1.CrossVersionObjectReference)
    metric_name: str = msgspec.field(default_factory=str)
    current_value: Quantity = msgspec.field(default_factory=zero_quantity)
    selector: LabelSelector | None = None
    average_value: Quantity | None = None


class PodsMetricStatus(Annotated):
    metric_name: str = msgspec.field(default_factory=str)
    current_average_value: Quantity = msgspec.field(default_factory=zero_quantity)
    selector: LabelSelector | None = None


class ResourceMetricStatus(Annotated):
    name: str = msgspec.field(default_factory=str)
    current_average_utilization: Int32 | None = None
    current_average_value: Quantity = msgspec.field(default_factory=zero_quantity)


class ContainerResourceMetricStatus(ResourceMetricStatus):
    container: str = msgspec.field(default_factory=str)


class ExternalMetricStatus(Annotated):
    metric_name: str = msgspec.field(default_factory=str)
    metric_selector: LabelSelector | None = None
    current_value: Quantity = msgspec.field(default_factory=zero_quantity)
    current_average_value: Quantity | None = None


class MetricStatus(Annotated):
    type: str = msgspec.field(default_factory=str)
    object: ObjectMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    resource: ResourceMetricStatus | None = None
    container_resource: ContainerResourceMetricStatus | None = None
    external: ExternalMetricStatus | None = None


class Condition(Annotated):
    type: str = msgspec.field(default_factory=str)
    status: str = msgspec.field(default_factory=str)
    last_transition_time: Time | None = msgspec.field(default_factory=nil)
    reason: str = ""
    message: str = ""


class InternalPolicy(msgspec.Struct, rename="pascal"):
    type: str = ""
    value: Int32 = 0
    period_seconds: Int32 = 0


class InternalRules(msgspec.Struct, rename="pascal"):
    stabilization_window_seconds: Int32 | None = None
    select_policy: str | None = None
    policies: list[InternalPolicy] | None = None
    tolerance: Quantity | None = None


class InternalBehavior(msgspec.Struct, rename="pascal"):
    scale_up: InternalRules | None = None
    scale_down: InternalRules | None = None


_TYPES: Final[dict[str, Any]] = {
    METRICS: list[MetricSpec],
    CURRENT_METRICS: list[MetricStatus],
    CONDITIONS: list[Condition],
    BEHAVIOR: InternalBehavior,
}


@lru_cache(maxsize=8)
def _decoder(annotation: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_TYPES[annotation], dec_hook=decode_scalar)


@cache
def _form(annotation: str) -> Any:
    return msgspec.inspect.type_info(_TYPES[annotation])


def to_v1(hpa: v2.HorizontalPodAutoscaler) -> v1.HorizontalPodAutoscaler:
    """Convert an autoscaling/v2 object to autoscaling/v1."""
    spec, status = hpa.spec, hpa.status
    annotations = _without(hpa.metadata.annotations)
    others = [_metric_to_v1(each) for each in spec.metrics if _cpu_target(each) is None]
    if others:
        annotations[METRICS] = encode(others).decode()
    if status.current_metrics:
        annotations[CURRENT_METRICS] = encode([_status_to_v1(each) for each in status.current_metrics]).decode()
    if spec.behavior is not None:
        annotations[BEHAVIOR] = encode(_behavior_to_v1(spec.behavior)).decode()
    if status.conditions:
        annotations[CONDITIONS] = encode([_same(Condition, each) for each in status.conditions]).decode()
    targets = [target for each in spec.metrics if (target := _cpu_target(each)) is not None]
    current = [
        each.resource.current.average_utilization
        for each in status.current_metrics or ()
        if each.type == "Resource" and each.resource is not None and each.resource.name == "cpu"
        if each.resource.current.average_utilization is not None
    ]
    return v1.HorizontalPodAutoscaler(
        metadata=_annotated(hpa.metadata, annotations),
        spec=v1.HorizontalPodAutoscalerSpec(
            scale_target_ref=_same(v1.CrossVersionObjectReference, spec.scale_target_ref),
            min_replicas=spec.min_replicas,
            max_replicas=spec.max_replicas,
            target_cpu_utilization_percentage=targets[0] if targets else None,
        ),
        status=v1.HorizontalPodAutoscalerStatus(
            observed_generation=status.observed_generation,
            last_scale_time=status.last_scale_time,
            current_replicas=status.current_replicas,
            desired_replicas=status.desired_replicas,
            current_cpu_utilization_percentage=current[-1] if current else None,
        ),
    )


def from_v1(hpa: v1.HorizontalPodAutoscaler) -> v2.HorizontalPodAutoscaler:
    """Convert an autoscaling/v1 object to autoscaling/v2; like upstream, malformed annotations are ignored."""
    metrics: list[v2.MetricSpec] = []
    if (utilization := hpa.spec.target_cpu_utilization_percentage) is not None:
        metrics = [_cpu_metric(utilization)]
    if (others := _read(hpa.metadata, METRICS)) is not None:
        metrics = [*(_metric_from_v1(each) for each in others), *metrics]
    if not metrics:
        metrics = [_cpu_metric(DEFAULT_CPU_UTILIZATION)]
    behavior = _read(hpa.metadata, BEHAVIOR)
    current: list[v2.MetricStatus] | None = None
    if (utilization := hpa.status.current_cpu_utilization_percentage) is not None:
        value = v2.MetricValueStatus(average_utilization=utilization)
        current = [v2.MetricStatus(type="Resource", resource=v2.ResourceMetricStatus(name="cpu", current=value))]
    if (statuses := _read(hpa.metadata, CURRENT_METRICS)) is not None:
        current = [_status_from_v1(each) for each in statuses]
    conditions = _read(hpa.metadata, CONDITIONS) or ()
    return v2.HorizontalPodAutoscaler(
        metadata=_annotated(hpa.metadata, _without(hpa.metadata.annotations)),
        spec=v2.HorizontalPodAutoscalerSpec(
            scale_target_ref=_same(v2.CrossVersionObjectReference, hpa.spec.scale_target_ref),
            min_replicas=hpa.spec.min_replicas,
            max_replicas=hpa.spec.max_replicas,
            metrics=metrics,
            behavior=_behavior_from_v1(behavior) if behavior else None,
        ),
        status=v2.HorizontalPodAutoscalerStatus(
            observed_generation=hpa.status.observed_generation,
            last_scale_time=hpa.status.last_scale_time,
            current_replicas=hpa.status.current_replicas,
            desired_replicas=hpa.status.desired_replicas,
            current_metrics=current,
            conditions=[_same(v2.HorizontalPodAutoscalerCondition, each) for each in conditions],
        ),
    )


def _annotated(metadata: ObjectMeta, annotations: dict[str, str]) -> ObjectMeta:
    return msgspec.structs.replace(metadata, annotations=annotations)


def _without(annotations: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in annotations.items() if name not in ANNOTATIONS}


def _read(metadata: ObjectMeta, annotation: str) -> Any:
    """Return the value of an annotation; None if it is missing, or not JSON of its type."""
    text = metadata.annotations.get(annotation)
    if text is None:
        return None
    try:
        plain = _by_own_names(_form(annotation), msgspec.json.decode(text))
        return _decoder(annotation).decode(msgspec.json.encode(plain))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _by_own_names(form: Any, plain: Any) -> Any:
    """Return plain data with member names as declared, because Go ignores their case."""
    if isinstance(form, msgspec.inspect.UnionType):
        form = next((each for each in form.types if not isinstance(each, msgspec.inspect.NoneType)), form)
    if isinstance(form, msgspec.inspect.ListType) and isinstance(plain, list):
        return [_by_own_names(form.item_type, item) for item in plain]
    if not isinstance(form, msgspec.inspect.StructType) or not isinstance(plain, dict):
        return plain
    known = {to_lower(each.encode_name): each for each in form.fields}
    by_own_names: dict[str, Any] = {}
    for name, value in plain.items():
        member = known.get(to_lower(name))
        if member is None:
            by_own_names[name] = value
        else:
            by_own_names[member.encode_name] = _by_own_names(member.type, value)
    return by_own_names


def _same(cls: type[T], other: Any) -> T:
    """Return an object of `cls` with the members of `other`, whose class has the same members."""
    return cls(**msgspec.structs.asdict(other))


def _cpu_target(metric: v2.MetricSpec) -> int | None:
    """Return the target utilization of a cpu metric, for which v1 has a field; None for other metrics."""
    if metric.type != "Resource" or metric.resource is None or metric.resource.name != "cpu":
        return None
    return metric.resource.target.average_utilization


def _cpu_metric(utilization: int) -> v2.MetricSpec:
    target = v2.MetricTarget(type="Utilization", average_utilization=utilization)
    return v2.MetricSpec(type="Resource", resource=v2.ResourceMetricSource(name="cpu", target=target))


def _metric_to_v1(metric: v2.MetricSpec) -> MetricSpec:
    out = MetricSpec(type=metric.type)
    if (obj := metric.object) is not None:
        out.object = ObjectMetricSource(
            target=_same(v1.CrossVersionObjectReference, obj.described_object),
            metric_name=obj.metric.name,
            target_value=obj.target.value or "0",
            selector=obj.metric.selector,
            average_value=obj.target.average_value,
        )
    if (pods := metric.pods) is not None:
        out.pods = PodsMetricSource(
            metric_name=pods.metric.name,
            target_average_value=pods.target.average_value or "0",
            selector=pods.metric.selector,
        )
    if (resource := metric.resource) is not None:
        out.resource = ResourceMetricSource(**_resource_source(resource))
    if (container := metric.container_resource) is not None:
        out.container_resource = ContainerResourceMetricSource(
            container=container.container, **_resource_source(container)
        )
    if (external := metric.external) is not None:
        out.external = ExternalMetricSource(
            metric_name=external.metric.name,
            metric_selector=external.metric.selector,
            target_value=external.target.value,
            target_average_value=external.target.average_value,
        )
    return out


def _resource_source(source: v2.ResourceMetricSource | v2.ContainerResourceMetricSource) -> dict[str, Any]:
    target = source.target
    return {
        "name": source.name,
        "target_average_utilization": target.average_utilization,
        "target_average_value": target.average_value,
    }


def _metric_from_v1(metric: MetricSpec) -> v2.MetricSpec:
    out = v2.MetricSpec(type=metric.type)
    if (obj := metric.object) is not None:
        out.object = v2.ObjectMetricSource(
            described_object=_same(v2.CrossVersionObjectReference, obj.target),
            target=_object_target(obj),
            metric=v2.MetricIdentifier(name=obj.metric_name, selector=obj.selector),
        )
    if (pods := metric.pods) is not None:
        out.pods = v2.PodsMetricSource(
            metric=v2.MetricIdentifier(name=pods.metric_name, selector=pods.selector),
            target=v2.MetricTarget(type="AverageValue", average_value=pods.target_average_value),
        )
    if (resource := metric.resource) is not None:
        out.resource = v2.ResourceMetricSource(name=resource.name, target=_resource_target(resource))
    if (container := metric.container_resource) is not None:
        out.container_resource = v2.ContainerResourceMetricSource(
            name=container.name, container=container.container, target=_resource_target(container)
        )
    if (external := metric.external) is not None:
        target = v2.MetricTarget(
            type="AverageValue" if external.target_value is None else "Value",
            value=external.target_value,
            average_value=external.target_average_value,
        )
        identifier = v2.MetricIdentifier(name=external.metric_name, selector=external.metric_selector)
        out.external = v2.ExternalMetricSource(metric=identifier, target=target)
    return out


def _object_target(source: ObjectMetricSource) -> v2.MetricTarget:
    """Return the target of an object metric: v1 always has a value, and a zero beside an average means none."""
    if source.average_value is None:
        return v2.MetricTarget(type="Value", value=source.target_value)
    value = source.target_value if parse(source.target_value) else None
    return v2.MetricTarget(type="AverageValue", value=value, average_value=source.average_value)


def _resource_target(source: ResourceMetricSource) -> v2.MetricTarget:
    return v2.MetricTarget(
        type="AverageValue" if source.target_average_utilization is None else "Utilization",
        average_value=source.target_average_value,
        average_utilization=source.target_average_utilization,
    )


def _status_to_v1(status: v2.MetricStatus) -> MetricStatus:
    out = MetricStatus(type=status.type)
    if (obj := status.object) is not None:
        out.object = ObjectMetricStatus(
            target=_same(v1.CrossVersionObjectReference, obj.described_object),
            metric_name=obj.metric.name,
            current_value=obj.current.value or "0",
            selector=obj.metric.selector,
            average_value=obj.current.average_value,
        )
    if (pods := status.pods) is not None:
        out.pods = PodsMetricStatus(
            metric_name=pods.metric.name,
            current_average_value=pods.current.average_value or "0",
            selector=pods.metric.selector,
        )
    if (resource := status.resource) is not None:
        out.resource = ResourceMetricStatus(**_resource_status(resource))
    if (container := status.container_resource) is not None:
        out.container_resource = ContainerResourceMetricStatus(
            container=container.container, **_resource_status(container)
        )
    if (external := status.external) is not None:
        out.external = ExternalMetricStatus(
            metric_name=external.metric.name,
            metric_selector=external.metric.selector,
            current_value=external.current.value or "0",
            current_average_value=external.current.average_value,
        )
    return out


def _resource_status(status: v2.ResourceMetricStatus | v2.ContainerResourceMetricStatus) -> dict[str, Any]:
    current = status.current
    return {
        "name": status.name,
        "current_average_utilization": current.average_utilization,
        "current_average_value": current.average_value or "0",
    }


def _status_from_v1(status: MetricStatus) -> v2.MetricStatus:
    out = v2.MetricStatus(type=status.type)
    if (obj := status.object) is not None:
        out.object = v2.ObjectMetricStatus(
            metric=v2.MetricIdentifier(name=obj.metric_name, selector=obj.selector),
            current=v2.MetricValueStatus(value=obj.current_value, average_value=obj.average_value),
            described_object=_same(v2.CrossVersionObjectReference, obj.target),
        )
    if (pods := status.pods) is not None:
        out.pods = v2.PodsMetricStatus(
            metric=v2.MetricIdentifier(name=pods.metric_name, selector=pods.selector),
            current=v2.MetricValueStatus(average_value=pods.current_average_value),
        )
    if (resource := status.resource) is not None:
        out.resource = v2.ResourceMetricStatus(name=resource.name, current=_resource_value(resource))
    if (container := status.container_resource) is not None:
        out.container_resource = v2.ContainerResourceMetricStatus(
            name=container.name, container=container.container, current=_resource_value(container)
        )
    if (external := status.external) is not None:
        out.external = v2.ExternalMetricStatus(
            metric=v2.MetricIdentifier(name=external.metric_name, selector=external.metric_selector),
            current=v2.MetricValueStatus(value=external.current_value, average_value=external.current_average_value),
        )
    return out


def _resource_value(status: ResourceMetricStatus) -> v2.MetricValueStatus:
    return v2.MetricValueStatus(
        average_value=status.current_average_value, average_utilization=status.current_average_utilization
    )


def _behavior_to_v1(behavior: v2.HorizontalPodAutoscalerBehavior) -> InternalBehavior:
    return InternalBehavior(_rules_to_v1(behavior.scale_up), _rules_to_v1(behavior.scale_down))


def _rules_to_v1(rules: v2.HPAScalingRules | None) -> InternalRules | None:
    if rules is None:
        return None
    policies = [InternalPolicy(each.type, each.value, each.period_seconds) for each in rules.policies or ()] or None
    return InternalRules(rules.stabilization_window_seconds, rules.select_policy, policies, rules.tolerance)


def _behavior_from_v1(behavior: InternalBehavior) -> v2.HorizontalPodAutoscalerBehavior | None:
    """Return the behavior as v2 has it, None if it has no rules."""
    if behavior.scale_up is None and behavior.scale_down is None:
        return None
    return v2.HorizontalPodAutoscalerBehavior(
        scale_up=_rules_from_v1(behavior.scale_up), scale_down=_rules_from_v1(behavior.scale_down)
    )


def _rules_from_v1(rules: InternalRules | None) -> v2.HPAScalingRules | None:
    if rules is None:
        return None
    return v2.HPAScalingRules(
        stabilization_window_seconds=rules.stabilization_window_seconds,
        select_policy=rules.select_policy,
        policies=None if rules.policies is None else [_same(v2.HPAScalingPolicy, each) for each in rules.policies],
        tolerance=rules.tolerance,
    )
