"""`steersman up --detach`: the cluster in a process of its own, which outlives the command."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from steersman.cli.serve import fail, ready_line
from steersman.cli.up.process_file import write_pid

if TYPE_CHECKING:
    from steersman.controlplane.control_plane import Address

PATIENCE: Final = 60.0
"""Seconds after which a cluster that is not ready is ended."""
_LOG: Final = "up.log"


def log_file(folder: Path) -> Path:
    """What the cluster of a folder has to say, if it was left running; of its present start, or its last."""
    return folder / _LOG


def detach(folder: Path, claimed: IO[str], serve: Callable[[Callable[[Address], None]], None]) -> str:
    """Forks, and lets the child serve, which calls what it is given when it is ready; returns the line that says so.

    The claim on the folder becomes the child's. Exits with 1, and what the child said last, if it is not ready within
    PATIENCE. Nothing may run in other threads yet.
    """
    log = log_file(folder)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.setsid()
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        write_pid(claimed)
        serve(lambda address: _tell(writer, f"{ready_line(address)} log={log}"))
        sys.exit(0)
    os.close(writer)
    os.close(output)
    line = _line(reader)
    if line:
        return line
    return _failed(child, log)


def _tell(writer: int, line: str) -> None:
    print(line, flush=True)
    os.write(writer, line.encode() + b"\n")
    os.close(writer)


def _line(reader: int) -> str:
    """What comes until its end, or until the patience does."""
    said = b""
    until = time.monotonic() + PATIENCE
    while not said.endswith(b"\n"):
        readable, _, _ = select.select([reader], [], [], max(until - time.monotonic(), 0))
        if not readable or not (piece := os.read(reader, 65536)):
            return ""
        said += piece
    return said.decode().rstrip("\n")


def _failed(child: int, log: Path) -> str:
    ended, _ = os.waitpid(child, os.WNOHANG)
    if not ended and not _ends_by_itself(child):
        os.kill(child, signal.SIGTERM)
        fail(f"it was not ready after {PATIENCE:.0f} s: {log} says why")
    said = [each for each in log.read_text(errors="replace").split("\n") if each]
    fail(said[-1].removeprefix("steersman: ") if said else f"it ended at once: {log} is empty")


def _ends_by_itself(child: int) -> bool:
    """Whether a process that has closed its pipe ends, in a second."""
    for _ in range(50):
        ended, _status = os.waitpid(child, os.WNOHANG)
        if ended:
            return True
        time.sleep(0.02)
    return False
