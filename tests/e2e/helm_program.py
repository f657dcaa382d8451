"""Helm, where this machine has one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def find_helm() -> str | None:
    """Return Helm from $STEERSMAN_HELM, from PATH, or from `go install`; None if there is none."""
    for candidate in (os.environ.get("STEERSMAN_HELM"), "helm", str(Path.home() / "go" / "bin" / "helm")):
        found = shutil.which(candidate) if candidate else None
        if found:
            return found
    return None
