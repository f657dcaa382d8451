"""Random configurations of some kinds: whole enough to be created, and fragments of them.

A fragment says some of what the kind has; lists are such that every way of merging them is met: of one piece, sets,
told by one key and by several. Items of lists of one piece have no empty lists or maps in them: upstream takes them for
another value than none, where it compares objects, and nothing that it answers tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from .case import NAME, NAMESPACE

Fields = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind: where it is served, what it always needs, and what else it may say (everything below `spec` and beside).

    `status` makes a random status, if the kind has that as a subresource.
    """

    name: str
    api_version: str
    plural: str
    needed: Callable[[Random], Fields]
    more: Callable[[Random], Fields]
    namespaced: bool = True
    scale: bool = False
    status: Callable[[Random], Fields] | None = None

    @property
    def path(self) -> str:
        """The path of an object."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        namespace = f"/namespaces/{NAMESPACE}" if self.namespaced else ""
        return f"{root}{namespace}/{self.plural}/{NAME}"

    def whole(self, random: Random) -> Fields:
        """An object that can be created."""
        return self.named(merged(self.needed(random), self.more(random), metadata(random)))

    def fragment(self, random: Random) -> Fields:
        """Some fields of one, not always all it needs."""
        parts = [self.more(random), metadata(random)]
        if random.random() < 0.7:
            parts.insert(0, self.needed(random))
        return self.named(merged(*parts))

    def named(self, fields: Fields) -> Fields:
        return merged({"apiVersion": self.api_version, "kind": self.name, "metadata": {"name": NAME}}, fields)


def merged(*parts: Fields) -> Fields:
    """The parts put together; lists of the later ones replace those of earlier ones."""
    out: Fields = {}
    for part in parts:
        for name, value in part.items():
            mine = out.get(name)
            out[name] = merged(mine, value) if isinstance(mine, dict) and isinstance(value, dict) else value
    return out


def some(random: Random, options: dict[str, Callable[[], Any]], chance: float = 0.3) -> Fields:
    """A few of the options."""
    return {name: make() for name, make in options.items() if random.random() < chance}


def few(random: Random, choices: list[Any], most: int = 3) -> list[Any]:
    """A few of the choices, in any order."""
    return random.sample(choices, random.randint(0, min(most, len(choices))))


def pairs(random: Random, names: str = "abc", values: str = "123") -> dict[str, str]:
    """A few names with values."""
    return {name: random.choice(values) for name in few(random, list(names))}


def metadata(random: Random) -> Fields:
    """Labels, annotations, finalizers (a set), owner references (told by uid)."""
    found = some(random, {"labels": lambda: pairs(random), "annotations": lambda: pairs(random)}) | some(
        random,
        {
            "finalizers": lambda: few(random, ["example.com/one", "example.com/two", "example.com/three"]),
            "ownerReferences": lambda: [
                {"apiVersion": "v1", "kind": "Thing", "name": random.choice("ab"), "uid": uid}
                | some(random, {"controller": lambda: False, "blockOwnerDeletion": lambda: random.random() < 0.5})
                for uid in few(random, ["u1", "u2", "u3"])
            ],
        },
        0.08,
    )
    return {"metadata": found} if found else {}


def holds_bytes(fields: Any, name: Any) -> bool:
    """Return True if the field of a name holds values in base64.

    Upstream stores a null there as something other than an empty text; only the changed version shows it.
    """
    return name == "binaryData" or (name == "data" and isinstance(fields, dict) and fields.get("kind") == "Secret")


# Config maps and secrets


def _config_map(random: Random) -> Fields:
    return some(
        random,
        {
            "data": lambda: pairs(random, "abcd"),
            "binaryData": lambda: {name: random.choice(["AA==", "AQI=", ""]) for name in few(random, list("xyz"))},
        },
        0.6,
    ) | some(random, {"immutable": lambda: False}, 0.1)


def _secret(random: Random) -> Fields:
    return some(
        random,
        {
            "data": lambda: {name: random.choice(["AA==", "AQI=", ""]) for name in few(random, list("abc"))},
            "stringData": lambda: pairs(random, "bcd"),
            "type": lambda: random.choice(["Opaque", "example.com/t"]),
        },
        0.5,
    )


# Pods and what makes them


def _port(random: Random) -> Fields:
    return {"containerPort": random.choice([80, 443, 53])} | some(
        random,
        {
            "protocol": lambda: random.choice(["TCP", "UDP"]),
            "name": lambda: random.choice(["http", "dns", "web"]),
            "hostPort": lambda: random.choice([8080, 8443]),
        },
        0.4,
    )


def _env(random: Random) -> list[Fields]:
    return [
        {"name": name}
        | random.choice(
            [
                {},
                {"value": "1"},
                {"value": ""},
                {"value": "2"},
                {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
            ]
        )
        for name in few(random, ["A", "B", "C", "D"])
    ]


def _resources(random: Random) -> Fields:
    def quantity() -> Any:
        return random.choice(["1", "100m", "0.5", "2000m", "1Gi", "1024Mi", 1, 0.1])

    return some(
        random,
        {
            "requests": lambda: {name: quantity() for name in few(random, ["cpu", "memory"])},
            "limits": lambda: {name: quantity() for name in few(random, ["example.com/gpu"])},
        },
        0.6,
    )


def _probe(random: Random) -> Fields:
    handlers: list[Fields] = [
        {"httpGet": {"port": random.choice([80, "http"])} | some(random, {"path": lambda: "/x"})},
        {"exec": {"command": few(random, ["a", "b", "c"])}},
        {"tcpSocket": {"port": 80}},
    ]
    return random.choice(handlers) | some(
        random, {"periodSeconds": lambda: random.choice([5, 10]), "failureThreshold": lambda: 3}
    )


def _container(random: Random, name: str) -> Fields:
    return {"name": name, "image": random.choice(["i:1", "i:2", "i"])} | some(
        random,
        {
            "ports": lambda: [_port(random) for _ in range(random.randint(0, 2))],
            "env": lambda: _env(random),
            "args": lambda: few(random, ["x", "y", "z"]),
            "command": lambda: few(random, ["x", "y"]),
            "resources": lambda: _resources(random),
            "livenessProbe": lambda: _probe(random),
            "imagePullPolicy": lambda: random.choice(["Always", "IfNotPresent"]),
            "securityContext": lambda: some(
                random,
                {
                    "runAsUser": lambda: random.choice([0, 1000]),
                    "privileged": lambda: False,
                    "capabilities": lambda: {"add": few(random, ["NET_ADMIN", "CHOWN"])},
                },
                0.5,
            ),
            "volumeMounts": lambda: [{"name": "v", "mountPath": path} for path in few(random, ["/a", "/b"])],
            "terminationMessagePolicy": lambda: "File",
            "tty": lambda: random.random() < 0.5,
            "lifecycle": lambda: {"preStop": {"exec": {"command": ["stop"]}}},
        },
        0.25,
    )


def _volume(random: Random, name: str) -> Fields:
    return {"name": name} | random.choice(
        [
            {"emptyDir": {}},
            {"emptyDir": {"medium": "Memory"}},
            {"configMap": {"name": "c"}},
            {"secret": {"secretName": "s", "items": [{"key": key, "path": key} for key in few(random, ["a", "b"])]}},
            {"projected": {"sources": [{"configMap": {"name": "c"}}, {"serviceAccountToken": {"path": "t"}}]}},
            {},
        ]
    )


def _pod_spec_needed(random: Random) -> Fields:
    names = random.choice([["c"], ["c"], ["c", "d"], ["d", "c"], ["c", "d", "e"]])
    return {"containers": [_container(random, name) for name in names], "volumes": [_volume(random, "v")]}


def _pod_spec_more(random: Random) -> Fields:
    return some(
        random,
        {
            "initContainers": lambda: [{"name": name, "image": "i"} for name in few(random, ["i1", "i2"])],
            "volumes": lambda: [_volume(random, name) for name in ["v", *few(random, ["w", "x"])]],
            "nodeSelector": lambda: pairs(random),
            "tolerations": lambda: [{"key": key, "operator": "Exists"} for key in few(random, ["k1", "k2"])],
            "imagePullSecrets": lambda: [{"name": name} for name in few(random, ["p1", "p2", "p3"])],
            "hostAliases": lambda: [
                {"ip": ip, "hostnames": few(random, ["h1", "h2"])} for ip in few(random, ["10.1.0.1", "10.1.0.2"])
            ],
            "securityContext": lambda: some(
                random,
                {
                    "runAsUser": lambda: random.choice([0, 1000]),
                    "fsGroup": lambda: 5,
                    "supplementalGroups": lambda: few(random, [1, 2, 3]),
                    "sysctls": lambda: [{"name": "kernel.shm_rmid_forced", "value": random.choice("01")}],
                },
                0.5,
            ),
            "topologySpreadConstraints": lambda: [
                {
                    "maxSkew": random.choice([1, 2]),
                    "topologyKey": key,
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"app": "x"}},
                }
                for key in few(random, ["zone", "host"])
            ],
            "affinity": lambda: {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "a", "operator": "In", "values": few(random, ["1", "2"]) or ["0"]}
                                ]
                            }
                        ]
                    }
                }
            },
            "restartPolicy": lambda: "Always",
            "terminationGracePeriodSeconds": lambda: random.choice([0, 30]),
            "hostNetwork": lambda: False,
            "dnsConfig": lambda: {"options": [{"name": name} for name in few(random, ["o1", "o2"])]},
            "readinessGates": lambda: [{"conditionType": name} for name in few(random, ["g1", "g2"])],
        },
        0.2,
    )


def _pod(random: Random) -> Fields:
    return {"spec": _pod_spec_needed(random)}


def _pod_more(random: Random) -> Fields:
    spec = _pod_spec_more(random)
    return {"spec": spec} if spec else {}


def conditions(random: Random) -> list[Fields]:
    """Conditions, which are told by their type."""
    return [
        {"type": name, "status": random.choice(["True", "False", "Unknown"]), "reason": random.choice("RS")}
        for name in few(random, ["Available", "Progressing", "Ready"])
    ]


def _pod_status(random: Random) -> Fields:
    return some(
        random,
        {
            "phase": lambda: random.choice(["Pending", "Running"]),
            "message": lambda: random.choice("mn"),
            "conditions": lambda: conditions(random),
            "podIPs": lambda: [{"ip": ip} for ip in few(random, ["10.2.0.1"])],
        },
        0.6,
    )


def _deployment(random: Random) -> Fields:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": _pod_spec_needed(random)}
    return {"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template}}


def _deployment_more(random: Random) -> Fields:
    spec = some(
        random,
        {
            "replicas": lambda: random.choice([0, 1, 2, 5]),
            "minReadySeconds": lambda: random.choice([0, 10]),
            "paused": lambda: random.random() < 0.5,
            "revisionHistoryLimit": lambda: random.choice([0, 3, 10]),
            "strategy": lambda: random.choice(
                [
                    {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": random.choice([1, "50%"])}},
                    {"type": "RollingUpdate"},
                    {"rollingUpdate": {"maxUnavailable": 2}},
                    {"type": "Recreate"},
                ]
            ),
            "template": lambda: {"spec": _pod_spec_more(random), "metadata": {"annotations": pairs(random)}},
        },
    )
    return {"spec": spec} if spec else {}


def _deployment_status(random: Random) -> Fields:
    return some(
        random,
        {
            "replicas": lambda: random.choice([0, 1, 3]),
            "readyReplicas": lambda: 0,
            "observedGeneration": lambda: random.choice([1, 2]),
            "conditions": lambda: conditions(random),
        },
        0.6,
    )


# Services and others


def _service(random: Random) -> Fields:
    return {"spec": {"ports": [{"port": 80, "name": "http"}]}}


def _service_more(random: Random) -> Fields:
    spec = some(
        random,
        {
            "ports": lambda: [
                {"port": port, "name": name}
                | some(
                    random,
                    {
                        "protocol": lambda: random.choice(["TCP", "UDP"]),
                        "targetPort": lambda: random.choice([80, "web"]),
                        "appProtocol": lambda: "http",
                    },
                    0.4,
                )
                for port, name in few(random, [(80, "http"), (443, "https"), (53, "dns")])
            ],
            "selector": lambda: pairs(random),
            "sessionAffinity": lambda: random.choice(["None", "ClientIP"]),
            "type": lambda: random.choice(["ClusterIP", "ClusterIP", "NodePort", "LoadBalancer"]),
            "externalIPs": lambda: few(random, ["192.0.2.1", "192.0.2.2"]),
            "publishNotReadyAddresses": lambda: random.random() < 0.5,
            "internalTrafficPolicy": lambda: random.choice(["Cluster", "Local"]),
        },
    )
    return {"spec": spec} if spec else {}


def _service_status(random: Random) -> Fields:
    return some(
        random,
        {
            "loadBalancer": lambda: {"ingress": [{"ip": ip} for ip in few(random, ["192.0.2.7", "192.0.2.8"])]},
            "conditions": lambda: [
                each | {"message": "m", "lastTransitionTime": "2020-01-01T00:00:00Z"} for each in conditions(random)
            ],
        },
        0.6,
    )


def _autoscaler(random: Random) -> Fields:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    return {"spec": {"scaleTargetRef": target, "maxReplicas": random.choice([3, 5])}}


def _autoscaler_v1_more(random: Random) -> Fields:
    spec = some(
        random,
        {
            "minReplicas": lambda: random.choice([1, 2]),
            "targetCPUUtilizationPercentage": lambda: random.choice([50, 80]),
        },
        0.5,
    )
    return {"spec": spec} if spec else {}


def _metric(random: Random) -> Fields:
    resource = {"name": random.choice(["cpu", "memory"]), "target": {"type": "Utilization", "averageUtilization": 60}}
    return {"type": "Resource", "resource": resource}


def _autoscaler_v2_more(random: Random) -> Fields:
    spec = some(
        random,
        {
            "minReplicas": lambda: random.choice([1, 2]),
            "metrics": lambda: [_metric(random) for _ in range(random.randint(0, 2))],
            "behavior": lambda: {"scaleDown": {"stabilizationWindowSeconds": random.choice([0, 60])}},
        },
        0.5,
    )
    return {"spec": spec} if spec else {}


def _role(random: Random) -> Fields:
    rules = ([["pods"], ["get"]], [["pods", "nodes"], ["get", "list"]], [["nodes"], ["list"]])
    return {"rules": [{"apiGroups": [""], "resources": each[0], "verbs": each[1]} for each in few(random, [*rules])]}


def _role_more(random: Random) -> Fields:
    return some(
        random,
        {"aggregationRule": lambda: {"clusterRoleSelectors": [{"matchLabels": {"a": random.choice("12")}}]}},
        0.2,
    )


def _ingress(random: Random) -> Fields:
    backend = {"service": {"name": "s", "port": random.choice([{"number": 80}, {"name": "http"}])}}
    return {"spec": {"defaultBackend": backend}}


def _ingress_more(random: Random) -> Fields:
    spec = some(
        random,
        {
            "ingressClassName": lambda: random.choice("xy"),
            "tls": lambda: [{"hosts": [random.choice(["a.example.com", "b.example.com"])], "secretName": "t"}],
            "rules": lambda: [{"host": host} for host in few(random, ["a.example.com", "b.example.com"])],
        },
    )
    return {"spec": spec} if spec else {}


def _nothing(random: Random) -> Fields:
    return {}


CONFIG_MAPS: Final = Kind("ConfigMap", "v1", "configmaps", _nothing, _config_map)
SECRETS: Final = Kind("Secret", "v1", "secrets", _nothing, _secret)
PODS: Final = Kind("Pod", "v1", "pods", _pod, _pod_more, status=_pod_status)
DEPLOYMENTS: Final = Kind(
    "Deployment", "apps/v1", "deployments", _deployment, _deployment_more, scale=True, status=_deployment_status
)
DAEMON_SETS: Final = Kind("DaemonSet", "apps/v1", "daemonsets", _deployment, lambda random: {})
SERVICES: Final = Kind("Service", "v1", "services", _service, _service_more, status=_service_status)
AUTOSCALERS_V1: Final = Kind(
    "HorizontalPodAutoscaler", "autoscaling/v1", "horizontalpodautoscalers", _autoscaler, _autoscaler_v1_more
)
AUTOSCALERS_V2: Final = Kind(
    "HorizontalPodAutoscaler", "autoscaling/v2", "horizontalpodautoscalers", _autoscaler, _autoscaler_v2_more
)
CLUSTER_ROLES: Final = Kind(
    "ClusterRole", "rbac.authorization.k8s.io/v1", "clusterroles", _role, _role_more, namespaced=False
)
INGRESSES: Final = Kind("Ingress", "networking.k8s.io/v1", "ingresses", _ingress, _ingress_more)
