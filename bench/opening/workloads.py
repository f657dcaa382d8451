"""Templates of pods of a large made-up cluster, with all defaults that a server writes, and their workloads."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass
from typing import Any, Final

Plain = dict[str, Any]

_IMAGES: Final = ("registry.example.com/shop/api", "registry.example.com/shop/web", "registry.example.com/team/worker")
_REQUESTS: Final = (("50m", "64Mi"), ("100m", "128Mi"), ("250m", "512Mi"), ("500m", "1Gi"), ("1", "2Gi"))
_ZONE: Final = "topology.kubernetes.io/zone"
_HOSTNAME: Final = "kubernetes.io/hostname"


@dataclass(frozen=True)
class Workload:
    """A Deployment, StatefulSet, DaemonSet or Job with its template."""

    kind: str
    namespace: str
    name: str
    replicas: int
    template: Plain

    @property
    def hash(self) -> str:
        """A hash of the template, as labels of pods have it."""
        return hashlib.sha256(json.dumps(self.template, sort_keys=True).encode()).hexdigest()[:10]

    @property
    def cpu(self) -> int:
        """Requested millicores of a pod."""
        return sum(_milli(each["resources"]["requests"]["cpu"]) for each in self.template["spec"]["containers"])


def _milli(quantity: str) -> int:
    return int(quantity[:-1]) if quantity.endswith("m") else int(quantity) * 1000


def workload(chance: random.Random, kind: str, namespace: str, name: str, replicas: int) -> Workload:
    """Return a workload with a random template."""
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": namespace}
    containers = [container(chance, name, number) for number in range(chance.choice((1, 1, 1, 2)))]
    spec: Plain = {
        "volumes": [{"name": "config", "configMap": {"name": f"{name}-config", "defaultMode": 420, "optional": True}}],
        "containers": containers,
        "restartPolicy": "Never" if kind == "Job" else "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    }
    if kind == "DaemonSet":
        spec["tolerations"] = [{"operator": "Exists"}]
    elif chance.random() < 0.2:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 2,
                "topologyKey": _ZONE,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels},
            }
        ]
    elif chance.random() < 0.1:
        term = {"labelSelector": {"matchLabels": labels}, "topologyKey": _HOSTNAME}
        preferred = [{"weight": 100, "podAffinityTerm": term}]
        spec["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return Workload(kind, namespace, name, replicas, {"metadata": {"labels": labels}, "spec": spec})


def container(chance: random.Random, name: str, number: int) -> Plain:
    """Return a random container with a probe and variables."""
    cpu, memory = chance.choice(_REQUESTS)
    path = {"path": "/healthz", "port": 8080 + number, "scheme": "HTTP"}
    variables = [{"name": f"SETTING_{each}", "value": f"{chance.getrandbits(64):016x}"} for each in range(6)]
    address = {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}
    return {
        "name": "main" if number == 0 else f"side-{number}",
        "image": f"{chance.choice(_IMAGES)}:v{chance.randint(1, 9)}",
        "args": ["--listen=:8080", f"--name={name}"],
        "ports": [{"containerPort": 8080 + number, "protocol": "TCP"}],
        "env": [*variables, {"name": "POD_IP", "valueFrom": address}],
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
        "volumeMounts": [{"name": "config", "readOnly": True, "mountPath": "/etc/app"}],
        "readinessProbe": {
            "httpGet": path,
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
