"""Functions of templates in stages, beside Go's own and sprig's (kwok `pkg/utils/gotpl`)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from random import Random
from types import MappingProxyType
from typing import Any, Final

import msgspec

from steersman.api.core.v1 import Pod
from steersman.machinery.codec import yaml
from steersman.machinery.errors.field import quote
from steersman.machinery.values import times
from steersman.nodes.simulated_node import GOOD, SimulatedNode
from steersman.nodes.stages.declaration import NODES, PODS, ResourceRef
from steersman.nodes.stages.go_template.builtins import Function, integer, text
from steersman.nodes.stages.go_template.values import TemplateError, Value, plain
from steersman.nodes.stages.sprig.all import SPRIG
from steersman.nodes.stages.sprig.checks import by_chance

VERSION: Final = "v0.8.0"
"""Version of kwok that these functions follow."""
_MOST_INDENT: Final = 100
_NETWORK: Final = ("NetworkUnavailable", "False", "RouteCreated", "RouteController created a route")
_CONDITIONS: Final = (GOOD[-1], *GOOD[:-1], _NETWORK)
"""Conditions of a healthy node in kwok's order."""


def moment_text(seconds: float) -> str:
    """Return a time, given in seconds since 1970, in UTC as time.RFC3339Nano formats it."""
    shown = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
    return f"{shown}Z"


_STARTED: Final = moment_text(times.unix_now())


def _quote(value: Value) -> str:
    """Return a string in quotes; for any other value, its JSON in quotes."""
    shown = msgspec.json.encode(plain(value)).decode()
    return shown if shown[:1] == '"' else quote(shown)


def _yaml(value: Value, *indents: Value) -> str:
    """Return a value as YAML; with an indent, on new lines that begin with so many times two spaces."""
    shown = yaml.from_json(msgspec.json.encode(plain(value))).decode()
    indent = integer(indents[0], "YAML") if len(indents) == 1 else 0
    if indent > _MOST_INDENT:
        raise TemplateError(f"YAML: an indent of more than {_MOST_INDENT}")
    return f"\n{shown}".replace("\n", "\n" + "  " * indent) if indent > 0 else shown


def _node_conditions() -> Value:
    return [
        {
            "lastHeartbeatTime": None,
            "lastTransitionTime": None,
            "message": message,
            "reason": reason,
            "status": status,
            "type": type_,
        }
        for type_, status, reason, message in _CONDITIONS
    ]


_OF_ALL: Final[Mapping[str, Function]] = MappingProxyType(
    {
        **SPRIG,
        "NodeConditions": _node_conditions,
        "Now": lambda: moment_text(times.unix_now()),
        "Quote": _quote,
        "StartTime": lambda: _STARTED,
        "Version": lambda: VERSION,
        "YAML": _yaml,
    }
)


def _nothing(*_: Value) -> Value:
    """Stand in for a function of one object while templates are parsed."""
    return None


_OF_KINDS: Final = {
    PODS: ("NodeIP", "NodeIPWith", "NodeIPsWith", "PodIP", "PodIPWith", "PodIPsWith"),
    NODES: ("NodeIP", "NodeName", "NodePort"),
}


def functions_of_kind(reference: ResourceRef) -> Mapping[str, Function]:
    """Return all functions for templates of a kind. Functions that need an object are stand-ins."""
    return {**_OF_ALL, **dict.fromkeys((*_OF_KINDS.get(reference, ()), *by_chance(Random(0))), _nothing)}


def functions_of_node(node: SimulatedNode) -> Mapping[str, Function]:
    """Return the functions that depend on a simulated node."""
    return {
        "NodeIP": lambda: node.address,
        "NodeName": lambda: node.name,
        "NodePort": lambda: node.template.kubelet_port,
    }


def functions_of_pod(pod: Pod, nodes: Mapping[str, SimulatedNode]) -> Mapping[str, Function]:
    """Return the functions that depend on a pod and its node. A pod has one address, however often it is requested."""
    own = nodes[pod.spec.node_name]
    key = pod.metadata.namespace, pod.metadata.name

    def node_address(name: Value) -> str:
        return nodes.get(text(name, "NodeIPWith"), own).address

    def pod_address(node: Value, host_network: Value, uid: Value, name: Value, namespace: Value) -> str:
        del uid
        if host_network is True:
            return node_address(node)
        found = nodes.get(text(node, "PodIPWith"))
        if found is None:
            return own.address
        of = text(namespace, "PodIPWith"), text(name, "PodIPWith")
        return found.address_of(of, pod.status.pod_ip if of == key else "")

    def pod_addresses(node: Value, host_network: Value, uid: Value, name: Value, namespace: Value) -> list[Any]:
        return [pod_address(node, host_network, uid, name, namespace)]

    return {
        "NodeIP": lambda: own.address,
        "NodeIPWith": node_address,
        "NodeIPsWith": lambda name: [node_address(name)],
        "PodIP": lambda: own.address_of(key, pod.status.pod_ip),
        "PodIPWith": pod_address,
        "PodIPsWith": pod_addresses,
    }
