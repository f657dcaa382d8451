"""`steersman up --detach`: the cluster in a separate process, which outlives the command."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from steersman.cli.program import fail
from steersman.cli.serve import os_error_line, ready_line
from steersman.cli.up.process_file import hand_over, write_pid
from steersman.machinery.private_files import open_own

if TYPE_CHECKING:
    from steersman.controlplane.addresses import Address

PATIENCE: Final = 60.0
"""Seconds until a cluster that is not ready is ended."""
_LOG: Final = "up.log"


def log_file(folder: Path) -> Path:
    """Return the log file of a detached cluster; it contains the current or last run."""
    return folder / _LOG


def detach(folder: Path, claimed: IO[str], serve: Callable[[Callable[[Address], None]], None]) -> str:
    """Fork, let the child call `serve`, and return the line with which it reports to be ready.

    The child takes over the claim on the folder. If it is not ready within PATIENCE, prints its last log line and exits
    with
    1. An interrupt before that ends the child too. The process must have no other threads yet.
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
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until this process knows the child's pid
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
        serve(lambda address: _report_ready(writer, f"{ready_line(address)} log={log}"))
        sys.exit(0)
    os.close(writer)
    os.close(output)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        line = _line(reader)
    except TimeoutError:
        os.kill(child, signal.SIGTERM)
        fail(f"the cluster was not ready after {PATIENCE:.0f} s; the reason is in {log}")
    except KeyboardInterrupt:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        raise
    if not line:
        os.waitpid(child, 0)  # the pipe is closed, as the child has ended
        lines = [each for each in log.read_text(errors="replace").split("\n") if each]
        fail(lines[-1].removeprefix("steersman: ") if lines else f"the cluster ended at once, and {log} is empty")
    return line


def _report_ready(writer: int, line: str) -> None:
    print(line, flush=True)
    os.write(writer, line.encode() + b"\n")
    os.close(writer)


def _line(reader: int) -> str:
    """Return the line that arrives, or "" if the other side closes the pipe. Raises TimeoutError after PATIENCE."""
    received = b""
    until = time.monotonic() + PATIENCE
    while not received.endswith(b"\n"):
        readable, _, _ = select.select([reader], [], [], max(until - time.monotonic(), 0))
        if not readable:
            raise TimeoutError
        piece = os.read(reader, 65536)
        if not piece:
            return ""
        received += piece
    return received.decode().rstrip("\n")
