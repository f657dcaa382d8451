"""Random small clusters, and a pod that needs a node."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final

Plain = dict[str, Any]

NAMESPACES: Final = {"one": {"team": "a"}, "two": {"team": "b"}}
PRIORITIES: Final = {"low": -10, "middle": 0, "high": 100}
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
KEYS: Final = (ZONE, HOSTNAME, "rack")
IMAGES: Final = {"small:1": 10 << 20, "middle:1": 300 << 20, "large:1": 2000 << 20}


@dataclass
class Case:
    """Objects in the order in which they are made."""

    number: int
    nodes: list[Plain] = field(default_factory=list)
    services: list[Plain] = field(default_factory=list)
    budgets: list[Plain] = field(default_factory=list)
    pods: list[Plain] = field(default_factory=list)
    """Pods that have nodes."""
    pod: Plain = field(default_factory=dict)
    """The one that has none."""


def case_of(number: int, seed: int) -> Case:
    """The case of a number."""
    return _Maker(number, random.Random(seed * 1_000_003 + number)).make()


class _Maker:
    def __init__(self, number: int, chance: random.Random) -> None:
        self.number = number
        self.chance = chance
        self.case = Case(number)

    def make(self) -> Case:
        chance, case = self.chance, self.case
        theme = chance.choice(("plain", "spread", "affinity", "preemption", "all"))
        for number in range(chance.randint(1, 6)):
            case.nodes.append(self.node(number))
        for number in range(chance.randint(0, 2)):
            case.services.append(self.service(number))
        most = 14 if theme == "preemption" else 8
        for number in range(chance.randint(0, most)):
            case.pods.append(self.pod(f"old-{number}", theme, on=chance.choice(case.nodes)["metadata"]["name"]))
        if theme in ("preemption", "all"):
            for number in range(chance.randint(0, 2)):
                case.budgets.append(self.budget(number))
        case.pod = self.pod("new", theme, on="")
        return case

    def maybe(self, percent: int) -> bool:
        return self.chance.random() * 100 < percent

    def node(self, number: int) -> Plain:
        chance = self.chance
        name = f"n{number}"
        labels = {HOSTNAME: name}
        if self.maybe(80):
            labels[ZONE] = chance.choice(("z1", "z2", "z3"))
        if self.maybe(50):
            labels["rack"] = chance.choice(("r1", "r2"))
        if self.maybe(50):
            labels["disk"] = chance.choice(("ssd", "hdd", "7"))
        if self.maybe(5):
            del labels[HOSTNAME]
        spec: Plain = {"unschedulable": True} if self.maybe(8) else {}
        taints = [
            {"key": chance.choice(("a", "b")), "value": chance.choice(("", "x")), "effect": effect}
            for effect in ("NoSchedule", "PreferNoSchedule", "NoExecute")
            if self.maybe(15)
        ]
        if taints:
            spec["taints"] = taints
        allocatable = {
            "cpu": chance.choice(("1", "2", "4", "3500m")),
            "memory": chance.choice(("1Gi", "4Gi", "8Gi")),
            "pods": str(chance.choice((2, 4, 110))),
            "ephemeral-storage": "10Gi",
        }
        if self.maybe(30):
            allocatable["example.com/gpu"] = str(chance.randint(0, 3))
        status: Plain = {"allocatable": allocatable, "capacity": allocatable}
        status["images"] = [{"names": [image], "sizeBytes": size} for image, size in IMAGES.items() if self.maybe(20)]
        status["conditions"] = [{"type": "Ready", "status": "True", "reason": "x", "message": "x"}]
        return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}

    def service(self, number: int) -> Plain:
        metadata = {"name": f"s{number}", "namespace": self.namespace()}
        return {"metadata": metadata, "spec": {"ports": [{"port": 80}], "selector": self.labels(1)}}

    def budget(self, number: int) -> Plain:
        metadata = {"name": f"b{number}", "namespace": self.namespace()}
        status = {
            "disruptionsAllowed": self.chance.randint(0, 2),
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "expectedPods": 1,
        }
        return {"metadata": metadata, "spec": {"selector": self.selector(), "minAvailable": 1}, "status": status}

    def namespace(self) -> str:
        return self.chance.choice(("one", "one", "two"))

    def labels(self, least: int = 0) -> dict[str, str]:
        found = {key: self.chance.choice("xy") for key in ("app", "tier") if self.maybe(60)}
        return found or ({"app": "x"} if least else {})

    def pod(self, name: str, theme: str, *, on: str) -> Plain:
        chance = self.chance
        containers = [self.container(number, theme) for number in range(chance.choice((1, 1, 2)))]
        spec: Plain = {"containers": containers, "automountServiceAccountToken": False}
        if self.maybe(10):
            spec["initContainers"] = [{**self.container(9, theme), "name": "init", "ports": []}]
        if on:
            spec["nodeName"] = on
        if theme in ("preemption", "all") or self.maybe(20):
            spec["priorityClassName"] = "high" if not on and self.maybe(70) else chance.choice(list(PRIORITIES))
        if self.maybe(40) and not on:
            spec["tolerations"] = [self.toleration() for _ in range(chance.randint(1, 2))]
        if theme in ("plain", "all") and not on:
            self.want_nodes(spec)
        if theme in ("affinity", "all"):
            self.want_pods(spec)
        if theme in ("spread", "all") and not on and self.maybe(80):
            spec["topologySpreadConstraints"] = self.constraints()
        metadata = {"name": name, "namespace": self.namespace(), "labels": self.labels()}
        return {"metadata": metadata, "spec": spec}

    def container(self, number: int, theme: str) -> Plain:
        chance = self.chance
        requests: dict[str, str] = {}
        if self.maybe(70):
            requests["cpu"] = chance.choice(("100m", "500m", "1", "1500m"))
        if self.maybe(70):
            requests["memory"] = chance.choice(("64Mi", "512Mi", "1Gi", "3Gi"))
        if self.maybe(8):
            requests["ephemeral-storage"] = chance.choice(("1Gi", "20Gi"))
        limits = {}
        if self.maybe(8):
            requests["example.com/gpu"] = limits["example.com/gpu"] = str(chance.randint(1, 2))
        found: Plain = {
            "name": f"c{number}",
            "image": chance.choice((*IMAGES, "other")),
            "resources": {"requests": requests, "limits": limits},
        }
        if theme in ("plain", "preemption") and self.maybe(20):
            port: Plain = {"containerPort": 80, "hostPort": chance.choice((8000, 8001)) + 10 * number}
            if self.maybe(40):
                port["hostIP"] = chance.choice(("127.0.0.1", "10.0.0.1"))
            found["ports"] = [port]
        return found

    def toleration(self) -> Plain:
        found: Plain = {"operator": self.chance.choice(("Exists", "Equal"))}
        found["key"] = self.chance.choice(("a", "b"))
        if found["operator"] == "Equal":
            found["value"] = self.chance.choice(("", "x"))
        elif self.maybe(20):
            del found["key"]
        if self.maybe(50):
            found["effect"] = self.chance.choice(("NoSchedule", "PreferNoSchedule", "NoExecute"))
        return found

    def expression(self) -> Plain:
        chance = self.chance
        operator = chance.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        found: Plain = {"key": chance.choice((*KEYS, "disk")), "operator": operator}
        if operator in ("In", "NotIn"):
            found["values"] = chance.sample(("z1", "z2", "r1", "ssd", "n0", "n1"), 2)
        elif operator in ("Gt", "Lt"):
            found["values"] = ["5"]
        return found

    def want_nodes(self, spec: Plain) -> None:
        chance = self.chance
        if self.maybe(25):
            spec["nodeSelector"] = {"disk": chance.choice(("ssd", "hdd"))}
        affinity: Plain = {}
        if self.maybe(30):
            terms = [{"matchExpressions": [self.expression() for _ in range(chance.randint(1, 2))]}]
            if self.maybe(30):
                names = {"key": "metadata.name", "operator": "In", "values": [chance.choice(("n0", "n1", "n9"))]}
                terms.append({"matchFields": [names]})
            if self.maybe(30):
                terms = terms[1:] or terms
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if self.maybe(50):
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": chance.randint(1, 100), "preference": {"matchExpressions": [self.expression()]}}
                for _ in range(chance.randint(1, 2))
            ]
        if affinity:
            spec.setdefault("affinity", {})["nodeAffinity"] = affinity

    def selector(self) -> Plain:
        if self.maybe(15):
            return {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
        return {"matchLabels": self.labels(1)}

    def term(self) -> Plain:
        found: Plain = {"topologyKey": self.chance.choice(KEYS), "labelSelector": self.selector()}
        if self.maybe(20):
            found["namespaces"] = [self.namespace()]
        if self.maybe(20):
            found["namespaceSelector"] = {"matchLabels": {"team": "a"}} if self.maybe(70) else {}
        return found

    def want_pods(self, spec: Plain) -> None:
        chance = self.chance
        for name, percent in (("podAffinity", 35), ("podAntiAffinity", 45)):
            if not self.maybe(percent):
                continue
            found: Plain = {}
            if self.maybe(60):
                terms = [self.term() for _ in range(chance.choice((1, 1, 2)))]
                found["requiredDuringSchedulingIgnoredDuringExecution"] = terms
            if self.maybe(60):
                found["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": chance.randint(1, 100), "podAffinityTerm": self.term()}
                    for _ in range(chance.choice((1, 1, 2)))
                ]
            spec.setdefault("affinity", {})[name] = found

    def constraints(self) -> list[Plain]:
        chance = self.chance
        found: list[Plain] = []
        for key in chance.sample(KEYS, chance.choice((1, 1, 2))):
            each: Plain = {
                "maxSkew": chance.choice((1, 1, 2)),
                "topologyKey": key,
                "labelSelector": self.selector(),
                "whenUnsatisfiable": chance.choice(("DoNotSchedule", "ScheduleAnyway")),
            }
            if each["whenUnsatisfiable"] == "DoNotSchedule" and self.maybe(20):
                each["minDomains"] = chance.randint(1, 3)
            if self.maybe(15):
                each["nodeAffinityPolicy"] = "Ignore"
            if self.maybe(25):
                each["nodeTaintsPolicy"] = "Honor"
            if self.maybe(20) and "tier" not in each["labelSelector"].get("matchLabels", {}):
                each["matchLabelKeys"] = ["tier"]
            found.append(each)
        return found
