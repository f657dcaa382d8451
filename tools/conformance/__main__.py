"""Kubernetes' own conformance tests of the API, against a server process.

    python -m tools.conformance [--focus REGEXP] [--skip REGEXP] [--timeout MINUTES]

Those are run that need no container that really runs; of custom resources, webhooks and aggregated servers also those
that are no conformance tests. The server has the real kube-controller-manager and kube-scheduler beside it (from the
folder that $STEERSMAN_REFERENCE names, or from PATH), kubectl, and an agent that says of pods what a kubelet would say,
and runs webhooks and the sample-apiserver as programs, the latter with etcd and on port 443 of this machine. The tests
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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from steersman.server.certificates import ensure_certificates
from steersman.testing import ServerProcess
from tools.aggregated_server.command import built as built_sample_apiserver
from tools.conformance.node_agent import NodeAgent
from tools.conformance.pod_programs import PodPrograms, Programs

HERE: Final = Path(__file__).resolve().parent
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
PROGRAMS: Final = Path(os.environ.get("STEERSMAN_REFERENCE") or CACHE / "steersman-reference")
NODES: Final = ["n1", "n2", "n3"]

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


def find(name: str) -> str:
    """A program, from the folder of those built for comparisons or from PATH."""
    found = shutil.which(name, path=f"{PROGRAMS}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        sys.exit(f"no {name}: put one in PATH, or in the folder that $STEERSMAN_REFERENCE names")
    return found


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


@contextmanager
def cluster(folder: Path, images: Programs) -> Iterator[ServerProcess]:
    """A server with controllers, a scheduler and nodes."""
    manager, scheduler = find("kube-controller-manager"), find("kube-scheduler")
    key = folder / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    proxy = ensure_certificates(folder / "proxy", ["127.0.0.1"])
    server = ServerProcess(
        folder / "data", f"--service-account-signing-key-file={key}", "--allow-privileged",
        "--service-cluster-ip-range=10.0.0.0/20", "--enable-aggregator-routing",
        f"--requestheader-client-ca-file={proxy.ca}", "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={proxy.admin}", f"--proxy-client-key-file={proxy.admin_key}",
    )  # fmt: skip
    with ExitStack() as stack:
        server.start()
        stack.callback(server.stop)
        flags = [f"--{each}={server.kubeconfig}" for each in
                 ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")]  # fmt: skip
        for program, *own in (
            [manager, f"--root-ca-file={server.ca}", f"--service-account-private-key-file={key}"],
            [scheduler],
        ):
            log = stack.enter_context((folder / f"{Path(program).name}.log").open("wb"))
            process = subprocess.Popen([program, *flags, "--secure-port=0", *own], stderr=log)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        client = stack.enter_context(server.client())
        programs = PodPrograms(server, client, images)
        stack.callback(programs.stop)
        agent = NodeAgent(client, NODES, programs)
        agent.start()
        stack.callback(agent.stop)
        yield server


def main() -> int:
    """Runs the tests; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--focus", default=FOCUS, help="only tests whose names match")
    parser.add_argument("--skip", default=SKIP, help="no tests whose names match")
    parser.add_argument("--timeout", type=int, default=60, metavar="MINUTES")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # what was started is ended on the way out
    program = built("conformance.test", "test", "-c", ".")
    images = Programs(built("webhooks", "build", "./webhooks"), built_sample_apiserver(), Path(find("etcd")))
    with (
        tempfile.TemporaryDirectory(prefix="steersman-conformance-") as folder,
        cluster(Path(folder), images) as server,
    ):
        arguments = {
            "kubeconfig": server.kubeconfig, "kubectl-path": find("kubectl"), "provider": "skeleton",
            "ginkgo.focus": options.focus, "ginkgo.skip": options.skip, "ginkgo.no-color": "true",
            "ginkgo.timeout": f"{options.timeout}m", "test.timeout": f"{options.timeout + 1}m",
            "disable-log-dump": "true",
        }  # fmt: skip
        flags = [f"--{name}={value}" for name, value in arguments.items()]
        return subprocess.run([str(program), *flags], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
