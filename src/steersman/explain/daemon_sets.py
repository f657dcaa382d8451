"""DaemonSets whose pods do not run on all of their nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from steersman.api.apps.v1 import DaemonSet
from steersman.api.core.v1 import Node
from steersman.client.api_resource import APIResource
from steersman.client.resources import DAEMON_SETS, NODES
from steersman.explain.deployments import check_generation
from steersman.explain.explainer import Explainer
from steersman.explain.finding import Finding, at_field, error, note, reference, warning
from steersman.explain.owned import creation_failures, matches, owned_pods
from steersman.explain.pod_problems import problems_of
from steersman.explain.world import World
from steersman.machinery.built_in.taints import untolerated

_ALWAYS_TOLERATED: Final = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/network-unavailable",
    }
)
"""Taints that every pod of a DaemonSet tolerates, the last one with host network only."""


def _summarize(each: DaemonSet) -> str:
    status = each.status
    return f"{status.number_available} of {status.desired_number_scheduled} pods available"


def daemon_set_fault(each: DaemonSet) -> str:
    """Return the reason why a DaemonSet is unhealthy, "" if it is not."""
    return _summarize(each) if each.status.number_available < each.status.desired_number_scheduled else ""


async def _check_pods(world: World, resource: APIResource[Any], owner: DaemonSet) -> AsyncIterator[Finding]:
    for each in problems_of(await owned_pods(world, owner)):
        yield each
    status = owner.status
    if status.current_number_scheduled < status.desired_number_scheduled:
        failures = await creation_failures(world, resource, owner)
        for each in failures:
            yield each
        if not failures:
            subject = reference(resource, owner)
            text = f"{status.current_number_scheduled} of {status.desired_number_scheduled} nodes have a pod"
            yield warning("PodsMissing", text, at_field(subject, ".status", status))


async def _check_nodes(world: World, resource: APIResource[Any], owner: DaemonSet) -> AsyncIterator[Finding]:
    """Yield findings about nodes that get no pod: by the node selector, and by taints."""
    nodes = await world.list(NODES)
    subject, spec = reference(resource, owner), owner.spec.template.spec
    selected = [each for each in nodes if matches(spec.node_selector, each.metadata.labels)]
    if not selected:
        best = _nearest(spec.node_selector, nodes)
        text = f"none of {len(nodes)} nodes has the labels of its node selector{best}"
        yield error("NoNodeSelected", text, at_field(subject, ".spec.template.spec.nodeSelector", spec.node_selector))
        return
    kept_off: dict[str, list[str]] = {}
    for node in selected:
        taints = [each for each in node.spec.taints if each.key not in _ALWAYS_TOLERATED]
        taint = untolerated(spec.tolerations, taints, "NoSchedule", "NoExecute")
        if taint is not None:
            kept_off.setdefault(f"{taint.key}={taint.value}:{taint.effect}", []).append(node.metadata.name)
    for taint_text, names in kept_off.items():
        text = f"{len(names)} nodes ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''}) get no pod: taint {taint_text}"
        first = next(each for each in selected if each.metadata.name == names[0])
        yield note("NodesTainted", text, at_field(reference(NODES, first), ".spec.taints", first.spec.taints))


def _nearest(selector: dict[str, str], nodes: Sequence[Node]) -> str:
    """Return the labels that the node with the most matching labels lacks, as the end of a sentence."""
    if not nodes or not selector:
        return ""
    lacking = [
        [f"{key}={value}" for key, value in selector.items() if node.metadata.labels.get(key) != value]
        for node in nodes
    ]
    number = min(range(len(nodes)), key=lambda each: len(lacking[each]))
    return f": node {nodes[number].metadata.name} lacks only {', '.join(lacking[number])}"


async def _check_rollout(world: World, resource: APIResource[Any], owner: DaemonSet) -> AsyncIterator[Finding]:
    status, subject = owner.status, reference(resource, owner)
    behind = status.desired_number_scheduled - status.updated_number_scheduled
    if behind > 0 and owner.spec.update_strategy.type == "OnDelete":
        text = f"{behind} pods of the old revision are replaced only when they are deleted (updateStrategy OnDelete)"
        yield note("OnDelete", text, at_field(subject, ".spec.updateStrategy.type", "OnDelete"))
    if status.number_misscheduled:
        text = f"{status.number_misscheduled} pods run on nodes that they should not run on"
        yield warning("Misscheduled", text, at_field(subject, ".status.numberMisscheduled", status.number_misscheduled))


DAEMON_SET: Final = Explainer(
    DAEMON_SETS, _summarize, (check_generation, _check_pods, _check_nodes, _check_rollout), daemon_set_fault
)
