"""Tests of the webhooks, policies and EndpointSlice of docs/webhooks.md on a lone server, with a real kubectl."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from steersman.testing import WITHOUT_ACCOUNTS, ServerProcess
from tests.docs.markdown_documents import ROOT, Document
from tests.e2e.kubectl import PATIENCE, TIMEOUT, Kubectl

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl, which the guide's commands call"),
]

GUIDE = Document(ROOT / "docs" / "webhooks.md")
_STEP = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_HOOK = "8443"
"""Port of the webhook."""

Step = tuple[str, str]
"""Command, and its output."""


def _steps() -> list[Step]:
    """Return the steps of the guide about webhooks and policies."""
    blocks = GUIDE.blocks("console")
    first = next(at for at, block in enumerate(blocks) if "steersman serve" in block)
    return [step for block in blocks[:first] for step in _STEP.findall(block)]


def _write_files(folder: Path, port: str, now: int) -> None:
    """Write the files of the guide, whose blocks begin with the file names, with another port."""
    for language in ("python", "yaml"):
        for block in GUIDE.blocks(language):
            name = re.match(r"# ([\w.]+)", block)
            assert name is not None, "a file of the guide begins with its name"
            (folder / name[1]).write_text(block.replace(port, str(now)))


def _follower(kubectl_binary: str, server: ServerProcess, folder: Path) -> Callable[[Sequence[Step]], None]:
    """Return a function that runs steps in a folder, with kubectl in PATH and KUBECONFIG for the server."""
    (programs := folder / "programs").mkdir()
    (programs / "kubectl").symlink_to(Path(kubectl_binary).resolve())
    environment = Kubectl(kubectl_binary, server, folder, "default").environment
    environment["PATH"] = f"{programs}{os.pathsep}{environment['PATH']}"

    def follow(steps: Sequence[Step]) -> None:
        for command, told in steps:
            done = subprocess.run(
                ["sh", "-c", command],
                cwd=folder,
                env=environment,
                timeout=TIMEOUT,
                check=False,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            assert [line.rstrip() for line in done.stdout.splitlines()] == told.splitlines(), command

    return follow


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def _running(command: str, folder: Path, port: int) -> Iterator[None]:
    """Run a program of the guide in the background, and enter the block once it listens."""
    process = subprocess.Popen([sys.executable, *command.split()[1:2]], cwd=folder, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + PATIENCE
        while not _listens(port):
            assert process.poll() is None, "the webhook has ended"
            assert time.monotonic() < until, "the webhook does not listen"
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


def test_webhooks_and_policies_answer_what_the_guide_says(kubectl_binary: str, tmp_path: Path) -> None:
    port = _free_port()
    _write_files(tmp_path, _HOOK, port)
    steps = [(command.replace(_HOOK, str(port)), told) for command, told in _steps()]
    at = next(at for at, (command, _) in enumerate(steps) if command.endswith("&"))
    with ServerProcess(tmp_path / "data", WITHOUT_ACCOUNTS) as server:
        follow = _follower(kubectl_binary, server, tmp_path)
        follow(steps[:at])
        with _running(steps[at][0], tmp_path, port):
            follow(steps[at + 1 :])
            follow([("kubectl create -f slice.yaml", "endpointslice.discovery.k8s.io/hook created\n")])
