"""Kubernetes' own conformance tests, against a server process and what runs beside it.

    python -m tools.conformance [--server S | --on-etcd LIST] [--controllers C] [--focus REGEXP] [--skip REGEXP]
                                [--timeout MINUTES] [--processes N] [--report FILE]

Of custom resources, webhooks and aggregated servers also those are run that are no conformance tests. `left_out.py`
says which are not run, and why. `--server` is "steersman" or "kubernetes", and so is `--controllers`, who runs
controllers and the scheduler. `--on-etcd` names servers that stand on one etcd instead: "steersman",
"steersman,steersman" or "steersman,kubernetes", behind one address, each connection to which is for the next of them;
clients of HTTP/2 are sent away now and then (`--goaway-chance`), so that all go from one server to the other.

Beside them an agent says of pods what a kubelet would say, and runs webhooks and the sample-apiserver as programs, the
latter with etcd and on port 443 of this machine. With one server and controllers that are both of Steersman the whole
is one process of `steersman up`, with simulated nodes, unless `--nodes=told` has it otherwise; tests are run then whose
containers have something to do.

The programs of Kubernetes, and kubectl, come from the folder that $STEERSMAN_REFERENCE names, or from PATH. The tests,
and Ginkgo, which runs several at the same time, are built from the Go module in this folder at the first time, which
needs Go 1.26, some gigabytes of downloads and cache, and a quarter of an hour. In the end it is said how many tests of
each interest group have passed. Exit code 1 if a test fails.
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
from tools.conformance.left_out import SIMULATED, TOLD, pattern
from tools.conformance.pod_programs import Programs
from tools.conformance.report import table
from tools.one_etcd.servers import names

HERE: Final = Path(__file__).resolve().parent
FOCUS: Final = "|".join(
    (
        r"\[Conformance\]",
        # of custom resources, all
        r"CustomResource|CRDs?\b|CRDValidationRatcheting|[Cc]ustom resource|Kubectl validation.*\bCR\b",
        # of admission and aggregated servers, all
        r"AdmissionWebhook|AdmissionPolicy|Aggregat",
    )
)
ALONE: Final = "explain works for CR with the same"
"""Passes by itself only: kubectl keeps what it has discovered, and does not know a new short name."""
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
    parser = argparse.ArgumentParser(
        prog="python -m tools.conformance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", choices=_PROJECTS, default="steersman")
    parser.add_argument("--on-etcd", type=names, default=(), metavar="LIST", help="servers on one etcd, with commas")
    parser.add_argument("--controllers", choices=_PROJECTS, default="kubernetes", help="and the scheduler")
    parser.add_argument("--nodes", choices=("told", "simulated"), help="where both are Steersman's, simulated")
    parser.add_argument("--focus", default=FOCUS, help="only tests whose names match")
    parser.add_argument("--skip", help="no tests whose names match")
    parser.add_argument("--timeout", type=int, default=60, metavar="MINUTES")
    parser.add_argument("--processes", type=int, default=4, metavar="N", help="tests that run at the same time")
    parser.add_argument("--report", type=Path, metavar="FILE", help="where Ginkgo's report is put, as JSON")
    options = parser.parse_args()
    ours = (options.on_etcd or (options.server,), options.controllers) == (("steersman",), "steersman")
    if options.nodes == "simulated" and not ours:
        parser.error("simulated nodes are part of `steersman up`")
    simulated = ours and options.nodes != "told"
    left_out = SIMULATED if simulated else TOLD
    if options.skip is None:
        options.skip = f"{pattern(left_out)}|{ALONE}"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # what was started is ended on the way out
    program = built("conformance.test", "test", "-c", "-vet=off", ".")
    ginkgo = built("ginkgo", "build", "github.com/onsi/ginkgo/v2/ginkgo")
    images = Programs(built("webhooks", "build", "./webhooks"), built_sample_apiserver(), Path(find("etcd")))
    with (
        tempfile.TemporaryDirectory(prefix="steersman-conformance-") as folder,
        Parts(options.server, options.controllers, simulated, options.on_etcd).run(Path(folder), images) as server,
    ):
        report = options.report or Path(folder) / "report.json"
        arguments = {
            "procs": options.processes,
            "focus": options.focus,
            "skip": options.skip,
            "no-color": "true",
            "timeout": f"{options.timeout}m",
            "output-dir": report.parent.resolve(),
            "json-report": report.name,
        }
        of_tests = {
            "kubeconfig": server.kubeconfig,
            "kubectl-path": find("kubectl"),
            "provider": "skeleton",
            "disable-log-dump": "true",
        }
        command = [str(ginkgo), "run", *_flags(arguments), str(program), "--", *_flags(of_tests)]
        code = subprocess.run(command, check=False).returncode
        print(table(report, left_out), flush=True)
        return code


def _flags(values: Mapping[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items()]


if __name__ == "__main__":
    sys.exit(main())
