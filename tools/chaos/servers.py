"""Servers as processes that can be lied to, and their workers."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Sequence
from pathlib import Path

from steersman.testing import ServerProcess
from tools.chaos.lies import Liar
from tools.chaos.lies.disk_images import Power


class Server(ServerProcess):
    """`steersman serve` on one folder, by its number."""

    def __init__(
        self, number: int, folder: Path, *flags: str, library: Path | None = None, under: Sequence[str] = ()
    ) -> None:
        """Can be lied to with the library for that (`lies.built`); `under` is as for ServerProcess."""
        folder.mkdir(parents=True, exist_ok=True)
        told = folder.with_name(f"{folder.name}.lies")
        self.liar = Liar(library, told, folder) if library is not None else None
        super().__init__(folder, *flags, under=under, environment=self.liar.environment if self.liar else {})
        self.power = Power(self.liar.journal, random.Random(number)) if self.liar is not None else None
        self.name = f"server {number}"

    def launch(self) -> None:
        """Launch the server, after the journal of its earlier writes has been read."""
        if self.power is not None:
            self.power.catch_up()
        super().launch()

    def workers(self) -> list[int]:
        """The processes of its workers, without those that have just ended; none for a server of one process."""
        found: list[int] = []
        with contextlib.suppress(OSError):  # it ends meanwhile
            for children in Path(f"/proc/{self.pid}/task").glob("*/children"):
                found += map(int, children.read_text().split())
        return sorted(found)


def send(process: int, number: signal.Signals) -> None:
    """Sends a signal to a process that may have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)
