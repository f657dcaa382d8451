"""Faults of the network between servers and members: cut, one-way, slow or lossy connections."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from tools.chaos.faults.fault import Fault, Makers, Pulses, in_thread
from tools.chaos.members import Cluster
from tools.chaos.wires import Machine, Wires

_SLOW: Final = 0.3
"""Seconds that a slow network takes for each piece."""


class NetworkFaults:
    """Faults of the proxies before etcd, and of wires where there are any."""

    def __init__(self, cluster: Cluster, machines: list[Machine], chance: random.Random, wires: Wires | None) -> None:
        """`machines` are those of the servers, on `wires`."""
        self._etcd = cluster
        self._machines = machines
        self._chance = chance
        self._wires = wires

    def makers(self) -> Makers:
        found: dict[str, Callable[[], Fault]] = {
            "isolate-member": self._isolate,
            "part-members": self._part,
            "cut-server-off": self._cut_off,
            "hold-connections": self._hold,
            "half-open": self._half_open,
            "reset-connections": self._reset,
            "slow-network": self._slow,
        }
        if self._wires is not None:
            found |= {
                "unplug": self._unplug,
                "lose-packets": self._lose,
                "lose-peer-packets": self._lose_between,
                "deafen": self._deafen,
                "loose-wire": self._loose,
            }
        return found

    # Proxies

    async def _heal(self) -> None:
        for proxy in self._etcd.proxies:
            proxy.heal()

    def _proxied(self, text: str, do: Callable[[], None]) -> Fault:
        async def done() -> None:
            do()

        return Fault(text, done, self._heal)

    def _server(self) -> int:
        return self._chance.randrange(len(self._etcd.between))

    def _isolate(self) -> Fault:
        member = self._chance.choice(self._etcd.members)
        return self._proxied(f"{member.name} is cut off from the others", lambda: self._etcd.isolate(member))

    def _part(self) -> Fault:
        one, other = self._chance.sample(self._etcd.members, 2)
        return self._proxied(f"{one.name} and {other.name} do not hear each other", lambda: self._etcd.part(one, other))

    def _cut_off(self) -> Fault:
        number = self._server()

        def do() -> None:
            for proxy in self._etcd.between[number]:
                proxy.hold()

        return self._proxied(f"server {number} hears nothing of etcd", do)

    def _hold(self) -> Fault:
        number, member = self._server(), self._chance.randrange(len(self._etcd.members))
        return self._proxied(
            f"nothing comes through between server {number} and m{member}", self._etcd.between[number][member].hold
        )

    def _half_open(self) -> Fault:
        number, member = self._server(), self._chance.randrange(len(self._etcd.members))
        return self._proxied(
            f"no answers come to server {number} from m{member}",
            lambda: self._etcd.between[number][member].hold(answers_only=True),
        )

    def _reset(self) -> Fault:
        number = self._server()

        def do() -> None:
            for proxy in self._etcd.between[number]:
                proxy.cut()

        return self._proxied(f"the connections of server {number} to etcd are reset", do)

    def _slow(self) -> Fault:
        member = self._chance.choice(self._etcd.members)

        def do() -> None:
            for proxy in (member.peers, *(row[self._etcd.members.index(member)] for row in self._etcd.between)):
                proxy.delay = _SLOW

        return self._proxied(f"the network is slow before {member.name}", do)

    # Wires

    def _machine(self) -> Machine:
        assert self._wires is not None
        return self._chance.choice(self._wires.machines)

    def _unplug(self) -> Fault:
        machine = self._machine()
        return Fault(f"{machine.name} is unplugged", in_thread(machine.unplug), in_thread(machine.plug))

    def _deafen(self) -> Fault:
        machine = self._machine()
        return Fault(f"no packet comes to {machine.name}", in_thread(machine.deafen), in_thread(machine.undeafen))

    def _lose(self) -> Fault:
        number = self._server()
        machine = self._machines[number]
        rows = self._etcd.between[number]
        chosen = self._chance.sample(rows, self._chance.randint(1, len(rows)))
        names = " and ".join(sorted(f"m{rows.index(each)}" for each in chosen))
        return self._losing(machine, [each.address for each in chosen], names)

    def _lose_between(self) -> Fault:
        one, other = self._chance.sample(self._etcd.members, 2)
        assert one.machine is not None
        return self._losing(one.machine, [other.peers.address], other.name)

    @staticmethod
    def _losing(machine: Machine, addresses: list[str], names: str) -> Fault:
        def do() -> None:
            for each in addresses:
                machine.lose(each)

        def undo() -> None:
            for each in addresses:
                machine.find(each)

        return Fault(f"the packets of {machine.name} to {names} are lost", in_thread(do), in_thread(undo))

    def _loose(self) -> Fault:
        machine = self._machine()
        pulses = Pulses(
            in_thread(machine.deafen),
            in_thread(machine.undeafen),
            lambda: (self._chance.expovariate(20), self._chance.expovariate(5)),
        )
        return Fault(f"some packets to {machine.name} are lost", pulses.do, pulses.undo)
