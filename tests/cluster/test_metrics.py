"""The metrics APIs of a simulated cluster."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from steersman.api.apiregistration.v1 import APIService, APIServiceSpec, ServiceReference
from steersman.api.core.v1 import ConfigMap, Container, Pod, PodSpec, ResourceRequirements
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.client.client import Client
from steersman.client.resources import API_SERVICES, CONFIG_MAPS, NAMESPACES, PODS
from steersman.cluster.cluster import Cluster
from steersman.controlplane.options import Options
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.testing.clock import Clock

pytestmark = pytest.mark.asyncio(loop_scope="module")

METRICS = "/apis/metrics.k8s.io/v1beta1"
CUSTOM = "/apis/custom.metrics.k8s.io"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Running:
    """A cluster with a running pod `web` and a controllable clock."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self.cluster = cluster
        self.clock = clock
        self.client = self.as_user("admin", "system:masters")

    def as_user(self, name: str, *groups: str) -> Client:
        return self.cluster.client(UserInfo(name, groups=groups), "tests")

    async def get(self, path: str, accept: str = "application/json") -> Any:
        return await self.client.get_plain(path, accept)

    async def refused(self, path: str) -> str:
        with pytest.raises(StatusError) as raised:
            await self.get(path)
        return f"{raised.value.code} {raised.value.message}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    clock = Clock()
    cluster = Cluster(Options(data_dir=tmp_path_factory.mktemp("metrics"), storage="memory", listen=False))
    await cluster.start()
    try:
        found = Running(cluster, clock)
        await clock.settle()
        asked = ResourceRequirements(requests={"cpu": "200m", "memory": "64Mi"})
        metadata = ObjectMeta(
            name="web",
            namespace="default",
            labels={"app": "web"},
            annotations={"metrics.simulation.steersman.dev/hits": "1500m", "simulation.steersman.dev/cpu": "55m"},
        )
        container = Container(name="c", image="nginx", resources=asked)
        await found.client.create(PODS, Pod(metadata=metadata, spec=PodSpec(containers=[container])))
        await clock.advance(seconds=5)
        yield found
    finally:
        await cluster.stop()
        times.advance(time.time() - times.unix_now())  # each test has put back what it moved itself


async def test_usage_of_pods_and_nodes_is_reported(running: Running) -> None:
    (pod,) = (await running.get(f"{METRICS}/pods"))["items"]
    assert pod["containers"] == [{"name": "c", "usage": {"cpu": "55m", "memory": "16Mi"}}]
    assert pod["metadata"]["labels"] == {"app": "web"}
    assert int(pod["window"].removesuffix("s")) in range(1, 16)
    assert await running.get(f"{METRICS}/namespaces/default/pods/web") == {
        **pod,
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
    }
    (node,) = (await running.get(f"{METRICS}/nodes"))["items"]
    assert node["usage"] == {"cpu": "55m", "memory": "16Mi"}
    await running.clock.advance(minutes=1)
    assert (await running.get(f"{METRICS}/namespaces/default/pods/web"))["window"] == "15s"


async def test_usage_is_selected_as_objects_are(running: Running) -> None:
    path = f"{METRICS}/namespaces/default/pods"
    assert len((await running.get(f"{path}?labelSelector=app%3Dweb"))["items"]) == 1
    assert not (await running.get(f"{path}?labelSelector=app%3Ddb"))["items"]
    assert len((await running.get(f"{path}?fieldSelector=metadata.name%3Dweb"))["items"]) == 1
    assert not (await running.get(f"{METRICS}/namespaces/kube-system/pods"))["items"]


async def test_usage_is_shown_in_tables(running: Running) -> None:
    table = await running.get(f"{METRICS}/pods", TABLE)
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "cpu", "memory", "Window"]
    assert table["rows"][0]["cells"][:3] == ["web", "55m", "16Mi"]


async def test_what_is_not_measured_is_not_found(running: Running) -> None:
    assert await running.refused(f"{METRICS}/namespaces/default/pods/none") == '404 pods "none" not found'
    assert await running.refused(f"{METRICS}/nodes/none") == '404 nodes "none" not found'
    waiting = Pod(
        metadata=ObjectMeta(name="waits", namespace="default"),
        spec=PodSpec(containers=[Container(name="c", image="i")], node_selector={"a": "b"}),
    )
    await running.client.create(PODS, waiting)
    await running.clock.settle()
    reported = '404 podmetrics.metrics.k8s.io "default/waits" not found'
    assert await running.refused(f"{METRICS}/namespaces/default/pods/waits") == reported
    assert len((await running.get(f"{METRICS}/pods"))["items"]) == 1
    await running.client.delete(PODS, "waits", "default")


async def test_custom_metrics_are_annotations(running: Running) -> None:
    found = await running.get(f"{CUSTOM}/v1beta2/namespaces/default/pods/*/hits?labelSelector=app%3Dweb")
    assert (found["kind"], found["apiVersion"]) == ("MetricValueList", "custom.metrics.k8s.io/v1beta2")
    (value,) = found["items"]
    assert value["describedObject"] == {"kind": "Pod", "namespace": "default", "name": "web", "apiVersion": "/v1"}
    assert (value["metric"], value["value"]) == ({"name": "hits"}, "1500m")
    (old,) = (await running.get(f"{CUSTOM}/v1beta1/namespaces/default/pods/web/hits"))["items"]
    assert (old["metricName"], old["value"], old["selector"]) == ("hits", "1500m", None)
    other = "404 the server could not find the metric misses for pods"
    assert await running.refused(f"{CUSTOM}/v1beta2/namespaces/default/pods/*/misses") == other
    assert await running.refused(f"{CUSTOM}/v1beta2/namespaces/default/pods/web/misses") == f"{other} web"
    labelled = f"{CUSTOM}/v1beta2/namespaces/default/pods/*/hits?metricLabelSelector=zone"
    assert await running.refused(labelled) == "404 the server could not find the metric hits for pods"
    assert (await running.refused(f"{CUSTOM}/v1beta2/namespaces/default/whales/*/hits")).startswith("404 the server")
    assert (await running.refused(f"{CUSTOM}/v1beta2/namespaces/default/nodes/*/hits")).startswith("404 the server")


async def test_a_namespace_has_metrics_too(running: Running) -> None:
    annotation = {"metadata": {"annotations": {"metrics.simulation.steersman.dev/size": "3"}}}
    await running.client.patch(NAMESPACES, "default", "", annotation)
    (value,) = (await running.get(f"{CUSTOM}/v1beta2/namespaces/default/metrics/size"))["items"]
    assert (value["describedObject"]["kind"], value["value"]) == ("Namespace", "3")


async def test_external_metrics_are_in_a_config_map(running: Running) -> None:
    assert (await running.get(f"{EXTERNAL}/tasks"))["items"] == []
    data = {"tasks": "queue=mail 30\nqueue=other 4"}
    metadata = ObjectMeta(name="external-metrics", namespace="default")
    await running.client.create(CONFIG_MAPS, ConfigMap(metadata=metadata, data=data))
    found = await running.get(f"{EXTERNAL}/tasks?labelSelector=queue%3Dmail")
    assert found["kind"] == "ExternalMetricValueList"
    (value,) = found["items"]
    assert (value["metricName"], value["metricLabels"], value["value"]) == ("tasks", {"queue": "mail"}, "30")


async def test_metrics_are_refused_without_permission(running: Running) -> None:
    somebody = running.as_user("somebody", "system:authenticated")
    for path in (f"{METRICS}/nodes", f"{CUSTOM}/v1beta2/namespaces/default/pods/web/hits", f"{EXTERNAL}/tasks"):
        with pytest.raises(StatusError) as raised:
            await somebody.get_plain(path)
        assert raised.value.code == 403


async def test_they_are_discovered(running: Running) -> None:
    groups = {each["name"]: each for each in (await running.get("/apis"))["groups"]}
    assert groups["custom.metrics.k8s.io"]["preferredVersion"]["version"] == "v1beta2"
    assert [each["version"] for each in groups["external.metrics.k8s.io"]["versions"]] == ["v1beta1"]
    aggregated = await running.get("/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
    names = [each["metadata"]["name"] for each in aggregated["items"]]
    assert {"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"} <= set(names)
    listed = (await running.get(METRICS))["resources"]
    assert [(each["name"], each["kind"]) for each in listed] == [("nodes", "NodeMetrics"), ("pods", "PodMetrics")]
    assert (await running.get(f"{CUSTOM}/v1beta2"))["resources"] == []


async def test_another_server_answers_in_their_place(running: Running) -> None:
    await running.client.delete(API_SERVICES, "v1beta1.metrics.k8s.io")
    elsewhere = APIServiceSpec(
        group="metrics.k8s.io",
        version="v1beta1",
        group_priority_minimum=100,
        version_priority=100,
        service=ServiceReference(namespace="default", name="metrics-server", port=443),
        insecure_skip_tls_verify=True,
    )
    service = APIService(metadata=ObjectMeta(name="v1beta1.metrics.k8s.io"), spec=elsewhere)
    await running.client.create(API_SERVICES, service)
    await running.clock.settle()
    assert (await running.refused(f"{METRICS}/nodes")).startswith("503 ")
    await running.client.delete(API_SERVICES, "v1beta1.metrics.k8s.io")
    await running.clock.settle()
    assert (await running.get(f"{METRICS}/nodes"))["items"]
