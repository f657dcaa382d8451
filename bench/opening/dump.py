"""A dump of a large cluster, made from a seed: nodes, workloads with their pods, and what they use.

Objects are as controllers, kubelets and the server of a real cluster write them, with managed fields and statuses, so
that nothing has to be done about them when they are opened.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from bench.opening.workloads import Plain, Workload, workload

NAMESPACES: Final = ("shop", "payments", "search", "media", "batch", "platform", "monitoring", "tools")
"""Namespaces with workloads."""
_BEGUN: Final = "2026-11-02T08:00:00Z"
_ZONES: Final = ("a", "b", "c")
_SIZES: Final = (("16", "64Gi"), ("32", "128Gi"), ("64", "256Gi"))
_DAEMONS: Final = ("log-agent", "node-exporter", "network-agent")
_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


class Maker:
    """The objects of a cluster, made from a seed."""

    def __init__(self, seed: int, nodes: int, pods: int) -> None:
        self._chance = random.Random(seed)
        self._nodes = [f"worker-{number:04}" for number in range(nodes)]
        self._pods = pods
        self._free = {name: 1000 * int(_size(number)[0]) for number, name in enumerate(self._nodes)}
        """Free millicores of each node."""
        self._hosts = {name: f"10.20.{number >> 8}.{number & 255}" for number, name in enumerate(self._nodes)}
        self._addresses: Counter[str] = Counter()
        """Numbers of addresses of pods in use by node."""

    def objects(self) -> Iterator[Plain]:
        """Yield all objects."""
        yield from self._service("kubernetes", "default", "10.96.0.1", {})
        yield from (self._node(number, name) for number, name in enumerate(self._nodes))
        for name in NAMESPACES:
            labels = {"kubernetes.io/metadata.name": name}
            spec, status = {"finalizers": ["kubernetes"]}, {"phase": "Active"}
            yield self._object("v1", "Namespace", name, labels=labels, spec=spec, status=status)
            yield self._object("v1", "ServiceAccount", "default", name)
        yield from self._workloads()

    def _workloads(self) -> Iterator[Plain]:
        daemons = [
            workload(self._chance, "DaemonSet", "monitoring", name, len(self._nodes))
            for name in _DAEMONS
            if len(self._nodes) * len(_DAEMONS) < self._pods // 2
        ]
        for each in daemons:
            yield from self._daemon_set(each)
        left, number = self._pods - sum(each.replicas for each in daemons), 0
        while left:
            kind = self._chance.choice(("Deployment",) * 7 + ("StatefulSet", "Job"))
            replicas = min(left, 1 if kind == "Job" else self._chance.choice((1, 2, 3, 5, 10, 20, 60)))
            name = f"{self._chance.choice(('api', 'web', 'worker', 'cache', 'sync'))}-{number}"
            found = workload(self._chance, kind, self._chance.choice(NAMESPACES), name, replicas)
            yield from {"Deployment": self._deployment, "StatefulSet": self._stateful_set, "Job": self._job}[kind](
                found
            )
            yield from self._used_by(number, found)
            left, number = left - replicas, number + 1

    def _used_by(self, number: int, of: Workload) -> Iterator[Plain]:
        """Yield configuration, the Service and the budget of a workload."""
        data = {f"key-{each}": f"{self._chance.getrandbits(512):0128x}" for each in range(8)}
        yield self._object("v1", "ConfigMap", f"{of.name}-config", of.namespace, data=data)
        yield self._object("v1", "Secret", f"{of.name}-token", of.namespace, type="Opaque", data={"token": "aGVsbG8="})
        if of.kind == "Job":
            return
        labels = of.template["metadata"]["labels"]
        number += 256
        yield from self._service(of.name, of.namespace, f"10.96.{number >> 8}.{number & 255}", labels)
        if of.replicas > 2:
            spec = {"minAvailable": 1, "selector": {"matchLabels": labels}}
            status: Plain = {
                "observedGeneration": 1,
                "disruptionsAllowed": of.replicas - 1,
                "currentHealthy": of.replicas,
                "desiredHealthy": 1,
                "expectedPods": of.replicas,
            }
            allowed = {**_condition("DisruptionAllowed", "SufficientPods"), "observedGeneration": 1, "message": ""}
            status["conditions"] = [allowed]
            yield self._object("policy/v1", "PodDisruptionBudget", of.name, of.namespace, spec=spec, status=status)

    def _service(self, name: str, namespace: str, address: str, labels: dict[str, str]) -> Iterator[Plain]:
        """Yield a Service and its address."""
        yield self._object(
            "v1", "Service", name, namespace, spec=_service_spec(address, labels), status={"loadBalancer": {}}
        )
        parent = {"resource": "services", "namespace": namespace, "name": name}
        of_address = {"ipaddress.kubernetes.io/ip-family": "IPv4"}
        of_address["ipaddress.kubernetes.io/managed-by"] = "ipallocator.k8s.io"
        spec = {"parentRef": parent}
        yield self._object("networking.k8s.io/v1", "IPAddress", address, labels=of_address, spec=spec)

    def _deployment(self, of: Workload) -> Iterator[Plain]:
        revision = {"deployment.kubernetes.io/revision": "1"}
        selector = {"matchLabels": of.template["metadata"]["labels"]}
        counts = dict.fromkeys(("replicas", "readyReplicas", "availableReplicas"), of.replicas)
        conditions = [
            _condition("Available", "MinimumReplicasAvailable", "Deployment has minimum availability."),
            _condition(
                "Progressing",
                "NewReplicaSetAvailable",
                f'ReplicaSet "{of.name}-{of.hash}" has successfully progressed.',
            ),
        ]
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
        owner = self._object(
            "apps/v1",
            "Deployment",
            of.name,
            of.namespace,
            annotations=revision,
            labels=of.template["metadata"]["labels"],
            spec={
                "replicas": of.replicas,
                "selector": selector,
                "template": of.template,
                "strategy": strategy,
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
            },
            status={
                **counts,
                "observedGeneration": 1,
                "updatedReplicas": of.replicas,
                "terminatingReplicas": 0,
                "conditions": conditions,
            },
        )
        yield owner
        surge = of.replicas + -(-of.replicas // 4)
        labels = {**of.template["metadata"]["labels"], "pod-template-hash": of.hash}
        desired = {"deployment.kubernetes.io/desired-replicas": str(of.replicas)}
        most = {"deployment.kubernetes.io/max-replicas": str(surge)}
        template = {"metadata": {"labels": labels}, "spec": of.template["spec"]}
        replica_set = self._object(
            "apps/v1",
            "ReplicaSet",
            f"{of.name}-{of.hash}",
            of.namespace,
            owner=owner,
            labels=labels,
            annotations={**revision, **desired, **most},
            spec={"replicas": of.replicas, "selector": {"matchLabels": labels}, "template": template},
            status={**counts, "observedGeneration": 1, "fullyLabeledReplicas": of.replicas, "terminatingReplicas": 0},
        )
        yield replica_set
        for number in range(of.replicas):
            yield self._pod(of, f"{of.name}-{of.hash}-{self._chance.getrandbits(24):05x}{number}", replica_set, labels)

    def _stateful_set(self, of: Workload) -> Iterator[Plain]:
        revision = self._revision_name(of)
        counts = dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "currentReplicas"), of.replicas)
        owner = self._object(
            "apps/v1",
            "StatefulSet",
            of.name,
            of.namespace,
            spec={
                "replicas": of.replicas,
                "selector": {"matchLabels": of.template["metadata"]["labels"]},
                "template": of.template,
                "serviceName": of.name,
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "revisionHistoryLimit": 10,
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            },
            status={
                **counts,
                "observedGeneration": 1,
                "updatedReplicas": of.replicas,
                "currentRevision": revision,
                "updateRevision": revision,
                "collisionCount": 0,
            },
        )
        yield owner
        yield self._revision(of, owner)
        for number in range(of.replicas):
            name = f"{of.name}-{number}"
            labels = {
                **of.template["metadata"]["labels"],
                "apps.kubernetes.io/pod-index": str(number),
                "controller-revision-hash": revision,
                "statefulset.kubernetes.io/pod-name": name,
            }
            pod = self._pod(of, name, owner, labels)
            pod["spec"] |= {"hostname": name, "subdomain": of.name}
            yield pod

    def _daemon_set(self, of: Workload) -> Iterator[Plain]:
        names = ("currentNumberScheduled", "desiredNumberScheduled", "numberReady", "numberAvailable")
        counts = dict.fromkeys((*names, "updatedNumberScheduled"), of.replicas)
        owner = self._object(
            "apps/v1",
            "DaemonSet",
            of.name,
            of.namespace,
            annotations={"deprecated.daemonset.template.generation": "1"},
            spec={
                "selector": {"matchLabels": of.template["metadata"]["labels"]},
                "template": of.template,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
                "revisionHistoryLimit": 10,
            },
            status={**counts, "numberMisscheduled": 0, "observedGeneration": 1},
        )
        yield owner
        yield self._revision(of, owner)
        labels = {
            **of.template["metadata"]["labels"],
            "controller-revision-hash": of.hash,
            "pod-template-generation": "1",
        }
        for number, node in enumerate(self._nodes):
            pod = self._pod(of, f"{of.name}-{number:05x}", owner, labels, node)
            fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
            required = {"nodeSelectorTerms": [{"matchFields": fields}]}
            pod["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
            pod["spec"]["tolerations"] = [{"operator": "Exists"}]
            yield pod

    def _job(self, of: Workload) -> Iterator[Plain]:
        """Yield a Job that has ended, and its pod."""
        identifier = str(UUID(int=self._chance.getrandbits(128), version=4))
        labels = {
            **of.template["metadata"]["labels"],
            **{
                f"{prefix}{name}": value
                for prefix in ("", "batch.kubernetes.io/")
                for name, value in (("controller-uid", identifier), ("job-name", of.name))
            },
        }
        owner = self._object(
            "batch/v1",
            "Job",
            of.name,
            of.namespace,
            labels=labels,
            spec={
                "parallelism": 1,
                "completions": 1,
                "backoffLimit": 6,
                "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": identifier}},
                "template": {"metadata": {"labels": labels}, "spec": of.template["spec"]},
                "completionMode": "NonIndexed",
                "suspend": False,
                "manualSelector": False,
                "podReplacementPolicy": "TerminatingOrFailed",
            },
            status={
                "conditions": [_condition("SuccessCriteriaMet"), _condition("Complete")],
                "startTime": _BEGUN,
                "completionTime": _BEGUN,
                "succeeded": 1,
                "terminating": 0,
                "ready": 0,
                "uncountedTerminatedPods": {},
            },
        )
        owner["metadata"]["uid"] = identifier
        yield owner
        pod = self._pod(of, f"{of.name}-{self._chance.getrandbits(24):05x}", owner, labels)
        ended = {"exitCode": 0, "reason": "Completed", "startedAt": _BEGUN, "finishedAt": _BEGUN}
        pod["status"]["phase"] = "Succeeded"
        for each in pod["status"]["conditions"]:
            each["status"] = "False" if each["type"] in ("Ready", "ContainersReady") else each["status"]
        for each in pod["status"]["containerStatuses"]:
            each |= {"ready": False, "started": False, "state": {"terminated": ended}}
        yield pod

    def _revision_name(self, of: Workload) -> str:
        return f"{of.name}-{of.hash}"

    def _revision(self, of: Workload, owner: Plain) -> Plain:
        """Return the ControllerRevision of the template."""
        data = {"spec": {"template": {**of.template, "$patch": "replace"}}}
        labels = {**of.template["metadata"]["labels"], "controller-revision-hash": of.hash}
        name = self._revision_name(of)
        return self._object(
            "apps/v1", "ControllerRevision", name, of.namespace, owner=owner, labels=labels, data=data, revision=1
        )

    def _pod(self, of: Workload, name: str, owner: Plain, labels: dict[str, str], node: str = "") -> Plain:
        node = node or self._room_for(of.cpu)
        token = f"kube-api-access-{self._chance.getrandbits(20):05x}"
        mount = {"name": token, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
        of_template = of.template["spec"]
        tolerations = [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in ("not-ready", "unreachable")
        ]
        spec = {
            **of_template,
            "volumes": [*of_template["volumes"], {"name": token, "projected": _TOKEN}],
            "containers": [
                {**each, "volumeMounts": [*each["volumeMounts"], mount]} for each in of_template["containers"]
            ],
            "nodeName": node,
            "tolerations": tolerations,
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        }
        self._addresses[node] += 1
        ip = f"{_range(self._nodes.index(node))}.{self._addresses[node] + 1}"
        restarts = self._chance.choice((0, 0, 0, 1, 4))
        statuses = [_container_status(each, restarts, self._chance.getrandbits(256)) for each in spec["containers"]]
        status = {
            "phase": "Running",
            "conditions": [_condition(each) for each in _CONDITIONS],
            "hostIP": self._hosts[node],
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "startTime": _BEGUN,
            "qosClass": "Burstable",
            "containerStatuses": statuses,
        }
        status["hostIPs"] = [{"ip": status["hostIP"]}]
        generate: Plain = {"generateName": f"{owner['metadata']['name']}-"} if of.kind != "StatefulSet" else {}
        return self._object(
            "v1", "Pod", name, of.namespace, owner=owner, labels=labels, spec=spec, status=status, **generate
        )

    def _room_for(self, cpu: int) -> str:
        """Return a node with room, the best of three."""
        name = max(self._chance.sample(self._nodes, min(3, len(self._nodes))), key=self._free.__getitem__)
        self._free[name] -= cpu
        return name

    def _node(self, number: int, name: str) -> Plain:
        cpu, memory = _size(number)
        room = {"cpu": cpu, "memory": memory, "pods": "110", "ephemeral-storage": "100Gi"}
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "topology.kubernetes.io/region": "north",
            "topology.kubernetes.io/zone": f"north-{_ZONES[number % len(_ZONES)]}",
            "node.kubernetes.io/instance-type": f"m-{cpu}",
        }
        addresses = [{"type": "InternalIP", "address": self._hosts[name]}, {"type": "Hostname", "address": name}]
        images = [
            {"names": [f"registry.example.com/shop/image-{each}:v1"], "sizeBytes": 10_000_000 + each}
            for each in self._chance.sample(range(100), 20)
        ]
        spec: Plain = {"providerID": f"cloud:///{name}", "podCIDR": f"{_range(number)}.0/24"}
        if number % 25 == 24:
            spec["taints"] = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]
        pressures = [
            {
                "type": type_,
                "lastTransitionTime": _BEGUN,
                "reason": "Kubelet",
                "message": "",
                "status": "True" if type_ == "Ready" else "False",
                "lastHeartbeatTime": _BEGUN,
            }
            for type_ in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
        ]
        info = {
            "machineID": f"{number:032x}",
            "systemUUID": f"{number:032x}",
            "bootID": f"{number:032x}",
            "kernelVersion": "6.12.0",
            "osImage": "Linux",
            "containerRuntimeVersion": "containerd://2.1.4",
            "kubeletVersion": "v1.36.3",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        }
        status = {"capacity": room, "allocatable": room, "conditions": pressures, "addresses": addresses}
        status |= {"nodeInfo": info, "images": images, "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}
        return self._object("v1", "Node", name, labels=labels, spec=spec, status=status)

    def _object(
        self,
        api_version: str,
        kind: str,
        name: str,
        namespace: str = "",
        *,
        owner: Plain | None = None,
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        **members: Any,
    ) -> Plain:
        metadata: Plain = {"name": name}
        for key in ("generateName",):
            if key in members:
                metadata[key] = members.pop(key)
        if namespace:
            metadata["namespace"] = namespace
        metadata["uid"] = str(UUID(int=self._chance.getrandbits(128), version=4))
        metadata["resourceVersion"] = str(self._chance.randint(1000, 9_000_000))
        if "spec" in members and kind not in ("Node", "Namespace", "Pod"):
            metadata["generation"] = 1
        metadata["creationTimestamp"] = _BEGUN
        if labels:
            metadata["labels"] = labels
        if annotations:
            metadata["annotations"] = annotations
        if owner is not None:
            metadata["ownerReferences"] = [_reference(owner)]
        metadata["managedFields"] = list(_managed(api_version, members))
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **members}


def _range(number: int) -> str:
    """Return the first three parts of the addresses of a node's pods."""
    return f"10.{244 + (number >> 8)}.{number & 255}"


def _size(number: int) -> tuple[str, str]:
    return _SIZES[number // 3 % len(_SIZES)]


def _reference(owner: Plain) -> Plain:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _managed(api_version: str, members: Plain) -> Iterator[Plain]:
    """Yield managed fields of an object: what its maker wrote, and its status."""
    written = {key: value for key, value in members.items() if key != "status"}
    for manager, subresource, fields in (
        ("kube-controller-manager", "", written),
        ("kubelet", "status", {"status": members["status"]} if "status" in members else {}),
    ):
        if not fields:
            continue
        entry: Plain = {"manager": manager, "operation": "Update", "apiVersion": api_version, "time": _BEGUN}
        entry |= {"fieldsType": "FieldsV1", "fieldsV1": _fields(fields)}
        yield entry | ({"subresource": subresource} if subresource else {})


def _fields(value: Any) -> Plain:
    """Return the fields of maps, and of lists of things with names or types."""
    if isinstance(value, dict):
        return {f"f:{key}": _fields(each) for key, each in value.items()}
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        for key in ("name", "type", "containerPort", "ip"):
            if value and all(key in each for each in value):
                return {
                    f"k:{json.dumps({key: each[key]}, separators=(',', ':'))}": {".": {}, **_fields(each)}
                    for each in value
                }
    return {}


def _condition(type_: str, reason: str = "", message: str = "") -> Plain:
    found: Plain = {"type": type_, "status": "True", "lastTransitionTime": _BEGUN}
    if type_ in (*_CONDITIONS, "SuccessCriteriaMet", "Complete"):
        found["lastProbeTime"] = None
    if type_ in ("Available", "Progressing"):
        found["lastUpdateTime"] = _BEGUN
    return {**found, "reason": reason, "message": message} if reason else found


def _container_status(container: Plain, restarts: int, number: int) -> Plain:
    ended = {"exitCode": 1, "reason": "Error", "startedAt": _BEGUN, "finishedAt": _BEGUN}
    return {
        "name": container["name"],
        "state": {"running": {"startedAt": _BEGUN}},
        "lastState": {"terminated": ended} if restarts else {},
        "ready": True,
        "started": True,
        "restartCount": restarts,
        "image": container["image"],
        "imageID": f"{container['image']}@sha256:{number:064x}",
        "containerID": f"containerd://{number:064x}",
        "resources": container["resources"],
    }


def _service_spec(address: str, labels: dict[str, str]) -> Plain:
    return {
        "type": "ClusterIP",
        "clusterIP": address,
        "clusterIPs": [address],
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
        "sessionAffinity": "None",
        "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}],
        **({"selector": labels} if labels else {}),
    }


_TOKEN: Final[Plain] = {
    "defaultMode": 420,
    "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
            }
        },
    ],
}


def write_dump(path: Path, objects: Iterable[Plain]) -> int:
    """Write the objects as a v1 List, and return their number."""
    count = 0
    with path.open("w") as file:
        file.write('{"apiVersion":"v1","kind":"List","items":[')
        for count, each in enumerate(objects, 1):
            file.write(",\n" if count > 1 else "\n")
            json.dump(each, file, separators=(",", ":"))
        file.write("]}\n")
    return count
