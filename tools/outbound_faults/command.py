"""Does the server keep anything of others that fail it?

    python -m tools.outbound_faults [--calls 10000] [--deaths 200]

A server in this process asks webhooks that hang, hang up, answer garbage, too much, or something else than they were
asked, and stands before an aggregated server that dies in the middle of its answers and comes back elsewhere; each
over HTTP/1.1 and HTTP/2. After a beginning, and at the end, it is told how much memory, how many tasks and how many
open files there are, of which those others are a part. The exit code is 1 if tasks or files are left, or memory grows.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvloop

from steersman.server.certificates import CertificateFiles, ensure_certificates
from steersman.testing import Environment
from tools.outbound_faults.remotes import Remotes
from tools.outbound_faults.webhooks import Webhooks

_SETTLING: Final = 20.0
"""Seconds that connections have to end."""
_SPARE: Final = 8
"""Tasks and files by which two looks may differ."""
SPARE_BYTES: Final = 16 << 20
BEGINNING: Final = 10
"""The part of all that is done before the first look."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources of this process."""

    rss: int
    """Bytes."""
    tasks: int
    files: int

    def __str__(self) -> str:
        return f"{self.rss / (1 << 20):.1f} MiB, {self.tasks} tasks, {self.files} files"

    def grew(self, before: Usage) -> bool:
        """Return True if the usage is higher than before."""
        return (
            self.rss > before.rss + SPARE_BYTES
            or self.tasks > before.tasks + _SPARE
            or self.files > before.files + _SPARE
        )


def usage() -> Usage:
    """Now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return Usage(pages * os.sysconf("SC_PAGE_SIZE"), len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd")))


async def settled(before: Usage | None) -> Usage:
    """Return the usage after connections have had time to end."""
    until = asyncio.get_running_loop().time() + _SETTLING
    found = usage()
    while asyncio.get_running_loop().time() < until and (before is None or found.grew(before)):
        await asyncio.sleep(0.5)
        last, found = found, usage()
        if before is None and (found.tasks, found.files) == (last.tasks, last.files):
            break
    return found


async def watched(what: str, count: int, run: Callable[[int], Awaitable[None]]) -> bool:
    """Does something so often; whether more was left at the end than after the beginning."""
    first = max(1, count // BEGINNING)
    await run(first)
    before = await settled(None)
    print(f"{what}: after {first}: {before}", flush=True)
    await run(count - first)
    after = await settled(before)
    print(f"{what}: after {count}: {after}", flush=True)
    return after.grew(before)


def counted(told: Counter[str]) -> str:
    """Return the counts as a line of text."""
    return ", ".join(f"{each}: {told[each]}" for each in sorted(told))


async def run(calls: int, deaths: int, files: CertificateFiles) -> bool:
    """Run the calls. Return True if anything was leaked."""
    leaks = False
    async with Environment() as environment:
        client = environment.client()
        if calls:
            webhooks = Webhooks(client, files)
            await webhooks.start()
            leaks |= await watched("calls of webhooks", calls, webhooks.call)
            await webhooks.stop()
            print(counted(webhooks.told))
        if deaths:
            remotes = Remotes(client, files)
            await remotes.start()
            leaks |= await watched("deaths of an aggregated server", deaths, remotes.live)
            print(counted(remotes.told))
    return leaks


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000, help="of webhooks")
    parser.add_argument("--deaths", type=int, default=200, help="of an aggregated server")
    options = parser.parse_args()
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of those who write on after they were left
    with tempfile.TemporaryDirectory(prefix="outbound-") as folder:
        files = ensure_certificates(Path(folder), ["127.0.0.1"])
        return int(uvloop.run(run(options.calls, options.deaths, files)))
