"""A namespace of a server in which a scenario plays: what users and kubelets do, what the controllers made of it."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tools.controllers.normal import normal
from tools.differential.server import Answer, Client

Plain = dict[str, Any]
Plains = list[Plain]  # a name of its own, as World has a method `list`

PATHS: Final = {
    "Pod": "api/v1/namespaces/{}/pods",
    "ReplicationController": "api/v1/namespaces/{}/replicationcontrollers",
    "PersistentVolumeClaim": "api/v1/namespaces/{}/persistentvolumeclaims",
    "ResourceQuota": "api/v1/namespaces/{}/resourcequotas",
    "ReplicaSet": "apis/apps/v1/namespaces/{}/replicasets",
    "Deployment": "apis/apps/v1/namespaces/{}/deployments",
    "DaemonSet": "apis/apps/v1/namespaces/{}/daemonsets",
    "StatefulSet": "apis/apps/v1/namespaces/{}/statefulsets",
    "ControllerRevision": "apis/apps/v1/namespaces/{}/controllerrevisions",
    "Job": "apis/batch/v1/namespaces/{}/jobs",
    "CronJob": "apis/batch/v1/namespaces/{}/cronjobs",
    "Service": "api/v1/namespaces/{}/services",
    "Endpoints": "api/v1/namespaces/{}/endpoints",
    "EndpointSlice": "apis/discovery.k8s.io/v1/namespaces/{}/endpointslices",
    "PodDisruptionBudget": "apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "ResourceClaim": "apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "ResourceClaimTemplate": "apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates",
    "PersistentVolume": "api/v1/persistentvolumes",
    "VolumeAttachment": "apis/storage.k8s.io/v1/volumeattachments",
    "VolumeAttributesClass": "apis/storage.k8s.io/v1/volumeattributesclasses",
    "StorageClass": "apis/storage.k8s.io/v1/storageclasses",
    "CSIDriver": "apis/storage.k8s.io/v1/csidrivers",
    "ResourceSlice": "apis/resource.k8s.io/v1/resourceslices",
    "HorizontalPodAutoscaler": "apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
    "Event": "api/v1/namespaces/{}/events",
    "Node": "api/v1/nodes",
    "Secret": "api/v1/namespaces/{}/secrets",
    "ServiceAccount": "api/v1/namespaces/{}/serviceaccounts",
    "ConfigMap": "api/v1/namespaces/{}/configmaps",
    "CertificateSigningRequest": "apis/certificates.k8s.io/v1/certificatesigningrequests",
}
_CLUSTERED: Final = ("PersistentVolume", "VolumeAttachment", "VolumeAttributesClass")
"""Cluster-scoped kinds; a scenario sees their objects if it made them or its name is in theirs."""
_ASKED_FOR: Final = (
    "CertificateSigningRequest",
    "ConfigMap",
    "CSIDriver",
    "Node",
    "ResourceClaimTemplate",
    "ResourceQuota",
    "ResourceSlice",
    "Secret",
    "ServiceAccount",
    "StorageClass",
)
"""Kinds that are seen where a scenario is about them."""
_SEEN: Final = [kind for kind in PATHS if kind not in _ASKED_FOR]
_MERGE_PATCH: Final = "application/merge-patch+json"
_POLL: Final = 0.1
_QUIET: Final = 7
"""So many looks in a row must find the same until nothing is thought to happen any more."""
_MOST_LOOKS: Final = 200


class Refused(Exception):
    """The server refused what a scenario asked for."""


class World:
    """One namespace, `name`. `snapshots` are what a scenario has seen: by its label, everything in the namespace."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self.name = name
        self.snapshots: dict[str, Any] = {}
        self.nodes: list[str] = []
        self._kinds = list(_SEEN)
        self._made: list[tuple[str, str]] = []
        self._others: list[World] = []
        self._ask("POST", "api/v1/namespaces", {"metadata": {"name": name}})

    def also(self, *kinds: str) -> None:
        """Has objects of these kinds seen too."""
        self._kinds += kinds

    def elsewhere(self, namespace: str) -> World:
        """Another namespace, which is there already: what is made there is deleted at the end."""
        other = copy.copy(self)
        other.name, other._made = namespace, []
        self._others.append(other)
        return other

    def create(self, obj: Plain) -> Plain:
        """Makes an object."""
        made = self._ask("POST", self._path(obj["kind"]), obj)
        self._made.append((obj["kind"], made["metadata"]["name"]))
        return made

    def create_from(self, api_version: str, kind: str, name: str, spec: Plain, **metadata: Any) -> Plain:
        """Create an object from its parts."""
        given = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}
        return self.create(given)

    def get(self, kind: str, name: str) -> Plain:
        """An object."""
        return self._ask("GET", f"{self._path(kind)}/{name}")

    def list(self, kind: str) -> Plains:
        """All objects of a kind, as plain data."""
        items: list[Plain] = self._ask("GET", self._path(kind))["items"]
        return [{"kind": kind, **each} for each in items]

    def patch(self, kind: str, name: str, patch: Mapping[str, Any], subresource: str = "") -> Plain:
        """Changes an object by a strategic merge patch."""
        path = f"{self._path(kind)}/{name}" + (f"/{subresource}" if subresource else "")
        return self._ask("PATCH", path, patch, "application/strategic-merge-patch+json")

    def delete(self, kind: str, name: str, **options: Any) -> None:
        """Deletes an object."""
        self._ask("DELETE", f"{self._path(kind)}/{name}", options or None)

    def now(self, seconds_ago: int = 0) -> str:
        """The time, as objects have it."""
        return datetime.fromtimestamp(time.time() - seconds_ago, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def evict(self, pod: str) -> None:
        """Evicts a pod, if its budgets let it go."""
        self._ask("POST", f"{self._path('Pod')}/{pod}/eviction", {"metadata": {"name": pod}})

    def run_pods(
        self,
        *,
        ready: bool = True,
        phase: str = "Running",
        count: int | None = None,
        seconds_ago: int = 0,
        where: Callable[[Plain], bool] = lambda _: True,
        status: Plain | None = None,
    ) -> None:
        """Binds pods and says that they run, as kubelets do; `count` of those that are in another state."""
        since = self.now(seconds_ago)
        wanted = {"type": "Ready", "status": "True" if ready else "False"}
        done = 0
        for pod in sorted(self.list("Pod"), key=lambda each: str(each["metadata"]["name"])):
            now = pod.get("status", {})
            conditions = [{key: each.get(key) for key in wanted} for each in now.get("conditions") or ()]
            finished = now.get("phase") in ("Succeeded", "Failed")
            if pod["metadata"].get("deletionTimestamp") or finished or not where(pod):
                continue
            if now.get("phase") == phase and wanted in conditions:
                continue
            if count is not None and done >= count:
                return
            done += 1
            name = pod["metadata"]["name"]
            if not pod["spec"].get("nodeName"):
                target = {"target": {"kind": "Node", "name": _node_of(pod)}}
                self._ask("POST", f"{self._path('Pod')}/{name}/binding", {"metadata": {"name": name}, **target})
            change = {"phase": phase, "conditions": [{**wanted, "lastTransitionTime": since}], **(status or {})}
            self.patch("Pod", name, {"status": change}, "status")

    def add_node(self, name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> None:
        """Makes a node that is ready: without the taint that new ones get."""
        self.create({"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": dict(labels or {})}})
        self.nodes.append(name)
        self._ask("PATCH", f"{PATHS['Node']}/{name}", {"spec": {"taints": None, **spec}}, _MERGE_PATCH)

    def close(self) -> None:
        """Deletes what is not in the namespace, and what in it could want something of that."""
        for kind, seconds in (("StatefulSet", None), ("Pod", 0), ("PersistentVolumeClaim", None)):
            options = None if seconds is None else {"gracePeriodSeconds": seconds}
            self._client.ask("DELETE", f"/{self._path(kind)}", options)
        for name in self.nodes:
            self.delete("Node", name)
        for world in (self, *self._others):
            for kind, name in world._made:
                if world is not self or ("{}" not in PATHS[kind] and kind != "Node"):
                    self._client.ask("DELETE", f"/{world._path(kind)}/{name}", None)

    def end_pods(self) -> None:
        """Lets the pods that are being deleted go, as kubelets do."""
        for pod in self.list("Pod"):
            if pod["metadata"].get("deletionTimestamp"):
                self._client.ask("DELETE", f"/{self._path('Pod')}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})

    def settle(self) -> dict[str, Plains]:
        """Everything in the namespace, once nothing changes any more."""
        before, same = "", 0
        for _ in range(_MOST_LOOKS):
            found = {kind: self._seen(kind) for kind in self._kinds}
            text = json.dumps(found, sort_keys=True)
            same = same + 1 if text == before else 0
            if same >= _QUIET:
                return found
            before = text
            time.sleep(_POLL)
        raise Refused("it does not come to rest")

    def _seen(self, kind: str) -> Plains:
        """The objects of a kind that belong to this scenario; events about those outside of it are in `default`."""
        found = self.list(kind)
        if kind in _CLUSTERED:
            return [each for each in found if self.name in json.dumps(each)]
        if kind == "Event":
            others: list[Plain] = self._ask("GET", PATHS[kind].format("default"))["items"]
            found += [{"kind": kind, **each} for each in others if self.name in each["involvedObject"]["name"]]
        return found

    def snapshot(self, label: str) -> None:
        """Keeps what there is, once nothing changes any more."""
        self.snapshots[label] = normal(self.settle(), self.name)

    def wait(self, seconds: float) -> None:
        """Lets time pass that the controllers measure."""
        time.sleep(seconds)

    def _path(self, kind: str) -> str:
        return PATHS[kind].format(self.name)

    def _ask(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Plain:
        for attempt in range(5):
            answer: Answer = self._client.ask(method, f"/{path}", body, {"Content-Type": media})
            if answer.code < 300:
                found: Plain = answer.body
                return found
            if answer.code != 409 or method != "PATCH":
                break
            time.sleep(0.05 * attempt)
        raise Refused(f"{method} /{path}: {answer.code} {answer.body}")


def _node_of(pod: Plain) -> str:
    """The node that a pod's affinity names, or any."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for each in term.get("matchFields") or ():
            return str(each["values"][0])
    return "node-a"
