"""HorizontalPodAutoscalers: change a workload's number of pods according to metrics."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.autoscaling import v1
from steersman.api.autoscaling.v2 import (
    HorizontalPodAutoscaler,
    HPAScalingPolicy,
    HPAScalingRules,
    MetricSpec,
    MetricTarget,
    ResourceMetricSource,
)
from steersman.kinds.built_in import built_in
from steersman.machinery.conversion.autoscaling import ANNOTATIONS, from_v1, to_v1
from steersman.machinery.errors.field import FieldError, Path
from steersman.machinery.validation.leaves import validate_nonnegative
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.autoscaling.columns import metrics
from steersman.registry.autoscaling.validation import validate_autoscaler
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, OtherVersion, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy


def set_defaults(autoscaler: HorizontalPodAutoscaler) -> None:
    """Set the defaults of v2.

    They are at least one pod, 80% of the requested CPU, and scaling up by 100% or four pods every 15 seconds at most.
    Annotations that v1 uses for fields that it lacks are dropped, as v2 has these fields.
    """
    annotations = autoscaler.metadata.annotations
    for name in ANNOTATIONS & annotations.keys():
        del annotations[name]
    spec = autoscaler.spec
    if spec.min_replicas is None:
        spec.min_replicas = 1
    if not spec.metrics:
        target = MetricTarget(type="Utilization", average_utilization=80)
        spec.metrics = [MetricSpec(type="Resource", resource=ResourceMetricSource(name="cpu", target=target))]
    if spec.behavior is not None:
        spec.behavior.scale_up = _with_defaults(spec.behavior.scale_up, _scale_up_rules())
        spec.behavior.scale_down = _with_defaults(spec.behavior.scale_down, _scale_down_rules())


def set_v1_defaults(autoscaler: v1.HorizontalPodAutoscaler) -> None:
    """Set the defaults of v1: at least one pod."""
    if autoscaler.spec.min_replicas is None:
        autoscaler.spec.min_replicas = 1


def _scale_up_rules() -> HPAScalingRules:
    return HPAScalingRules(
        stabilization_window_seconds=0,
        select_policy="Max",
        policies=[
            HPAScalingPolicy(type="Pods", value=4, period_seconds=15),
            HPAScalingPolicy(type="Percent", value=100, period_seconds=15),
        ],
    )


def _scale_down_rules() -> HPAScalingRules:
    return HPAScalingRules(
        select_policy="Max", policies=[HPAScalingPolicy(type="Percent", value=100, period_seconds=15)]
    )


def _with_defaults(rules: HPAScalingRules | None, defaults: HPAScalingRules) -> HPAScalingRules:
    if rules is None:
        return defaults
    if rules.select_policy is None:
        rules.select_policy = defaults.select_policy
    if rules.stabilization_window_seconds is None:
        rules.stabilization_window_seconds = defaults.stabilization_window_seconds
    if rules.policies is None:
        rules.policies = defaults.policies
    return rules


class HorizontalPodAutoscalerStrategy(Strategy[HorizontalPodAutoscaler]):
    resets = ("status",)

    def validate(self, ctx: Context, autoscaler: HorizontalPodAutoscaler) -> Iterator[FieldError]:
        return validate_autoscaler(autoscaler, None)

    def validate_update(
        self, ctx: Context, new: HorizontalPodAutoscaler, old: HorizontalPodAutoscaler
    ) -> Iterator[FieldError]:
        return validate_autoscaler(new, old)

    def canonicalize(self, obj: HorizontalPodAutoscaler) -> None:
        """Set the defaults of v2, also for an object that came as v1 and was validated without them."""
        set_defaults(obj)


class HorizontalPodAutoscalerStatusStrategy(StatusStrategy[HorizontalPodAutoscaler]):
    def validate_update(
        self, ctx: Context, new: HorizontalPodAutoscaler, old: HorizontalPodAutoscaler
    ) -> Iterator[FieldError]:
        yield from validate_nonnegative(new.status.current_replicas, Path("status", "currentReplicas"))
        yield from validate_nonnegative(new.status.desired_replicas, Path("status", "desiredReplicas"))


HORIZONTAL_POD_AUTOSCALERS = Resource(
    kind=built_in(HorizontalPodAutoscaler, default=set_defaults),
    plural="horizontalpodautoscalers",
    short_names=("hpa",),
    categories=("all",),
    strategy=HorizontalPodAutoscalerStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column("Reference", lambda h: f"{h.spec.scale_target_ref.kind}/{h.spec.scale_target_ref.name}"),
        Column("Targets", metrics),
        Column("MinPods", lambda h: "<unset>" if h.spec.min_replicas is None else str(h.spec.min_replicas)),
        Column("MaxPods", lambda h: h.spec.max_replicas),
        Column("Replicas", lambda h: h.status.current_replicas),
        AGE,
    ),
    subresources=(Subresource(name="status", strategy=HorizontalPodAutoscalerStatusStrategy()),),
    storage_version_hash="qwQve8ut294=",
    other_versions=(
        OtherVersion(
            built_in(v1.HorizontalPodAutoscaler, default=set_v1_defaults),
            from_v1,
            to_v1,
        ),
    ),
)
