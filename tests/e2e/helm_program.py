"""Helm, where this machine has one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def find_helm() -> str | None:
    """$STEERSMAN_HELM, or the one in PATH, or the one that `go install` made."""
    for candidate in (os.environ.get("STEERSMAN_HELM"), "helm", str(Path.home() / "go" / "bin" / "helm")):
        found = shutil.which(candidate) if candidate else None
        if found:
            return found
    return None
