"""Errors of the operating system in Go's words (package os)."""

from __future__ import annotations

import os

from steersman.machinery.go.strings import to_lower


def reason(error: OSError) -> str:
    """Why a call failed, without its name and the file's: `no such file or directory`."""
    return to_lower(os.strerror(error.errno)) if error.errno else str(error)
