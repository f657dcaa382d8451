"""kube-apiserver with the keys and certificates of a data folder of this project's, as a process."""

from __future__ import annotations

import ssl
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Final

from steersman.server.certificates import CertificateFiles
from steersman.testing import ServerNotReady
from tools.stored_values.servers import free_port, program

_START_SECONDS: Final = 120.0
_STOP_SECONDS: Final = 90.0
_BETWEEN: Final = 0.1


class KubeApiServer:
    """kube-apiserver beside the servers of a data folder; it can be started again after it has ended.

    It is started and ended as a `ServerProcess` is, with the same flags. Times are in seconds.
    """

    def __init__(self, folder: Path, *flags: str) -> None:
        """`folder` is the data folder of the others, whose authority it takes its certificate and its clients of."""
        self._files = CertificateFiles(folder)
        self._flags = flags
        self._process: subprocess.Popen[bytes] | None = None
        self.errors = folder.with_name("kube-apiserver.stderr")
        self.address = "127.0.0.1", 0

    def start(self, timeout: float = _START_SECONDS) -> float:
        """Starts it at a free port unless flags name one, and waits until it is ready; the seconds that took. Raises
        LookupError without the program, ServerNotReady."""
        began = time.monotonic()
        given = dict(flag.partition("=")[::2] for flag in self._flags)
        port = int(given.get("--secure-port") or free_port())
        with self.errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [
                    program("kube-apiserver"),
                    f"--tls-cert-file={self._files.server}",
                    f"--tls-private-key-file={self._files.server_key}",
                    "--bind-address=127.0.0.1",
                    f"--secure-port={port}",
                    *self._flags,
                ],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
            )
        while not self._is_ready(port):
            if self._process.poll() is not None or time.monotonic() > began + timeout:
                self.kill()
                raise ServerNotReady(self.errors.read_text()[-2000:])
            time.sleep(_BETWEEN)
        self.address = "127.0.0.1", port
        return time.monotonic() - began

    def _is_ready(self, port: int) -> bool:
        context = ssl.create_default_context(cafile=str(self._files.ca))
        context.load_cert_chain(self._files.admin, self._files.admin_key)
        try:
            with urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", context=context, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> int:
        """The orderly end (SIGTERM); the exit code. Raises subprocess.TimeoutExpired."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(_STOP_SECONDS)

    def kill(self) -> None:
        """kill -9, and waits until the process is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
