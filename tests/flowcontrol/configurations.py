"""Priority levels and flow schemas for tests."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.api.flowcontrol.v1 import FlowSchema, PriorityLevelConfiguration
from steersman.flowcontrol.fairness import Schema
from steersman.flowcontrol.matching import Matcher


def level(name: str, shares: int = 10, *, queues: int = 0, **limited: int) -> PriorityLevelConfiguration:
    response: dict[str, Any] = {"type": "Reject"}
    if queues:
        response = {"type": "Queue", "queuing": {"queues": queues, "handSize": 1, "queueLengthLimit": 10}}
    spec = {"type": "Limited", "limited": {"nominalConcurrencyShares": shares, "limitResponse": response, **limited}}
    return msgspec.convert({"metadata": {"name": name, "uid": f"{name}-uid"}, "spec": spec}, PriorityLevelConfiguration)


def schema(name: str, to: str, precedence: int, user: str, by: str = "") -> Schema:
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    spec: dict[str, Any] = {
        "priorityLevelConfiguration": {"name": to},
        "matchingPrecedence": precedence,
        "rules": [{"subjects": [{"kind": "User", "user": {"name": user}}], "resourceRules": [everything]}],
    }
    if by:
        spec["distinguisherMethod"] = {"type": by}
    made = msgspec.convert({"metadata": {"name": name, "uid": f"{name}-uid"}, "spec": spec}, FlowSchema)
    return Schema(made, Matcher(made.spec))


def paths(name: str, to: str, precedence: int, user: str) -> Schema:
    """Return a schema for all paths that are not resources."""
    spec = {
        "priorityLevelConfiguration": {"name": to},
        "matchingPrecedence": precedence,
        "rules": [
            {
                "subjects": [{"kind": "User", "user": {"name": user}}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }
        ],
    }
    made = msgspec.convert({"metadata": {"name": name, "uid": f"{name}-uid"}, "spec": spec}, FlowSchema)
    return Schema(made, Matcher(made.spec))
