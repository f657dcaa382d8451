"""Faults of servers: kills, stops, clock jumps and failing disks."""

from __future__ import annotations

import asyncio
import errno
import random
import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import Final

from tools.chaos.asking import Violation
from tools.chaos.faults.fault import Fault, Makers, in_thread, nothing, restart, sends
from tools.chaos.lies import ALL, Liar
from tools.chaos.servers import Server, send

_JUMPS: Final = (-7200.0, -900.0, -45.0, -2.0, 2.0, 45.0, 900.0, 7200.0)
"""Seconds by which a clock jumps."""
_ENDS: Final = 120.0
"""Seconds in which a server has to end: requests have 60 of them, and what it takes back at its end waits for etcd."""
_BACKDATED: Final = 3600.0
"""Seconds before their making from which the certificates of a server's clients are valid."""
_STAYS: Final = 0.4
"""Probability that a clock stays wrong after its fault, until the next fault."""
_SLOW_SYNC: Final = 0.3
_FAILURES: Final = (1, 1, 2, 5, ALL)


class ServerFaults:
    """Faults of servers as processes."""

    def __init__(self, servers: Sequence[Server], chance: random.Random, *, has_disk: bool) -> None:
        """`has_disk` is whether servers have what is stored on a disk of their own (SQLite)."""
        self._servers = servers
        self._chance = chance
        self._has_disk = has_disk

    def makers(self) -> Makers:
        found: dict[str, Callable[[], Fault]] = {
            "kill-server": self._kill,
            "terminate-server": self._terminate,
            "stop-server": self._stop,
        }
        if any("--workers" in flag for flag in self._servers[0].flags):
            found |= {"kill-worker": self._kill_worker, "stop-worker": self._stop_worker}
        if self._servers[0].liar is not None:
            found["clock-jump"] = self._clock_jump
            if self._has_disk:
                found |= {
                    "slow-sync": self._slow_sync,
                    "failing-sync": self._failing_sync,
                    "failing-write": self._failing_write,
                    "no-space": self._no_space,
                    "failing-read": self._failing_read,
                    "power-cut": self._power_cut,
                }
        return found

    def _server(self) -> Server:
        return self._chance.choice(self._servers)

    def _kill(self) -> Fault:
        server = self._server()
        return Fault(f"kill -9 of {server.name}", in_thread(server.kill), lambda: restart(server), True)

    def _terminate(self) -> Fault:
        server = self._server()

        ended: list[int] = []

        async def do() -> None:
            ended.append(server.pid)
            server.signal(signal.SIGTERM)

        async def undo() -> None:
            if server.running and server.pid == ended[0]:
                server.signal(signal.SIGCONT)  # another fault may have stopped it
                try:
                    await asyncio.to_thread(server.wait, _ENDS)
                except subprocess.TimeoutExpired as error:
                    raise Violation(f"{server.name} does not end on SIGTERM: {error}") from error
            await restart(server)

        return Fault(f"SIGTERM to {server.name}", do, undo, True)

    def _stop(self) -> Fault:
        server = self._server()
        return Fault(f"SIGSTOP of {server.name}", sends(server, signal.SIGSTOP), sends(server, signal.SIGCONT))

    # Workers

    def _kill_worker(self) -> Fault:
        server = self._server()

        async def do() -> None:
            if workers := server.workers():
                send(self._chance.choice(workers), signal.SIGKILL)

        async def undo() -> None:
            return  # its owner starts it again

        return Fault(f"kill -9 of a worker of {server.name}", do, undo)

    def _stop_worker(self) -> Fault:
        server = self._server()
        stopped: list[int] = []

        async def do() -> None:
            if workers := server.workers():
                stopped.append(self._chance.choice(workers))
                send(stopped[0], signal.SIGSTOP)

        async def undo() -> None:
            for each in stopped:
                send(each, signal.SIGCONT)

        return Fault(f"SIGSTOP of a worker of {server.name}", do, undo)

    # The clock

    def _clock_jump(self) -> Fault:
        server, seconds = self._server(), self._chance.choice(_JUMPS)
        stays = self._chance.random() < _STAYS and seconds > -_BACKDATED  # else it lets nobody in until the next one
        liar = _liar(server)

        async def do() -> None:
            liar.clock(seconds)

        async def undo() -> None:
            if not stays:
                liar.clock(0)

        text = f"the clock of {server.name} jumps to {seconds:+.0f} s"
        return Fault(f"{text} and stays so" if stays else text, do, undo)

    # The disk

    def _disk(self, text: str, do: Callable[[Liar], None]) -> Fault:
        server = self._server()
        liar, goes_on = _liar(server), self._chance.random() < 0.3

        async def done() -> None:
            do(liar)

        async def undo() -> None:
            liar.mend_disk()
            if not goes_on:  # else it has to do with what it has: it may refuse to write until the next one
                await in_thread(server.kill)()
                await restart(server)

        return Fault(f"the disk of {server.name} {text}{', which goes on' if goes_on else ''}", done, undo, True)

    def _power_cut(self) -> Fault:
        server = self._server()
        fault = Fault(f"the power of {server.name} is cut", nothing, lambda: restart(server), True)

        async def do() -> None:
            power = server.power
            assert power is not None
            await in_thread(server.kill)()
            fault.found = f"{server.name} has lost {await asyncio.to_thread(power.cut)}"

        fault.do = do
        return fault

    def _slow_sync(self) -> Fault:
        return self._disk("is slow", lambda liar: liar.slow_syncs(_SLOW_SYNC))

    def _failing_sync(self) -> Fault:
        times = self._chance.choice(_FAILURES)
        return self._disk(f"fails to sync {_times(times)}", lambda liar: liar.fail_syncs(times))

    def _failing_write(self) -> Fault:
        times, torn = self._chance.choice(_FAILURES), self._chance.random() < 0.5
        return self._disk(
            f"fails to write {_times(times)}{', half of it' if torn else ''}",
            lambda liar: liar.fail_writes(times, errno.EIO, torn=torn),
        )

    def _failing_read(self) -> Fault:
        times = self._chance.choice(_FAILURES)
        return self._disk(f"fails to read {_times(times)}", lambda liar: liar.fail_reads(times))

    def _no_space(self) -> Fault:
        torn = self._chance.random() < 0.5
        return self._disk(
            f"is full{', in the midst of a write' if torn else ''}",
            lambda liar: liar.fail_writes(ALL, errno.ENOSPC, torn=torn),
        )


def _times(number: int) -> str:
    return "always" if number == ALL else f"{number} times"


def _liar(server: Server) -> Liar:
    assert server.liar is not None
    return server.liar
