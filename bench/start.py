"""Measures what a start costs: CPU until a program is ready, and its memory when it idles afterwards.

    python -m bench.start [--rounds 7] [--parts serve,again,up,import] [--python OTHER/.venv/bin/python ...]

Parts: `serve` on an empty folder, `again` on the folder of a start before, `up` with three nodes, and `import` of
`steersman.testing.Environment`. CPU is user and system time of the process and its children in milliseconds, read when
it says that it is ready, memory what /proc/PID/smaps_rollup tells `--settle` seconds later, in MiB. With several
interpreters, each of which has a version of the project installed, they take turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Final

_COMMANDS: Final = {
    "serve": ("serve", "--bind-address=127.0.0.1"),
    "again": ("serve", "--bind-address=127.0.0.1"),
    "up": ("up", "--nodes=3"),
}
_IMPORT: Final = """
import time
from steersman.testing import Environment
print(f"ready {time.process_time()}", flush=True)
input()
"""
_TICK: Final = os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--parts", default="serve,again,up,import")
    parser.add_argument("--settle", type=float, default=3.0, help="seconds until memory is read")
    parser.add_argument("--python", action="append", help="interpreter of a version; may be given several times")
    options = parser.parse_args()
    pythons: list[str] = options.python or [sys.executable]
    for part in options.parts.split(","):
        found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
        for _ in range(options.rounds):
            for python in pythons:
                found[python].append(measure(python, part, options.settle))
        for python, rows in found.items():
            cpu, rss, uss = (statistics.median(column) for column in zip(*rows, strict=True))
            least = min(row[0] for row in rows)
            print(
                f"{part:7} {cpu:7.0f} ms CPU (least {least:.0f})  {rss:6.1f} MiB RSS  {uss:6.1f} MiB USS  {python}",
                flush=True,
            )
    return 0


def measure(python: str, part: str, settle: float) -> tuple[float, float, float]:
    """Return CPU in milliseconds, and resident and unshared memory in MiB."""
    with tempfile.TemporaryDirectory(prefix="steersman-start-") as folder:
        if part == "again":
            _run(_command(python, part, folder), 0)
        return _run(_command(python, part, folder), settle)


def _command(python: str, part: str, folder: str) -> list[str]:
    if part == "import":
        return [python, "-c", _IMPORT]
    return [python, "-m", "steersman.cli", *_COMMANDS[part], f"--data-dir={folder}/data", "--secure-port=0"]


def _run(command: list[str], settle: float) -> tuple[float, float, float]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        cpu = _cpu(process.pid)
        if not line.startswith("ready "):
            raise SystemExit(f"{command} is not ready: {line!r}")
        time.sleep(settle)
        rss, uss = _memory(process.pid)
        process.terminate()
    return cpu, rss, uss


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICK * 1000  # with children that it has waited for


def _memory(pid: int) -> tuple[float, float]:
    kib: dict[str, int] = defaultdict(int)
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value = line.split()[:2]
        kib[name.rstrip(":")] = int(value)
    return kib["Rss"] / 1024, (kib["Private_Clean"] + kib["Private_Dirty"]) / 1024


if __name__ == "__main__":
    sys.exit(main())
