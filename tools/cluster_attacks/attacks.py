"""The attacks: what each makes, as large as bodies may be (3 MiB, 32,768 objects and lists, 65,536 values)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from tools.cluster_attacks.cluster import NAMESPACE, AttackedCluster, Plain

_BASE: Final = f"/api/v1/namespaces/{NAMESPACE}"
_PODS: Final = f"{_BASE}/pods"
_CONFIG_MAPS: Final = f"{_BASE}/configmaps"
_LARGE: Final = 6
"""Largest pods that are made."""


def _pod(name: str, *, labels: Plain | None = None, ports: list[Plain] | None = None, **spec: object) -> Plain:
    container: Plain = {"name": "c", "image": "app", "ports": ports or []}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {"containers": [container], **spec}}


def _large_pods(cluster: AttackedCluster, make: Callable[[int], Plain]) -> None:
    for number in range(_LARGE):
        cluster.make(_PODS, make(number))


def owners(cluster: AttackedCluster) -> None:
    """objects with 15,000 owners each"""
    for number in range(_LARGE):
        references = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": f"o{each}", "uid": f"{number}-{each}"}
            for each in range(15_000)
        ]
        cluster.make(_CONFIG_MAPS, {"metadata": {"name": f"owned-{number}", "ownerReferences": references}})


def addresses(cluster: AttackedCluster) -> None:
    """Endpoints of 10,000 addresses, for Services without a selector"""
    for number in range(_LARGE):
        cluster.make(f"{_BASE}/services", {"metadata": {"name": f"s{number}"}, "spec": {"ports": [{"port": 80}]}})
        listed = [{"ip": f"10.{1 + each // 62500}.{each // 250 % 250}.{1 + each % 250}"} for each in range(10_000)]
        subset = {"addresses": listed, "ports": [{"port": 80}]}
        cluster.make(f"{_BASE}/endpoints", {"metadata": {"name": f"s{number}"}, "subsets": [subset]}, by=cluster.admin)


def affinity(cluster: AttackedCluster) -> None:
    """pods with 5,000 terms of affinity to pods, as many of anti-affinity, and weighted ones"""

    def make(number: int) -> Plain:
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"no": f"such-{number}"}}}
        anti = [{**term, "labelSelector": {"matchLabels": {"no": f"{number}-{each}"}}} for each in range(5_000)]
        weighted = [{"weight": 1, "podAffinityTerm": term} for term in anti[:1_500]]
        return _pod(
            f"p{number}",
            affinity={
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": anti,
                    "preferredDuringSchedulingIgnoredDuringExecution": weighted,
                }
            },
        )

    _large_pods(cluster, make)


def node_affinity(cluster: AttackedCluster) -> None:
    """pods with 8,000 terms of node affinity"""

    def make(number: int) -> Plain:
        terms = [
            {"matchExpressions": [{"key": f"k{each}", "operator": "In", "values": [f"{number}"]}]}
            for each in range(8_000)
        ]
        return _pod(
            f"p{number}",
            affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}},
        )

    _large_pods(cluster, make)


def tolerations(cluster: AttackedCluster) -> None:
    """pods with 20,000 tolerations"""

    def make(number: int) -> Plain:
        given = [{"key": f"k{each}", "operator": "Equal", "value": f"{number}"} for each in range(20_000)]
        return _pod(f"p{number}", tolerations=given)

    _large_pods(cluster, make)


def ports(cluster: AttackedCluster) -> None:
    """pods with 10,000 ports of their hosts"""

    def make(number: int) -> Plain:
        given = [
            {"containerPort": 1 + each, "hostPort": 1 + each, "hostIP": f"10.0.0.{number + 1}"}
            for each in range(10_000)
        ]
        return _pod(f"p{number}", ports=given)

    _large_pods(cluster, make)


def spread(cluster: AttackedCluster) -> None:
    """pods with 8,000 constraints of topology spread"""

    def make(number: int) -> Plain:
        constraints = [
            {
                "maxSkew": 1,
                "topologyKey": f"k{each}",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"a": f"{number}"}},
            }
            for each in range(8_000)
        ]
        return _pod(f"p{number}", topologySpreadConstraints=constraints)

    _large_pods(cluster, make)


def labels(cluster: AttackedCluster) -> None:
    """pods with 20,000 labels, a ReplicaSet and a budget that select by as many"""
    given = {f"k{each}": "v" for each in range(20_000)}
    for number in range(_LARGE):
        cluster.make(_PODS, _pod(f"p{number}", labels=given))
    selector = {"matchLabels": given}
    template = {key: value for key, value in _pod("", labels=given).items() if key != "name"}
    cluster.make(
        f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets",
        {"metadata": {"name": "r"}, "spec": {"replicas": 5, "selector": selector, "template": template}},
    )
    cluster.make(
        f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
        {"metadata": {"name": "b"}, "spec": {"maxUnavailable": 1, "selector": selector}},
    )


def claims(cluster: AttackedCluster) -> None:
    """claims with large selectors, among 5,000 volumes that wait for one"""
    for number in range(5_000):
        cluster.make(
            "/api/v1/persistentvolumes",
            {
                "metadata": {"name": f"v{number}", "labels": {f"l{number}": "a"}},
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "",
                    "hostPath": {"path": "/a"},
                },
            },
            by=cluster.admin,
        )
    expressions = [{"key": f"k{each}", "operator": "DoesNotExist"} for each in range(10_000)]
    expressions.append({"key": "none", "operator": "Exists"})
    for number in range(_LARGE):
        cluster.make(
            f"{_BASE}/persistentvolumeclaims",
            {
                "metadata": {"name": f"c{number}"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                    "storageClassName": "",
                    "selector": {"matchExpressions": expressions},
                },
            },
        )


def repelling(cluster: AttackedCluster) -> None:
    """10,000 pods that repel each other, in fours by a label"""
    for number in range(10_000):
        group = str(number // 4)
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"g": group}}}
        cluster.make(
            _PODS,
            json.dumps(
                _pod(
                    f"p{number}",
                    labels={"g": group},
                    affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
                )
            ).encode(),
        )


def repelling_all(cluster: AttackedCluster) -> None:
    """3,000 pods of which each repels all"""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
    for number in range(3_000):
        cluster.make(
            _PODS,
            _pod(
                f"p{number}", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
            ),
        )


def autoscalers(cluster: AttackedCluster) -> None:
    """a thousand autoscalers, of few Deployments"""
    for number in range(10):
        selector = {"app": f"d{number}"}
        template = {
            "metadata": {"labels": selector},
            "spec": {"containers": [{"name": "c", "image": "app", "resources": {"requests": {"cpu": "1m"}}}]},
        }
        cluster.make(
            f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
            {
                "metadata": {"name": f"d{number}"},
                "spec": {"replicas": 20, "selector": {"matchLabels": selector}, "template": template},
            },
        )
    for number in range(1_000):
        metrics = [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
            }
        ]
        cluster.make(
            f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers",
            {
                "metadata": {"name": f"h{number}"},
                "spec": {
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"d{number % 10}"},
                    "maxReplicas": 30,
                    "metrics": metrics * 20,
                },
            },
        )


def budgets(cluster: AttackedCluster) -> None:
    """a thousand budgets and twenty quotas for 500 pods that come and go"""
    for number in range(1_000):
        cluster.make(
            f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
            {"metadata": {"name": f"b{number}"}, "spec": {"maxUnavailable": 1, "selector": {}}},
        )
    hard = {each: "100000" for each in ("pods", "requests.cpu", "services", "configmaps", "secrets")}  # noqa: C420
    for number in range(20):
        cluster.make(
            f"{_BASE}/resourcequotas", {"metadata": {"name": f"q{number}"}, "spec": {"hard": hard}}, by=cluster.admin
        )
    resources = {"requests": {"cpu": "1m"}}
    for number in range(500):
        pod = _pod(f"p{number}")
        pod["spec"]["containers"][0]["resources"] = resources
        cluster.make(_PODS, pod)
    for number in range(500):
        cluster.client.request("DELETE", f"{_PODS}/p{number}")


def circles(cluster: AttackedCluster) -> None:
    """200 objects that own each other, deleted in the foreground"""
    names = [f"o{number}" for number in range(200)]
    uids = {name: cluster.make(_CONFIG_MAPS, {"metadata": {"name": name}})["metadata"]["uid"] for name in names}
    for name in names:
        owners = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": other, "uid": uid, "blockOwnerDeletion": True}
            for other, uid in uids.items()
            if other != name
        ]
        cluster.client.request(
            "PATCH",
            f"{_CONFIG_MAPS}/{name}",
            json.dumps({"metadata": {"ownerReferences": owners}}).encode(),
            {"Content-Type": "application/merge-patch+json"},
        )
    for name in names:
        cluster.client.request("DELETE", f"{_CONFIG_MAPS}/{name}", {"propagationPolicy": "Foreground"})


def success_policies(cluster: AttackedCluster) -> None:
    """Jobs whose success is declared by twenty lists of 9,000 indexes, of which none is met"""
    odd = ",".join(str(2 * each + 1) for each in range(9_000))
    script = "case $JOB_COMPLETION_INDEX in 0|2|4) ;; *) sleep 1000;; esac"
    container = {"name": "c", "image": "app", "command": ["sh", "-c", script]}
    pod = {"restartPolicy": "Never", "containers": [container]}
    for number in range(3):
        cluster.make(
            f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs",
            {
                "metadata": {"name": f"j{number}"},
                "spec": {
                    "completionMode": "Indexed",
                    "parallelism": 10,
                    "completions": 20_000,
                    "template": {"spec": pod},
                    "successPolicy": {"rules": [{"succeededIndexes": odd, "succeededCount": 2}] * 20},
                },
            },
        )


def images(cluster: AttackedCluster) -> None:
    """pods with images whose names have 2.6 MB"""
    for number, image in enumerate(("a." * 1_300_000 + "com/x", "a/" * 1_300_000, "a:" + "b" * 2_600_000)):
        pod = _pod(f"p{number}")
        pod["spec"]["containers"][0]["image"] = image
        cluster.make(_PODS, pod)


def mounts(cluster: AttackedCluster) -> None:
    """pods with 400 mounts whose paths are long expressions"""

    def make(number: int) -> Plain:
        pod = _pod(f"p{number}", volumes=[{"name": "v", "emptyDir": {}}])
        pod["spec"]["containers"][0] |= {
            "command": ["sh", "-c", "echo a > /m/1/a; sleep 1000"],
            "env": [{"name": "A", "value": "x"}],
            "volumeMounts": [
                {"name": "v", "mountPath": f"/m/{each}", "subPathExpr": "$(A)/$(A)/a" * 500} for each in range(400)
            ],
        }
        return pod

    _large_pods(cluster, make)


NODES: Final = {"repelling": 200, "repelling_all": 200}
"""Number of nodes of attacks that need more than one."""
ATTACKS: Final[dict[str, Callable[[AttackedCluster], None]]] = {
    each.__name__: each
    for each in (
        owners,
        addresses,
        affinity,
        node_affinity,
        tolerations,
        ports,
        spread,
        labels,
        claims,
        repelling,
        repelling_all,
        autoscalers,
        budgets,
        circles,
        success_policies,
        images,
        mounts,
    )
}
