"""Reasons why a node does not take a pod, in words and numbers, from the verdicts of the scheduler's plugins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from steersman.api.core import v1 as core
from steersman.machinery.built_in.node_affinity import Matcher, node_selector
from steersman.machinery.built_in.volumes import claim_name
from steersman.scheduler.cycle import NOT_NAMED
from steersman.scheduler.demand.affinity_terms import AffinityTerm
from steersman.scheduler.demand.ports import ANY, HostPort, conflict
from steersman.scheduler.demand.spread import SpreadConstraint
from steersman.scheduler.demand.taints import forbidding
from steersman.scheduler.devices.pod_claims import ELSEWHERE, NOT_ALL
from steersman.scheduler.fit.node_fit import each_shortage
from steersman.scheduler.fit.status import (
    INTER_POD_AFFINITY,
    NODE_AFFINITY,
    NODE_NAME,
    NODE_PORTS,
    NODE_RESOURCES_FIT,
    NODE_UNSCHEDULABLE,
    POD_TOPOLOGY_SPREAD,
    TAINT_TOLERATION,
)
from steersman.scheduler.fit.topology import KEPT_AWAY, LABEL_MISSING, NOT_NEAR
from steersman.scheduler.inquiry.verdicts import Examination, NodeVerdicts, Verdict
from steersman.scheduler.state.cluster import ClusterState
from steersman.scheduler.state.node_info import NodeInfo, PodInfo
from steersman.scheduler.volumes.pod_volumes import IN_USE, NO_SPACE, NOT_ALLOWED, NOT_FOUND, OTHER_ZONE, TOO_MANY

MOST_TAINTS: Final = 20
"""Taints of one node that are told."""
_MOST_PODS: Final = 5
"""Pods that a reason names."""
_MOST_OF_KIND: Final = 20
"""Reasons of one node by the same plugin."""
_MOST_REQUIREMENTS: Final = 200
_MOST_VALUES: Final = 20
"""Values of a requirement in a text."""


_WORDS: Final = {
    NOT_FOUND: "no volume can be bound or made there for claim {claims}",
    NOT_ALLOWED: "the volume of claim {claims} is not reachable from there (its node affinity)",
    NO_SPACE: "the driver has no space left there for claim {claims}",
    OTHER_ZONE.reasons[0]: "the volume of claim {claims} is in another zone",
    TOO_MANY.reasons[0]: "the driver of claim {claims} attaches no more volumes there (limit of its CSINode)",
    IN_USE.reasons[0]: "claim {claims} is ReadWriteOncePod and in use by another pod",
    NOT_ALL.reasons[0]: "no free devices there for claim {devices}",
    ELSEWHERE.reasons[0]: "the devices of claim {devices} are elsewhere",
}
"""Words for reasons of upstream's that name no object."""


class Reason(Struct, frozen=True):
    """Reason why a node does not take a pod. Reasons with the same text are the same to a reader."""

    plugin: str
    text: str
    upstream: str
    """Text of the scheduler's message."""
    resource: str = ""
    """Resource of which too little is left; the amounts are thousandths of CPU, bytes, or the resource's own units."""
    requested: int = 0
    free: int = 0
    allocatable: int = 0
    note: str = ""
    """Facts of this node alone."""
    pods: tuple[str, ...] = ()
    """Some of the pods that are in the way, as NAMESPACE/NAME."""


class Reasons:
    """Reasons of the nodes of one examination."""

    def __init__(self, found: Examination, cluster: ClusterState) -> None:
        self._attempt = found.attempt
        self._cluster = cluster
        self._domains: dict[str, dict[str, list[NodeInfo]]] = {}
        self._held: dict[tuple[int, bool, str], Sequence[PodInfo]] = {}
        """Some of the pods that a rule is about, by the rule, its kind and the domain."""
        self._needs = NodeNeeds(self._attempt.pod.spec)
        self._of_plugin: dict[str, Callable[[Verdict, NodeInfo], Iterator[Reason]]] = {
            NODE_UNSCHEDULABLE: self._unschedulable,
            NODE_NAME: self._name,
            TAINT_TOLERATION: self._taints,
            NODE_AFFINITY: self._affinity,
            NODE_PORTS: self._ports,
            NODE_RESOURCES_FIT: self._resources,
            POD_TOPOLOGY_SPREAD: self._spread,
            INTER_POD_AFFINITY: self._pods_near,
        }

    def of_node(self, found: NodeVerdicts) -> Sequence[Reason]:
        """Return the reasons of a node, in the order of the plugins."""
        return [reason for each in found.verdicts for reason in self.of_verdict(each, found.node)]

    def of_verdict(self, verdict: Verdict, info: NodeInfo) -> Sequence[Reason]:
        """Return the reasons of one verdict: several if several taints or resources are in the way."""
        of_plugin = self._of_plugin.get(verdict.rejection.plugin)
        found = list(islice(of_plugin(verdict, info), _MOST_OF_KIND)) if of_plugin is not None else []
        return found or [self._in_words(verdict, reason) for reason in verdict.rejection.reasons]

    def _in_words(self, verdict: Verdict, upstream: str) -> Reason:
        """Return one of upstream's reasons in words that name the claims of the pod."""
        pod = self._attempt.pod
        claims = [name for each in pod.spec.volumes if (name := claim_name(pod, each))]
        devices = [each.name for each in pod.spec.resource_claims]
        text = _WORDS.get(upstream, upstream.removeprefix("node(s) "))
        text = text.format(claims=", ".join(claims), devices=", ".join(devices)) if upstream in _WORDS else text
        return Reason(verdict.rejection.plugin, text, upstream)

    def _unschedulable(self, verdict: Verdict, info: NodeInfo) -> Iterator[Reason]:
        yield _reason(verdict, "cordoned (spec.unschedulable)")

    def _name(self, verdict: Verdict, info: NodeInfo) -> Iterator[Reason]:
        yield _reason(verdict, f"not the node {self._attempt.demand.node_name} of spec.nodeName")

    def _taints(self, verdict: Verdict, info: NodeInfo) -> Iterator[Reason]:
        for each in self._needs.untolerated(info):
            yield _reason(verdict, f"taint {taint_text(each)} is not tolerated")

    def _affinity(self, verdict: Verdict, info: NodeInfo) -> Iterator[Reason]:
        if verdict.rejection == NOT_NAMED:
            names = ", ".join(sorted(self._attempt.demand.named_nodes or ())[:3])
            yield _reason(verdict, f"not a node that the node affinity names ({names})")
        elif info.node is not None:
            unmet = self._needs.unmet(info.node)
            for each in unmet:
                yield _reason(verdict, f"{each.place} {each.text} does not match")

    def _ports(self, verdict: Verdict, info: NodeInfo) -> Iterator[Reason]:
        for port in self._attempt.demand.ports:
            users = [each for each in info.pods.values() if conflict([port], each.ports)]
            if users:
                yield _reason(verdict, f"host port {port_text(port)} is in use", pods=users)

    def _resources(self, verdict: Verdict, info: NodeInfo) -> Iterator[Reason]:
        for each in each_shortage(self._attempt.demand, info):
            name, text = each.resource, f"insufficient {each.resource}"
            if name == "pods":
                text = f"full: room for {each.allocatable} pods"
            elif not each.allocatable:
                text = f"no {name} at all"
            elif each.requested > each.allocatable:
                text = f"too small: insufficient {name} even if it were empty"
            upstream = "Too many pods" if name == "pods" else f"Insufficient {name}"
            free = each.allocatable - each.used
            yield Reason(verdict.rejection.plugin, text, upstream, name, each.requested, free, each.allocatable)

    def _spread(self, verdict: Verdict, info: NodeInfo) -> Iterator[Reason]:
        rule, topology = verdict.rule, verdict.topology
        if not isinstance(rule, SpreadConstraint) or topology is None or info.node is None:
            return
        if verdict.rejection == LABEL_MISSING:
            yield _reason(verdict, f"topology spread over {rule.topology_key}: the node has no such label")
            return
        numbers = topology.spread_on(info)
        text = f"topology spread over {rule.topology_key}: more than maxSkew {rule.max_skew}"
        if numbers is None:
            yield _reason(verdict, text)
            return
        domain = info.node.metadata.labels.get(rule.topology_key)
        would = numbers[0] + rule.counts_itself
        yield _reason(verdict, text, note=f"{domain} would have {would} pods, the fewest are {numbers[1]}")

    def _pods_near(self, verdict: Verdict, info: NodeInfo) -> Iterator[Reason]:
        rule = verdict.rule
        if verdict.rejection == NOT_NEAR and not isinstance(rule, AffinityTerm | SpreadConstraint | None):
            terms = " and ".join(term_text(each) for each in rule)
            yield _reason(verdict, f"pod affinity: no pod near that matches {terms}")
        elif isinstance(rule, AffinityTerm):
            domain = "" if info.node is None else info.node.metadata.labels.get(rule.topology_key, "")
            key = (id(rule), verdict.rejection == KEPT_AWAY, domain)
            holders = self._held.get(key)
            if holders is None:
                holders = self._held[key] = list(islice(self._holders(verdict, rule, info), _MOST_PODS))
            if verdict.rejection == KEPT_AWAY:
                text = f"anti-affinity of other pods to this pod within the same {rule.topology_key}"
            else:
                text = f"pod anti-affinity: a pod that matches {term_text(rule)} is there"
            yield _reason(verdict, text, pods=holders)

    def _holders(self, verdict: Verdict, term: AffinityTerm, info: NodeInfo) -> Iterator[PodInfo]:
        """Yield the pods in the node's domain that an anti-affinity term of the pod selects, or that have the term."""
        for node in self._in_domain(term.topology_key, info):
            for each in node.pods.values():
                metadata = each.pod.metadata
                around = self._cluster.labels_of(metadata.namespace)
                if verdict.rejection == KEPT_AWAY:
                    is_in_way = term in each.terms.required_anti_affinity
                else:
                    is_in_way = term.pods.matches(metadata.namespace, metadata.labels, around)
                if is_in_way:
                    yield each

    def _in_domain(self, key: str, info: NodeInfo) -> Sequence[NodeInfo]:
        if key not in self._domains:
            domains: dict[str, list[NodeInfo]] = {}
            for each in self._cluster.nodes:
                if each.node is not None and key in each.node.metadata.labels:
                    domains.setdefault(each.node.metadata.labels[key], []).append(each)
            self._domains[key] = domains
        return self._domains[key].get("" if info.node is None else info.node.metadata.labels.get(key, ""), ())


class Unmet(Struct, frozen=True):
    """Requirement on a node's labels that the node does not meet."""

    place: str
    """"node selector" or "node affinity"."""
    text: str
    key: str
    operator: str
    values: tuple[str, ...]
    term: int = -1
    """Index of the term of the required node affinity; -1 for the node selector."""


class NodeNeeds:
    """Requirements of a pod on its node: node selector, required node affinity, tolerations.

    They are prepared once, at most 200 requirements on labels.
    """

    def __init__(self, spec: core.PodSpec) -> None:
        self._tolerations: dict[str, list[core.Toleration]] = {}
        """Tolerations by key; those with the key "" are for all taints."""
        for toleration in spec.tolerations:
            self._tolerations.setdefault(toleration.key, []).append(toleration)
        self._selector = [
            Unmet("node selector", f"{key}={value}", key, "In", (value,))
            for key, value in islice(spec.node_selector.items(), _MOST_REQUIREMENTS)
        ]
        affinity = None if spec.affinity is None else spec.affinity.node_affinity
        required = None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
        self._terms: list[list[tuple[Unmet, Matcher]]] = []
        left = _MOST_REQUIREMENTS
        for number, term in enumerate(() if required is None else required.node_selector_terms or ()):
            if left > 0:
                self._terms.append(list(islice(_requirements(number, term), left)))
                left -= sum(len(need.values) or 1 for need, _ in self._terms[-1]) or 1

    def unmet(self, node: core.Node) -> Sequence[Unmet]:
        """Return the requirements that a node does not meet; of several affinity terms, those of the nearest."""
        name, labels = node.metadata.name, node.metadata.labels
        found = [each for each in self._selector if labels.get(each.key) != each.values[0]]
        each_unmet = ([need for need, matches in term if not matches(name, labels)] for term in self._terms)
        return [*found, *min(each_unmet, key=len, default=[])]

    def untolerated(self, info: NodeInfo) -> Sequence[core.Taint]:
        """Return the taints of a node that keep the pod away, at most 20."""
        taints = () if info.node is None else info.node.spec.taints
        found = (each for each in taints if forbidding(self._for(each.key), [each]) is not None)
        return list(islice(found, MOST_TAINTS))

    def _for(self, key: str) -> Sequence[core.Toleration]:
        return [*self._tolerations.get(key, ()), *(self._tolerations.get("", ()) if key else ())]


def _requirements(number: int, term: core.NodeSelectorTerm) -> Iterator[tuple[Unmet, Matcher]]:
    """Yield the requirements of a term, but for those that have so many values that nobody reads them."""
    for each in term.match_expressions:
        if len(each.values or ()) > _MOST_REQUIREMENTS:
            continue
        alone = core.NodeSelector(node_selector_terms=[core.NodeSelectorTerm(match_expressions=[each])])
        values = tuple(each.values or ())
        text = " ".join((each.key, each.operator, _values_text(values))).rstrip(" ")
        yield Unmet("node affinity", text, each.key, each.operator, values, number), node_selector(alone)
    for field in term.match_fields:
        alone = core.NodeSelector(node_selector_terms=[core.NodeSelectorTerm(match_fields=[field])])
        text = f"{field.key} {field.operator} {_values_text(field.values or ())}"
        yield Unmet("node affinity", text, "", field.operator, (), number), node_selector(alone)


def _values_text(values: Sequence[str]) -> str:
    more = f" and {len(values) - _MOST_VALUES} more" if len(values) > _MOST_VALUES else ""
    return f"{','.join(values[:_MOST_VALUES])}{more}"


def taint_text(taint: core.Taint) -> str:
    """Return a taint as kubectl has it: KEY=VALUE:EFFECT."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def port_text(port: HostPort) -> str:
    """Return a host port as ADDRESS:PORT/PROTOCOL, without the address if it is any."""
    address, protocol, number = port
    return f"{number}/{protocol}" if address == ANY else f"{address}:{number}/{protocol}"


def term_text(term: AffinityTerm) -> str:
    """Return the pods that an affinity term selects, and its topology key."""
    return f"{str(term.pods.selector) or 'any label'} within the same {term.topology_key}"


def _reason(verdict: Verdict, text: str, *, note: str = "", pods: Iterable[PodInfo] = ()) -> Reason:
    some = islice(pods, _MOST_PODS)
    names = tuple(f"{each.pod.metadata.namespace}/{each.pod.metadata.name}" for each in some)
    return Reason(verdict.rejection.plugin, text, verdict.rejection.reasons[0], note=note, pods=names)
