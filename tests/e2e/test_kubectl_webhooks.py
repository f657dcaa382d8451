"""The commands of docs/webhooks.md, one after the other, with a real kubectl and the webhook that stands there."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steersman.testing import WITHOUT_ACCOUNTS, ServerProcess
from tests.docs.markdown_documents import ROOT, Document
from tests.e2e.kubectl import PATIENCE, TIMEOUT, Kubectl

pytestmark = pytest.mark.slow

GUIDE = Document(ROOT / "docs" / "webhooks.md")
_STEP = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_PORT = "8443"


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def _running(command: str, folder: Path, port: int) -> Iterator[None]:
    """A program that the guide starts in the background, once it listens."""
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


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl, which the guide's commands call")
def test_the_guide_prints_what_it_says(kubectl_binary: str, tmp_path: Path) -> None:
    """Every command of the guide but those that start an aggregated setup; the webhook's port is a free one."""
    port = _free_port()
    for language in ("python", "yaml"):
        for block in GUIDE.blocks(language):
            name = re.match(r"# ([\w.]+)", block)
            assert name is not None, "a file of the guide begins with its name"
            (tmp_path / name[1]).write_text(block.replace(_PORT, str(port)))
    (programs := tmp_path / "programs").mkdir()
    (programs / "kubectl").symlink_to(Path(kubectl_binary).resolve())
    told = "".join(block for block in GUIDE.blocks("console") if "steersman serve" not in block)
    steps: list[tuple[str, str]] = _STEP.findall(told)
    (background,) = (command for command, _ in steps if command.endswith("&"))
    with ServerProcess(tmp_path / "data", WITHOUT_ACCOUNTS) as server:
        environment = Kubectl(kubectl_binary, server, tmp_path, "default").environment
        environment["PATH"] = f"{programs}{os.pathsep}{environment['PATH']}"

        def follow(followed: list[tuple[str, str]]) -> None:
            for command, told in followed:
                done = subprocess.run(
                    ["sh", "-c", command.replace(_PORT, str(port))], cwd=tmp_path, env=environment, timeout=TIMEOUT,
                    check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                )  # fmt: skip
                assert [line.rstrip() for line in done.stdout.splitlines()] == told.splitlines(), command

        at = [command for command, _ in steps].index(background)
        follow(steps[:at])
        with _running(background, tmp_path, port):
            follow(steps[at + 1 :])
            follow([("kubectl create -f slice.yaml", "endpointslice.discovery.k8s.io/hook created\n")])
