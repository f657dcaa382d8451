"""Scheduling queue of pods without a node: active, in back-off, or waiting for a change (backend/queue)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable
from enum import Enum
from heapq import heappop, heappush
from typing import Final

from msgspec import Struct, field

from steersman.api.core import v1 as core
from steersman.scheduler.fit.status import SCHEDULING_GATES
from steersman.scheduler.queue.cluster_events import ClusterEvent, pod_changes
from steersman.scheduler.queue.hints import NamespaceLabels, is_of_interest, may_help
from steersman.work import simulated_time
from steersman.work.backoff import Backoff

_BACKOFF: Final = Backoff(1.0, 10.0)
_WINDOW: Final = 1.0
"""Seconds of a window. Back-offs that end within one window end together, in the order of priorities."""
MAX_UNSCHEDULABLE: Final = 300.0
"""Seconds after which a pod is tried again without any event."""
_LEFTOVER_PERIOD: Final = 30.0
"""Seconds between two checks for pods that have waited so long."""
_MOST_EVENTS: Final = 1000
"""Events that are kept while a pod is decided."""


class QueuePart(Enum):
    """Part of the queue that a pod is in."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in flight"


class QueuedPod(Struct, eq=False):
    """Pod without a node, with the state of its attempts."""

    pod: core.Pod
    timestamp: float
    """Time on the event loop's clock at which it entered its part of the queue."""
    part: QueuePart | None = None
    entry: int = 0
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    backoff_expiration: float | None = None
    plugins: frozenset[str] = frozenset()
    """Plugins that rejected it."""
    pending_plugins: frozenset[str] = frozenset()
    """Plugins that wait for something in progress."""
    gating_plugin: str = ""
    """Plugin that keeps it from being tried; "" for none."""
    similarity_key: bytes = b""
    """Equal for pods that the same events may help."""

    @property
    def uid(self) -> str:
        """Return the UID of the pod."""
        return self.pod.metadata.uid

    @property
    def priority(self) -> int:
        """Return the priority of the pod, 0 if it has none."""
        return self.pod.spec.priority or 0


_Group = tuple[bytes, frozenset[str], frozenset[str]]
_HeapEntry = tuple[float, int, float, int, QueuedPod]


class _InFlight(Struct):
    """Pod that is being decided, with the events since its decision began."""

    queued: QueuedPod
    events: list[ClusterEvent] = field(default_factory=list)


class SchedulingQueue:
    """Queue of pods. Call `pop`, then `done` or `add_unschedulable`.

    `gate_of` returns the plugin that keeps a pod from being tried, or "" (PreEnqueue).
    """

    def __init__(self, labels_of: NamespaceLabels, gate_of: Callable[[core.Pod], str]) -> None:
        self._labels_of = labels_of
        self._gate_of = gate_of
        self._numbers = itertools.count(1)
        self._pods: dict[str, QueuedPod] = {}
        self._active: list[_HeapEntry] = []
        self._backoff: list[_HeapEntry] = []
        self._error_backoff: list[_HeapEntry] = []
        self._unschedulable: dict[_Group, dict[str, QueuedPod]] = {}
        self._in_flight: dict[str, _InFlight] = {}
        self._waiter: asyncio.Future[None] | None = None
        self._flush: simulated_time.Timer | None = None
        self._leftover: simulated_time.Timer | None = None

    def __len__(self) -> int:
        """Return the number of pods in all parts of the queue."""
        return len(self._pods)

    # Changes from informers

    def add(self, pod: core.Pod) -> None:
        """Add a new pod without a node."""
        queued = QueuedPod(pod, self._now())
        self._forget(pod.metadata.uid)
        self._pods[queued.uid] = queued
        self._activate(queued)

    def update(self, old: core.Pod, new: core.Pod) -> None:
        """Update a pod without a node."""
        queued = self._pods.get(new.metadata.uid)
        flight = self._in_flight.get(new.metadata.uid)
        if flight is not None:
            flight.events.extend(pod_changes(old, new))
            if queued is not None:
                queued.pod = new
            return
        if queued is None:
            self.add(new)
            return
        if queued.part is not QueuePart.UNSCHEDULABLE:
            queued.pod = new
            return
        self._remove_from_part(queued)
        queued.pod = new
        self._make_unschedulable(queued)
        for event in pod_changes(old, new):
            if self._requeue(queued, event):
                return

    def delete(self, uid: str) -> None:
        """Remove a pod that is deleted or has a node."""
        self._forget(uid)

    def move_all(self, event: ClusterEvent, *, only: Callable[[core.Pod], bool] | None = None) -> None:
        """Move the pods that an event may help back to the active or back-off queue.

        With `only`, just those pods for which it returns True.
        """
        if not is_of_interest(event):
            return
        for flight in self._in_flight.values():
            if len(flight.events) < _MOST_EVENTS:
                flight.events.append(event)
        for group in list(self._unschedulable.values()):
            sample = next(iter(group.values()))
            if not self._may_help_group(sample, event):
                continue
            for queued in list(group.values()):
                if only is None or only(queued.pod):
                    self._requeue(queued, event)

    def _may_help_group(self, queued: QueuedPod, event: ClusterEvent) -> bool:
        """Return True if an event may help a pod and all pods like it. Events of the pod itself go through `update`."""
        plugins = queued.plugins | queued.pending_plugins
        return not plugins or any(True for _ in may_help(plugins, queued.pod, event, self._labels_of))

    # Calls of the scheduler

    async def pop(self) -> QueuedPod:
        """Wait for the next pod and return it. If no pod is active, a pod in back-off is returned."""
        while True:
            queued = self._pop(self._active, QueuePart.ACTIVE) or self._pop(self._backoff, QueuePart.BACKOFF)
            if queued is not None:
                queued.part = QueuePart.IN_FLIGHT
                queued.attempts += 1
                self._in_flight[queued.uid] = _InFlight(queued)
                return queued
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def done(self, uid: str) -> None:
        """End the decision about a pod that got a node or is not decided any more."""
        self._in_flight.pop(uid, None)
        queued = self._pods.get(uid)
        if queued is not None and queued.part is QueuePart.IN_FLIGHT:
            del self._pods[uid]

    def add_unschedulable(self, queued: QueuedPod, pod: core.Pod) -> None:
        """Put a pod back that got no node; `pod` is its current state."""
        flight = self._in_flight.pop(queued.uid, None)
        if queued.part is not QueuePart.IN_FLIGHT:
            return
        queued.pod = pod
        self._pods[queued.uid] = queued
        rejectors = queued.plugins | queued.pending_plugins
        if rejectors:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1
        queued.timestamp = self._now()
        queued.backoff_expiration = None
        self._make_unschedulable(queued)
        if not rejectors:
            self._make_ready(queued, at_once=False)
            return
        events = flight.events if flight is not None else []
        if len(events) >= _MOST_EVENTS:  # later events were not kept
            self._make_ready(queued, at_once=False)
            return
        for event in events:
            if self._requeue(queued, event):
                return

    def activate(self, uid: str) -> None:
        """Make a waiting pod active."""
        queued = self._pods.get(uid)
        if queued is not None and queued.part in (QueuePart.BACKOFF, QueuePart.UNSCHEDULABLE):
            self._remove_from_part(queued)
            self._activate(queued)

    def close(self) -> None:
        """Cancel all timers."""
        for timer in (self._flush, self._leftover):
            if timer is not None:
                timer.cancel()

    # Parts of the queue

    def _requeue(self, queued: QueuedPod, event: ClusterEvent) -> bool:
        """Move a pod that an event may help. Return True if it moved."""
        rejectors = queued.plugins | queued.pending_plugins
        helped = set(may_help(rejectors, queued.pod, event, self._labels_of))
        if rejectors and not helped:
            return False
        return self._make_ready(queued, at_once=bool(helped & queued.pending_plugins))

    def _make_ready(self, queued: QueuedPod, *, at_once: bool) -> bool:
        gated = self._gate(queued)
        if gated:
            return False
        self._remove_from_part(queued)
        if not at_once and self._is_backing_off(queued):
            queued.part = QueuePart.BACKOFF
            is_error = not (queued.plugins or queued.pending_plugins)
            self._push(self._error_backoff if is_error else self._backoff, queued, self._expiration(queued))
            self._schedule_flush()
            if not is_error:
                self._wake()
        else:
            self._activate(queued)
        return True

    def _activate(self, queued: QueuedPod) -> None:
        if self._gate(queued):
            self._make_unschedulable(queued)
            return
        queued.part = QueuePart.ACTIVE
        self._push(self._active, queued, 0.0)
        self._wake()

    def _gate(self, queued: QueuedPod) -> bool:
        """Record the plugin that gates a pod, if any. Return True if there is one, so that the pod must not be tried now."""
        gate = SCHEDULING_GATES if queued.pod.spec.scheduling_gates else self._gate_of(queued.pod)
        queued.gating_plugin = gate
        if gate and gate not in queued.plugins:
            was_unschedulable = queued.part is QueuePart.UNSCHEDULABLE
            if was_unschedulable:
                self._remove_from_part(queued)
            queued.plugins |= {gate}
            if was_unschedulable:
                self._make_unschedulable(queued)
        return bool(gate)

    def _make_unschedulable(self, queued: QueuedPod) -> None:
        queued.part = QueuePart.UNSCHEDULABLE
        self._unschedulable.setdefault(_group(queued), {})[queued.uid] = queued
        if self._leftover is None:
            self._leftover = simulated_time.call_later(_LEFTOVER_PERIOD, self._requeue_leftover)

    def _remove_from_part(self, queued: QueuedPod) -> None:
        """Remove a pod from its part of the queue."""
        if queued.part is QueuePart.UNSCHEDULABLE:
            group = _group(queued)
            members = self._unschedulable[group]
            del members[queued.uid]
            if not members:
                del self._unschedulable[group]
        queued.part = None
        queued.entry = 0

    def _forget(self, uid: str) -> None:
        queued = self._pods.pop(uid, None)
        if queued is not None:
            self._remove_from_part(queued)

    def _push(self, heap: list[_HeapEntry], queued: QueuedPod, due: float) -> None:
        queued.entry = next(self._numbers)
        heappush(heap, (due, -queued.priority, queued.timestamp, queued.entry, queued))

    def _pop(self, heap: list[_HeapEntry], part: QueuePart) -> QueuedPod | None:
        while heap:
            *_, entry, queued = heappop(heap)
            if queued.entry == entry and queued.part is part:
                return queued
        return None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # Time

    def _now(self) -> float:
        return simulated_time.time()

    def _expiration(self, queued: QueuedPod) -> float:
        count = queued.consecutive_errors or queued.unschedulable_count
        if not count:
            return 0.0
        if queued.backoff_expiration is None:
            queued.backoff_expiration = _window_start(queued.timestamp + _BACKOFF.wait(count - 1))
        return queued.backoff_expiration

    def _is_backing_off(self, queued: QueuedPod) -> bool:
        return self._expiration(queued) >= _window_start(self._now())

    def _schedule_flush(self) -> None:
        if self._flush is None:
            due = _window_start(self._now()) + _WINDOW
            self._flush = simulated_time.call_at(due, self._end_backoffs)

    def _end_backoffs(self) -> None:
        self._flush = None
        for heap in (self._backoff, self._error_backoff):
            while heap and (not _is_current(heap[0]) or not self._is_backing_off(heap[0][-1])):
                entry = heappop(heap)
                if _is_current(entry):
                    entry[-1].part = None
                    self._activate(entry[-1])
        if self._backoff or self._error_backoff:
            self._schedule_flush()

    def _requeue_leftover(self) -> None:
        """Move pods that have waited for MAX_UNSCHEDULABLE seconds."""
        self._leftover = None
        now = self._now()
        for queued in _each(self._unschedulable.values()):
            if now - queued.timestamp > MAX_UNSCHEDULABLE and queued.gating_plugin != SCHEDULING_GATES:
                self._make_ready(queued, at_once=False)
        if self._unschedulable:
            self._leftover = simulated_time.call_later(_LEFTOVER_PERIOD, self._requeue_leftover)


def _group(queued: QueuedPod) -> _Group:
    return queued.similarity_key, queued.plugins, queued.pending_plugins


def _each(groups: Iterable[dict[str, QueuedPod]]) -> list[QueuedPod]:
    return [queued for group in groups for queued in group.values()]


def _window_start(moment: float) -> float:
    return moment - moment % _WINDOW


def _is_current(entry: _HeapEntry) -> bool:
    return entry[3] == entry[4].entry and entry[4].part is QueuePart.BACKOFF
