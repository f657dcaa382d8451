"""The commands of docs/etcd.md, one after the other, with real members, servers and a real kubectl."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.markdown_documents import ROOT, Document
from tests.e2e.kubectl import TIMEOUT
from tests.storage.etcd.process import free_port, program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl, which the guide's commands call"),
]

GUIDE = Document(ROOT / "docs" / "etcd.md")
_STEP = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_PORTS = ("16443", "6443", "22379", "22380", "32379", "32380", "2379", "2380")
_STARTED_SECONDS = 60


@pytest.fixture
def folder(tmp_path: Path, kubectl_binary: str) -> Path:
    """One with the guide's scripts, and a server's folder that is to be moved."""
    (programs := tmp_path / "programs").mkdir()
    for name, path in (
        ("etcd", program()), ("kubectl", kubectl_binary), ("steersman", Path(sys.executable).with_name("steersman"))
    ):  # fmt: skip
        (programs / name).symlink_to(Path(path).absolute())
    return tmp_path


def _with_ports(text: str, ports: dict[str, str]) -> str:
    return re.sub(r"\b(?:" + "|".join(_PORTS) + r")\b", lambda found: ports[found[0]], text)


class Shell:
    """Runs the guide's commands in a folder; those that end with & until the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = {**os.environ, "PATH": f"{folder}/programs{os.pathsep}{os.environ['PATH']}"}
        self._running: list[subprocess.Popen[str]] = []
        self._log = (folder / "log").open("w")

    def follow(self, command: str, told: str) -> None:
        if command.endswith("&"):
            self._start(command.removesuffix("&"))
            return
        done = subprocess.run(
            ["sh", "-c", command], cwd=self._folder, env=self._environment, timeout=TIMEOUT, check=False,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stderr)
        assert _is_as_told(done.stdout, told), (command, done.stdout, done.stderr)

    def _start(self, command: str) -> None:
        is_server = command.startswith("steersman")
        process = subprocess.Popen(
            ["sh", "-c", f"exec {command}"], cwd=self._folder, env=self._environment, text=True,
            stdout=subprocess.PIPE if is_server else subprocess.DEVNULL, stderr=self._log,
        )  # fmt: skip
        self._running.append(process)
        if is_server:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("ready "), (self._folder / "log").read_text()[-3000:]

    def end(self) -> None:
        for process in reversed(self._running):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        until = time.monotonic() + _STARTED_SECONDS
        for process in reversed(self._running):
            try:
                process.wait(max(until - time.monotonic(), 1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._log.close()


def _is_as_told(printed: str, told: str) -> bool:
    """Line by line; what a line of the guide leaves out, with three dots at its end, may be anything."""
    lines, expected = printed.splitlines(), told.splitlines()
    return len(lines) == len(expected) and all(
        line.startswith(each.removesuffix("...")) if each.endswith("...") else line == each
        for line, each in zip(lines, expected, strict=True)
    )


@pytest.fixture
def shell(folder: Path) -> Iterator[Shell]:
    made = Shell(folder)
    yield made
    made.end()


def test_all_of_it_does_what_the_guide_says(folder: Path, shell: Shell) -> None:
    ports = {port: str(free_port()) for port in _PORTS}
    for block in GUIDE.blocks("sh"):
        name = re.match(r"# ([\w.]+)", block)
        assert name is not None, "a script of the guide begins with its name"
        (folder / name[1]).write_text(_with_ports(block, ports))
    moved = False
    for block in GUIDE.blocks("console"):
        for command, told in _STEP.findall(_with_ports(block, ports)):
            if "to-etcd" in command and not moved:
                shutil.copytree(
                    folder / "desk", folder / "moved", ignore=shutil.ignore_patterns("*-wal", "*-shm", "*.db")
                )
                shell.follow(
                    "steersman storage restore backup.db --data-dir moved --bump-revision 0",
                    "restored moved/steersman.db...\n",
                )
                moved = True
            shell.follow(command, told)
    assert moved
