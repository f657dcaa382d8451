"""Processes that belong to a program: those of its session, and its descendants in sessions of their own."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

from steersman.net.ascii import is_digits

_PROCESSES: Final = Path("/proc")
_MOST_ROUNDS: Final = 10
"""Times that the processes are listed, as some may begin others meanwhile."""


def kill_family(leader: int) -> None:
    """Kill the leader of a session, the other processes of the session, and descendants that have left it.

    Without /proc only the process group of the leader is killed. A process that has left the session and whose parent
    has ended is not found.
    """
    killed: set[int] = set()
    for _ in range(_MOST_ROUNDS):
        found = family_of(leader) - killed
        if not killed:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, signal.SIGKILL)
        for each in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        killed |= found
        if not found:
            return


def family_of(leader: int) -> set[int]:
    """Return the processes of a session and all of their descendants; none without /proc."""
    children: dict[int, list[int]] = {}
    family: set[int] = set()
    for pid, parent, session in _processes():
        children.setdefault(parent, []).append(pid)
        if session == leader or pid == leader:
            family.add(pid)
    left = list(family)
    while left:
        for each in children.get(left.pop(), ()):
            if each not in family:
                family.add(each)
                left.append(each)
    return family


def _processes() -> list[tuple[int, int, int]]:
    """Return the number, parent and session of each process."""
    found: list[tuple[int, int, int]] = []
    try:
        entries = os.listdir(_PROCESSES)
    except OSError:  # a system without /proc
        return found
    for each in entries:
        if not is_digits(each):
            continue
        try:
            status = (_PROCESSES / each / "stat").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        _, _, end = status.rpartition(b") ")  # the name before it may have any characters
        _, parent, _, session, *_ = end.split(b" ")
        found.append((int(each), int(parent), int(session)))
    return found
