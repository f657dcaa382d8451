"""A cluster as users run it: `steersman up` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

from steersman.testing import ServerProcess


class ClusterProcess(ServerProcess):
    """Like a ServerProcess, with controllers, a scheduler and nodes; `--nodes` is one of its flags."""

    def launch(self) -> None:
        """Starts it and does not wait."""
        arguments = ["up", f"--data-dir={self.folder}", "--secure-port=0", *self.flags]
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        with self.errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "steersman.cli", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=errors, text=True, env=environment,
            )  # fmt: skip
