"""A Python program that serves with the library, run as its users run it."""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import sys
from pathlib import Path

from tests import ROOT

TIMEOUT = 60.0


class Program:
    """Python program that serves with the library, and kubectl for it."""

    def __init__(self, folder: Path, kubectl: str, *arguments: str) -> None:
        environment = {**os.environ, "XDG_STATE_HOME": str(folder)}
        self._process = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
        )
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            line = self._process.stdout.readline() if selector.select(TIMEOUT) else ""
        self.ready = line
        """Line that the program printed when it was ready."""
        ready = re.match(r"ready url=(\S+)(?: kubeconfig=(\S+))?", line)
        assert ready is not None, line
        self._kubectl = kubectl
        self._environment = {**os.environ, "HOME": str(folder), "KUBECONFIG": ready[2] or ""}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self._kubectl, *arguments],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def kubectl(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        process = self.start(*arguments)
        output, _ = process.communicate(stdin, timeout=TIMEOUT)
        assert process.returncode == code, f"kubectl {' '.join(arguments)}: {output}"
        return output

    def stop(self) -> int:
        self._process.terminate()
        code = self._process.wait(TIMEOUT)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code
