"""Test of the library's tutorial: every command in order, with its output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.docs.markdown_documents import Document
from tests.e2e.library_program import TIMEOUT, Program

pytestmark = pytest.mark.slow

GUIDE = Document(ROOT / "docs" / "library.md")
HELLO = GUIDE.blocks("python")[0]
FLUNDER = GUIDE.blocks("yaml")[0]


def commands() -> list[tuple[str, str]]:
    """Return every command of the console blocks, and the output shown below it."""
    found: list[tuple[str, str]] = []
    for block in GUIDE.blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


@pytest.fixture
def folder(tmp_path: Path, kubectl_binary: str) -> Path:
    """Return a folder with the files that the tutorial shows, kubectl and steersman."""
    # a free port, as the tutorial's one may be in use on this machine
    (tmp_path / "hello.py").write_text(HELLO.replace("Server(Flunder)", "Server(Flunder, secure_port=0)"))
    (tmp_path / "flunder.yaml").write_text(FLUNDER)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(kubectl_binary)
    (programs / "steersman").symlink_to(Path(sys.executable).with_name("steersman"))
    return tmp_path


@pytest.fixture
def hello(folder: Path, kubectl_binary: str) -> Iterator[Program]:
    running = Program(folder / ".local" / "state", kubectl_binary, str(folder / "hello.py"))
    try:
        yield running
    finally:
        assert running.stop() == 0


def shown(text: str) -> str:
    """Return an output without the parts that vary."""
    return re.sub(r"\b\d+s$", "AGE", text.rstrip(), flags=re.MULTILINE)


def test_every_command_prints_what_the_tutorial_shows(folder: Path, hello: Program) -> None:
    environment = {**os.environ, "HOME": str(folder), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    (start, ready), *rest = commands()
    assert start == "python hello.py &"
    assert re.sub(r":\d+", ":PORT", hello.ready) == re.sub(r":\d+", ":PORT", ready).replace("/home/you", str(folder))
    ran = 0
    for command, output in rest:
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            environment[name] = value.replace("~", str(folder), 1)
            continue
        done = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert shown(done.stdout) == shown(output), command
        ran += 1
    assert ran >= 8
    assert (folder / "crd.yaml").read_text().startswith("apiVersion: apiextensions.k8s.io/v1\n")
