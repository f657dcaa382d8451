"""Everything goes wrong, one thing after another, and nothing that was promised may be broken.

    python -m tools.chaos --seconds 120
    python -m tools.chaos --seconds 3600 --seed 7 --keep found
    python -m tools.chaos --storage sqlite --only kill-server,stop-server
    python -m tools.chaos --judge found/history.jsonl

Three members of etcd (the program is looked for in $STEERSMAN_REFERENCE and PATH) and two `steersman serve` on them, in
processes of their own; proxies stand for the network between any two. Writers fight over few ConfigMaps, informers list
and watch on either server and go on at the other, candidates elect a leader, allocators take addresses and ports out of
small ranges. Meanwhile faults are done and undone, chosen by the seed. In the end the history of every object is judged
by porcupine (github.com/anishathalye/porcupine, built with Go): it has to be linearizable. Every informer has to have
been told of everything once and to know what is there, there may never have been two leaders, nothing may be given to
two services. What is acknowledged has to be there. The exit code is 1 if anything of that is not so.

With `--storage sqlite` it is one server on a folder of its own, of several processes with `--workers`. What a machine
does not allow is said and left out: clocks jump and disks of servers fail where there is a C compiler, syncs of etcd
are slow or fail where there is strace, the disk of a member is made full where this is run as root. Packets are lost
with `--namespaces`, as root on Linux with iproute2. Clocks of etcd do not jump: a program of Go asks the kernel itself.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import uvloop

from steersman.testing import ServerNotReady
from tools.chaos import judging, lies, tracing, wires
from tools.chaos.allocators import FLAGS
from tools.chaos.asking import Violation
from tools.chaos.faults import Makers, Targets, play, restart
from tools.chaos.keepers import TTL_FLAG
from tools.chaos.load import Load
from tools.chaos.members import Cluster
from tools.chaos.servers import Server
from tools.chaos.wires import Wires
from tools.soak.command import endpoint_of

_SERVERS = 2
_HISTORY = "history.jsonl"


class Run:
    """One run; what went wrong is in `violations`."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self._options = options
        self._folder = folder
        self._began = time.monotonic()
        self._faults = 0
        self.violations: list[str] = []

    def note(self, text: str) -> None:
        """A line of the log of faults."""
        line = f"{time.monotonic() - self._began:7.1f} s  {text}"
        self._faults += not text.startswith(" ")
        print(line, flush=True)

    @contextlib.asynccontextmanager
    async def _running(self) -> AsyncIterator[Targets]:
        """All processes, until they are ended."""
        options, folder = self._options, self._folder
        is_etcd = options.storage == "etcd"
        async with contextlib.AsyncExitStack() as ending:
            on: Wires | None = None
            if options.namespaces:
                on = Wires()
                ending.callback(on.close)
                on.open()
            cluster: Cluster | None = None
            if is_etcd:
                cluster = Cluster(folder, _SERVERS, own_disk=options.full_disk, wires=on)
                ending.push_async_callback(cluster.stop)
                await cluster.start()
            targets = Targets(
                [], cluster, wires=on, traced=is_etcd and self._is_possible("strace", tracing.impossible())
            )
            library = lies.built()
            self._is_possible(
                "clocks that jump and disks of servers that fail", "" if library else "no C compiler, or no Linux"
            )
            for number in range(_SERVERS if is_etcd else 1):
                flags = [*FLAGS, TTL_FLAG, "--etcd-compaction-interval=15s", *options.flag]
                if cluster is not None:
                    flags.append(f"--etcd-servers={cluster.urls(number)}")
                if options.workers > 1:
                    flags.append(f"--workers={options.workers}")
                machine = on.machine(f"s{number}") if on is not None else None
                if machine is not None:
                    flags.append(f"--bind-address={machine.address}")
                    targets.machines.append(machine)
                server = Server(
                    number, folder / f"server-{number}", *flags, library=library, under=machine.under if machine else ()
                )
                targets.servers.append(server)
                ending.callback(server.kill)
            for server in targets.servers:
                await asyncio.to_thread(server.start)
            yield targets

    @staticmethod
    def _is_possible(what: str, why_not: str) -> bool:
        if why_not:
            print(f"left out: {what}: {why_not}", flush=True)
        return not why_not

    async def run(self) -> None:
        """Everything, the verdict included."""
        async with self._running() as targets:
            load = Load(
                [endpoint_of(server) for server in targets.servers],
                writers=self._options.writers,
                informers=self._options.informers,
                pause=self._options.pause,
                seed=self._options.seed,
            )
            try:
                await load.prepare()
                await self._under_load(load, targets)
            except* (Violation, ServerNotReady, TimeoutError, OSError) as group:
                self.violations += [str(each) for each in _leaves(group)]
            finally:
                load.history.write(self._folder / _HISTORY)
                await load.close()
        self.violations += load.judged()
        for name, count in sorted(load.counts.items()):
            print(f"{count:8} {name}")
        print(f"{self._faults:8} faults; the longest answer took {load.longest[0]:.1f} s")

    async def _under_load(self, load: Load, targets: Targets) -> None:
        chance = random.Random(self._options.seed)
        makers = _chosen(targets.makers(chance), self._options.only)

        async def heal() -> None:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
            targets.mend()
            self.note("everything is healed")
            if targets.cluster is not None:
                await targets.cluster.wait_healthy()
            for server in targets.servers:
                await restart(server)

        async with asyncio.TaskGroup() as group:  # either ends with the other, if it fails
            playing = group.create_task(play(makers, chance, self._options.longest, self._options.rest, self.note))
            await load.run(self._options.seconds, heal)
            self.violations += await load.missing()


def _chosen(makers: Makers, only: str) -> Makers:
    """Return the makers named in `only`, or all. Ends the program if a name is unknown."""
    if not only:
        return makers
    names = only.split(",")
    if unknown := set(names) - makers.keys():
        sys.exit(f"no such faults: {', '.join(sorted(unknown))}; there are {', '.join(makers)}")
    return {name: makers[name] for name in names}


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    leaves: list[BaseException] = []
    for each in group.exceptions:
        leaves += _leaves(each) if isinstance(each, BaseExceptionGroup) else [each]
    return leaves


def _judged(program: Path, history: Path) -> list[str]:
    """Return the violations in a history."""
    verdict = judging.judge(program, history, history.parent)
    print(
        f"{verdict.operations} operations on {verdict.keys} objects, {verdict.unknown} of them with an unknown outcome"
        f"; not linearizable: {len(verdict.wrong)}, not decided in time: {len(verdict.undecided)}"
    )
    pictures = dict(zip(verdict.wrong, verdict.pictures, strict=False))
    return [f"the history of {key} is not linearizable: {pictures.get(key, '')}" for key in verdict.wrong]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--storage", choices=("etcd", "sqlite"), default="etcd")
    parser.add_argument("--workers", type=int, default=1, help="processes of each server (default: 1)")
    parser.add_argument("--namespaces", action="store_true", help="processes of etcd and servers each have a machine")
    parser.add_argument("--seconds", type=float, default=120, help="of load (default: 120)")
    parser.add_argument("--seed", type=int, default=1, help="chooses the faults (default: 1)")
    parser.add_argument("--writers", type=int, default=6)
    parser.add_argument("--informers", type=int, default=4)
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between requests of a writer")
    parser.add_argument("--longest", type=float, default=8, help="seconds that a fault lasts at most (default: 8)")
    parser.add_argument("--rest", type=float, default=3, help="seconds between faults (default: 3)")
    parser.add_argument("--only", default="", help="faults to choose from, with commas between them")
    parser.add_argument("--flag", action="append", default=[], help="of steersman serve, may be given again")
    parser.add_argument(
        "--full-disk",
        action=argparse.BooleanOptionalAction,
        default=sys.platform == "linux" and os.geteuid() == 0,
        help="one member is on a small file system that is filled (default: as root)",
    )
    parser.add_argument("--keep", type=Path, help="folder for history, logs and pictures; else kept if it fails")
    parser.add_argument("--judge", type=Path, metavar="HISTORY", help="only judges this one again")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 if anything that was promised is not so."""
    options = _options(arguments)
    program = judging.built()
    if options.judge is not None:
        violations = _judged(program, options.judge)
    else:
        if options.namespaces and (why_not := wires.impossible()):
            sys.exit(why_not)
        folder = options.keep or Path(tempfile.mkdtemp(prefix="steersman-chaos-"))
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            sys.exit(f"{folder} is not empty")
        run = Run(options, folder)
        uvloop.run(run.run())
        violations = run.violations + _judged(program, folder / _HISTORY)
        if options.keep is None and not violations:
            shutil.rmtree(folder)
        else:
            print(f"history and logs: {folder}")
    for each in violations:
        print(f"VIOLATION: {each}")
    print(f"seed {options.seed}: {'not ' if violations else ''}all that was promised is so")
    return 1 if violations else 0
