"""CustomResourceDefinition of NodePools, which bounds all that a pool says."""

from __future__ import annotations

from typing import Any, Final

from steersman.cluster.configuration import MOST_NODES
from steersman.cluster.definitions import manifest
from steersman.cluster.node_pools.pool import GROUP_NAME, KIND, PLURAL, VERSION

_MOST_ENTRIES: Final = 64
"""Entries of a map or list of the template."""
_MOST_VALUE: Final = 4096
"""Characters of an annotation."""


def definition() -> dict[str, Any]:
    """Return the definition as a manifest. It has no rules in CEL, whose evaluator the start would load for them."""
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    columns = [
        {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Nodes", "type": "integer", "jsonPath": ".status.replicas"},
        {"name": "Ready", "type": "integer", "jsonPath": ".status.readyReplicas"},
        {"name": "CPU", "type": "string", "jsonPath": ".status.capacity.cpu"},
        {"name": "Cost", "type": "string", "jsonPath": ".status.cost"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    return manifest(GROUP_NAME, VERSION, KIND, PLURAL, _schema(), scale=scale, columns=columns)


def _schema() -> dict[str, Any]:
    return {
        "type": "object",
        "description": "Group of simulated nodes that is kept at its size.",
        "required": ["spec"],
        "properties": {"spec": _spec(), "status": _status()},
    }


def _spec() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "replicas": _number("Nodes of the pool.", most=MOST_NODES) | {"default": 1},
            "template": _template(),
            "zones": {
                "type": "array",
                "description": "Zones over which the nodes are spread, by the label topology.kubernetes.io/zone.",
                "maxItems": _MOST_ENTRIES,
                "x-kubernetes-list-type": "set",
                "items": {"type": "string", "minLength": 1, "maxLength": 63},
            },
            "bootTime": _duration("Time from a node's creation until it is ready."),
            "pricePerHour": {
                "type": "string",
                "description": "Price of a node for an hour, a decimal number without a currency.",
                "maxLength": 13,
                "pattern": r"^[0-9]{1,6}(\.[0-9]{1,6})?$",
            },
            "failures": {
                "type": "object",
                "description": "Nodes that stop answering.",
                "properties": {
                    "meanTime": _duration("Mean time from a node's creation until it fails."),
                    "repairAfter": _duration("Time after which a node that is not ready is replaced; default: never."),
                },
            },
            "interruptions": {
                "type": "object",
                "description": "Nodes that are taken away after a notice, as spot instances are.",
                "properties": {
                    "meanTime": _duration("Mean time from a node's creation until its notice."),
                    "notice": _duration("Time from the notice until the node is gone.") | {"default": "2m"},
                },
            },
            "limits": _quantities("Most resources of all nodes together; `nodes` limits their number."),
            "seed": {
                "type": "integer",
                "format": "int64",
                "description": "Seed of failures and interruptions. The same seed has the same ones.",
                "default": 0,
            },
        },
    }


def _template() -> dict[str, Any]:
    taint = {
        "type": "object",
        "required": ["key", "effect"],
        "properties": {
            "key": {"type": "string", "maxLength": 317},
            "value": {"type": "string", "maxLength": 63},
            "effect": {"type": "string", "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
        },
    }
    return {
        "type": "object",
        "description": "Nodes that are made from now on.",
        "properties": {
            "metadata": {
                "type": "object",
                "properties": {
                    "labels": _texts("Labels of the nodes.", 63),
                    "annotations": _texts("Annotations of the nodes.", _MOST_VALUE),
                },
            },
            "spec": {
                "type": "object",
                "properties": {"taints": {"type": "array", "maxItems": _MOST_ENTRIES, "items": taint}},
            },
            "status": {
                "type": "object",
                "properties": {
                    "capacity": _quantities("Differences from 32 CPUs, 256Gi of memory and 110 pods."),
                    "allocatable": _quantities("Differences from the capacity."),
                    "nodeInfo": {
                        "type": "object",
                        "properties": {"architecture": {"type": "string", "maxLength": 63}},
                    },
                },
            },
        },
    }


def _status() -> dict[str, Any]:
    text = {"type": "string"}
    condition = {
        "type": "object",
        "required": ["type", "status"],
        "properties": {
            "type": text,
            "status": text,
            "observedGeneration": {"type": "integer", "format": "int64"},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "reason": text,
            "message": text,
        },
    }
    return {
        "type": "object",
        "properties": {
            "observedGeneration": {"type": "integer", "format": "int64"},
            "replicas": _number("Nodes that exist."),
            "desiredReplicas": _number("Nodes that the pool is to have, within its limits."),
            "readyReplicas": _number("Nodes that are ready."),
            "nodesMade": _number("Nodes that were made so far.", format_="int64"),
            "selector": text | {"description": "Label selector of the nodes."},
            "zones": {"type": "object", "additionalProperties": {"type": "integer"}, "description": "Nodes by zone."},
            "capacity": {
                "type": "object",
                "additionalProperties": text,
                "description": "Capacity of all nodes together.",
            },
            "cost": text | {"description": "Cost of all nodes so far."},
            "costTime": {"type": "string", "format": "date-time", "description": "Time up to which cost is counted."},
            "pricePerHour": text | {"description": "Price of a node from costTime on."},
            "conditions": {
                "type": "array",
                "items": condition,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        },
    }


def _number(description: str, *, most: int | None = None, format_: str = "int32") -> dict[str, Any]:
    bound = {} if most is None else {"maximum": most}
    return {"type": "integer", "format": format_, "minimum": 0, **bound, "description": description}


def _texts(description: str, most: int) -> dict[str, Any]:
    values = {"type": "string", "maxLength": most}
    return {
        "type": "object",
        "description": description,
        "maxProperties": _MOST_ENTRIES,
        "additionalProperties": values,
    }


def _duration(description: str) -> dict[str, Any]:
    return {
        "type": "string",
        "description": description,
        "minLength": 2,
        "maxLength": 24,
        "pattern": r"^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,9}s)?$",
    }


def _quantities(description: str) -> dict[str, Any]:
    quantity = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "maxLength": 32,
        "pattern": r"^[0-9]+(\.[0-9]+)?([eE][0-9]{1,2}|[numkMGTPE]|[KMGTPE]i)?$",
    }
    return {
        "type": "object",
        "description": description,
        "maxProperties": _MOST_ENTRIES,
        "additionalProperties": quantity,
    }
