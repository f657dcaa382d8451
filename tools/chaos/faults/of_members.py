"""Faults of etcd's members: kills, stops, and full, slow or failing disks."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterable
from typing import Final

from tools.chaos.faults.fault import Fault, Makers, Pulses, in_thread, nothing, sends
from tools.chaos.members import Cluster, Member
from tools.chaos.tracing import Tracer

_RUNS, _RESTS = 0.05, 0.35
"""Seconds for which a slow machine works and does not."""
_SLOW_SYNCS: Final = (0.05, 0.3, 1.5)
"""Seconds that each sync takes on a slow disk; the last is longer than it takes to elect another leader."""


class MemberFaults:
    """Faults of members as processes."""

    def __init__(self, cluster: Cluster, chance: random.Random, *, traced: bool) -> None:
        """`traced` is whether strace may be used."""
        self._etcd = cluster
        self._chance = chance
        self._traced = traced

    def makers(self) -> Makers:
        found: dict[str, Callable[[], Fault]] = {
            "kill-member": self._kill,
            "stop-member": self._stop,
            "slow-machine": self._slow_machine,
            "compact": self._compact,
            "no-quorum": self._no_quorum,
            "replace-member": self._replace,
            "kill-leader": self._kill_leader,
        }
        if any(each.has_disk for each in self._etcd.members):
            found["full-disk"] = self._full_disk
        if self._traced:
            found |= {"slow-disk": self._slow_disk, "slow-disks": self._slow_disks, "failing-disk": self._failing_disk}
        return found

    def _member(self) -> Member:
        return self._chance.choice(self._etcd.members)

    def _starts(self, member: Member) -> Callable[[], object]:
        return lambda: self._etcd.restart(member)

    def _kill(self) -> Fault:
        member = self._member()
        return Fault(f"kill -9 of {member.name}", in_thread(member.kill), in_thread(self._starts(member)))

    def _kill_leader(self) -> Fault:
        found: list[Member] = []

        async def do() -> None:
            found.append(await self._leader())
            found[0].kill()

        async def undo() -> None:
            self._etcd.restart(found[0])

        return Fault("kill -9 of the leader", do, undo)

    async def _leader(self) -> Member:
        """Or any, if nobody says who it is."""
        try:
            leader = await self._etcd.leader()
        except OSError:
            leader = None
        return leader or self._etcd.members[0]

    def _stop(self) -> Fault:
        member = self._member()
        return Fault(f"SIGSTOP of {member.name}", sends(member, signal.SIGSTOP), sends(member, signal.SIGCONT))

    def _no_quorum(self) -> Fault:
        stopped = self._chance.sample(self._etcd.members, 2)

        async def each(number: signal.Signals) -> None:
            for member in stopped:
                member.signal(number)

        names = " and ".join(member.name for member in stopped)
        return Fault(f"SIGSTOP of {names}", lambda: each(signal.SIGSTOP), lambda: each(signal.SIGCONT))

    def _slow_machine(self) -> Fault:
        member = self._member()
        pulses = Pulses(sends(member, signal.SIGSTOP), sends(member, signal.SIGCONT), lambda: (_RESTS, _RUNS))
        return Fault(f"{member.name} works an eighth of the time", pulses.do, pulses.undo)

    def _compact(self) -> Fault:
        async def do() -> None:
            try:
                await self._etcd.compact()
            except OSError:
                return  # there is no majority

        return Fault("compaction to now", do, nothing)

    def _replace(self) -> Fault:
        member = self._member()

        async def do() -> None:
            await self._etcd.replace(member)

        return Fault(f"{member.name} is replaced by a new one", do, nothing, is_alone=True)

    # Disks

    def _full_disk(self) -> Fault:
        member = next(each for each in self._etcd.members if each.has_disk)

        async def undo() -> None:
            member.free_disk()
            self._etcd.restart(member)

        return Fault(f"the disk of {member.name} is full", in_thread(member.fill_disk), undo)

    def _tracing(self, text: str, members: Iterable[Member], trace: Callable[[int], Tracer]) -> Fault:
        """Syncs of members are traced; who ends of it is started again."""
        chosen = list(members)
        tracers: list[Tracer] = []

        def do() -> None:
            tracers.extend(trace(member.pid) for member in chosen if member.running)

        def undo() -> None:
            for tracer in tracers:
                tracer.let_go()
            for member in chosen:
                self._etcd.restart(member)

        return Fault(text, in_thread(do), in_thread(undo))

    def _slow_disk(self) -> Fault:
        member, seconds = self._member(), self._chance.choice(_SLOW_SYNCS)
        return self._tracing(
            f"each sync of {member.name} takes {seconds:g} s more", [member], lambda pid: Tracer.slow(pid, seconds)
        )

    def _slow_disks(self) -> Fault:
        seconds = self._chance.choice(_SLOW_SYNCS[:2])
        return self._tracing(
            f"each sync of all members takes {seconds:g} s more",
            self._etcd.members,
            lambda pid: Tracer.slow(pid, seconds),
        )

    def _failing_disk(self) -> Fault:
        member = self._member()
        return self._tracing(f"each sync of {member.name} fails", [member], Tracer.fail)
