"""Says of nodes and pods what kubelets would say if containers ran as they should; few do (`PodPrograms`)."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Any, Final

from steersman.testing import BlockingClient
from tools.conformance.pod_programs import PodPrograms

HEARTBEAT: Final = 8.0
PAUSE: Final = 0.4
_SERVED: Final = ("pause", "agnhost", "nginx", "httpd")
"""Images whose containers stay up."""
_MISSING: Final = ("invalid", "non-existent", "foo:", "webserver:404")
"""Images that nobody has."""
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_ROOM: Final = {"cpu": "32", "memory": "64Gi", "pods": "500", "ephemeral-storage": "100Gi"}


class NodeAgent:
    """The kubelets of some nodes, until `stop`."""

    def __init__(self, client: BlockingClient, nodes: list[str], programs: PodPrograms) -> None:
        self._client = client
        self._nodes = nodes
        self._programs = programs
        self._addresses = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="node agent")

    def start(self) -> None:
        """Registers the nodes and begins."""
        for node in self._nodes:
            labels = {"kubernetes.io/hostname": node, "kubernetes.io/os": "linux"}
            self._client.request("POST", "/api/v1/nodes", {"metadata": {"name": node, "labels": labels}})
        self._thread.start()

    def stop(self) -> None:
        """Returns once nothing is said any more."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        beaten = 0.0
        while not self._stopped.wait(PAUSE):
            if time.monotonic() - beaten > HEARTBEAT:
                beaten = time.monotonic()
                for node in self._nodes:
                    self._patch(f"/api/v1/nodes/{node}/status", _node_status(node))
            pods = self._client.json("GET", "/api/v1/pods")[1]["items"]
            self._programs.keep([pod["metadata"]["uid"] for pod in pods if "deletionTimestamp" not in pod["metadata"]])
            for pod in pods:
                if pod["spec"].get("nodeName") in self._nodes:
                    self._tend(pod)

    def _tend(self, pod: dict[str, Any]) -> None:
        metadata = pod["metadata"]
        target = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if "deletionTimestamp" in metadata:
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
            self._client.request("DELETE", target, options)
            return
        images = [each["image"] for each in pod["spec"]["containers"]]
        if any(word in image for image in images for word in _MISSING):
            return
        phase = "Succeeded" if _ends(pod, images) else "Running"
        generation = metadata.get("generation")
        if (pod["status"].get("phase"), pod["status"].get("observedGeneration")) == (phase, generation):
            return
        self._addresses += 1
        free = f"10.88.{self._addresses // 250}.{self._addresses % 250 + 1}"
        address = pod["status"].get("podIP") or self._programs.run(pod) or free
        self._patch(f"{target}/status", _pod_status(pod, phase, address))

    def _patch(self, target: str, status: dict[str, Any]) -> None:
        self._client.request("PATCH", target, {"status": status}, _MERGE)


def _ends(pod: dict[str, Any], images: list[str]) -> bool:
    """Return True if a pod's containers do their work and end."""
    if pod["spec"]["restartPolicy"] == "Always":
        return False
    commands = [" ".join(each.get("command", []) + each.get("args", [])) for each in pod["spec"]["containers"]]
    if any("sleep 1000000" in command for command in commands):
        return False
    is_job = any(each["kind"] == "Job" for each in pod["metadata"].get("ownerReferences", []))
    return not any(word in image for image in images for word in (("pause",) if is_job else _SERVED))


def _pod_status(pod: dict[str, Any], phase: str, address: str) -> dict[str, Any]:
    running = phase == "Running"
    state = (
        {"running": {"startedAt": _now()}}
        if running
        else {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": _now(), "finishedAt": _now()}}
    )
    return {
        "phase": phase,
        "observedGeneration": pod["metadata"].get("generation"),
        "startTime": _now(),
        "hostIP": "192.0.2.9",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": _pod_conditions(pod, running=running),
        "containerStatuses": [
            {
                "name": each["name"],
                "image": each["image"],
                "imageID": each["image"],
                "restartCount": 0,
                "containerID": f"containerd://{pod['metadata']['uid']}",
                "ready": running,
                "started": running,
                "state": state,
            }
            for each in pod["spec"]["containers"]
        ],
    }


def _pod_conditions(pod: dict[str, Any], *, running: bool) -> list[dict[str, Any]]:
    """Return the conditions of a pod, updated for its present state."""
    told = {each["type"]: each for each in pod["status"].get("conditions", [])}
    ready = running and not pod["spec"].get("readinessGates")
    wanted = {"PodReadyToStartContainers": True, "Initialized": True, "ContainersReady": running, "Ready": ready}
    for kind, holds in wanted.items():
        status = "True" if holds else "False"
        if told.get(kind, {}).get("status") != status:
            told[kind] = {
                "type": kind,
                "status": status,
                "lastTransitionTime": _now(),
                "observedGeneration": pod["metadata"].get("generation"),
            }
    return list(told.values())


def _node_status(node: str) -> dict[str, Any]:
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "told without a kubelet",
        "lastHeartbeatTime": _now(),
        "lastTransitionTime": _now(),
    }
    addresses = [{"type": "InternalIP", "address": "192.0.2.9"}, {"type": "Hostname", "address": node}]
    return {"capacity": _ROOM, "allocatable": _ROOM, "addresses": addresses, "conditions": [ready]}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
