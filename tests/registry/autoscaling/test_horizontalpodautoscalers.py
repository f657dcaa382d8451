"""HorizontalPodAutoscalers: defaults, both versions, metrics and their columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.autoscaling import v1, v2
from steersman.machinery.codec.serializer import from_plain, to_plain
from steersman.registry.autoscaling.columns import metrics
from steersman.registry.autoscaling.horizontalpodautoscalers import HORIZONTAL_POD_AUTOSCALERS

GROUP = "autoscaling"
PLURAL = "horizontalpodautoscalers"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}


def autoscaler(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3, **spec}}


async def test_an_autoscaler_aims_at_80_percent_of_cpu(cluster: Callable[..., Any]) -> None:
    c = await cluster(HORIZONTAL_POD_AUTOSCALERS)
    spec = (await c.create(PLURAL, autoscaler(behavior={"scaleDown": {"selectPolicy": "Min"}}), group=GROUP))["spec"]
    assert spec["minReplicas"] == 1
    assert spec["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}
    assert spec["behavior"]["scaleDown"]["selectPolicy"] == "Min"
    assert [policy["value"] for policy in spec["behavior"]["scaleUp"]["policies"]] == [4, 100]


def test_v1_and_v2_are_the_same_object() -> None:
    (version,) = HORIZONTAL_POD_AUTOSCALERS.other_versions
    old = from_plain(v1.HorizontalPodAutoscaler, autoscaler(targetCPUUtilizationPercentage=50))
    hub = version.to_hub(old)
    assert hub.spec.metrics[0].resource.target.average_utilization == 50
    assert to_plain(version.from_hub(hub))["spec"]["targetCPUUtilizationPercentage"] == 50


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        (
            {"maxReplicas": 0, "scaleTargetRef": {}},
            [
                "spec.maxReplicas: Required value: must be set and greater than 0",
                "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
                "spec.scaleTargetRef.kind: Required value",
                "spec.scaleTargetRef.name: Required value",
                'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group',
            ],
        ),
        (
            {"minReplicas": 0},
            [
                "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
                "spec.metrics: Forbidden: must specify at least one Object or External metric "
                "to support scaling to zero replicas",
            ],
        ),
        (
            {"metrics": [{"type": "Resource"}]},
            ["spec.metrics[0].resource: Required value: must populate information for the given metric source"],
        ),
        (
            {
                "metrics": [
                    {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "0"}}}
                ]
            },
            [
                'spec.metrics[0].pods.target.value: Invalid value: "0": must be positive',
                "spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue",
            ],
        ),
        (
            {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 4000, "policies": [{"type": "Odd", "value": 1}]}}},
            [
                "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 4000: must be less than or equal to 3600",
                'spec.behavior.scaleUp.policies[0].type: Unsupported value: "Odd": supported values: "Percent", "Pods"',
                "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 0: must be greater than zero",
            ],
        ),
        (
            {"behavior": {"scaleUp": {"policies": []}}},
            ["spec.behavior.scaleUp.policies: Required value: must specify at least one Policy"],
        ),
    ],
)
async def test_an_autoscaler_is_refused_in_the_words_of_the_reference(
    cluster: Callable[..., Any], spec: dict[str, Any], faults: list[str]
) -> None:
    c = await cluster(HORIZONTAL_POD_AUTOSCALERS)
    assert await c.faults(c.create(PLURAL, autoscaler(**spec), group=GROUP)) == faults


def test_two_metrics_are_shown_and_the_others_counted() -> None:
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
    pods = {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "5"}}}
    status = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 30}}}]
    body = autoscaler(metrics=[cpu, pods, cpu]) | {"status": {"desiredReplicas": 1, "currentMetrics": status}}
    assert metrics(from_plain(v2.HorizontalPodAutoscaler, body)) == "cpu: 30%/80%, <unknown>/5 + 1 more..."
