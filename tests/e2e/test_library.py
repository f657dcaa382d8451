"""A server of the library as its users run it, with a real kubectl."""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.docs.markdown_documents import Document

pytestmark = pytest.mark.slow

HELLO = Document(ROOT / "docs" / "library.md").blocks("python")[0]
"""The program that the guide begins with."""
TIMEOUT = 60.0


class Program:
    """A Python program that serves, and kubectl for it."""

    def __init__(self, folder: Path, kubectl: str, *arguments: str) -> None:
        environment = {**os.environ, "XDG_STATE_HOME": str(folder)}
        self._process = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
        )
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            line = self._process.stdout.readline() if selector.select(TIMEOUT) else ""
        ready = re.match(r"ready url=(\S+) kubeconfig=(\S+)", line)
        assert ready is not None, line
        self._kubectl = kubectl
        self._environment = {**os.environ, "HOME": str(folder), "KUBECONFIG": ready[2]}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self._kubectl, *arguments], env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def kubectl(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        process = self.start(*arguments)
        output, _ = process.communicate(stdin, timeout=TIMEOUT)
        assert process.returncode == code, f"kubectl {' '.join(arguments)}: {output}"
        return output

    def stop(self) -> int:
        self._process.terminate()
        code = self._process.wait(TIMEOUT)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code


@pytest.fixture
def hello(tmp_path: Path, kubectl_binary: str) -> Iterator[Program]:
    program = tmp_path / "hello.py"
    program.write_text(HELLO.replace("Server(Flunder)", "Server(Flunder, secure_port=0)"))
    running = Program(tmp_path, kubectl_binary, str(program))
    try:
        yield running
    finally:
        assert running.stop() == 0


def flunder(name: str, **spec: str) -> str:
    return json.dumps({
        "apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": name}, "spec": spec
    })  # fmt: skip


def test_the_first_program_of_the_guide_has_twenty_lines() -> None:
    assert len([line for line in HELLO.splitlines() if line.strip()]) <= 20


def test_kubectl_works_on_it(hello: Program) -> None:
    watching = hello.start("get", "flunders", "--watch", "--no-headers")
    assert hello.kubectl("create", "-f", "-", stdin=flunder("a", reference="b")).endswith("a created\n")
    assert watching.stdout is not None
    assert watching.stdout.readline().split()[:2] == ["a", "b"]
    watching.kill()
    watching.communicate()
    assert hello.kubectl("get", "fl").splitlines()[0].split() == ["NAME", "REFERENCE", "AGE"]
    assert hello.kubectl("apply", "--server-side", "-f", "-", stdin=flunder("c", reference="d")).endswith(
        "c serverside-applied\n"
    )
    assert hello.kubectl("apply", "-f", "-", stdin=flunder("e", reference="f")).endswith("e created\n")
    assert hello.kubectl("apply", "-f", "-", stdin=flunder("e", reference="g")).endswith("e configured\n")
    assert "Unsupported value" in hello.kubectl(
        "create", "-f", "-", stdin=flunder("h", referenceType="Whale"), code=1
    )  # fmt: skip
    assert "DESCRIPTION:\n    What a flunder refers to." in hello.kubectl("explain", "flunder.spec")
    hello.kubectl(
        "patch", "fl", "a", "--subresource=status", "--type=merge",
        "-p", '{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}',
    )  # fmt: skip
    assert hello.kubectl("wait", "fl/a", "--for=condition=Ready").endswith("a condition met\n")
    assert hello.kubectl("delete", "fl", "--all").count("deleted") == 3


def test_a_namespace_goes_with_what_is_in_it(hello: Program) -> None:
    hello.kubectl("create", "namespace", "pond")
    hello.kubectl("create", "-n", "pond", "-f", "-", stdin=flunder("a", reference="b"))
    hello.kubectl("create", "-f", "-", stdin=flunder("a", reference="b"))
    assert hello.kubectl("delete", "namespace", "pond") == 'namespace "pond" deleted\n'
    assert hello.kubectl("get", "fl", "-A", "--no-headers").split()[:2] == ["default", "a"]
