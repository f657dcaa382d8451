"""Pods without a node: the verdicts on all nodes, preemption, and the least changes that would place the pod."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec import Struct

from steersman.api.core import v1 as core
from steersman.api.scheduling.v1 import PriorityClass
from steersman.client.api_resource import APIResource
from steersman.client.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, PRIORITY_CLASSES
from steersman.explain.explainer import run_check
from steersman.explain.finding import (
    Evidence,
    Finding,
    Reference,
    Severity,
    Suggestion,
    at_condition,
    at_event,
    at_field,
    reference,
)
from steersman.explain.pods.edits import CHANGEABLE, Edit
from steersman.explain.pods.groups import Group, grouped
from steersman.explain.pods.merge_difference import merge_difference
from steersman.explain.pods.reasons import Reasons
from steersman.explain.pods.suggestions import Placed, Trials
from steersman.explain.pods.world_simulation import simulation_of
from steersman.explain.volume_claims import VOLUME_CLAIM
from steersman.explain.warnings import uid_of
from steersman.explain.world import Unreadable, World
from steersman.machinery.built_in.pod_state import is_ready, is_terminal
from steersman.machinery.built_in.volumes import claim_name
from steersman.machinery.codec.serializer import encode_in_order, to_plain
from steersman.machinery.go.strings import to_lower
from steersman.machinery.selectors.labels import SelectorError
from steersman.machinery.values.conditions import find_condition
from steersman.scheduler.cycle import NoPlacement, Placement
from steersman.scheduler.inquiry.simulation import Simulation
from steersman.scheduler.inquiry.verdicts import Examination, examine

DEFAULT_SCHEDULER: Final = "default-scheduler"
_MOST_GROUPS: Final = 6
"""Groups of nodes in a message."""
_BEST: Final = 5
"""Nodes whose scores are listed."""


class Change(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Change of one object."""

    object: Reference
    patch: Any = None
    """Merge patch."""
    delete: bool = False
    create: Any = None
    """Object to be created."""


class Preemption(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Preemption that the scheduler would do, or the reason why it does none."""

    node: str = ""
    victims: tuple[Reference, ...] = ()
    refused: str = ""


class Way(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Changes that place the pod, and the node that it would get."""

    text: str
    node: str
    changes: tuple[Change, ...]


class NodeScore(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Score of a node on which the pod fits: weighted, by plugin, and in all."""

    node: str
    total: int
    by_plugin: dict[str, int]


class PlacementDetails(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Details of a finding about the node of a pod."""

    nodes: int
    """Number of nodes."""
    feasible: int = 0
    """Number of nodes on which the pod fits."""
    message: str = ""
    """Message that the scheduler has for the pod now; "" if the pod fits."""
    groups: tuple[Group, ...] = ()
    preemption: Preemption | None = None
    ways: tuple[Way, ...] = ()
    """Ways to place the pod, the smallest change first; each has been tried on a copy of the cluster."""
    scores: tuple[NodeScore, ...] = ()
    """Best nodes on which the pod fits, the best first."""
    unread: tuple[str, ...] = ()
    """Resources that could not be read, and count as if they had no objects."""


async def check_placement(world: World, resource: APIResource[Any], pod: core.Pod) -> AsyncIterator[Finding]:
    """Yield findings about the missing node of a pod."""
    if pod.spec.node_name or is_terminal(pod) or pod.metadata.deletion_timestamp:
        return
    subject = reference(resource, pod)
    evidence = await _evidence(world, subject, pod)
    name = pod.spec.scheduler_name
    if name not in ("", DEFAULT_SCHEDULER):
        text = f"is decided by the scheduler {name}; what follows is the opinion of {DEFAULT_SCHEDULER}"
        yield Finding(Severity.NOTE, "OtherScheduler", text, (at_field(subject, ".spec.schedulerName", name),))
    gates = [each.name for each in pod.spec.scheduling_gates]
    try:
        placing = await Placing.of(world, pod)
    except Unreadable as error:
        for each in _from_server(subject, pod, evidence):
            yield each
        yield Finding(Severity.UNKNOWN, "Unreadable", f"the nodes could not be compared: {error}")
        return
    except SelectorError as error:
        yield Finding(Severity.ERROR, "Unschedulable", f"a selector of the pod is invalid: {error}", evidence)
        return
    if gates:
        yield await placing.gated(subject, gates, evidence)
    elif placing.is_feasible:
        yield placing.waiting(subject, evidence)
    else:
        yield await placing.unschedulable(evidence, await _because(world, pod))


class Placing:
    """Comparison of a pod with the nodes of a world, and the findings that follow from it."""

    def __init__(
        self,
        simulation: Simulation,
        pod: core.Pod,
        found: Examination | NoPlacement,
        decided: Placement | NoPlacement,
        classes: Sequence[PriorityClass] = (),
        unread: tuple[str, ...] = (),
    ) -> None:
        self._simulation = simulation
        self._pod = pod
        self._found = found
        self._decided = decided
        self._classes = classes
        self._unread = unread

    @classmethod
    async def of(cls, world: World, pod: core.Pod) -> Placing:
        """Compare a pod with all nodes. Raises Unreadable, Unreachable, SelectorError."""
        known = await simulation_of(world)
        try:
            classes: Sequence[PriorityClass] = await world.list(PRIORITY_CLASSES)
        except Unreadable:
            classes = ()
        return await cls.on(known.simulation, pod, classes, known.unread)

    @classmethod
    async def on(
        cls,
        simulation: Simulation,
        pod: core.Pod,
        classes: Sequence[PriorityClass] = (),
        unread: tuple[str, ...] = (),
    ) -> Placing:
        """Compare a pod with the nodes of a simulation. Raises SelectorError."""
        examination = await examine(simulation.model, pod)
        return cls(simulation, pod, examination, await simulation.decide(pod), classes, unread)

    @property
    def is_feasible(self) -> bool:
        """True if the pod fits on a node."""
        return isinstance(self._decided, Placement)

    @cached_property
    def groups(self) -> Sequence[Group]:
        """Groups of the nodes that reject the pod."""
        if isinstance(self._found, NoPlacement):
            return ()
        reasons = Reasons(self._found, self._simulation.model.cluster)
        return grouped((each.node.name, reasons.of_node(each)) for each in self._found.nodes if each.verdicts)

    def summary(self) -> str:
        """Return the reasons of all nodes in one sentence."""
        if isinstance(self._found, NoPlacement):
            return _reason_before(self._found.message)
        groups = self.groups
        text = "; ".join(map(str, groups[:_MOST_GROUPS]))
        left = sum(each.count for each in groups[_MOST_GROUPS:])
        return f"{text}; {left} nodes: other combinations of reasons" if left else text

    async def details(self) -> tuple[PlacementDetails, tuple[Suggestion, ...]]:
        """Return the details of a pod that fits on no node, or has gates, and the suggestions."""
        examination = self._found if isinstance(self._found, Examination) else None
        ways = await Trials(self._simulation, self._pod, examination, self._classes).best()
        message = self._decided.message if isinstance(self._decided, NoPlacement) else ""
        details = PlacementDetails(
            self._simulation.model.cluster.size,
            0 if examination is None else examination.feasible,
            message,
            tuple(self.groups),
            self._preemption(),
            tuple(_way(self._pod, each) for each in ways),
            scores=self.scores(),
            unread=self._unread,
        )
        return details, tuple(_suggestion(self._pod, each) for each in ways)

    def scores(self) -> tuple[NodeScore, ...]:
        """Return the scores of the best nodes on which the pod fits."""
        if isinstance(self._found, NoPlacement):
            return ()
        found = [NodeScore(name, sum(each.values()), each) for name, each in self._found.scores().items()]
        return tuple(sorted(found, key=lambda each: (-each.total, each.node))[:_BEST])

    def _preemption(self) -> Preemption | None:
        if not isinstance(self._decided, NoPlacement):
            return None
        room = self._decided.preemption
        if room is not None:
            return Preemption(room.node.name, tuple(_pod_reference(info.pod) for info in room.victims))
        _, _, refused = self._decided.message.partition("preemption: ")
        return Preemption(refused=refused) if refused else None

    def _preemption_text(self) -> str:
        preemption = self._preemption()
        if preemption is None:
            return ""
        if preemption.victims:
            names = " and ".join(f"pod {each.namespace}/{each.name}" for each in preemption.victims[:_MOST_GROUPS])
            return f". The scheduler preempts {names} on node {preemption.node}"
        if "not eligible" in preemption.refused:
            return f". Preemption: {preemption.refused.rstrip('.')}"
        return ". Preemption does not help" if preemption.refused and (self._pod.spec.priority or 0) > 0 else ""

    async def unschedulable(self, evidence: Sequence[Evidence], because: Sequence[Finding]) -> Finding:
        """Return the finding about a pod that fits on no node."""
        details, suggestions = await self.details()
        text = self.summary()
        if details.nodes and isinstance(self._found, Examination):
            size = "the only node" if details.nodes == 1 else f"any of {details.nodes} nodes"
            text = f"does not fit on {size}. {text}{self._preemption_text()}"
        elif details.nodes:
            text = f"is rejected before any node is looked at: {text}"
        return Finding(
            Severity.ERROR,
            "Unschedulable",
            text,
            tuple(evidence),
            suggestions,
            tuple(because),
            msgspec.to_builtins(details),
        )

    async def gated(self, subject: Reference, gates: Sequence[str], evidence: Sequence[Evidence]) -> Finding:
        """Return the finding about a pod with scheduling gates."""
        details, suggestions = await self.details()
        text = f"waits until its scheduling gates are removed: {', '.join(gates)}"
        if self.is_feasible:
            text += f". Without them it fits on {details.feasible} of {details.nodes} nodes"
        elif details.nodes:
            text += f". Without them it would stay pending: {self.summary()}"
        shown = (at_field(subject, ".spec.schedulingGates", gates), *evidence)
        return Finding(
            Severity.ERROR, "SchedulingGated", text, shown, suggestions, details=msgspec.to_builtins(details)
        )

    def waiting(self, subject: Reference, evidence: Sequence[Evidence]) -> Finding:
        """Return the finding about a pod that fits on a node and has none yet."""
        details = self.feasible_details()
        nominated = self._pod.status.nominated_node_name
        text = f"fits on {details.feasible} of {details.nodes} nodes now, and has no node yet"
        if nominated:
            text += f"; it is nominated for node {nominated}"
        else:
            text += (
                ": the scheduler is not running or has not tried it again, which it does after a back-off of at most "
                "10 s, and after 5 minutes where no event tells it that the pod may fit"
            )
        return Finding(Severity.WARNING, "NotDecided", text, tuple(evidence), details=msgspec.to_builtins(details))

    def feasible_details(self) -> PlacementDetails:
        """Return the details of a pod that fits on a node."""
        feasible = self._found.feasible if isinstance(self._found, Examination) else 0
        size = self._simulation.model.cluster.size
        return PlacementDetails(size, feasible, groups=tuple(self.groups), scores=self.scores(), unread=self._unread)


async def check_scores(world: World, resource: APIResource[Any], pod: core.Pod) -> AsyncIterator[Finding]:
    """Yield a note about the node of a ready pod: its score and those of the best nodes, as of now."""
    if not pod.spec.node_name or not is_ready(pod) or pod.metadata.deletion_timestamp:
        return
    try:
        simulation = (await simulation_of(world)).simulation
    except Unreadable:
        return
    free = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
    with simulation.hypothetical(without=[pod]):
        try:
            placing = await Placing.on(simulation, free)
        except SelectorError:
            return
        details = placing.feasible_details()
    subject = reference(resource, pod)
    own = next((each for each in details.scores if each.node == pod.spec.node_name), None)
    text = f"is on node {pod.spec.node_name}; decided again now, it would fit on {details.feasible} of {details.nodes}"
    if details.scores:
        best = details.scores[0]
        rank = f"its node has {own.total}" if own is not None else f"its node is not among the best {_BEST}"
        text += f" nodes, the best is {best.node} with a score of {best.total}, {rank}"
    else:
        text += " nodes"
    evidence = (at_field(subject, ".spec.nodeName", pod.spec.node_name),)
    yield Finding(Severity.NOTE, "Placed", text, evidence, details=msgspec.to_builtins(details))


async def _because(world: World, pod: core.Pod) -> Sequence[Finding]:
    """Return the findings about claims of a pod that are not bound."""
    findings: list[Finding] = []
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if not name:
            continue
        claim = await world.get(PERSISTENT_VOLUME_CLAIMS, name, pod.metadata.namespace)
        if claim is not None and claim.status.phase != "Bound":
            for check in VOLUME_CLAIM.checks:
                findings += await run_check(world, PERSISTENT_VOLUME_CLAIMS, claim, check)
    return findings


async def _evidence(world: World, subject: Reference, pod: core.Pod) -> tuple[Evidence, ...]:
    """Return the condition PodScheduled, and the newest FailedScheduling event."""
    condition = find_condition(pod.status.conditions, "PodScheduled")
    evidence = () if condition is None else (at_condition(subject, condition),)
    try:
        events = await world.events(subject, uid_of(pod))
    except Unreadable:
        return evidence
    return (*evidence, *(at_event(each) for each in events if each.reason == "FailedScheduling"))


def _from_server(subject: Reference, pod: core.Pod, evidence: Sequence[Evidence]) -> Sequence[Finding]:
    """Return the finding that the server's own scheduler has written into the pod."""
    condition = find_condition(pod.status.conditions, "PodScheduled")
    if condition is None or condition.status == "True":
        text = "has no node, and no scheduler has written a reason into its status"
        return [Finding(Severity.WARNING, "NotDecided", text, (at_field(subject, ".spec.nodeName", None),))]
    text = condition.message or condition.reason
    return [Finding(Severity.ERROR, condition.reason or "Unschedulable", text, tuple(evidence))]


def _reason_before(message: str) -> str:
    """Return the reason in a message about a pod that was rejected before any node was checked."""
    _, _, reason = message.partition(" nodes are available: ")
    return (reason or message).removesuffix(". not found").partition(". no new claims to deallocate")[0]


def _pod_reference(pod: core.Pod) -> Reference:
    return reference(PODS, pod)


def _way(pod: core.Pod, placed: Placed) -> Way:
    return Way(str(placed), placed.node, tuple(_changes(pod, placed)))


def _changes(pod: core.Pod, placed: Placed) -> Sequence[Change]:
    changes: list[Change] = []
    patch = merge_difference(to_plain(pod), to_plain(placed.pod))
    if patch:
        changes.append(Change(_pod_reference(pod), patch=patch))
    for before, after in placed.nodes:
        changes.append(Change(reference(NODES, after), patch=merge_difference(to_plain(before), to_plain(after))))
    for each in placed.edits:
        changes += _changes_of_others(each)
    return changes


def _changes_of_others(edit: Edit) -> Sequence[Change]:
    changes = [Change(_pod_reference(each), delete=True) for each in edit.delete]
    if edit.create is not None:
        plain = {"apiVersion": "v1", "kind": "Node", **to_plain(edit.create)}
        changes.append(Change(reference(NODES, edit.create), create=plain))
    return changes


def _suggestion(pod: core.Pod, placed: Placed) -> Suggestion:
    commands = [each.command for each in placed.edits if each.command]
    patch = merge_difference(to_plain(pod), to_plain(placed.pod))
    where = f": it goes to node {placed.node}"
    changed = [each.kind for each in placed.edits if each.pod is not None]
    if changed and all(each in CHANGEABLE for each in changed):
        body = encode_in_order(patch).decode()
        metadata = pod.metadata
        line = ["kubectl", "patch", "pod", metadata.name, "-n", metadata.namespace, "--type=merge", "-p", body]
        commands.insert(0, shlex.join(line))
    elif changed:
        where += f" ({_place_of_change(pod)})"
    return Suggestion(f"{placed}{where}", " && ".join(commands), patch or None, verified=True)


def _place_of_change(pod: core.Pod) -> str:
    """Return the object in which a member of a pod has to be changed that cannot be changed in the pod itself."""
    owner = next((each for each in pod.metadata.owner_references if each.controller), None)
    if owner is None:
        return "in a new pod, as it cannot be changed in this one"
    return f"in the pod template of what owns {to_lower(owner.kind)}/{owner.name}"
