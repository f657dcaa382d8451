"""Edits that would satisfy the plugins that reject a pod on a node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Final

from steersman.api.core import v1 as core
from steersman.explain.pods import edits
from steersman.explain.pods.edits import Edit
from steersman.explain.pods.reasons import NodeNeeds
from steersman.machinery.built_in.taints import UNSCHEDULABLE
from steersman.scheduler.cycle import NOT_NAMED, Attempt
from steersman.scheduler.demand.affinity_terms import AffinityTerm
from steersman.scheduler.demand.ports import conflict
from steersman.scheduler.demand.spread import SpreadConstraint
from steersman.scheduler.fit.node_fit import each_shortage
from steersman.scheduler.fit.status import (
    INTER_POD_AFFINITY,
    NODE_AFFINITY,
    NODE_PORTS,
    NODE_RESOURCES_FIT,
    NODE_UNSCHEDULABLE,
    POD_TOPOLOGY_SPREAD,
    TAINT_TOLERATION,
)
from steersman.scheduler.fit.topology import KEPT_AWAY, LABEL_MISSING, NOT_NEAR
from steersman.scheduler.inquiry.verdicts import NodeVerdicts, Verdict
from steersman.scheduler.state.node_info import NodeInfo

Edits = tuple[Edit, ...]

_MOST_PER_NODE: Final = 8
_MOST_EDITS: Final = 16
"""Edits of one way."""
_NO_LABELS_TO_SET: Final = (
    "kubernetes.io/hostname",
    "topology.kubernetes.io/",
    "kubernetes.io/os",
    "kubernetes.io/arch",
)
"""Beginnings of labels that describe the machine."""
_OF_CONDITIONS: Final = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/out-of-service",
    "node.cloudprovider.kubernetes.io/uninitialized",
)
"""Taints for the state of a node, which are not to be tolerated or removed by hand."""
_HIGHEST_PORT: Final = 65_535
_PORTS_TRIED: Final = 100


def ways_onto(found: NodeVerdicts, attempt: Attempt, needs: NodeNeeds) -> Iterator[Edits]:
    """Yield sets of edits after which no plugin should reject the node; none if a rejection has no remedy.

    `needs` are those of the attempt's pod. More edits than a person would make are no way.
    """
    if len(found.verdicts) > _MOST_EDITS:
        return
    options = [list(_remedies(each, found.node, attempt, needs)) for each in found.verdicts]
    for number, chosen in enumerate(product(*options)):
        if number == _MOST_PER_NODE:
            return
        if sum(map(len, chosen)) <= _MOST_EDITS:
            yield tuple({(each.kind, each.subject): each for some in chosen for each in some}.values())


def _remedies(verdict: Verdict, info: NodeInfo, attempt: Attempt, needs: NodeNeeds) -> Iterator[Edits]:
    """Yield alternative sets of edits against one rejection, the smallest first."""
    plugin = verdict.rejection.plugin
    if plugin == NODE_UNSCHEDULABLE:
        yield (edits.uncordon(info.name),)
    elif plugin == TAINT_TOLERATION:
        yield from _against_taints(info, needs)
    elif plugin == NODE_AFFINITY and info.node is not None:
        yield from _against_labels(verdict, info.node, needs)
    elif plugin == NODE_PORTS:
        yield from _against_ports(info, attempt)
    elif plugin == NODE_RESOURCES_FIT:
        short = list(islice(each_shortage(attempt.demand, info), _MOST_EDITS + 1))
        if len(short) <= _MOST_EDITS and all(
            each.resource != "pods" and each.allocatable > each.used for each in short
        ):
            yield tuple(edits.request(each.resource, each.requested, each.allocatable - each.used) for each in short)
    elif plugin == POD_TOPOLOGY_SPREAD:
        yield from _against_skew(verdict, info, attempt)
    elif plugin == INTER_POD_AFFINITY:
        yield from _against_terms(verdict, attempt)


def _against_taints(info: NodeInfo, needs: NodeNeeds) -> Iterator[Edits]:
    taints = needs.untolerated(info)
    if len(taints) > _MOST_EDITS or any(each.key in _OF_CONDITIONS for each in taints):
        return
    cordon = tuple(edits.uncordon(info.name) for each in taints if each.key == UNSCHEDULABLE)
    others = [each for each in taints if each.key != UNSCHEDULABLE]
    yield (*cordon, *map(edits.tolerate, others))
    if others:
        yield (*cordon, *(edits.untaint(info.name, each) for each in others))


def _against_labels(verdict: Verdict, node: core.Node, needs: NodeNeeds) -> Iterator[Edits]:
    if verdict.rejection == NOT_NAMED:
        yield (edits.drop_requirement("the names of nodes", 0, "", "", ()),)
        return
    unmet = needs.unmet(node)
    if len(unmet) > _MOST_EDITS:
        return
    settable = all(
        each.operator in ("In", "Exists") and each.key and not each.key.startswith(_NO_LABELS_TO_SET) for each in unmet
    )
    if settable:
        name = node.metadata.name
        yield tuple(edits.label(name, each.key, each.values[0] if each.values else "true") for each in unmet)
    yield tuple(
        edits.drop_selector(each.key, each.values[0])
        if each.term < 0
        else edits.drop_requirement(each.text, each.term, each.key, each.operator, each.values)
        for each in unmet
    )


def _against_ports(info: NodeInfo, attempt: Attempt) -> Iterator[Edits]:
    found: list[Edit] = []
    taken = {number for _, _, number in (*info.ports, *attempt.demand.ports)}
    for address, protocol, port in attempt.demand.ports:
        if not conflict([(address, protocol, port)], info.ports):
            continue
        if len(found) == _MOST_EDITS:
            return
        candidates = range(port + 1, min(port + _PORTS_TRIED, _HIGHEST_PORT))
        free = next((each for each in candidates if each not in taken), None)
        if free is None:
            return
        found.append(edits.other_port(port, protocol, free))
    yield tuple(found)


def _against_skew(verdict: Verdict, info: NodeInfo, attempt: Attempt) -> Iterator[Edits]:
    rule, topology = verdict.rule, verdict.topology
    if not isinstance(rule, SpreadConstraint) or topology is None:
        return
    constraints = attempt.pod.spec.topology_spread_constraints
    hard = [index for index, each in enumerate(constraints) if each.when_unsatisfiable == "DoNotSchedule"]
    index = hard[list(attempt.demand.spreading.hard).index(rule)]
    numbers = topology.spread_on(info)
    if verdict.rejection != LABEL_MISSING and numbers is not None:
        skew = numbers[0] + rule.counts_itself - numbers[1]
        yield (edits.raise_skew(rule.topology_key, index, skew),)
    yield (edits.soften_spread(rule.topology_key, index),)


def _against_terms(verdict: Verdict, attempt: Attempt) -> Iterator[Edits]:
    if verdict.rejection == NOT_NEAR:
        yield (edits.drop_pod_term("podAffinity", -1, _selected(attempt.demand.terms.required_affinity)),)
    elif isinstance(verdict.rule, AffinityTerm) and verdict.rejection != KEPT_AWAY:
        index = list(attempt.demand.terms.required_anti_affinity).index(verdict.rule)
        yield (edits.drop_pod_term("podAntiAffinity", index, _selected([verdict.rule])),)


def _selected(terms: Sequence[AffinityTerm]) -> str:
    return ", ".join(str(each.pods.selector) or "any pod" for each in terms)
