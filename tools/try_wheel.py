#!/usr/bin/env python3
"""Install a wheel into clean environments and use it there as its users would.

    python -m tools.try_wheel dist/steersman-0.1.0-py3-none-any.whl [--python python3.11 --python python3.13]

For each Python an environment is made that has the wheel, its requirements and pytest, and nothing else; nothing of the
checkout is on its path. Tried there, with rows of a table as the result:

- `steersman --version`, and the packages that were installed;
- `steersman up`: a pod is created, and runs;
- `steersman serve`: a ConfigMap is created, and is there after `kill -9` and a new start;
- `steersman envtest`: its kube-apiserver starts with the flags of controller-runtime's envtest;
- the pytest plugin: a test that uses the fixture `steersman`;
- the library: a server of an annotated class.

Needs no kubectl: requests are made with Python's standard library. Ends with 1 if anything did not work.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PATIENCE = 120.0
"""Seconds for a program to be ready, and for a pod to run."""

_LIBRARY = """
from dataclasses import dataclass
from steersman import Server, resource

@resource("example.com/v1")
@dataclass
class Widget:
    size: int = 1

Server(Widget, secure_port=0).run()
"""
_PLUGIN = """
def test_the_namespace_is_there(steersman):
    with steersman.client() as client:
        assert client.json("GET", "/api/v1/namespaces/default")[0] == 200
"""


class Failed(Exception):
    """Something did not work; the message says what, with the output of the program."""


def ready_fields(process: subprocess.Popen[str]) -> dict[str, str]:
    """Wait for the line `ready ...` on a program's stdout, and return its fields. Raises Failed if the program ends."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("ready "):
            return dict(field.split("=", 1) for field in line.split()[1:])
    raise Failed(f"{process.args!r} is not ready: {(process.communicate()[1] or '')[-2000:]}")


class Environment:
    """A clean environment of one Python, in a folder of its own."""

    def __init__(self, folder: Path, python: str, wheel: Path) -> None:
        """Make the environment and install the wheel. Raises CalledProcessError."""
        self.folder = folder
        self.bin = folder / "venv" / "bin"
        subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
        self._pip("install", "--quiet", str(wheel))
        self.packages = self._pip("list", "--format=freeze").split()
        self._pip("install", "--quiet", "pytest")

    def _pip(self, *arguments: str) -> str:
        command: list[str | Path] = [self.bin / "python", "-m", "pip", "--disable-pip-version-check", *arguments]
        output: str = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        return output

    def environ(self) -> dict[str, str]:
        """The variables of programs: a home of their own, and nothing of Python's."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "XDG_", "KUBE"))}
        return kept | {"HOME": str(self.folder), "PATH": f"{self.bin}:/usr/bin:/bin"}

    def run(self, *command: str | Path, **options: Any) -> str:
        """Return what a program prints. Raises Failed if it ends with another code than 0."""
        done: subprocess.CompletedProcess[str] = subprocess.run(
            command, cwd=self.folder, env=self.environ(), capture_output=True, text=True, timeout=_PATIENCE, **options
        )
        if done.returncode:
            raise Failed(
                f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        return done.stdout

    @contextmanager
    def running(self, *command: str | Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
        """A program, and the fields of the line `ready ...` that it has printed. Killed at the end if it still runs."""
        process = subprocess.Popen(
            command, cwd=self.folder, env=self.environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            yield process, ready_fields(process)
        finally:
            process.kill()
            process.communicate()


class Client:
    """An administrator's requests to a server, by the certificates in its data folder."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._tls = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        self._tls.load_cert_chain(folder / "admin.crt", folder / "admin.key")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the document in an answer. Raises Failed for a status of 400 or more."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, {"content-type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, context=self._tls, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Failed(f"{method} {path}: {error.code} {error.read().decode()}") from None


def run_pod(client: Client) -> None:
    """Create a pod and wait until it runs. Raises Failed."""
    deadline = time.monotonic() + _PATIENCE
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "nginx"}]}}
    client.ask("POST", "/api/v1/namespaces/default/pods", pod)
    while client.ask("GET", "/api/v1/namespaces/default/pods/a")["status"]["phase"] != "Running":
        if time.monotonic() > deadline:
            raise Failed("the pod does not run")
        time.sleep(0.05)


def version(environment: Environment) -> str:
    """`steersman --version`."""
    return environment.run("steersman", "--version").strip()


def up(environment: Environment) -> str:
    """Create a pod on a simulated cluster, and wait until it runs."""
    began = time.monotonic()
    command = ("steersman", "up", "--nodes", "1", "--secure-port", "0", "--data-dir", "up")
    with environment.running(*command) as (_, fields):
        ready = time.monotonic() - began
        client = Client(fields["url"], environment.folder / "up")
        run_pod(client)
        return f"ready in {ready:.1f} s, the pod runs after {time.monotonic() - began:.1f} s"


def serve(environment: Environment) -> str:
    """Create a ConfigMap, kill the server, and read the ConfigMap after a new start."""
    command = ("steersman", "serve", "--secure-port", "0", "--bind-address", "127.0.0.1", "--data-dir", "serve")
    path = "/api/v1/namespaces/default/configmaps"
    with environment.running(*command) as (process, fields):
        client = Client(fields["url"], environment.folder / "serve")
        client.ask("POST", path, {"metadata": {"name": "a"}, "data": {"k": "v"}})
        process.send_signal(signal.SIGKILL)
        process.wait()
    with environment.running(*command) as (process, fields):
        found = Client(fields["url"], environment.folder / "serve").ask("GET", f"{path}/a")
        if found["data"] != {"k": "v"}:
            raise Failed(f"the ConfigMap is {found}")
        process.send_signal(signal.SIGTERM)
        if process.wait(_PATIENCE) != 0:
            raise Failed(f"SIGTERM ended the server with {process.returncode}")
    return "kept after kill -9"


def envtest(environment: Environment) -> str:
    """Ask the programs that envtest starts for their versions."""
    assets = Path(environment.run("steersman", "envtest").strip())
    return " ".join(environment.run(assets / name, "--version").split("\n")[0] for name in ("kube-apiserver", "etcd"))


def plugin(environment: Environment) -> str:
    """Run a test that uses a fixture of the plugin."""
    (environment.folder / "test_plugin.py").write_text(_PLUGIN)
    return environment.run(environment.bin / "python", "-m", "pytest", "-q", "test_plugin.py").strip().splitlines()[-1]


def library(environment: Environment) -> str:
    """Serve an annotated class until SIGTERM."""
    (environment.folder / "widgets.py").write_text(_LIBRARY)
    with environment.running(environment.bin / "python", "widgets.py") as (process, fields):
        process.send_signal(signal.SIGTERM)
        if process.wait(_PATIENCE) != 0:
            raise Failed(f"SIGTERM ended the server with {process.returncode}")
        return f"served at {fields['url']}"


USES: tuple[Callable[[Environment], str], ...] = (version, up, serve, envtest, plugin, library)


def main() -> None:
    """Try the wheel with each Python, print what was found, and exit with 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", action="append", help="a Python to try it with (by default the one that runs this)")
    options = parser.parse_args()
    failures = 0
    for python in options.python or [sys.executable]:
        with tempfile.TemporaryDirectory() as folder:
            environment = Environment(Path(folder), python, options.wheel.resolve())
            others = [
                each for each in environment.packages if not each.startswith(("pip==", "setuptools==", "steersman"))
            ]
            print(f"{python}: {len(others)} packages beside steersman: {' '.join(others)}")
            for use in USES:
                try:
                    print(f"  {use.__name__:8} {use(environment)}", flush=True)
                except (Failed, subprocess.TimeoutExpired) as error:
                    failures += 1
                    print(f"  {use.__name__:8} FAILED {error}", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
