"""Tests of users' requests to simulated nodes, with a real kubectl and `steersman up`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

TIMEOUT = 60.0
SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}
WEBSOCKETS = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "true", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "true"}
both_protocols = pytest.mark.parametrize("protocol", [SPDY, WEBSOCKETS], ids=["spdy", "websocket"])
pytestmark = pytest.mark.slow
COUNTS = 'i=0; while true; do echo "line $i"; i=$((i+1)); sleep 0.2; done'


class Kubectl:
    """kubectl for a running cluster."""

    def __init__(self, binary: str, folder: Path) -> None:
        self.binary = binary
        self.environment = {**os.environ, "KUBECONFIG": str(folder / "admin.kubeconfig"), "HOME": str(folder)}

    def run(self, *arguments: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        """Run kubectl and return the process, also if it failed; `more` are environment variables."""
        return subprocess.run(
            [self.binary, *arguments],
            env={**self.environment, **more},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )

    def __call__(self, *arguments: str, stdin: str = "", **more: str) -> str:
        """Run kubectl and return its output. An exit code other than 0 fails the test."""
        done = self.run(*arguments, stdin=stdin, **more)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def kubectl(kubectl_binary: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("up")
    up = [sys.executable, "-m", "steersman.cli", "up", f"--data-dir={folder}", "--secure-port=0", "--storage=memory"]
    with subprocess.Popen(up, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready ")
        found = Kubectl(kubectl_binary, folder)
        found("run", "web", "--image=nginx", "--port=80")
        found("run", "counts", "--image=busybox", "--", "sh", "-c", COUNTS)
        found("wait", "--for=condition=Ready", "pod/web", "pod/counts", "--timeout=30s")
        yield found
        process.terminate()


def test_logs(kubectl: Kubectl) -> None:
    assert kubectl("logs", "web") == "nginx is simulated: container web has started\n"
    assert kubectl("logs", "counts", "--limit-bytes=6") == "line 0"
    assert kubectl("logs", "counts", "--tail=1").startswith("line ")
    stamped = kubectl("logs", "counts", "--timestamps", "--since=10m").splitlines()[0]
    assert stamped.endswith("000Z line 0")
    with subprocess.Popen(
        [kubectl.binary, "logs", "-f", "--tail=1", "counts"], env=kubectl.environment, stdout=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        numbers = [int(following.stdout.readline().split()[1]) for _ in range(4)]
        following.terminate()
    assert numbers == list(range(numbers[0], numbers[0] + 4))


@both_protocols
def test_commands(kubectl: Kubectl, protocol: dict[str, str]) -> None:
    assert kubectl("exec", "web", "--", "hostname", **protocol) == "web\n"
    done = kubectl.run("exec", "-i", "web", "--", "sh", "-c", "cat; echo no >&2; exit 3", stdin="typed\n", **protocol)
    assert (done.stdout, done.returncode) == ("typed\n", 3)
    assert done.stderr == "no\ncommand terminated with exit code 3\n"
    done = kubectl.run("exec", "web", "--", "nosuch", **protocol)
    assert 'exec: "nosuch": executable file not found in $PATH: unknown' in done.stderr


@both_protocols
def test_ports(kubectl: Kubectl, protocol: dict[str, str]) -> None:
    forward = [kubectl.binary, "port-forward", "pod/web", ":80"]
    with subprocess.Popen(
        forward, env={**kubectl.environment, **protocol}, stdout=subprocess.PIPE, text=True
    ) as forwarding:
        assert forwarding.stdout is not None
        port = forwarding.stdout.readline().split(":")[1].split(" ")[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/hostname", timeout=10) as answer:
            assert answer.read() == b"web\n"
        with closing(socket.create_connection(("127.0.0.1", int(port)), 10)) as connection:
            connection.sendall(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody")
            assert connection.makefile("rb").read().endswith(b"\n\nbody\n")
        forwarding.terminate()


def test_a_pod_that_is_attached_to_ends_with_its_shell(kubectl: Kubectl) -> None:
    run = ("run", "typed", "-i", "--rm", "--restart=Never", "--image=busybox", "--", "sh")
    done = kubectl.run(*run, stdin="echo hello from $(hostname)\nexit 0\n")
    assert "hello from typed\n" in done.stdout
    assert done.returncode == 0, done.stderr


def test_a_container_for_debugging(kubectl: Kubectl) -> None:
    kubectl("debug", "web", "--image=busybox", "--container=d", "--", "sh", "-c", "echo look; sleep 600")
    until = time.monotonic() + 20
    while "look" not in (said := kubectl.run("logs", "web", "-c", "d")).stdout:
        assert time.monotonic() < until, said.stderr
        time.sleep(0.1)


def test_files_are_copied_both_ways(kubectl: Kubectl, tmp_path: Path) -> None:
    given = tmp_path / "given"
    (given / "inside").mkdir(parents=True)
    (given / "text").write_text("one\n")
    (given / "inside" / "binary").write_bytes(bytes(range(256)) * 200)
    kubectl("cp", str(given), "web:/tmp/")
    assert kubectl("exec", "web", "--", "cat", "/tmp/given/text") == "one\n"
    kubectl("cp", "web:/tmp/given", str(tmp_path / "back"))
    for name in ("text", "inside/binary"):
        assert (tmp_path / "back" / name).read_bytes() == (given / name).read_bytes()


LIVENESS = """
apiVersion: v1
kind: Pod
metadata: {name: liveness}
spec:
  containers:
  - name: liveness
    image: registry.k8s.io/busybox:1.27.2
    args: [/bin/sh, -c, touch /tmp/healthy; sleep 2; rm -f /tmp/healthy; sleep 600]
    livenessProbe: {exec: {command: [cat, /tmp/healthy]}, periodSeconds: 1}
"""


def test_a_container_is_started_again_when_its_file_is_gone(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=LIVENESS)
    kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "pod/liveness", "--timeout=30s")
    told = kubectl("describe", "pod", "liveness")
    assert "Liveness probe failed: cat: can't open '/tmp/healthy': No such file or directory" in told
    assert "Container liveness failed liveness probe, will be restarted" in told


def test_what_pods_and_nodes_tell_through_proxies(kubectl: Kubectl) -> None:
    assert kubectl("get", "--raw", "/api/v1/namespaces/default/pods/web:80/proxy/hostname") == "web\n"
    assert kubectl("get", "--raw", "/api/v1/nodes/node-0/proxy/healthz") == "ok"
    summary = kubectl("get", "--raw", "/api/v1/nodes/node-0/proxy/stats/summary")
    assert '"nodeName":"node-0"' in summary
