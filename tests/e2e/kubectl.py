"""A real kubectl, where this machine has one."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steersman.testing import ServerProcess

TIMEOUT = 60.0
PATIENCE = 15.0


def find_kubectl() -> str | None:
    """Return $KUBECTL, the kubectl built for comparisons, or the one in PATH; None if there is none."""
    built = Path.home() / ".cache" / "steersman-oracle" / "bin" / "kubectl"
    for candidate in (os.environ.get("KUBECTL"), built if built.is_file() else None, "kubectl"):
        found = shutil.which(candidate) if candidate else None
        if found:
            return found
    return None


class Kubectl:
    """kubectl as a user types it, in its own namespace."""

    def __init__(self, binary: str, server: ServerProcess, home: Path, namespace: str) -> None:
        self._binary = binary
        places = {"HOME": str(home), "TMPDIR": str(home), "KUBECONFIG": str(server.kubeconfig)}
        self.environment = {**os.environ, **places}
        self.namespace = namespace

    def _arguments(self, arguments: tuple[str, ...]) -> list[str]:
        return [self._binary, f"--namespace={self.namespace}", *arguments]

    def run(self, *arguments: str, stdin: str = "", editor: str = "") -> subprocess.CompletedProcess[str]:
        """Run kubectl and return the process, also if it failed. `editor` is the command with which it edits files."""
        return subprocess.run(
            self._arguments(arguments),
            input=stdin,
            env={**self.environment, "KUBE_EDITOR": editor},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )

    def __call__(self, *arguments: str, stdin: str = "", editor: str = "") -> str:
        """Run kubectl and return its output. An exit code other than 0 fails the test."""
        done = self.run(*arguments, stdin=stdin, editor=editor)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def fails(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl with arguments that must fail, and return its error output."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)} printed {done.stdout}"
        return done.stderr

    def json(self, *arguments: str) -> Any:
        """Return the parsed output of kubectl with -o json."""
        return json.loads(self(*arguments, "-o", "json"))

    def apply_file(self, verb: str, *objects: dict[str, Any]) -> str:
        """Run `kubectl VERB -f -` with these objects and return its output."""
        return self(verb, "-f", "-", stdin="\n---\n".join(json.dumps(each) for each in objects))

    @contextmanager
    def following(self, *arguments: str) -> Iterator[Iterator[str]]:
        """Run an endless command, e.g. a watch, and yield its lines, each within PATIENCE. It is killed in the end."""
        process = subprocess.Popen(
            self._arguments(arguments),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        output = process.stdout
        assert output is not None
        lines: queue.Queue[str] = queue.Queue()

        def read() -> None:
            for line in output:
                lines.put(line)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            yield iter(lambda: lines.get(timeout=PATIENCE), "")
        finally:
            process.kill()
            process.wait()
            reader.join()
            output.close()
