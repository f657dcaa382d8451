"""Aggregated servers behind Steersman and behind another API server: the same answers?

    python -m tools.aggregated_server --b COMMAND [--etcd PROGRAM] [--sample-apiserver PROGRAM]

Builds Kubernetes' sample-apiserver with Go, unless its program is given, and runs it twice: it asks one API server each
time who its clients are and what they may do, and is an APIService of it. Then both are asked the same, through them:
discovery, OpenAPI, every verb; and so of a server that fails in many ways. Each difference is told; the exit
code is 1 if there are any. COMMAND starts the other API server, with aggregation, in the foreground; it prints one line
of JSON: {"url", "ca", "token"}; the administrator's token and "alice-token" must be known to it. Without --b only
Steersman is asked, and the answers are printed. The sample-apiserver keeps its objects in etcd.
"""

from __future__ import annotations

import argparse
import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from steersman.server.certificates import ensure_certificates
from tools.aggregated_server import steps
from tools.aggregated_server.faulty import FAULTS, FaultyServer
from tools.differential.comparison import Normaliser, differences
from tools.differential.server import Client, Server

MODULE: Final = "k8s.io/sample-apiserver@v0.36.3"
CACHE: Final = Path.home() / ".cache" / "steersman" / "sample-apiserver"
_HERE: Final = Path(__file__).resolve().parents[2]
_PATIENCE: Final = 90.0
_CUT_OFF: Final = {"error": "the answer was cut off"}
_API_SERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"


def built() -> Path:
    """The sample-apiserver's program, built if it is not there. Ends the program if it cannot be."""
    program = CACHE / MODULE.rpartition("@")[2]
    if not program.exists():
        go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
        if go is None:
            sys.exit("the sample-apiserver is built with Go: put it in PATH, or give --sample-apiserver")
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as empty:
            process = subprocess.run(
                [go, "mod", "download", "-json", MODULE], cwd=empty, stdout=subprocess.PIPE, check=True
            )
            copy = Path(empty) / "copy"
            shutil.copytree(json.loads(process.stdout)["Dir"], copy, copy_function=shutil.copyfile)
            for each in (copy, *copy.rglob("*")):
                each.chmod(0o755 if each.is_dir() else 0o644)
            subprocess.run([go, "build", "-o", program, "."], cwd=copy, check=True)
    return program


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def own_address() -> str:
    """An address of this machine that endpoints may have: none of loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # nothing is sent
        address: str = probe.getsockname()[0]
        return address


@contextmanager
def running(arguments: Sequence[str | Path], log: Path) -> Iterator[None]:
    """A program that writes to a log, to the end of the block."""
    with log.open("ab") as output:
        process = subprocess.Popen(arguments, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def kubeconfig(found: dict[str, Any], path: Path) -> Path:
    """Writes the kubeconfig of whom a token is of, for a server whose `url` and `ca` are in `found`."""
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "it",
                "clusters": [{"name": "it", "cluster": {"server": found["url"], "certificate-authority": found["ca"]}}],
                "users": [{"name": "user", "user": {"token": found["token"]}}],
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "user"}}],
            }
        )
    )
    return path


def register(client: Client, name: str, group: str, version: str, port: int) -> None:
    """Makes a Service with an endpoint at a port of this machine, and the APIService of a group version."""
    client.ask(
        "POST",
        "/api/v1/namespaces/default/services",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"ports": [{"name": "https", "port": 443}]},
        },
    )
    client.ask(
        "POST",
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "addressType": "IPv4",
            "metadata": {"name": f"{name}-1", "labels": {"kubernetes.io/service-name": name}},
            "endpoints": [{"addresses": [own_address()]}],
            "ports": [{"name": "https", "port": port}],
        },
    )
    client.ask(
        "POST",
        _API_SERVICES,
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{version}.{group}"},
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 1000,
                "versionPriority": 15,
                "insecureSkipTLSVerify": True,
                "service": {"name": name, "namespace": "default"},
            },
        },
    )


def wait_until(client: Client, path: str, holds: Any) -> None:
    """Asks until something holds of the answer. Ends the program if it never does."""
    until = time.monotonic() + _PATIENCE
    while True:
        answer = client.ask("GET", path)
        if answer.code == 200 and holds(answer.body):
            return
        if time.monotonic() > until:
            sys.exit(f"{path} is not as it should be: {answer.code} {json.dumps(answer.body)[:2000]}")
        time.sleep(0.1)


def is_available(body: Any) -> bool:
    """Return True if an APIService is available."""
    conditions = body.get("status", {}).get("conditions") or [{}]
    return bool(conditions[0].get("status") == "True")


def part(value: Any, step: steps.Step) -> Any:
    """Return the compared part of a body."""
    for name in filter(None, step.of.split(".")):
        value = value.get(name) if isinstance(value, dict) else None
    if step.only and isinstance(value, dict):
        return {key: each for key, each in value.items() if step.only in key}
    if step.only and isinstance(value, list):
        return [each for each in value if step.only in json.dumps(each)]
    return value


def asked(client: Client, all_steps: list[steps.Step], faulty: str) -> list[Any]:
    """The answers, with what is a server's own choice taken out, and the address of the faulty server."""
    normaliser = Normaliser()
    found: list[Any] = []
    for step in all_steps:
        try:
            answer = client.ask(step.method, step.path, step.body, step.headers)
        except (OSError, http.client.HTTPException):
            client.close()
            found.append(_CUT_OFF)
            continue
        if not answer.code:  # Go has not sent yet what it has
            found.append(_CUT_OFF)
            continue
        body = answer.body.replace(faulty, "<faulty>") if isinstance(answer.body, str) else answer.body
        normal = normaliser.answer(replace(answer, body=body))
        normal["body"] = part(normal["body"], step)
        found.append(normal)
    return found


def play(stack: ExitStack, options: argparse.Namespace, name: str, command: str, folder: Path) -> list[Any]:
    """Runs the servers behind the one that a command starts, and asks for everything."""
    server = Server(command)
    client = stack.enter_context(server)
    found = client.found
    port = free_port()
    stack.enter_context(
        running(
            [
                options.sample_apiserver,
                f"--kubeconfig={kubeconfig(found, folder / f'{name}.kubeconfig')}",
                f"--authentication-kubeconfig={folder / f'{name}.kubeconfig'}",
                f"--authorization-kubeconfig={folder / f'{name}.kubeconfig'}",
                f"--secure-port={port}",
                f"--etcd-servers=http://127.0.0.1:{options.etcd_port}",
                f"--etcd-prefix=/{name}",
                f"--cert-dir={folder / name}",
            ],
            folder / f"{name}-sample.log",
        )
    )
    register(client, "sample", steps.GROUP, "v1alpha1", port)
    register(client, "sample", steps.GROUP, "v1beta1", port)
    files = ensure_certificates(folder / f"{name}-faulty", ["127.0.0.1"])
    faulty = FaultyServer(own_address(), files.server, files.server_key)
    faulty.start()
    stack.callback(faulty.stop)
    register(client, "faulty", steps.FAULTS_GROUP, "v1", faulty.port)
    for each in (f"v1alpha1.{steps.GROUP}", f"v1beta1.{steps.GROUP}", f"v1.{steps.FAULTS_GROUP}"):
        wait_until(client, f"{_API_SERVICES}/{each}", is_available)
    wait_until(client, "/openapi/v3", lambda body: f"apis/{steps.GROUP}/v1alpha1" in body["paths"])
    wait_until(client, "/openapi/v2", lambda body: f"{steps.ROOT}/" in body["paths"])
    return asked(client, every_step(), f"{own_address()}:{faulty.port}")


def every_step() -> list[steps.Step]:
    """All that is asked."""
    return [*steps.of_sample(), *steps.of_faults(list(FAULTS))]


def main() -> int:
    """Compares; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--a", help="the command that starts Steersman; by default bench/serve with its flags")
    parser.add_argument("--b", help="the command that starts the other server")
    parser.add_argument("--etcd", type=Path, default=shutil.which("etcd"), help="etcd's program")
    parser.add_argument("--sample-apiserver", type=Path, help="its program")
    options = parser.parse_args()
    options.sample_apiserver = options.sample_apiserver or built()
    if options.etcd is None:
        sys.exit("the sample-apiserver needs etcd: give --etcd")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="aggregated-")))
        options.etcd_port = free_port()
        client, peer = f"http://127.0.0.1:{options.etcd_port}", f"http://127.0.0.1:{free_port()}"
        stack.enter_context(
            running(
                [
                    options.etcd,
                    "--data-dir",
                    folder / "etcd",
                    "--listen-client-urls",
                    client,
                    "--advertise-client-urls",
                    client,
                    "--listen-peer-urls",
                    peer,
                    "--initial-advertise-peer-urls",
                    peer,
                    "--initial-cluster",
                    f"default={peer}",
                ],
                folder / "etcd.log",
            )
        )
        files = ensure_certificates(folder / "proxy", ["127.0.0.1"])
        ours = options.a or (
            f"{sys.executable} {_HERE / 'bench' / 'serve'} --requestheader-client-ca-file={files.ca} "
            "--requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group "
            "--requestheader-extra-headers-prefix=X-Remote-Extra- "
            f"--proxy-client-cert-file={files.admin} --proxy-client-key-file={files.admin_key} "
            "--service-cluster-ip-range=10.0.0.0/24 --enable-aggregator-routing"
        )
        sides = [("a", ours), *([("b", options.b)] if options.b else [])]
        found = [play(stack, options, name, command, folder) for name, command in sides]
    if len(found) == 1:
        for step, answer in zip(every_step(), found[0], strict=True):
            print(f"{step}\n    {json.dumps(answer)[:300]}")
        return 0
    return told(*found)


def told(a: list[Any], b: list[Any]) -> int:
    """Prints what differs; the exit code."""
    all_steps = every_step()
    failures = 0
    for step, one, other in zip(all_steps, a, b, strict=True):
        lines = list(differences(one, other))
        failures += bool(lines)
        if lines:
            print(step)
            for line in lines[:8]:
                print(f"    {line}")
    print(f"{len(all_steps) - failures} of {len(all_steps)} answers are the same")
    return 1 if failures else 0
