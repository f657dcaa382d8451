"""All active faults of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from steersman.faults.fault import NODES, Call, Fault, FaultSpec, InvalidFault, Met, TooManyFaults
from steersman.faults.fault_index import FaultIndex, keys_of_action, keys_of_names
from steersman.faults.interception import Interceptor, OpenWatch
from steersman.faults.shown_revisions import ShownRevisions
from steersman.faults.stale_reads import Read, ResourceOf, Revisions
from steersman.machinery.identity.action import Action
from steersman.machinery.values.times import monotonic, now_micro
from steersman.net.message import Peer

MOST_FAULTS: Final = 1_000
"""Faults that may be active at once."""
MOST_WILD: Final = 4_096
"""Patterns with `*` in all faults together: each request is compared with them one by one."""
RESOURCE: Final = ("simulation.steersman.dev", "faults")
"""Group and plural of Fault objects. No fault hits requests for them, nor calls during these: otherwise nobody could
remove it."""
ANNOTATION: Final = "simulation.steersman.dev/fault"
"""Audit annotation with the name of the fault that hit a request, or a call that it caused."""


class FaultSet:
    """Active faults, in the order in which they were added: a request gets the first one that hits it."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._of_requests = FaultIndex[Fault]()
        self._of_calls = FaultIndex[Fault]()
        self._of_nodes = FaultIndex[Fault]()
        self._stale: dict[Fault, None] = {}
        self.has_requests = False
        """True if there are faults of requests."""
        self.on_nodes: Callable[[], None] | None = None
        """Callback for changes of the faults of kubelets; None without simulated nodes."""
        self.advance_clock: Callable[[float], None] | None = None
        """Function that begins a leap of the clock by so many seconds; None without a clock of the cluster."""
        self.storage: Revisions | None = None
        """Storage of the server; None before its start."""
        self._shown: ShownRevisions | None = None
        self.interceptor: Interceptor | None = None
        """Observer of all requests, which may also change their answers; it comes before the faults."""
        self.on_injection: Callable[[Fault], None] | None = None
        """Callback for each injection, such as to write a status."""

    def add(self, name: str, spec: FaultSpec) -> Fault:
        """Add a fault, or replace the one of this name, whose counts begin again. Raises InvalidFault."""
        if name not in self._faults and len(self._faults) >= MOST_FAULTS:
            raise TooManyFaults(f"there are {MOST_FAULTS} faults already")
        fault = Fault(name, spec, monotonic())
        if fault.is_of_nodes and self.on_nodes is None:
            raise InvalidFault("match.nodes: this server has no simulated nodes")
        if fault.clock_advance and self.advance_clock is None:
            raise InvalidFault("effect.clock: this server has no clock of its own, as a cluster of steersman up has")
        if fault.is_stale:
            if self.storage is None:
                raise InvalidFault("effect.stale: there is no storage")
            fault.begin_reads(self.storage.revision)
        others = sum(each.wild for key, each in self._faults.items() if key != name)
        if others + fault.wild > MOST_WILD:
            raise TooManyFaults(f"match: all faults together have at most {MOST_WILD} patterns with *")
        self.remove(name)
        self._faults[name] = fault
        self._index_of(fault).add(fault, fault.keys)
        if fault.is_stale:
            self._stale[fault] = None
        self._changed(fault)
        if fault.ends_at is not None:
            loop = asyncio.get_running_loop()
            self._timers[name] = loop.call_later(fault.ends_at - monotonic(), self.remove, name)
        return fault

    def remove(self, name: str) -> None:
        """End a fault. Does nothing if there is none of this name."""
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()
        fault = self._faults.pop(name, None)
        if fault is not None:
            self._index_of(fault).remove(fault)
            self._stale.pop(fault, None)
            self._changed(fault)
            fault.end()

    def clear(self) -> None:
        """End all faults."""
        for name in list(self._faults):
            self.remove(name)

    def _index_of(self, fault: Fault) -> FaultIndex[Fault]:
        if fault.is_of_nodes:
            return self._of_nodes
        return self._of_calls if fault.is_of_calls else self._of_requests

    def _changed(self, fault: Fault) -> None:
        """Adapt to a fault that was added or removed."""
        self.has_requests = bool(self._of_requests)
        if not self._stale:
            self._shown = None
        elif self._shown is None and self.storage is not None:
            self._shown = ShownRevisions(self.storage.revision)
        if fault.is_of_nodes and self.on_nodes is not None:
            self.on_nodes()

    def of_action(self, action: Action) -> Sequence[Fault]:
        """Return the faults that may hit a request, as far as its verb and resource say."""
        return self._of_requests.find(keys_of_action(action))

    def is_silent(self, node: str) -> bool:
        """Return True if a fault silences the kubelet of a node."""
        for fault in self._of_nodes.find(keys_of_names(NODES, (node,))):
            before = fault.injected
            if fault.silences(node, now_micro()):
                if fault.injected > before:
                    self._injected(fault)
                return True
        return False

    def delay_of_sync(self, node: str, namespace: str, pod: str) -> float:
        """Return the seconds by which a fault delays the sync of a pod by the kubelet of a node; 0 for none."""
        for fault in self._of_nodes.find(keys_of_names(NODES, (node,))):
            if fault.delays_sync(node, namespace, pod, now_micro()):
                self._injected(fault)
                return fault.sync_delay
        return 0.0

    def choose_for_call(self, call: Call) -> Fault | None:
        """Return the fault that hits a call of a back end, None if none does."""
        if not self._of_calls:
            return None
        now = monotonic()
        for fault in self._of_calls.find(keys_of_names(call.kind, call.names)):
            if fault.hits_call(call, now):
                fault.remember_call(call, now_micro())
                self._injected(fault)
                return fault
        return None

    def _injected(self, fault: Fault) -> None:
        if self.on_injection is not None:
            self.on_injection(fault)

    @property
    def needs_reads(self) -> bool:
        """True if a fault answers reads from the past."""
        return self._shown is not None

    def past(self, fault: Fault, read: Read | None) -> int:
        """Return the revision at which a fault answers a read, 0 if it may not be older than the present."""
        storage, shown, stale = self.storage, self._shown, fault.spec.effect.stale
        if read is None or storage is None or shown is None or not (read.version or stale.even_consistent):
            return 0
        now = storage.revision
        fault.note_revision(now)
        floor = max(1, storage.compact_revision, int(read.version or 0))
        if not stale.even_behind_shown:
            floor = max(floor, shown.floor(read.peer, read.resource, now))
        revision = max(fault.past(now), floor)
        return revision if revision < now else 0

    def note_shown(self, peer: Peer, resource: ResourceOf, revision: int) -> None:
        """Note that an answer has shown a connection objects as of a revision, 0 for the present."""
        if self._shown is not None and self.storage is not None:
            now = self.storage.revision
            self._shown.note(peer, resource, revision or now)
            for fault in self._stale:
                fault.note_revision(now)

    def watched(self, peer: Peer, resource: ResourceOf, body: OpenWatch) -> OpenWatch:
        """Return the body of a watch, which shows its connection all changes."""
        if self._shown is None or self.storage is None:
            return body
        return self._shown.watched(peer, resource, self.storage, body)

    def choose(self, met: Met) -> Fault | None:
        """Return the fault that hits a request, None if none does."""
        now = monotonic()
        for fault in self.of_action(met.action):
            if fault.is_stale and not self.past(fault, met.read):
                continue
            if fault.hits(met, now):
                fault.remember(met, now_micro())
                self._injected(fault)
                return fault
        return None
