"""Time from `steersman up` to a running pod, as a user of kubectl sees it.

    .venv/bin/python -m bench.first_pod --nodes 3 --rounds 5

Each round starts a cluster on an empty folder (with `--again` a second time on the same) and a free port, runs
`kubectl run nginx --image=nginx` and waits until its phase is Running. Prints one JSON line a round: seconds until the
command returns and until the pod runs, CPU seconds of the commands and of the cluster's process, and its MiB then.
Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from steersman.cli.up.process_file import running

_RUNNING = "--for=jsonpath={.status.phase}=Running"


def measure(folder: Path, nodes: int) -> dict[str, float]:
    """One start and its first pod. Raises subprocess.CalledProcessError."""
    kubectl = ["kubectl", f"--kubeconfig={folder / 'admin.kubeconfig'}"]
    began, commands = time.monotonic(), _children()

    def passed() -> float:
        return round(time.monotonic() - began, 3)

    _steersman("up", f"--nodes={nodes}", "--detach", "--secure-port=0", f"--data-dir={folder}")
    ready = passed()
    try:
        name = f"nginx-{time.time_ns()}"
        subprocess.run([*kubectl, "run", name, "--image=nginx"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*kubectl, "wait", f"pod/{name}", _RUNNING], check=True, stdout=subprocess.DEVNULL)
        runs = passed()
        found = running(folder)
        assert found is not None
        return {"ready": ready, "runs": runs, "commands": round(_children() - commands, 2), **_costs(found.pid)}
    finally:
        _steersman("down", f"--data-dir={folder}")


def _steersman(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "steersman.cli", *arguments], check=True, stdout=subprocess.DEVNULL)


def _children() -> float:
    """CPU seconds of the commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _costs(process: int) -> dict[str, float]:
    stat = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return {
        "cpu": (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK"),
        "mib": round(pages * os.sysconf("SC_PAGESIZE") / 2**20, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=3, help="simulated nodes (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often it is measured (default: %(default)s)")
    parser.add_argument("--again", action="store_true", help="measure the second start on a folder")
    options = parser.parse_args()
    if shutil.which("kubectl") is None:
        parser.error("kubectl is not in PATH")
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="steersman-bench-") as folder:
            if options.again:
                measure(Path(folder), options.nodes)
            print(json.dumps(measure(Path(folder), options.nodes)), flush=True)


if __name__ == "__main__":
    main()
