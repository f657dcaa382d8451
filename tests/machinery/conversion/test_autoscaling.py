"""HorizontalPodAutoscalers between autoscaling/v1 and v2."""

from __future__ import annotations

import json

from steersman.api.autoscaling import v1 as autoscaling_v1
from steersman.api.autoscaling import v2 as autoscaling_v2
from steersman.machinery.codec.serializer import decode_json, to_plain
from steersman.machinery.conversion.autoscaling import (
    BEHAVIOR,
    CONDITIONS,
    CURRENT_METRICS,
    METRICS,
    from_v1,
    to_v1,
)

V2 = {
    "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
    "minReplicas": 1,
    "maxReplicas": 5,
    "metrics": [
        {
            "type": "Resource",
            "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}},
        },
        {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "1k"}}},
        {
            "type": "Object",
            "object": {
                "describedObject": {"kind": "Ingress", "name": "i"},
                "target": {"type": "AverageValue", "averageValue": "2"},
                "metric": {"name": "hits", "selector": {"matchLabels": {"a": "b"}}},
            },
        },
        {
            "type": "External",
            "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "30"}},
        },
        {
            "type": "ContainerResource",
            "containerResource": {
                "name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 60},
                "container": "c",
            },
        },
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
    ],
    "behavior": {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Max",
            "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}],
        },
        "scaleDown": {"tolerance": "100m"},
    },
}


def test_what_v1_has_no_members_for_travels_in_annotations_of_upstreams_form() -> None:
    hpa = decode_json(autoscaling_v2.HorizontalPodAutoscaler, json.dumps({"spec": V2}).encode())
    hpa.status.conditions = [autoscaling_v2.HorizontalPodAutoscalerCondition(type="AbleToScale", status="True")]
    cpu = autoscaling_v2.MetricValueStatus(average_utilization=40, average_value="10m")
    hpa.status.current_metrics = [
        autoscaling_v2.MetricStatus(
            type="Resource", resource=autoscaling_v2.ResourceMetricStatus(name="cpu", current=cpu)
        )
    ]
    old = to_v1(hpa)
    assert old.spec.target_cpu_utilization_percentage == 50
    assert old.status.current_cpu_utilization_percentage == 40
    annotations = old.metadata.annotations
    assert annotations[METRICS].startswith(
        '[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"100Mi"}},'
        '{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"1k"}},'
        '{"type":"Object","object":{"target":{"kind":"Ingress","name":"i"},"metricName":"hits","targetValue":"0",'
        '"selector":{"matchLabels":{"a":"b"}},"averageValue":"2"}},'
    )
    assert annotations[BEHAVIOR] == (
        '{"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,'
        '"PeriodSeconds":15}],"Tolerance":null},"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":null,'
        '"Policies":null,"Tolerance":"100m"}}'
    )
    assert annotations[CONDITIONS] == '[{"type":"AbleToScale","status":"True","lastTransitionTime":null}]'
    assert annotations[CURRENT_METRICS] == (
        '[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":40,"currentAverageValue":"10m"}}]'
    )
    assert hpa.metadata.annotations == {}

    again = from_v1(old)
    assert to_plain(again)["spec"] == V2
    assert again.metadata.annotations == {}
    assert again.status.conditions == hpa.status.conditions
    assert again.status.current_metrics == hpa.status.current_metrics


def test_an_autoscaler_of_v1_without_metrics_aims_at_eighty_percent() -> None:
    old = autoscaling_v1.HorizontalPodAutoscaler()
    old.metadata.annotations = {METRICS: "no json", "other": "stays"}
    new = from_v1(old)
    resource = new.spec.metrics[0].resource
    assert resource is not None
    assert resource.target.average_utilization == 80
    assert new.metadata.annotations == {"other": "stays"}
