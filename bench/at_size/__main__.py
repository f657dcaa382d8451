"""Capacity of a server: start, memory, lists, selectors and watchers with very many stored objects.

    python -m bench.at_size                                     1,000,000 Events, 100,000 Pods, 5,000 Nodes in SQLite
    python -m bench.at_size --etcd --parts start,lists
    python -m bench.at_size --events 100000 --watchers 1000 --keep /tmp/filled

Parts: `start`, `lists` (whole, in pages, by selectors), `old` (pages at an old revision while objects change), `storm`
(watchers that all have to list anew), `slow` (watchers of which some do not read). Needs 4 GB of memory and of the
disk, etcd (from PATH or the folder in STEERSMAN_REFERENCE) for `--etcd`, and Linux. A folder to `--keep` is filled
once and used again.

Each row: seconds by the clock and of processor time of the server, its resident set afterwards and at its peak in MiB,
how often its loop was held for 10 ms and more and for how many ms its thread ran in the longest of these, and what a
GET of a ConfigMap and `/readyz` took meanwhile (median / 99th percentile / longest, in ms).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.at_size import parts
from bench.at_size.filling import Counts, fill_etcd, fill_file, samples
from bench.at_size.network import Network, free_port
from bench.at_size.server import Server

_ETCD_SECONDS: Final = 300.0


@contextlib.contextmanager
def etcd_in(folder: Path) -> Iterator[str]:
    """Runs an etcd on a folder, of which nothing is to outlive the machine; its URL."""
    where = os.pathsep.join(filter(None, (os.environ.get("STEERSMAN_REFERENCE"), os.environ.get("PATH"))))
    program = shutil.which("etcd", path=where)
    if program is None:
        sys.exit("there is no etcd")
    clients, peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    process = subprocess.Popen(
        [
            program,
            f"--data-dir={folder}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--log-level=error",
            "--unsafe-no-fsync",
            f"--quota-backend-bytes={8 << 30}",
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + _ETCD_SECONDS
        while not is_healthy(clients):  # it reads all its keys first
            if process.poll() is not None or time.monotonic() > until:
                sys.exit("etcd has not started")
            time.sleep(0.2)
        yield clients
    finally:
        process.terminate()
        process.wait()


def is_healthy(url: str) -> bool:
    """Return True if an etcd answers."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def fill(server: Server, etcd: str, counts: Counts) -> None:
    """Has the server make one object of each kind, and makes the others of these."""
    server.start()
    server.call("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "small"}, "data": {"a": "b"}})
    for number in range(100):
        server.call("/api/v1/namespaces", {"metadata": {"name": f"size-{number:02}"}})
    for path, body in samples():
        server.call(path, body)
    server.stop()
    began = time.monotonic()
    if etcd:
        fill_etcd(etcd, counts)
    else:
        fill_file(server.folder / "data" / "steersman.db", counts)
    print(f"filled with {counts.total:,} objects in {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.at_size", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--pods", type=int, default=100_000, metavar="N")
    parser.add_argument("--nodes", type=int, default=5_000, metavar="N")
    parser.add_argument("--watchers", type=int, default=10_000, metavar="N")
    parser.add_argument("--etcd", action="store_true", help="store in an etcd (default: in SQLite)")
    everything = ",".join(parts.ALL)
    parser.add_argument("--parts", default=everything, help="what is measured, by commas (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a folder that is filled unless it is there")
    parser.add_argument("--hold", default="10ms", metavar="TIME", help="what counts as a hold (default: %(default)s)")
    parser.add_argument("flags", nargs="*", metavar="-- FLAG", help="further flags of the server")
    options = parser.parse_args()
    wanted = options.parts.split(",")
    if unknown := set(wanted) - set(parts.ALL):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    counts = Counts(options.events, options.pods, options.nodes)
    with contextlib.ExitStack() as stack:
        folder: Path = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="steersman-size-")))
        filled = folder / "filled"
        folder.mkdir(exist_ok=True)
        etcd = stack.enter_context(etcd_in(folder / "etcd")) if options.etcd else ""
        network = stack.enter_context(Network(etcd)) if etcd else None
        server = Server(folder, network, [f"--debug-loop-watchdog={options.hold}", *options.flags])
        stack.callback(server.stop)
        if not filled.exists():
            fill(server, etcd, counts)
            filled.write_text(f"{counts}\n")
        parts.run(server, counts, options.watchers, wanted)


if __name__ == "__main__":
    main()
