"""Pages of a kubelet about its node: health, pods, configuration, statistics, metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

import msgspec

from steersman.api.core.v1 import Pod
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.values import times
from steersman.net.message import Request, Response
from steersman.nodes.server.kubelet import Kubelet, is_running, text
from steersman.nodes.usage import Total, Usages, sum_of

_METRICS: Final = ("content-type", "text/plain; version=0.0.4; charset=utf-8")


def healthz(kubelet: Kubelet, request: Request) -> Response:
    """Return that the kubelet is healthy."""
    if request.path.endswith("/syncloop") or request.path.endswith("/ping") or "verbose" not in request.query:
        return text(200, "ok")
    return text(200, "[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n")


def pods(kubelet: Kubelet, request: Request) -> Response:
    """Return the node's pods as a PodList."""
    return _pod_list(kubelet.all_pods())


def running_pods(kubelet: Kubelet, request: Request) -> Response:
    """Return the pods with a running container as a PodList."""
    return _pod_list(
        [each for each in kubelet.all_pods() if any(is_running(each, one.name) for one in each.spec.containers or ())]
    )


def _pod_list(found: Any) -> Response:
    items = [to_plain(each) for each in found]
    for each in items:
        each.pop("kind", None), each.pop("apiVersion", None)
    return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})


def _json(value: Any) -> Response:
    return Response(200, [("content-type", "application/json")], msgspec.json.encode(value))


def configz(kubelet: Kubelet, request: Request) -> Response:
    """Return the configuration of a kubelet that behaves like this one."""
    node = kubelet.node
    return _json(
        {
            "kubeletconfig": {
                "kind": "KubeletConfiguration",
                "apiVersion": "kubelet.config.k8s.io/v1beta1",
                "port": node.template.kubelet_port,
                "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}},
                "authorization": {"mode": "AlwaysAllow"},
                "enableServer": True,
                "syncFrequency": "1m0s",
                "clusterDomain": "cluster.local",
                "nodeStatusUpdateFrequency": "10s",
                "nodeStatusReportFrequency": "5m0s",
                "nodeLeaseDurationSeconds": 40,
                "maxPods": int(node.template.capacity.get("pods", "110")),
                "podCIDR": str(node.pod_cidr),
                "cgroupDriver": "systemd",
                "enableDebuggingHandlers": True,
                "containerLogMaxSize": "10Mi",
                "containerLogMaxFiles": 5,
                "failSwapOn": True,
            }
        }
    )


# Statistics


def stats_summary(kubelet: Kubelet, request: Request) -> Response:
    """Return the summary API's document (k8s.io/kubelet stats/v1alpha1): CPU and memory of the node, pods and
    containers.
    """
    now = times.now()
    only = "only_cpu_and_memory=true" in request.query
    whole = _of_node(kubelet)
    node = {"nodeName": kubelet.node.name, "startTime": now, **_parts(whole, now)}
    if not only:
        node["fs"] = node["runtime"] = {"time": now}
    found = [
        _pod_stats(kubelet.containers.usages, each, now)
        for each in kubelet.all_pods()
        if each.status.phase == "Running"
    ]
    return _json({"node": node, "pods": found})


def _of_node(kubelet: Kubelet) -> Total:
    usages = kubelet.containers.usages
    return sum_of(usages.total(pod, usages.of(pod)) for pod in kubelet.all_pods())


def _pod_stats(usages: Usages, pod: Pod, now: str) -> dict[str, Any]:
    metadata, parts = pod.metadata, usages.of(pod)
    containers = [
        {
            "name": each.container,
            "startTime": times.format_time(datetime.fromtimestamp(each.since, UTC)),
            **_parts(usages.total(pod, [each]), now),
        }
        for each in parts
    ]
    return {
        "podRef": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
        "startTime": pod.status.start_time,
        "containers": containers,
        **_parts(usages.total(pod, parts), now),
    }


def _parts(usage: Total, now: str) -> dict[str, Any]:
    return {
        "cpu": {"time": now, "usageNanoCores": usage.nano_cores, "usageCoreNanoSeconds": usage.core_nano_seconds},
        "memory": {"time": now, "usageBytes": usage.memory, "workingSetBytes": usage.memory, "rssBytes": usage.memory},
    }


# Metrics


def metrics(kubelet: Kubelet, request: Request) -> Response:
    """Return some of the kubelet's own metrics."""
    found = kubelet.all_pods()
    running = sum(each.status.phase == "Running" for each in found)
    containers = sum(len(kubelet.containers.usages.of(each)) for each in found)
    lines = [
        "# HELP kubelet_node_name [ALPHA] The node's name. The count is always 1.",
        "# TYPE kubelet_node_name gauge",
        f'kubelet_node_name{{node="{kubelet.node.name}"}} 1',
        "# HELP kubelet_running_pods [ALPHA] Number of pods that have a running pod sandbox",
        "# TYPE kubelet_running_pods gauge",
        f"kubelet_running_pods {running}",
        "# HELP kubelet_running_containers [ALPHA] Number of containers currently running",
        "# TYPE kubelet_running_containers gauge",
        f'kubelet_running_containers{{container_state="running"}} {containers}',
    ]
    return _exposed(lines)


_HELP: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "container_cpu_usage_seconds_total": (
            "counter",
            "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
        ),
        "container_memory_working_set_bytes": ("gauge", "[STABLE] Current working set of the container in bytes"),
        "container_start_time_seconds": ("gauge", "[STABLE] Start time of the container since unix epoch in seconds"),
        "node_cpu_usage_seconds_total": (
            "counter",
            "[STABLE] Cumulative cpu time consumed by the node in core-seconds",
        ),
        "node_memory_working_set_bytes": ("gauge", "[STABLE] Current working set of the node in bytes"),
        "pod_cpu_usage_seconds_total": ("counter", "[STABLE] Cumulative cpu time consumed by the pod in core-seconds"),
        "pod_memory_working_set_bytes": ("gauge", "[STABLE] Current working set of the pod in bytes"),
        "resource_scrape_error": (
            "gauge",
            "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise",
        ),
    }
)
"""Type and help of the metrics of `/metrics/resource`, by name."""


def resource_metrics(kubelet: Kubelet, request: Request) -> Response:
    """Return the resource metrics, which metrics-server reads."""
    series: dict[str, list[str]] = {name: [] for name in _HELP}
    millis = int(times.unix_now() * 1000)
    usages = kubelet.containers.usages

    def put(name: str, labels: str, value: float) -> None:
        series[name].append(f"{name}{labels} {value:.9g} {millis}")

    for pod in kubelet.all_pods():
        where = f'namespace="{pod.metadata.namespace}",pod="{pod.metadata.name}"'
        found = usages.of(pod)
        for each in found:
            labels = f'{{container="{each.container}",{where}}}'
            put("container_cpu_usage_seconds_total", labels, usages.total(pod, [each]).core_nano_seconds / 1e9)
            put("container_memory_working_set_bytes", labels, each.memory)
            put("container_start_time_seconds", labels, each.since)
        if found:
            total = usages.total(pod, found)
            put("pod_cpu_usage_seconds_total", f"{{{where}}}", total.core_nano_seconds / 1e9)
            put("pod_memory_working_set_bytes", f"{{{where}}}", total.memory)
    whole = _of_node(kubelet)
    put("node_cpu_usage_seconds_total", "", whole.core_nano_seconds / 1e9)
    put("node_memory_working_set_bytes", "", whole.memory)
    series["resource_scrape_error"] = ["resource_scrape_error 0"]
    lines: list[str] = []
    for name, (kind, about) in _HELP.items():
        if series[name]:
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}", *series[name]]
    return _exposed(lines)


def _exposed(lines: list[str]) -> Response:
    return Response(200, [_METRICS], ("\n".join(lines) + "\n").encode())


PAGES: Final[Mapping[str, Callable[[Kubelet, Request], Response]]] = MappingProxyType(
    {
        "configz": configz,
        "healthz": healthz,
        "healthz/log": healthz,
        "healthz/ping": healthz,
        "healthz/syncloop": healthz,
        "metrics": metrics,
        "metrics/resource": resource_metrics,
        "pods": pods,
        "runningpods": running_pods,
        "stats/summary": stats_summary,
    }
)
"""Functions that return a page, by its path."""
