"""A credential plugin for tests: a shell script that counts its runs and prints prepared files."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any, Final

V1: Final = "client.authentication.k8s.io/v1"

_SCRIPT: Final = """#!/bin/sh
cd "$(dirname "$0")"
echo "$KUBERNETES_EXEC_INFO" >> runs
echo "$* $WHO" >> arguments
number=$(wc -l < runs)
cat "answer-$((number))" 2>/dev/null || cat answer
"""


class Plugin:
    """A plugin in a folder."""

    def __init__(self, folder: Path, script: str = _SCRIPT) -> None:
        self.folder = folder
        self.path = folder / "plugin"
        self.path.write_text(script)
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)

    def prints(self, *statuses: dict[str, Any], version: str = V1) -> None:
        """Prepare the output of the next runs, the last one for all further runs."""
        for number, status in enumerate(statuses, 1):
            text = json.dumps({"kind": "ExecCredential", "apiVersion": version, "status": status})
            (self.folder / f"answer-{number}").write_text(text)
            (self.folder / "answer").write_text(text)

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The ExecCredential that each run was given."""
        file = self.folder / "runs"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def arguments(self) -> list[str]:
        """Arguments and the variable WHO of each run."""
        return (self.folder / "arguments").read_text().splitlines()


def with_user(kubeconfig: Path, user: dict[str, Any], **cluster: Any) -> Path:
    """Return a copy of a kubeconfig with another user, and with more members of the cluster."""
    config = json.loads(kubeconfig.read_text())
    config["users"][0]["user"] = user
    config["clusters"][0]["cluster"] |= cluster
    changed = kubeconfig.parent / "changed.kubeconfig"
    changed.write_text(json.dumps(config))
    return changed


def token_of(kubeconfig: Path) -> str:
    """Return the token in a kubeconfig."""
    return str(json.loads(kubeconfig.read_text())["users"][0]["user"]["token"])
