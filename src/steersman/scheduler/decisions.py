"""The last decisions of the scheduler about each pod, kept in memory within bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct, structs

from steersman.api.core import v1 as core
from steersman.machinery.values.times import format_micro_time, unix_now
from steersman.scheduler.cycle import NoPlacement
from steersman.work.bounded_cache import BoundedCache

PATH: Final = "/debug/scheduling"
"""Path of the server below which the decisions are found by namespace and name."""
MOST_PODS: Final = 10_000
"""Most pods with kept decisions; those decided least recently are dropped first."""
MOST_BYTES: Final = 16 << 20
"""Most bytes of all decisions, as estimated."""
MOST_DECISIONS: Final = 5
"""Most decisions of one pod; equal decisions in a row count as one."""
LINGER: Final = 600.0
"""Seconds for which the decisions of a deleted or terminated pod are kept."""
SCHEDULED: Final = "Scheduled"
"""Result of a decision for a node."""
_MOST_REASONS: Final = 32
_MOST_VICTIMS: Final = 20
_LONGEST_REASON: Final = 256
_LONGEST_MESSAGE: Final = 2_048
_POD_BYTES: Final = 512
"""Estimate for a pod with one decision for a node."""
_DECISION_BYTES: Final = 256
_PART_BYTES: Final = 128


class RejectedNodes(Struct, frozen=True, rename="camel"):
    """Number of nodes that a plugin rejected for a reason."""

    plugin: str
    reason: str
    nodes: int


class TriedPreemption(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Preemption that was begun, or the reason why there was none."""

    node: str = ""
    victims: tuple[str, ...] = ()
    """Pods to be deleted, as NAMESPACE/NAME, at most 20."""
    more_victims: int = 0
    """Number of further victims."""
    refused: str = ""


class Decision(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Decision about a pod, as JSON has it."""

    result: str
    """`Scheduled`, or the reason of the pod's condition: `Unschedulable`, `SchedulerError`."""
    time: str = ""
    first_time: str = ""
    """Time of the first of several equal decisions."""
    count: int = 1
    """Equal decisions in a row."""
    node: str = ""
    """Node that the pod was given."""
    message: str = ""
    """Message of the scheduler, cut if it is long."""
    rejections: tuple[RejectedNodes, ...] = ()
    """Rejections by plugin and reason, those of most nodes first, at most 32."""
    preemption: TriedPreemption | None = None


class DecisionList(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Decisions about one pod, the oldest first."""

    namespace: str
    name: str
    decisions: tuple[Decision, ...] = ()


class _Made(Struct):
    """Decision with its times in seconds since 1970."""

    first: float
    last: float
    decision: Decision | str
    """Name of the node if the pod has been given one."""
    count: int = 1


class _OfPod:
    """Decisions about one pod."""

    __slots__ = ("gone", "made", "uid")

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.made: list[_Made] = []
        self.gone = 0.0
        """Time at which the pod was deleted or terminated, 0 while it is there."""


class Decisions:
    """The last decisions about pods."""

    def __init__(self, most_pods: int = MOST_PODS, most_bytes: int = MOST_BYTES) -> None:
        self._pods: BoundedCache[tuple[str, str], _OfPod] = BoundedCache(most_pods, most_bytes)

    @property
    def pods(self) -> int:
        """Number of pods with kept decisions."""
        return self._pods.count

    @property
    def weight(self) -> int:
        """Estimate of the bytes of all kept decisions."""
        return self._pods.weight

    def placed(self, pod: core.Pod, node: str) -> None:
        """Keep the decision for a node."""
        self._keep(pod, node)

    def failed(self, pod: core.Pod, unplaced: NoPlacement, reason: str) -> None:
        """Keep the decision that a pod gets no node; `reason` is that of the pod's condition."""
        self._keep(pod, _decision(unplaced, reason))

    def gone(self, pod: core.Pod) -> None:
        """Take note that a pod was deleted or terminated."""
        metadata = pod.metadata
        found = self._pods[metadata.namespace, metadata.name]
        if found is not None and found.uid == metadata.uid:
            found.gone = unix_now()

    def of(self, namespace: str, name: str) -> Sequence[Decision]:
        """Return the kept decisions about a pod, the oldest first; none if no decision is kept."""
        found = self._pods[namespace, name]
        if found is None or (found.gone and unix_now() - found.gone > LINGER):
            return ()
        return [_shown(each) for each in found.made]

    def _keep(self, pod: core.Pod, decision: Decision | str) -> None:
        metadata = pod.metadata
        key = metadata.namespace, metadata.name
        now = unix_now()
        found = self._pods[key]
        if found is None or found.uid != metadata.uid:
            found = _OfPod(metadata.uid)
        made = found.made
        if made and made[-1].decision == decision:
            made[-1].last = now
            made[-1].count += 1
        else:
            made.append(_Made(now, now, decision))
            del made[:-MOST_DECISIONS]
        self._pods.keep(key, found, _POD_BYTES if len(made) == 1 and isinstance(decision, str) else _weight(made))


def _weight(made: Sequence[_Made]) -> int:
    """Return an estimate of the bytes of the decisions about a pod."""
    weight = _POD_BYTES
    for each in made:
        weight += _DECISION_BYTES
        decision = each.decision
        if isinstance(decision, str):
            continue
        weight += len(decision.message)
        weight += sum(_PART_BYTES + len(part.reason) for part in decision.rejections)
        if decision.preemption is not None:
            weight += len(decision.preemption.refused)
            weight += sum(_PART_BYTES + len(victim) for victim in decision.preemption.victims)
    return weight


def _shown(made: _Made) -> Decision:
    decision = made.decision
    if isinstance(decision, str):
        decision = Decision(SCHEDULED, node=decision)
    first = _time_text(made.first) if made.count > 1 else ""
    return structs.replace(decision, time=_time_text(made.last), first_time=first, count=made.count)


def _time_text(seconds: float) -> str:
    return format_micro_time(datetime.fromtimestamp(seconds, UTC))


def _decision(unplaced: NoPlacement, reason: str) -> Decision:
    return Decision(
        reason,
        message=_cut(unplaced.message, _LONGEST_MESSAGE),
        rejections=_rejections(unplaced),
        preemption=_preemption(unplaced),
    )


def _rejections(unplaced: NoPlacement) -> tuple[RejectedNodes, ...]:
    if unplaced.diagnosis is None:
        return ()
    counts: Counter[tuple[str, str]] = Counter()
    for plugin, reason, nodes in unplaced.diagnosis.reasons():
        counts[plugin, reason] += nodes
    most = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:_MOST_REASONS]
    return tuple(RejectedNodes(plugin, _cut(reason, _LONGEST_REASON), nodes) for (plugin, reason), nodes in most)


def _preemption(unplaced: NoPlacement) -> TriedPreemption | None:
    room = unplaced.preemption
    if room is not None:
        pods = [each.pod.metadata for each in room.victims[:_MOST_VICTIMS]]
        names = tuple(f"{each.namespace}/{each.name}" for each in pods)
        return TriedPreemption(room.node.name, names, len(room.victims) - len(names))
    refused = "" if unplaced.diagnosis is None else unplaced.diagnosis.after.partition("preemption: ")[2]
    return TriedPreemption(refused=_cut(refused, _LONGEST_MESSAGE)) if refused else None


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}..."
