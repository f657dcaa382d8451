"""Kubernetes' own conformance tests of the API, against a server process.

    python -m tools.conformance [--server S] [--controllers C] [--focus REGEXP] [--skip REGEXP] [--timeout MINUTES]

Those are run that need no container that really runs; of custom resources, webhooks and aggregated servers also those
that are no conformance tests. `--server` is "steersman" or "kubernetes", and so is `--controllers`, who runs
controllers and the scheduler. Beside them an agent says of pods what a kubelet would say, and runs webhooks and the
sample-apiserver as programs, the latter with etcd and on port 443 of this machine. With both of Steersman the whole is
one process of `steersman up`, with simulated nodes, unless `--nodes=told` has it otherwise; tests that look at the API
alone are run then whose containers have something to do.

The programs of Kubernetes, and kubectl, come from the folder that $STEERSMAN_REFERENCE names, or from PATH. The tests
are built from the Go module in this folder at the first time, which needs Go 1.26, some gigabytes of downloads and
cache, and a quarter of an hour. Exit code 1 if a test fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tools.aggregated_server.command import built as built_sample_apiserver
from tools.conformance.clusters import PROGRAMS, Parts, find
from tools.conformance.pod_programs import Programs
from tools.conformance.report import table

HERE: Final = Path(__file__).resolve().parent
FOCUS: Final = "|".join((
    r"\[sig-(api-machinery|apps|auth|cli|instrumentation|network|node|scheduling|storage)\].*\[Conformance\]",
    # of custom resources, all
    r"CustomResource|CRDs?\b|CRDValidationRatcheting|[Cc]ustom resource|Kubectl validation.*\bCR\b",
    # of admission and aggregated servers, all
    r"AdmissionWebhook|AdmissionPolicy|Aggregat",
))  # fmt: skip
SKIP: Final = "|".join((
    "NodeConformance",
    # passes by itself only: kubectl keeps what it has discovered, and does not know a new short name
    "explain works for CR with the same",
    # a container has to run
    "DNS|session aff|functioning|HostPort|Proxy version|Guestbook|Update Demo|should serve|ImageVolume",
    "master service|to NodePort|to ClusterIP|to ExternalName|multiple (ports|endpoint IPs) spec|Kubectl (logs|expose)",
    "be consumable|EmptyDir|Downward|Projected|PreStop|InPlace|Security Context|Variable Expansion|should mount|OIDC",
    "serve a basic|Job should (run|allow|execute|mark|terminate|delete a)|successPolicy|failing daemon|complex daemon",
    "StatefulSet.*(predictable|evicted|Burst|canary|rolling)|NoExecute|SchedulerPre.*(valid|runs)|exists conflict",
    "[Vv]olume|by-node",
    # minutes of waiting
    r"CronJob should (not|replace|sched)|podspec updates",
))  # fmt: skip


SKIP_SIMULATED: Final = SKIP
_PROJECTS: Final = ("steersman", "kubernetes")


def built(name: str, *command: str) -> Path:
    """A program of the module in this folder, made by a command of Go's."""
    program = PROGRAMS / name
    if not program.exists():
        go = shutil.which("go", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/local/go/bin")
        if go is None:
            sys.exit("building the tests needs Go")
        PROGRAMS.mkdir(parents=True, exist_ok=True)
        print(f"building {program}", flush=True)
        *verb, package = command
        subprocess.run([go, *verb, "-buildvcs=false", "-o", str(program), package], cwd=HERE, check=True)
    return program


def main() -> int:
    """Runs the tests; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", choices=_PROJECTS, default="steersman")
    parser.add_argument("--controllers", choices=_PROJECTS, default="kubernetes", help="and the scheduler")
    parser.add_argument("--nodes", choices=("told", "simulated"), help="where both are Steersman's, simulated")
    parser.add_argument("--focus", default=FOCUS, help="only tests whose names match")
    parser.add_argument("--skip", help="no tests whose names match")
    parser.add_argument("--timeout", type=int, default=60, metavar="MINUTES")
    parser.add_argument("--processes", type=int, default=4, metavar="N", help="tests that run at the same time")
    parser.add_argument("--report", type=Path, metavar="FILE", help="where Ginkgo's report is put, as JSON")
    options = parser.parse_args()
    ours = (options.server, options.controllers) == ("steersman", "steersman")
    if options.nodes == "simulated" and not ours:
        parser.error("simulated nodes are part of `steersman up`")
    simulated = ours and options.nodes != "told"
    if options.skip is None:
        options.skip = SKIP_SIMULATED if simulated else SKIP
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # what was started is ended on the way out
    program = built("conformance.test", "test", "-c", ".")
    ginkgo = built("ginkgo", "build", "github.com/onsi/ginkgo/v2/ginkgo")
    images = Programs(built("webhooks", "build", "./webhooks"), built_sample_apiserver(), Path(find("etcd")))
    with (
        tempfile.TemporaryDirectory(prefix="steersman-conformance-") as folder,
        Parts(options.server, options.controllers, simulated).run(Path(folder), images) as server,
    ):
        report = options.report or Path(folder) / "report.json"
        arguments = {
            "procs": options.processes, "focus": options.focus, "skip": options.skip, "no-color": "true",
            "timeout": f"{options.timeout}m", "output-dir": report.parent.resolve(), "json-report": report.name,
        }  # fmt: skip
        of_tests = {
            "kubeconfig": server.kubeconfig, "kubectl-path": find("kubectl"), "provider": "skeleton",
            "disable-log-dump": "true",
        }  # fmt: skip
        command = [str(ginkgo), "run", *_flags(arguments), str(program), "--", *_flags(of_tests)]
        code = subprocess.run(command, check=False).returncode
        print(table(report), flush=True)
        return code


def _flags(values: Mapping[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items()]


if __name__ == "__main__":
    sys.exit(main())
