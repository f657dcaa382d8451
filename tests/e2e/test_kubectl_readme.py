"""The tours of README.md, command by command, with a real kubectl, print what it says that they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from steersman.cli.up.process_file import running
from steersman.testing import ServerProcess
from tests.docs.markdown_documents import ROOT, Document
from tests.e2e.kubectl import TIMEOUT, Kubectl

pytestmark = pytest.mark.slow

README = Document(ROOT / "README.md")
_VARYING = (
    (r"/home/you\b", "HOME"),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\b(?:\d+[dhms]){1,2}\b", "AGE"),
    (r"\b\d+ requests", "N requests"),
    (r"^process +\d+", "process N"),
    (r"\b10\.128\.\d+\.\d+ +node-\d\b", "IP NODE"),
    (r"\b10\.0\.0\.\d+\b", "CLUSTER-IP"),
    (r" +", " "),
)
"""What is another from run to run, and what stands for it."""


def steps(block: str) -> list[tuple[str, list[str]]]:
    """Each command of a block, with what it prints."""
    found = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    return [(command, told.rstrip().splitlines()) for command, told in found]


def same(line: str) -> str:
    """A line without what is another from run to run."""
    for pattern, name in _VARYING:
        line = re.sub(pattern, name, line)
    return line.rstrip()


class Shell:
    """Runs commands as a reader does, with a home, a `steersman` and a `kubectl` of its own."""

    def __init__(self, folder: Path, kubectl: str, environment: dict[str, str]) -> None:
        self.folder = folder
        (programs := folder / "programs").mkdir()
        (programs / "kubectl").symlink_to(Path(kubectl).resolve())
        # The port that the document has may be taken here.
        steersman = f'case $1 in up) set -- "$@" --secure-port=0;; esac\nexec "{sys.executable}" -m steersman.cli "$@"'
        (programs / "steersman").write_text(f"#!/bin/sh\n{steersman}\n")
        (programs / "steersman").chmod(0o755)
        self.environment = {**environment, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}

    def play(self, block: str) -> None:
        """Runs the commands of a block; what each prints is what the document says, where `...` stands for more."""
        for command, wanted in steps(block):
            if command.startswith(("make ", ". ")):
                continue
            if exported := re.fullmatch(r"export (\w+)=~/(\S+)", command):
                self.environment[exported[1]] = str(self.folder / exported[2])
                continue
            printed = self.run(command)
            if wanted and wanted[-1] == "...":
                wanted, printed = wanted[:-1], printed[: len(wanted) - 1]
            assert list(map(same, printed)) == list(map(same, wanted)), command

    def run(self, command: str) -> list[str]:
        """The lines that a command prints; the home is called what the document calls it."""
        done = subprocess.run(
            ["sh", "-c", command], cwd=self.folder, env=self.environment, timeout=TIMEOUT, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        return done.stdout.replace(str(self.folder), "/home/you").rstrip().splitlines()


@pytest.fixture
def shell(kubectl_binary: str, tmp_path: Path) -> Iterator[Shell]:
    """A shell of somebody who has nothing yet; the cluster that they leave running is ended."""
    environment = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "XDG_STATE_HOME")}
    shell = Shell(tmp_path, kubectl_binary, {**environment, "HOME": str(tmp_path)})
    yield shell
    if running(tmp_path / ".local" / "state" / "steersman") is not None:
        shell.run("steersman down")


def the_block(text: str) -> str:
    """The console block that has a text."""
    (found,) = (block for block in README.blocks("console") if text in block)
    return found


def test_the_first_minute_and_the_tour_print_what_they_say(shell: Shell) -> None:
    first_minute = the_block("steersman up")
    begin, rest = first_minute.split("$ steersman status\n")
    shell.play(begin)
    (demo,) = (block for block in README.blocks("yaml") if "kind: Deployment" in block)
    (shell.folder / "demo.yaml").write_text(demo)
    shell.play("$ steersman status\n" + rest.replace("$ steersman down\nended\n", ""))
    shell.play(the_block("kubectl drain"))
    shell.play("$ steersman down\nended\n")


def test_the_tour_of_custom_resources_prints_what_it_says(kubectl_binary: str, tmp_path: Path) -> None:
    definition, widget = (block for block in README.blocks("yaml") if "example.com" in block)
    (tmp_path / "widgets.yaml").write_text(definition)
    (tmp_path / "widget.yaml").write_text(widget)
    with ServerProcess(tmp_path / "data") as server:
        environment = Kubectl(kubectl_binary, server, tmp_path, "default").environment
        Shell(tmp_path, kubectl_binary, environment).play(the_block("kubectl explain"))
