"""Reader of a document who runs all of its commands, from the first block to the last, in an empty folder with kubectl."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from tests.docs.markdown_documents import Document
from tests.storage.etcd.process import free_port

_PATIENCE: Final = 90.0
"""Seconds until a command times out, and until output that changes by itself must be as the document says."""
_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE_BEFORE: Final = re.compile(r"`([\w-]+\.(?:yaml|py))`[^`]*:\n*\Z")
"""File that the text names before its block; the first line of other blocks names their file."""
_FILE_WITHIN: Final = re.compile(r"# ([\w.-]+\.\w+)\n")
_ENDS: Final = re.compile(r"<<'?(\w+)'?")
_PROGRAM: Final = """\
#!/bin/sh
case "$1 $*" in
*--secure-port*) ;;
"up "* | "serve "*) set -- "$@" --secure-port={port} ;;
esac
exec "{python}" -m steersman.cli "$@"
"""
_LOG: Final = re.compile(r"[IWED] \d{4}-\d\d-\d\d ")
"""Log line of a server that runs on the same terminal."""
_TOO_EARLY: Final = (
    "status.conditions accessor error: <nil>",  # kubectl, of a definition without a status
    "etcdserver: unhealthy cluster",  # etcdctl, of members that have just started
)
"""Errors of commands that are typed again."""
_VARYING: Final = (
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b", "ID"),
    (r"\b(?:\d+[dhms]){1,2}\b", "AGE"),
    (r"\b\d\.\d{6}\b", "COST"),
    (r"\b\d+ requests", "N requests"),
    (r"^process +\d+", "process N"),
    (r"\b10\.128\.\d+\.\d+ +node-\d\b", "IP NODE"),
    (r"\b10\.0\.0\.\d+\b", "CLUSTER-IP"),
    (r"-[a-z0-9]{7,10}-[a-z0-9]{5}\b", "-HASH"),
    (r"^\d\d:\d\d:\d\d\.\d{3}\b", "TIME"),
    (r"^\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"\b\d+\.\d\d ms", "N ms"),
    (r"\b\d+ (?:B|KiB)(?!\w)", "SIZE"),
    (r"\|[ █]*\|", "BAR"),
    (r"\brevision=\d+", "revision=N"),
    (r" +", " "),
)
"""Patterns of text that varies from run to run, and the texts that replace it."""


class Step(NamedTuple):
    """Command with the lines that it prints according to the document."""

    command: str
    told: list[str]


def steps(block: str) -> Iterator[Step]:
    """Yield the commands of a console block.

    A backslash at the end of a line, or a here-document (`<<END`), continues the command on the next lines.
    """
    lines = block.splitlines()
    while lines:
        line = lines.pop(0)
        assert line.startswith("$ "), f"{line!r} comes before the first command of its block"
        command = [line.removeprefix("$ ")]
        while command[-1].endswith("\\"):
            command.append(lines.pop(0))
        if (document := _ENDS.search(command[0])) is not None:
            while command[-1] != document[1]:
                command.append(lines.pop(0))
        told = []
        while lines and not lines[0].startswith("$ "):
            told.append(lines.pop(0).rstrip())
        yield Step("\n".join(command), told)


class Reader:
    """A shell that goes on from block to block, in a folder that is empty at first and is called /home/you.

    `skipped` are patterns of commands that are not typed, each with the reason; `ports` are ports of the document that
    may be taken here, and those in their place.
    """

    def __init__(
        self,
        folder: Path,
        kubectl: str,
        skipped: Mapping[str, str] | None = None,
        ports: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder / "home"
        self.folder.mkdir()
        self._skipped = skipped or {}
        self._ports = ports or {}
        self._typed = 0
        (programs := folder / "programs").mkdir()
        (programs / "kubectl").symlink_to(Path(kubectl).resolve())
        # The port that documents mean without a word may be taken here.
        script = _PROGRAM.format(port=free_port(), python=sys.executable)
        (programs / "steersman").write_text(script)
        (programs / "steersman").chmod(0o755)
        # Python finds the packages of its environment only under its own path, not under a link.
        (programs / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (programs / "python").chmod(0o755)
        given = ("COLUMNS", "KUBECONFIG", "XDG_STATE_HOME", "XDG_CACHE_HOME")
        environment = {name: value for name, value in os.environ.items() if name not in given}
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        self._shell = subprocess.Popen(
            ["bash", "--norc"],
            cwd=self.folder,
            text=True,
            bufsize=1,
            start_new_session=True,
            env={**environment, "HOME": str(self.folder), "PATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def read(self, document: Document) -> None:
        """Type all commands of a document, and make its files. Every command prints what the document says, where `...`
        at the end of a line, or in the place of the last lines, stands for anything; where it says nothing, the command
        succeeds."""
        text = document.text
        for found in _BLOCK.finditer(text):
            language, block = found[1], self._with_ports(found[2])
            name = _FILE_WITHIN.match(block) or _FILE_BEFORE.search(text[: found.start()])
            if language == "console":
                self.play(block)
            elif name is not None and language in ("yaml", "sh", "python"):
                (self.folder / name[1]).write_text(block)

    def play(self, block: str) -> None:
        """Run the commands of a block."""
        for step in steps(block):
            if not any(re.match(pattern, step.command) for pattern in self._skipped):
                self._follow(step)

    def _follow(self, step: Step) -> None:
        if step.command.endswith(" &") and "<<" not in step.command:
            self._begin(step)
        elif re.match(r"steersman (serve|inspect)|kubectl (port-forward|logs -f)", step.command):
            self._interrupted(step)
        else:
            self._once(step)

    def _once(self, step: Step) -> None:
        until = time.monotonic() + _PATIENCE
        looks = step.command.startswith(("kubectl get", "kubectl top"))  # at what may take a while to be so
        while True:
            printed, status = self.typed(step.command)
            if not step.told or _is_as_told(printed, step.told):
                break
            said = "\n".join([f"$ {step.command}", *printed, "--- and not", *step.told])
            assert looks or any(text in line for text in _TOO_EARLY for line in printed), said
            assert time.monotonic() < until, said
            time.sleep(0.5)
        fails = any(
            line.startswith(("The ", "error:", "Error", "Warning:")) or ": error: " in line or " found: " in line
            for line in step.told
        )
        assert status == 0 or fails or "|" in step.command, (step.command, printed)

    def _begin(self, step: Step) -> None:
        """Start a program in the background; wait until it is ready, and prints the lines of the step, if it is a server."""
        said = self._started(step.command.removesuffix(" &"))
        if "steersman" in step.command or "kube-apiserver" in step.command:
            self._until(f"grep -q ^ready {said}", said)
        if step.told:
            printed, _ = self.typed(f"cat {said}")
            assert _is_as_told(printed[: len(step.told)], step.told), (step.command, printed)

    def _interrupted(self, step: Step) -> None:
        """Run an endless program until it has printed the lines of the step, or any line if there are none, and end it."""
        said = self._started(step.command)
        self._until(f"test -s {said}", said)
        printed, _ = self.typed(f"cat {said}; kill $!; wait $!")
        assert printed
        assert not step.told or _is_as_told(printed[: len(step.told)], step.told), (step.command, printed)
        assert not any(line.startswith(("error", "Error", "steersman:")) for line in printed), printed

    def _started(self, command: str) -> str:
        """Start a program in the background and return the file of its output."""
        self._typed += 1
        said = f"{self.folder.parent}/started-{self._typed}.txt"
        self.typed(f"{command} > {said} 2>&1 &")
        return said

    def _until(self, test: str, said: str) -> None:
        until = time.monotonic() + _PATIENCE
        while self.typed(test)[1] != 0:
            assert time.monotonic() < until, self.typed(f"cat {said}")
            time.sleep(0.1)

    def typed(self, command: str) -> tuple[list[str], int]:
        """Run a command and return its output lines and exit code. The folder is shown as /home/you, as in documents."""
        self._typed += 1
        end = f"__end_{self._typed}__"
        self._type(f"{command}\n__status=$?; echo; echo {end} $__status")
        printed = []
        while True:
            line = self._lines.get(timeout=_PATIENCE)
            assert line is not None, f"the shell has ended: {command}"
            if line.startswith(end):
                break
            if not _LOG.match(line):
                printed.append(line.replace(str(self.folder), "/home/you").rstrip())
        while printed and not printed[-1]:
            printed.pop()
        return printed, int(line.split()[1])

    def _type(self, text: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(text + "\n")

    def _listen(self) -> None:
        assert self._shell.stdout is not None
        for line in self._shell.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def _with_ports(self, text: str) -> str:
        if not self._ports:
            return text
        return re.sub(r"\b(?:" + "|".join(self._ports) + r")\b", lambda found: self._ports[found[0]], text)

    def close(self) -> None:
        """End all programs that are still running."""
        with suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGTERM)
        for folder in self.folder.glob("**/up.pid"):
            subprocess.run(
                [sys.executable, "-m", "steersman.cli", "down", "--data-dir", str(folder.parent)],
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
        self._shell.kill()
        self._shell.wait()
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        with suppress(BrokenPipeError):
            self._shell.stdin.close()
        self._listener.join(_PATIENCE)
        self._shell.stdout.close()


def _is_as_told(printed: Sequence[str], told: Sequence[str]) -> bool:
    if told and told[-1] == "...":
        told, printed = told[:-1], printed[: len(told) - 1]
    while told and not told[-1]:
        told = told[:-1]
    return len(printed) == len(told) and all(map(_is_line, printed, told))


def _is_line(printed: str, told: str) -> bool:
    if told.endswith("..."):
        return _same(printed).startswith(_same(told.removesuffix("...")))
    return _same(printed) == _same(told)


def _same(line: str) -> str:
    for pattern, name in _VARYING:
        line = re.sub(pattern, name, line)
    return line.strip()
