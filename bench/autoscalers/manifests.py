"""Objects that the autoscalers are tried with."""

from __future__ import annotations

import json
from typing import Any, Final

Plain = dict[str, Any]

TAINT: Final = {"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"}
"""Taint of nodes that no autoscaler made, as the guide of Karpenter's kwok provider has it."""
NODE_CLASS: Final[Plain] = {
    "apiVersion": "karpenter.kwok.sh/v1alpha1",
    "kind": "KWOKNodeClass",
    "metadata": {"name": "default"},
}
_GROUP_OF_NODE: Final = "kwok-nodegroup"


def node_pool(largest: int = 16) -> Plain:
    """Return a NodePool of Karpenter, of nodes with at most `largest` CPUs."""
    requirements = [
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": [str(largest + 1)]},
    ]
    node_class = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {
            "template": {
                "spec": {"requirements": requirements, "nodeClassRef": node_class, "expireAfter": "720h"},
            },
            "limits": {"cpu": 1000},
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "10s",
                "budgets": [{"nodes": "100%"}],  # the default of 10% makes scaling down take many steps
            },
        },
    }


def deployment(replicas: int) -> Plain:
    """Return a Deployment of pods that request a CPU each."""
    requests = {"requests": {"cpu": "1", "memory": "1Gi"}}
    container = {"name": "web", "image": "registry.example/web:1", "resources": requests}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    }


def disruption_budget(unavailable: str) -> Plain:
    """Return a PodDisruptionBudget of the Deployment."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": unavailable, "selector": {"matchLabels": {"app": "web"}}},
    }


def node_group(cpu: int = 16) -> list[Plain]:
    """Return the configuration of cluster-autoscaler's kwok provider, with one group of nodes with `cpu` CPUs."""
    room = {"cpu": str(cpu), "memory": f"{cpu * 4}Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "pool",
            "annotations": {"cluster-autoscaler.kwok.nodegroup/max-count": "100"},
            "labels": {
                _GROUP_OF_NODE: "pool",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": "pool",
            },
        },
        "spec": {},
        "status": {"allocatable": room, "capacity": room},
    }
    provider = {
        "apiVersion": "v1alpha1",
        "readNodesFrom": "configmap",
        "nodegroups": {"fromNodeLabelKey": _GROUP_OF_NODE},
        "nodes": {"skipTaint": True},
        "configmap": {"name": "kwok-provider-templates"},
    }
    templates = {"apiVersion": "v1", "kind": "List", "items": [node]}
    return [
        _config_map("kwok-provider-config", "config", provider),
        _config_map("kwok-provider-templates", "templates", templates),
    ]


def _config_map(name: str, key: str, content: Plain) -> Plain:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {key: json.dumps(content)},
    }
