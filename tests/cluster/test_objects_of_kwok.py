"""Logs, usage and metrics that objects of kwok define for simulated pods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steersman.api.core.v1 import Container, Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.resources import PODS
from steersman.machinery.errors.status import StatusError
from tests.cluster.kinds_of_kwok import Plain, cluster_with_kwok
from tests.controllers.waiting import eventually

CRI = """\
2026-11-29T10:00:00.000000001Z stdout F one
2026-11-29T10:00:01.000000001Z stderr P tw
2026-11-29T10:00:01.000000001Z stderr F o
2026-11-29T10:00:02.000000001Z stdout F three
"""


def of_kwok(plural: str, kind: str, *, namespaced: bool = False) -> APIResource[Plain]:
    return APIResource("kwok.x-k8s.io", "v1alpha1", plural, kind, dict, namespaced=namespaced)


LOGS = of_kwok("logs", "Logs", namespaced=True)
CLUSTER_LOGS = of_kwok("clusterlogs", "ClusterLogs")
USAGES = of_kwok("resourceusages", "ResourceUsage", namespaced=True)
CLUSTER_USAGES = of_kwok("clusterresourceusages", "ClusterResourceUsage")
METRICS = of_kwok("metrics", "Metric")


async def run_pod(client: Client, name: str, **annotations: str) -> None:
    spec = PodSpec(
        node_name="node-0", containers=[Container(name="main", image="nginx"), Container(name="b", image="b")]
    )
    metadata = ObjectMeta(name=name, namespace="default", annotations=annotations)
    await client.create(PODS, Pod(metadata=metadata, spec=spec))

    async def runs() -> bool:
        return (await client.get(PODS, name, "default")).status.phase == "Running"

    await eventually(runs)


async def log(client: Client, name: str, query: str = "container=main") -> str:
    return (await client.request("GET", f"/api/v1/namespaces/default/pods/{name}/log?{query}")).decode()


async def test_logs_are_those_of_files_in_the_configured_folder(keys_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "cri.log").write_text(CRI)
    (folder / "docker.log").write_text('{"log":"d\\n","stream":"stdout","time":"2026-11-29T10:00:00Z"}\nplain\n')
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    async with cluster_with_kwok(keys_folder, log_files=folder) as client:
        await run_pod(client, "web")
        own = {"logs": [{"containers": ["main"], "logsFile": "/cri.log", "previousLogsFile": "docker.log"}]}
        await client.create(LOGS, {"metadata": {"name": "web", "namespace": "default"}, "spec": own})
        assert await log(client, "web") == "one\ntwo\nthree\n"
        assert await log(client, "web", "container=main&tailLines=1") == "three\n"
        assert await log(client, "web", "container=main&sinceTime=2026-11-29T10:00:02Z") == "three\n"
        assert await log(client, "web", "container=main&timestamps=true&tailLines=1") == (
            "2026-11-29T10:00:02.000000000Z three\n"
        )
        assert await log(client, "web", "container=main&previous=true") == "d\nplain\n"
        with pytest.raises(StatusError, match='logs target not found for container "b"'):
            await log(client, "web", "container=b")
        await run_pod(client, "other")
        selector = {"matchNamespaces": ["default"], "matchNames": ["other"]}
        spec = {"selector": selector, "logs": [{"logsFile": "docker.log"}]}
        await client.create(CLUSTER_LOGS, {"metadata": {"name": "all"}, "spec": spec})
        assert await log(client, "other") == "d\nplain\n"
        for outside in ("../secret", "link", "/../../../../../../etc/passwd"):
            await client.patch(CLUSTER_LOGS, "all", "", {"spec": {"logs": [{"logsFile": outside}]}})
            with pytest.raises(StatusError, match="it is not in the folder of log files"):
                await log(client, "other")
        await client.delete(LOGS, "web", "default")
        assert "main has started" in await log(client, "web")


async def test_no_file_is_read_without_a_configured_folder(keys_folder: Path) -> None:
    async with cluster_with_kwok(keys_folder) as client:
        await run_pod(client, "web")
        spec = {"logs": [{"logsFile": "/etc/passwd"}]}
        await client.create(CLUSTER_LOGS, {"metadata": {"name": "all"}, "spec": spec})
        with pytest.raises(StatusError, match="names no folder of log files"):
            await log(client, "web")


async def usage(client: Client) -> dict[str, tuple[int, int]]:
    """Return cores in billionths, and bytes, of each container on the node."""
    found = json.loads(await client.request("GET", "/api/v1/nodes/node-0/proxy/stats/summary"))
    return {
        each["name"]: (each["cpu"]["usageNanoCores"], each["memory"]["workingSetBytes"])
        for pod in found["pods"]
        for each in pod["containers"]
    }


async def test_usage_is_a_value_or_an_expression(keys_folder: Path) -> None:
    annotation = "kwok.x-k8s.io/usage-cpu"
    said = f'pod.metadata.annotations["{annotation}"]'
    expression = f'"{annotation}" in pod.metadata.annotations ? Quantity({said}) * 2 : Quantity("1m")'
    amounts: dict[str, Any] = {"cpu": {"expression": expression}, "memory": {"value": "64Mi"}}
    async with cluster_with_kwok(keys_folder) as client:
        await run_pod(client, "web", **{annotation: "200m"})
        spec = {"usages": [{"usage": amounts}, {"containers": ["b"], "usage": {"cpu": {"value": 2}}}]}
        await client.create(CLUSTER_USAGES, {"metadata": {"name": "all"}, "spec": spec})

        async def used() -> bool:
            return (await usage(client)).get("main") == (400_000_000, 64 << 20)

        await eventually(used)
        assert (await usage(client))["b"] == (2_000_000_000, 0)
        extreme = {"cpu": {"expression": "1.5 +"}, "memory": {"expression": "1e300 * 1e5"}}
        long = {"cpu": {"expression": "1.0" + " " * 2048}}
        own = {"usages": [{"containers": ["main"], "usage": extreme}, {"containers": ["b"], "usage": long}]}
        await client.create(USAGES, {"metadata": {"name": "web", "namespace": "default"}, "spec": own})

        async def fails() -> bool:
            return await usage(client) == {"main": (0, 2**63 - 1), "b": (0, 0)}

        await eventually(fails)


async def test_a_metric_is_a_page_of_its_node(keys_folder: Path) -> None:
    named = [{"name": "pod", "value": "pod.metadata.name"}, {"name": "container", "value": "container.name"}]
    metrics = [
        {"name": "up", "kind": "gauge", "help": "It is\nup.", "value": "1", "dimension": "node"},
        {
            "name": "cpu",
            "kind": "counter",
            "dimension": "container",
            "labels": named,
            "value": 'pod.Usage("cpu", container.name)',
        },
        {"name": "total", "kind": "gauge", "dimension": "node", "value": 'node.Usage("cpu")'},
        {"name": "started", "kind": "counter", "dimension": "node", "value": "StartedContainersTotal(node)"},
        {
            "name": "delay",
            "kind": "histogram",
            "dimension": "node",
            "buckets": [{"le": 1, "value": "2"}, {"le": 2, "value": "3", "hidden": True}, {"le": 5, "value": "1"}],
        },
        {"name": "bad", "kind": "gauge", "dimension": "node", "value": "node.x("},
    ]
    async with cluster_with_kwok(keys_folder) as client:
        await run_pod(client, "web")
        usages = {"usages": [{"usage": {"cpu": {"value": "250m"}}}]}
        await client.create(CLUSTER_USAGES, {"metadata": {"name": "all"}, "spec": usages})
        spec = {"path": "/metrics/nodes/{nodeName}/metrics/own", "metrics": metrics}
        await client.create(METRICS, {"metadata": {"name": "own"}, "spec": spec})

        async def page() -> str:
            path = "/api/v1/nodes/node-0/proxy/metrics/nodes/node-0/metrics/own"
            return (await client.request("GET", path)).decode()

        async def counted() -> bool:
            return "\ntotal 0.5\n" in await page()

        await eventually(counted)
        found = await page()
        assert found.startswith("# HELP up It is\\nup.\n# TYPE up gauge\nup 1\n")
        assert 'cpu{container="b",pod="web"} 0.25\ncpu' not in found.replace(
            'cpu{container="main",pod="web"} 0.25\n', ""
        )
        assert "\nstarted 2\n" in found
        assert (
            'delay_bucket{le="1"} 2\ndelay_bucket{le="5"} 6\ndelay_bucket{le="+Inf"} 6\ndelay_sum 13\ndelay_count 6'
            in found
        )
        assert "\nbad " not in found
        with pytest.raises(StatusError):
            await client.request("GET", "/api/v1/nodes/node-0/proxy/metrics/none")
