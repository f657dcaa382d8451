"""What goes wrong: each fault is done, lasts for a while, and is undone."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from steersman.testing import ServerNotReady, ServerProcess
from tools.chaos.asking import Violation
from tools.chaos.members import Cluster, Member

_SLOW: Final = 0.3
"""Seconds that a slow network takes for each piece."""
_RUNS, _RESTS = 0.05, 0.35
"""Seconds for which a slow machine works and does not."""
_ATTEMPTS: Final = 5

Step = Callable[[], Awaitable[None]]


@dataclass
class Fault:
    """One thing that goes wrong, with which of its parts."""

    text: str
    do: Step
    undo: Step
    starts_server: bool = False
    """Whether undoing it starts a server, which needs its storage."""


@dataclass
class Targets:
    """What can be done something to."""

    cluster: Cluster | None
    servers: Sequence[ServerProcess]
    chance: random.Random
    _pulses: list[asyncio.Task[None]] = field(default_factory=list)

    def faults(self) -> dict[str, Callable[[], Fault]]:
        """All there are, by name; each call chooses anew to whom."""
        of_servers = {
            "kill-server": self._kill_server, "terminate-server": self._terminate_server,
            "stop-server": self._stop_server,
        }  # fmt: skip
        if self.cluster is None:
            return of_servers
        of_members = {
            "kill-member": self._kill_member, "stop-member": self._stop_member, "isolate-member": self._isolate,
            "part-members": self._part, "cut-server-off": self._cut_off, "hold-connections": self._hold,
            "half-open": self._half_open, "reset-connections": self._reset, "slow-network": self._slow_network,
            "slow-machine": self._slow_machine, "compact": self._compact, "no-quorum": self._no_quorum,
            "replace-member": self._replace, "kill-leader": self._kill_leader,
        }  # fmt: skip
        if any(each.has_disk for each in self.cluster.members):
            of_members["full-disk"] = self._full_disk
        return of_servers | of_members

    # Servers

    def _server(self) -> tuple[int, ServerProcess]:
        number = self.chance.randrange(len(self.servers))
        return number, self.servers[number]

    def _kill_server(self) -> Fault:
        number, server = self._server()
        return Fault(f"kill -9 of server {number}", _in_thread(server.kill), lambda: restart(server), True)

    def _terminate_server(self) -> Fault:
        number, server = self._server()

        ended: list[int] = []

        async def do() -> None:
            ended.append(server.pid)
            server.signal(signal.SIGTERM)

        async def undo() -> None:
            if server.running and server.pid == ended[0]:
                server.signal(signal.SIGCONT)  # another fault may have stopped it
                try:
                    await asyncio.to_thread(server.wait)
                except subprocess.TimeoutExpired as error:
                    raise Violation(f"server {number} does not end on SIGTERM: {error}") from error
            await restart(server)

        return Fault(f"SIGTERM to server {number}", do, undo, True)

    def _stop_server(self) -> Fault:
        number, server = self._server()
        return Fault(
            f"SIGSTOP of server {number}", _sends(server, signal.SIGSTOP), _sends(server, signal.SIGCONT)
        )  # fmt: skip

    # Members

    @property
    def _etcd(self) -> Cluster:
        assert self.cluster is not None
        return self.cluster

    def _member(self) -> Member:
        return self.chance.choice(self._etcd.members)

    def _kill_member(self) -> Fault:
        return self._killing(self._member())

    def _killing(self, member: Member) -> Fault:
        async def undo() -> None:
            self._etcd.restart(member)

        return Fault(f"kill -9 of {member.name}", _in_thread(member.kill), undo)

    def _kill_leader(self) -> Fault:
        found: list[Member] = []

        async def do() -> None:
            try:
                leader = await self._etcd.leader()
            except OSError:
                leader = None
            found.append(leader or self._etcd.members[0])
            found[0].kill()

        async def undo() -> None:
            self._etcd.restart(found[0])

        return Fault("kill -9 of the leader", do, undo)

    def _stop_member(self) -> Fault:
        member = self._member()
        return Fault(f"SIGSTOP of {member.name}", _sends(member, signal.SIGSTOP), _sends(member, signal.SIGCONT))

    def _no_quorum(self) -> Fault:
        stopped = self.chance.sample(self._etcd.members, 2)

        async def each(number: signal.Signals) -> None:
            for member in stopped:
                member.signal(number)

        names = " and ".join(member.name for member in stopped)
        return Fault(f"SIGSTOP of {names}", lambda: each(signal.SIGSTOP), lambda: each(signal.SIGCONT))

    def _slow_machine(self) -> Fault:
        member = self._member()

        async def pulse() -> None:
            try:
                while True:
                    member.signal(signal.SIGSTOP)
                    await asyncio.sleep(_RESTS)
                    member.signal(signal.SIGCONT)
                    await asyncio.sleep(_RUNS)
            finally:
                member.signal(signal.SIGCONT)

        async def do() -> None:
            self._pulses.append(asyncio.ensure_future(pulse()))

        async def undo() -> None:
            while self._pulses:
                task = self._pulses.pop()
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

        return Fault(f"{member.name} works an eighth of the time", do, undo)

    def _full_disk(self) -> Fault:
        member = next(each for each in self._etcd.members if each.has_disk)

        async def undo() -> None:
            member.free_disk()
            self._etcd.restart(member)

        return Fault(f"the disk of {member.name} is full", _in_thread(member.fill_disk), undo)

    def _compact(self) -> Fault:
        async def do() -> None:
            try:
                await self._etcd.compact()
            except OSError:
                return  # there is no majority

        return Fault("compaction to now", do, _nothing)

    def _replace(self) -> Fault:
        member = self._member()

        async def do() -> None:
            await self._etcd.replace(member)

        return Fault(f"{member.name} is replaced by a new one", do, _nothing)

    # The network

    async def _heal_network(self) -> None:
        for proxy in self._etcd.proxies:
            proxy.heal()

    def _network(self, text: str, do: Callable[[], None]) -> Fault:
        async def done() -> None:
            do()

        return Fault(text, done, self._heal_network)

    def _isolate(self) -> Fault:
        member = self._member()
        return self._network(f"{member.name} is cut off from the others", lambda: self._etcd.isolate(member))

    def _part(self) -> Fault:
        one, other = self.chance.sample(self._etcd.members, 2)
        return self._network(
            f"{one.name} and {other.name} do not hear each other", lambda: self._etcd.part(one, other)
        )  # fmt: skip

    def _cut_off(self) -> Fault:
        number = self.chance.randrange(len(self.servers))

        def do() -> None:
            for proxy in self._etcd.between[number]:
                proxy.hold()

        return self._network(f"server {number} hears nothing of etcd", do)

    def _hold(self) -> Fault:
        number, member = self.chance.randrange(len(self.servers)), self.chance.randrange(len(self._etcd.members))
        return self._network(
            f"nothing comes through between server {number} and m{member}", self._etcd.between[number][member].hold
        )  # fmt: skip

    def _half_open(self) -> Fault:
        number, member = self.chance.randrange(len(self.servers)), self.chance.randrange(len(self._etcd.members))
        return self._network(
            f"no answers come to server {number} from m{member}",
            lambda: self._etcd.between[number][member].hold(answers_only=True),
        )

    def _reset(self) -> Fault:
        number = self.chance.randrange(len(self.servers))

        def do() -> None:
            for proxy in self._etcd.between[number]:
                proxy.cut()

        return self._network(f"the connections of server {number} to etcd are reset", do)

    def _slow_network(self) -> Fault:
        member = self._member()

        def do() -> None:
            for proxy in (member.peers, *(row[self._etcd.members.index(member)] for row in self._etcd.between)):
                proxy.delay = _SLOW

        return self._network(f"the network is slow before {member.name}", do)


async def restart(server: ServerProcess) -> None:
    """Starts a server again that has ended. Raises ServerNotReady if it does not come up again and again."""
    for attempt in range(_ATTEMPTS):
        if server.running:
            return
        try:
            await asyncio.to_thread(server.start, 60.0)
        except ServerNotReady:
            if attempt == _ATTEMPTS - 1:
                raise


async def _nothing() -> None:
    return


def _in_thread(step: Callable[[], None]) -> Step:
    async def run() -> None:
        await asyncio.to_thread(step)

    return run


def _sends(process: Member | ServerProcess, number: signal.Signals) -> Step:
    async def run() -> None:
        process.signal(number)

    return run


async def play(
    targets: Targets, names: Sequence[str], longest: float, rest: float, note: Callable[[str], None]
) -> None:
    """One fault after another, some two at a time, until cancelled: then what is wrong is undone."""
    chance = targets.chance
    makers = targets.faults()
    while True:
        await asyncio.sleep(chance.uniform(0.5, 1.5) * rest)
        chosen = [makers[each]() for each in chance.sample(names, min(len(names), 2 if chance.random() < 0.2 else 1))]
        seconds = chance.uniform(0.2, 1.0) * longest
        note(f"{' and '.join(each.text for each in chosen)}, for {seconds:.1f} s")
        undone = asyncio.ensure_future(_one_round(chosen, seconds))
        try:
            await asyncio.shield(undone)
        except asyncio.CancelledError:
            await undone  # what is begun is undone: the end of a run needs all of them
            raise


async def _one_round(chosen: Sequence[Fault], seconds: float) -> None:
    for each in chosen:
        await each.do()
    await asyncio.sleep(seconds)
    for each in sorted(chosen, key=lambda fault: fault.starts_server):
        await each.undo()
