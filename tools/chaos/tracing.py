"""strace between a process and its kernel: its syncs are slow, or fail. It reaches programs of Go too."""

from __future__ import annotations

import shutil
import signal
import subprocess
from typing import Final

_ATTACHED_SECONDS: Final = 10.0


def impossible() -> str:
    """Why it cannot be used here; empty if it can."""
    if shutil.which("strace") is None:
        return "there is no strace"
    done = subprocess.run(
        ["strace", "-qq", "-f", "-e", "inject=fdatasync:delay_exit=1", "-o", "/dev/null", "true"],
        capture_output=True,
        check=False,
        text=True,
    )
    return "" if done.returncode == 0 else f"strace cannot be used: {done.stderr.strip()}"


class Tracer:
    """Holds on to a process until it is let go; that process may end meanwhile."""

    def __init__(self, process: int, inject: str) -> None:
        """`inject` is strace's: what becomes of fdatasync. Waits until it is in place."""
        self._strace = subprocess.Popen(
            [
                "strace",
                "-f",
                "-p",
                str(process),
                "-e",
                "trace=fdatasync",
                "-e",
                f"inject=fdatasync:{inject}",
                "-o",
                "/dev/null",
            ],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert self._strace.stderr is not None
        self._strace.stderr.readline()  # `Process N attached`, or why not

    @classmethod
    def slow(cls, process: int, seconds: float) -> Tracer:
        """Each sync takes so much longer."""
        return cls(process, f"delay_exit={int(seconds * 1e6)}")

    @classmethod
    def fail(cls, process: int) -> Tracer:
        """Each sync is EIO."""
        return cls(process, "error=EIO")

    def let_go(self) -> None:
        """The process goes on as before."""
        self._strace.send_signal(signal.SIGINT)
        try:
            self._strace.wait(_ATTACHED_SECONDS)
        except subprocess.TimeoutExpired:
            self._strace.kill()
            self._strace.wait()
        if self._strace.stderr is not None:
            self._strace.stderr.close()
