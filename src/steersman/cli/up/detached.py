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

from steersman.cli.serve import fail, os_error_line, ready_line
from steersman.cli.up.process_file import hand_over, write_pid
from steersman.machinery.private_files import open_own

if TYPE_CHECKING:
    from steersman.controlplane.addresses import Address

PATIENCE: Final = 60.0
"""Seconds after which a cluster that is not ready is ended."""
_LOG: Final = "up.log"


def log_file(folder: Path) -> Path:
    """What the cluster of a folder has to say, if it was left running; of its present start, or its last."""
    return folder / _LOG


def detach(folder: Path, claimed: IO[str], serve: Callable[[Callable[[Address], None]], None]) -> str:
    """Fork, and let the child serve, which calls what it is given when it is ready; return the line that says so.

    The claim on the folder becomes the child's. Exits with 1, and what the child said last, if it is not ready within
    PATIENCE. An interrupt until then ends the child, too. Nothing may run in other threads yet.
    """
    log = log_file(folder)
    try:
        output = open_own(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    except OSError as error:
        fail(os_error_line(error, folder))
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    hand_over(claimed)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until this process knows its child
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
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
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        line = _line(reader)
    except TimeoutError:
        os.kill(child, signal.SIGTERM)
        fail(f"it was not ready after {PATIENCE:.0f} s: {log} says why")
    except KeyboardInterrupt:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        raise
    if not line:
        os.waitpid(child, 0)  # its end has closed the pipe
        said = [each for each in log.read_text(errors="replace").split("\n") if each]
        fail(said[-1].removeprefix("steersman: ") if said else f"it ended at once: {log} is empty")
    return line


def _tell(writer: int, line: str) -> None:
    print(line, flush=True)
    os.write(writer, line.encode() + b"\n")
    os.close(writer)


def _line(reader: int) -> str:
    """The line that comes, or nothing if the other side ends before. Raises TimeoutError after PATIENCE."""
    said = b""
    until = time.monotonic() + PATIENCE
    while not said.endswith(b"\n"):
        readable, _, _ = select.select([reader], [], [], max(until - time.monotonic(), 0))
        if not readable:
            raise TimeoutError
        piece = os.read(reader, 65536)
        if not piece:
            return ""
        said += piece
    return said.decode().rstrip("\n")
