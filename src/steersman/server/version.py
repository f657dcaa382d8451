"""The document of /version (k8s.io/apimachinery `version.Info`)."""

from __future__ import annotations

import platform
import sys
from typing import Final

import steersman

MAJOR: Final = "1"
MINOR: Final = "36"
PATCH: Final = "3"
GIT_VERSION: Final = f"v{MAJOR}.{MINOR}.{PATCH}+steersman.{steersman.__version__}"
SHOWN_VERSION: Final = f"{steersman.__version__} (Kubernetes v{MAJOR}.{MINOR}.{PATCH})"
"""The version that `--version` prints: this program's, and that of the API."""
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def version_info() -> dict[str, str]:
    """Return the version document. `gitVersion` is the served API version with this program's version as build
    metadata.
    """
    machine = platform.machine()
    return {
        "major": MAJOR,
        "minor": MINOR,
        "emulationMajor": MAJOR,
        "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR,
        "minCompatibilityMinor": str(int(MINOR) - 1),
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": f"cpython{sys.version_info.major}.{sys.version_info.minor}",
        "platform": f"{sys.platform}/{_MACHINES.get(machine, machine)}",
    }
