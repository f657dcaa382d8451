"""Tests of autoscalers in a simulated cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from steersman.api.apps.v1 import Deployment, DeploymentSpec
from steersman.api.autoscaling.v2 import (
    CrossVersionObjectReference,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerBehavior,
    HorizontalPodAutoscalerSpec,
    HPAScalingRules,
    MetricSpec,
    MetricTarget,
    ResourceMetricSource,
)
from steersman.api.core.v1 import ConfigMap, Container, PodSpec, PodTemplateSpec, ResourceRequirements
from steersman.api.meta.v1 import LabelSelector, ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.client.client import Client
from steersman.client.resources import CONFIG_MAPS, DEPLOYMENTS, EVENTS, HORIZONTAL_POD_AUTOSCALERS, PODS
from steersman.cluster.cluster import Cluster
from steersman.controlplane.options import Options
from steersman.machinery.codec.serializer import from_plain
from steersman.testing.clock import Clock


class ScaledDeployment:
    """A cluster with a Deployment `web` of two pods, and its simulated time."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.client = client
        self.clock = clock

    async def autoscaler(self, *metrics: MetricSpec, name: str = "h", **spec: Any) -> None:
        target = CrossVersionObjectReference(api_version="apps/v1", kind="Deployment", name="web")
        fields = {"min_replicas": 1, "max_replicas": 10, "scale_target_ref": target, **spec}
        obj = HorizontalPodAutoscaler(
            metadata=ObjectMeta(name=name, namespace="default"),
            spec=HorizontalPodAutoscalerSpec(metrics=list(metrics), **fields),
        )
        await self.client.create(HORIZONTAL_POD_AUTOSCALERS, obj)

    async def set_usage(self, cpu: str) -> None:
        """Set the usage of each pod."""
        patch = {"metadata": {"annotations": {"simulation.steersman.dev/cpu": cpu}}}
        for pod in (await self.client.list(PODS, "default")).items:
            await self.client.patch(PODS, pod.metadata.name, "default", patch)

    async def replicas(self) -> int | None:
        return (await self.client.get(DEPLOYMENTS, "web", "default")).spec.replicas

    async def conditions(self, name: str = "h") -> dict[str, str]:
        autoscaler = await self.client.get(HORIZONTAL_POD_AUTOSCALERS, name, "default")
        return {each.type: f"{each.status} {each.reason}" for each in autoscaler.status.conditions}

    async def message(self, reason: str) -> str:
        events = (await self.client.list(EVENTS, "default")).items
        return next((each.message for each in events if each.reason == reason), "")


@pytest_asyncio.fixture
async def running(keys_folder: Path) -> AsyncIterator[ScaledDeployment]:
    clock = Clock()
    cluster = Cluster(Options(data_dir=keys_folder, storage="memory", listen=False))
    await cluster.start()
    try:
        await clock.settle()
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
        labels = {"app": "web"}
        asked = ResourceRequirements(requests={"cpu": "100m"})
        template = PodTemplateSpec(
            metadata=ObjectMeta(labels=labels),
            spec=PodSpec(containers=[Container(name="c", image="nginx", resources=asked)]),
        )
        spec = DeploymentSpec(replicas=2, selector=LabelSelector(match_labels=labels), template=template)
        await client.create(DEPLOYMENTS, Deployment(metadata=ObjectMeta(name="web", namespace="default"), spec=spec))
        await clock.advance(seconds=20)
        yield ScaledDeployment(client, clock)
    finally:
        await cluster.stop()


def cpu(percentage: int) -> MetricSpec:
    target = MetricTarget(type="Utilization", average_utilization=percentage)
    return MetricSpec(type="Resource", resource=ResourceMetricSource(name="cpu", target=target))


async def test_it_scales_up_at_its_next_look_and_down_when_the_window_has_passed(running: ScaledDeployment) -> None:
    await running.set_usage("90m")
    await running.autoscaler(cpu(50))
    await running.clock.advance(seconds=14)
    assert await running.replicas() == 2
    await running.clock.advance(seconds=2)
    assert await running.replicas() == 4
    text = "New size: 4; reason: cpu resource utilization (percentage of request) above target"
    assert await running.message("SuccessfulRescale") == text
    await running.clock.advance(minutes=1)
    await running.set_usage("10m")
    await running.clock.advance(minutes=4)
    assert await running.replicas() == 4
    assert (await running.conditions())["AbleToScale"] == "True ScaleDownStabilized"
    await running.clock.advance(minutes=2)
    assert await running.replicas() == 1
    assert (await running.conditions())["ScalingActive"] == "True ValidMetricFound"


async def test_what_cannot_be_found_is_told(running: ScaledDeployment) -> None:
    await running.autoscaler(
        cpu(50), scale_target_ref=CrossVersionObjectReference(api_version="e.x/v1", kind="Whale", name="web")
    )
    await running.clock.advance(seconds=16)
    assert await running.conditions() == {"AbleToScale": "False FailedGetScale"}
    assert await running.message("FailedGetScale") == 'no matches for kind "Whale" in group "e.x"'


async def test_two_autoscalers_of_the_same_pods_do_nothing(running: ScaledDeployment) -> None:
    await running.set_usage("90m")
    disabled = HorizontalPodAutoscalerBehavior(scale_up=HPAScalingRules(select_policy="Disabled"))
    await running.autoscaler(cpu(50), behavior=disabled)
    await running.autoscaler(cpu(60), name="i", behavior=disabled)
    await running.clock.advance(seconds=46)
    assert (await running.conditions())["ScalingActive"] == "False AmbiguousSelector"
    assert await running.message("AmbiguousSelector") == (
        "pods by selector app=web are controlled by multiple HPAs: [default/h default/i]"
    )


async def test_external_metrics_scale(running: ScaledDeployment) -> None:
    metric = {"metric": {"name": "tasks"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    await running.autoscaler(from_plain(MetricSpec, {"type": "External", "external": metric}))
    await running.clock.advance(seconds=16)
    assert (await running.conditions())["ScalingActive"] == "False FailedGetExternalMetric"
    metadata = ObjectMeta(name="external-metrics", namespace="default")
    await running.client.create(CONFIG_MAPS, ConfigMap(metadata=metadata, data={"tasks": "queue=a 25\nqueue=b 26"}))
    await running.clock.advance(seconds=16)
    assert await running.replicas() == 4
    assert (await running.conditions())["ScalingLimited"] == "True ScaleUpLimit"


async def test_a_target_of_no_replicas_is_left_alone(running: ScaledDeployment) -> None:
    await running.autoscaler(cpu(50))
    await running.client.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": 0}})
    await running.clock.advance(seconds=16)
    assert await running.replicas() == 0
    assert (await running.conditions())["ScalingActive"] == "False ScalingDisabled"
