"""Errors of the operating system in the words of Go's package os."""

from __future__ import annotations

import os

from steersman.machinery.go.strings import to_lower


def reason(error: OSError) -> str:
    """Return why a system call failed, without the names of the call and the file: `no such file or directory`."""
    return to_lower(os.strerror(error.errno)) if error.errno else str(error)
