"""The inspector's page in Chromium: its front as a process, and scenarios that a script plays."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests import ROOT

INSPECTOR = ROOT / "inspector"
PLAY = INSPECTOR / "e2e" / "play.mjs"
TIMEOUT = 120.0
_ADDRESS = re.compile(r"http://127\.0\.0\.1:[0-9]+/\?token=\S+", re.ASCII)


def missing() -> str:
    """Return what this machine lacks for the tests, "" if nothing."""
    if shutil.which("node") is None:
        return "no node on this machine"
    if not (INSPECTOR / "node_modules" / "playwright-core").is_dir():
        return "the page's packages are not installed: npm ci in inspector/"
    if chromium() is None:
        return "no Chromium on this machine: put one in PATH, or name it in $CHROMIUM"
    return ""


def chromium() -> str | None:
    """Return $CHROMIUM, or the chromium in PATH; None if there is none."""
    for candidate in (os.environ.get("CHROMIUM"), "chromium", "chromium-browser"):
        found = shutil.which(candidate) if candidate else None
        if found:
            return found
    return None


class FrontProcess:
    """`steersman inspect` on a kubeconfig. `with FrontProcess(kubeconfig, errors) as front` starts and ends it."""

    def __init__(self, kubeconfig: Path, errors: Path) -> None:
        """Configure a process; its stderr goes to the file `errors`."""
        self._kubeconfig = kubeconfig
        self._errors = errors
        self._addresses: queue.Queue[str] = queue.Queue()
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def __enter__(self) -> FrontProcess:
        command = [sys.executable, "-c", "from steersman.cli import main; main()", "inspect", "--no-browser"]
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [*command, f"--kubeconfig={self._kubeconfig}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(TIMEOUT)
        assert self._reader is not None
        self._reader.join(TIMEOUT)
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def pid(self) -> int:
        """ID of the process."""
        assert self._process is not None
        return self._process.pid

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            match = _ADDRESS.search(line)
            if match is not None:
                self._addresses.put(match[0])

    def address(self) -> str:
        """Return the next address that opens the page once."""
        return self._addresses.get(timeout=TIMEOUT)

    def play(
        self,
        scenario: str,
        folder: Path,
        answers: Mapping[str, Callable[[], object]] | None = None,
        timeout: float = TIMEOUT,
        **settings: object,
    ) -> dict[str, Any]:
        """Play a scenario in a new browser and return its result; its failure fails the test.

        `answers` are the steps that a scenario asks for. Screenshots are written to `folder`.
        """
        all_settings = {"address": self.address(), "chromium": chromium(), "folder": str(folder), **settings}
        with subprocess.Popen(
            ["node", str(PLAY), scenario],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            ending = threading.Timer(timeout, process.kill)
            ending.start()
            try:
                print(json.dumps(all_settings), file=process.stdin, flush=True)
                result: dict[str, Any] = {}
                for line in process.stdout:
                    result = json.loads(line)
                    if "ask" in result:
                        answer = (answers or {})[result["ask"]]()
                        print(json.dumps(answer), file=process.stdin, flush=True)
                _, errors = process.communicate()
            finally:
                ending.cancel()
        assert process.returncode == 0, errors
        return result
