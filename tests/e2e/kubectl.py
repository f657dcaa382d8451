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
    """$KUBECTL, or the one built for comparisons, or the one in PATH."""
    built = Path.home() / ".cache" / "steersman-oracle" / "bin" / "kubectl"
    for candidate in (os.environ.get("KUBECTL"), built if built.is_file() else None, "kubectl"):
        found = shutil.which(candidate) if candidate else None
        if found:
            return found
    return None


class Kubectl:
    """kubectl as a user types it, in a namespace of its own."""

    def __init__(self, binary: str, server: ServerProcess, home: Path, namespace: str) -> None:
        self._binary = binary
        places = {"HOME": str(home), "TMPDIR": str(home), "KUBECONFIG": str(server.kubeconfig)}
        self.environment = {**os.environ, **places}
        self.namespace = namespace

    def _arguments(self, arguments: tuple[str, ...]) -> list[str]:
        return [self._binary, f"--namespace={self.namespace}", *arguments]

    def run(self, *arguments: str, stdin: str = "", editor: str = "") -> subprocess.CompletedProcess[str]:
        """Runs it, whatever comes of it. `editor` is the command that it has files edited with."""
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
        """Runs it; what it prints. An exit code other than 0 fails the test."""
        done = self.run(*arguments, stdin=stdin, editor=editor)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def fails(self, *arguments: str, stdin: str = "") -> str:
        """Runs what must fail; what it complains of."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)} printed {done.stdout}"
        return done.stderr

    def json(self, *arguments: str) -> Any:
        """Runs it with -o json."""
        return json.loads(self(*arguments, "-o", "json"))

    def apply_file(self, verb: str, *objects: dict[str, Any]) -> str:
        """`kubectl VERB -f -` with these objects."""
        return self(verb, "-f", "-", stdin="\n---\n".join(json.dumps(each) for each in objects))

    @contextmanager
    def following(self, *arguments: str) -> Iterator[Iterator[str]]:
        """Runs one that goes on, e.g. a watch: its lines as they come, each within PATIENCE. Killed at the end."""
        process = subprocess.Popen(
            self._arguments(arguments),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        lines: queue.Queue[str] = queue.Queue()

        def read() -> None:
            for line in process.stdout:
                lines.put(line)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            yield iter(lambda: lines.get(timeout=PATIENCE), "")
        finally:
            process.kill()
            process.wait()
            reader.join()
            process.stdout.close()
