"""A server of the library as its users run it, with a real kubectl."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.docs.markdown_documents import Document
from tests.e2e.library_program import Program

pytestmark = pytest.mark.slow

HELLO = Document(ROOT / "docs" / "library.md").blocks("python")[0]
"""First program of the guide."""


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
    return json.dumps(
        {"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": name}, "spec": spec}
    )


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
    assert "Unsupported value" in hello.kubectl("create", "-f", "-", stdin=flunder("h", referenceType="Whale"), code=1)
    assert "DESCRIPTION:\n    Reference to another flunder or to a fischer." in hello.kubectl("explain", "flunder.spec")
    hello.kubectl(
        "patch",
        "fl",
        "a",
        "--subresource=status",
        "--type=merge",
        "-p",
        '{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}',
    )
    assert hello.kubectl("wait", "fl/a", "--for=condition=Ready").endswith("a condition met\n")
    assert hello.kubectl("delete", "fl", "--all").count("deleted") == 3


def test_a_namespace_goes_with_what_is_in_it(hello: Program) -> None:
    hello.kubectl("create", "namespace", "pond")
    hello.kubectl("create", "-n", "pond", "-f", "-", stdin=flunder("a", reference="b"))
    hello.kubectl("create", "-f", "-", stdin=flunder("a", reference="b"))
    assert hello.kubectl("delete", "namespace", "pond") == 'namespace "pond" deleted\n'
    assert hello.kubectl("get", "fl", "-A", "--no-headers").split()[:2] == ["default", "a"]
