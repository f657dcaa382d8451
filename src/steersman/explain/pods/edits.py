"""Changes of a pod, of nodes or of other pods that may place a pending pod."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from steersman.api.core import v1 as core
from steersman.explain.pods.amounts import amount_text
from steersman.machinery.built_in.pod_resources import is_pod_level_resource
from steersman.machinery.codec.serializer import from_plain, to_plain
from steersman.machinery.values.quantity import QuantityError, parse

Plain = dict[str, Any]
Apply = Callable[[Plain], None]
"""Changes an object in its JSON form."""

TOLERATE: Final = "tolerate"
REQUEST: Final = "request"
SELECT: Final = "select"
PORT: Final = "port"
SPREAD: Final = "spread"
AFFINITY: Final = "affinity"
GATE: Final = "gate"
PRIORITY: Final = "priority"
UNCORDON: Final = "uncordon"
UNTAINT: Final = "untaint"
LABEL: Final = "label"
DELETE: Final = "delete"
ADD_NODE: Final = "add-node"

CHANGEABLE: Final = frozenset({TOLERATE, GATE})
"""Kinds of changes that an existing pod allows."""

WEIGHTS: Final[Mapping[str, float]] = {
    GATE: 0.5,
    UNCORDON: 1.0,
    TOLERATE: 1.0,
    REQUEST: 1.2,
    LABEL: 1.3,
    SPREAD: 1.5,
    SELECT: 1.6,
    PORT: 1.7,
    AFFINITY: 2.0,
    UNTAINT: 2.2,
    PRIORITY: 2.5,
    ADD_NODE: 3.0,
    DELETE: 3.5,
}
"""Weights of the kinds of changes: the smaller a change, the earlier it is suggested."""


@dataclass(frozen=True)
class Edit:
    """One change of one object. Edits with the same kind and subject differ in amounts only."""

    kind: str
    subject: str
    text: str
    """Words for people, in the imperative."""
    pod: Apply | None = None
    """Changes the pending pod."""
    node_name: str = ""
    node: Apply | None = None
    """Changes the node `node_name`."""
    delete: Sequence[core.Pod] = ()
    create: core.Node | None = None
    command: str = ""
    extent: float = 0.0
    """Share of the pod that changes, between 0 and 1."""

    @property
    def weight(self) -> float:
        """Weight of the change, for the order of suggestions."""
        return WEIGHTS[self.kind] + self.extent + len(self.delete)


def edited(pod: core.Pod, edits: Sequence[Edit]) -> core.Pod:
    """Return a pod with all changes of it."""
    plain = to_plain(pod)
    for each in edits:
        if each.pod is not None:
            each.pod(plain)
    _remove_marked_terms(plain)
    return from_plain(core.Pod, plain)


def edited_node(node: core.Node, edits: Sequence[Edit]) -> core.Node:
    """Return a node with all changes of it."""
    plain = to_plain(node)
    for each in edits:
        if each.node is not None and each.node_name == node.metadata.name:
            each.node(plain)
    return from_plain(core.Node, plain)


def request(resource: str, requested: int, free: int) -> Edit:
    """Return the edit that lowers the pod's requests of a resource to what is free."""

    def apply(pod: Plain) -> None:
        _lower_requests(pod["spec"], resource, free)

    less = amount_text(resource, requested - free)
    text = f"request {amount_text(resource, free)} {resource} instead of {amount_text(resource, requested)}"
    return Edit(REQUEST, resource, f"{text} ({less} less)", apply, extent=(requested - free) / requested)


def _lower_requests(spec: Plain, resource: str, most: int) -> None:
    """Lower the requests of the containers, the largest first, until the pod as a whole requests at most `most`."""
    most = max(most - _units(resource, (spec.get("overhead") or {}).get(resource, "0")), 0)
    of_pod = (spec.get("resources") or {}).get("requests") or {}
    if resource in of_pod and is_pod_level_resource(resource):
        of_pod[resource] = amount_text(resource, min(most, _units(resource, of_pod[resource])))
        most = _units(resource, of_pod[resource])
    init = spec.get("initContainers") or []
    sidecars = [each for each in init if each.get("restartPolicy") == "Always"]
    _lower_sum([*(spec.get("containers") or []), *sidecars], resource, most)
    beside = sum(_request_of(each, resource) for each in sidecars)
    for each in init:
        if each.get("restartPolicy") != "Always":
            _set_request(each, resource, min(_request_of(each, resource), max(most - beside, 0)))


def _lower_sum(containers: Sequence[Plain], resource: str, most: int) -> None:
    excess = sum(_request_of(each, resource) for each in containers) - most
    for each in sorted(containers, key=lambda container: -_request_of(container, resource)):
        if excess <= 0:
            return
        has = _request_of(each, resource)
        taken = min(has, excess)
        _set_request(each, resource, has - taken)
        excess -= taken


def _set_request(container: Plain, resource: str, amount: int) -> None:
    resources = container.setdefault("resources", {})
    requests = resources.get("requests") or {}
    if resource not in requests or _units(resource, requests[resource]) == amount:
        return
    requests[resource] = amount_text(resource, amount)
    limits = resources.get("limits") or {}
    if resource in limits and "/" in resource:  # extended resources cannot be overcommitted
        limits[resource] = requests[resource]


def _request_of(container: Plain, resource: str) -> int:
    requests = (container.get("resources") or {}).get("requests") or {}
    return _units(resource, requests.get(resource, "0"))


def _units(resource: str, text: str) -> int:
    try:
        amount = parse(text)
    except QuantityError:
        return 0
    return amount.as_milli() if resource == "cpu" else amount.as_int()


def tolerate(taint: core.Taint) -> Edit:
    """Return the edit that tolerates a taint."""
    toleration = {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
    if not taint.value:
        toleration = {"key": taint.key, "operator": "Exists", "effect": taint.effect}

    def apply(pod: Plain) -> None:
        tolerations = pod["spec"].setdefault("tolerations", [])
        if toleration not in tolerations:
            tolerations.append(toleration)

    name = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
    return Edit(TOLERATE, name, f"tolerate the taint {name}", apply)


def untaint(node_name: str, taint: core.Taint) -> Edit:
    """Return the edit that removes a taint of a node."""

    def apply(node: Plain) -> None:
        node["spec"]["taints"] = [
            each
            for each in node["spec"].get("taints", ())
            if (each["key"], each["effect"]) != (taint.key, taint.effect)
        ]

    command = shlex.join(["kubectl", "taint", "nodes", node_name, f"{taint.key}:{taint.effect}-"])
    text = f"remove the taint {taint.key}:{taint.effect} of node {node_name}"
    return Edit(UNTAINT, f"{taint.key}:{taint.effect}", text, node_name=node_name, node=apply, command=command)


def uncordon(node_name: str) -> Edit:
    """Return the edit that makes a node schedulable."""

    def apply(node: Plain) -> None:
        node["spec"].pop("unschedulable", None)
        taints = node["spec"].get("taints", ())
        node["spec"]["taints"] = [each for each in taints if each["key"] != "node.kubernetes.io/unschedulable"]

    command = shlex.join(["kubectl", "uncordon", node_name])
    return Edit(UNCORDON, "", f"uncordon node {node_name}", node_name=node_name, node=apply, command=command)


def label(node_name: str, key: str, value: str) -> Edit:
    """Return the edit that labels a node."""

    def apply(node: Plain) -> None:
        node["metadata"].setdefault("labels", {})[key] = value

    command = shlex.join(["kubectl", "label", "nodes", node_name, f"{key}={value}", "--overwrite"])
    text = f"label node {node_name} with {key}={value}"
    return Edit(LABEL, f"{key}={value}", text, node_name=node_name, node=apply, command=command)


def drop_selector(key: str, value: str) -> Edit:
    """Return the edit that drops one label of the node selector."""

    def apply(pod: Plain) -> None:
        pod["spec"].get("nodeSelector", {}).pop(key, None)

    return Edit(SELECT, f"selector {key}", f"drop {key}={value} from the node selector", apply)


def drop_requirement(text: str, index: int, key: str, operator: str, values: Sequence[str]) -> Edit:
    """Return the edit that drops a requirement of a term of the required node affinity; of all, if `key` is empty."""

    def apply(pod: Plain) -> None:
        affinity = pod["spec"]["affinity"]["nodeAffinity"]
        required = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
        term = required["nodeSelectorTerms"][index]
        kept = [
            each
            for each in term.get("matchExpressions", ())
            if (each["key"], each["operator"], list(each.get("values") or ())) != (key, operator, list(values))
        ]
        if key and (kept or term.get("matchFields")):
            term["matchExpressions"] = kept
        else:
            del affinity["requiredDuringSchedulingIgnoredDuringExecution"]

    return Edit(SELECT, f"affinity {text}", f"drop {text} from the node affinity", apply)


def other_port(port: int, protocol: str, free: int) -> Edit:
    """Return the edit that takes another host port."""

    def apply(pod: Plain) -> None:
        for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
            for each in container.get("ports", ()):
                if each.get("hostPort") == port and each.get("protocol", "TCP") == protocol:
                    each["hostPort"] = free
                    if pod["spec"].get("hostNetwork"):
                        each["containerPort"] = free

    return Edit(PORT, f"{port}/{protocol}", f"use host port {free} instead of {port}", apply)


def raise_skew(topology_key: str, index: int, skew: int) -> Edit:
    """Return the edit that allows a larger skew in the topology spread constraint number `index`."""

    def apply(pod: Plain) -> None:
        pod["spec"]["topologySpreadConstraints"][index]["maxSkew"] = skew

    return Edit(SPREAD, topology_key, f"raise maxSkew of the spread over {topology_key} to {skew}", apply)


def soften_spread(topology_key: str, index: int) -> Edit:
    """Return the edit that turns a hard topology spread constraint into a preference."""

    def apply(pod: Plain) -> None:
        constraint = pod["spec"]["topologySpreadConstraints"][index]
        constraint["whenUnsatisfiable"] = "ScheduleAnyway"
        constraint.pop("minDomains", None)

    text = f"prefer the spread over {topology_key} instead of requiring it (whenUnsatisfiable: ScheduleAnyway)"
    return Edit(SPREAD, f"soft {topology_key}", text, apply, extent=0.4)


def drop_pod_term(member: str, index: int, text: str) -> Edit:
    """Return the edit that drops a required term of `podAffinity` or `podAntiAffinity`; all, if `index` is -1."""

    def apply(pod: Plain) -> None:
        terms = pod["spec"]["affinity"][member]["requiredDuringSchedulingIgnoredDuringExecution"]
        if index < 0:
            terms.clear()
        else:
            terms[index] = None

    what = "pod affinity" if member == "podAffinity" else "pod anti-affinity"
    return Edit(AFFINITY, f"{member} {index}", f"drop the required {what} to {text}", apply)


def remove_gates() -> Edit:
    """Return the edit that removes all scheduling gates."""

    def apply(pod: Plain) -> None:
        pod["spec"].pop("schedulingGates", None)

    return Edit(GATE, "", "remove the scheduling gates", apply)


def priority_class(name: str, value: int, effect: str) -> Edit:
    """Return the edit that gives the pod a priority class."""

    def apply(pod: Plain) -> None:
        pod["spec"]["priorityClassName"] = name
        pod["spec"]["priority"] = value

    return Edit(PRIORITY, "", f"use the priority class {name}, which preempts {effect}", apply)


def delete(pods: Sequence[core.Pod], text: str, command: str) -> Edit:
    """Return the edit that deletes other pods."""
    return Edit(DELETE, "", text, delete=pods, command=command)


def add_node(like: str, node: core.Node) -> Edit:
    """Return the edit that adds a node."""
    return Edit(ADD_NODE, "", f"add one more node like {like}", create=node)


def _remove_marked_terms(pod: Plain) -> None:
    """Remove the terms that `drop_pod_term` has marked, whose indices other edits rely on until then."""
    affinity = pod["spec"].get("affinity") or {}
    for member in ("podAffinity", "podAntiAffinity"):
        found = affinity.get(member) or {}
        terms = found.get("requiredDuringSchedulingIgnoredDuringExecution")
        if terms is not None:
            terms[:] = [each for each in terms if each is not None]
