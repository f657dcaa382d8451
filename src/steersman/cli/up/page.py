"""The page of a cluster beside it: the inspector's front in a thread of its own, and its address in a file.

Work for the page then never holds the event loop of the server. The address has a token, so it is neither in the log nor
on an output that is no terminal.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from steersman.machinery.private_files import read_own, write_whole

logger = logging.getLogger(__name__)

FILE: Final = "inspect.address"
"""File in the cluster's folder with the address that opens the page; each address opens it once."""
NO_PORT: Final = -1
"""Port of a cluster without a page."""
_PATIENCE: Final = 10.0
"""Seconds that the start of the cluster waits until the page listens."""


class Page:
    """The page of one cluster: `start` once the cluster serves. It ends with the process."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._port = port
        self.address = ""
        """Address that opens the page, "" if there is none."""

    def start(self, kubeconfig: Path) -> None:
        """Serve the page with the rights of a kubeconfig. A page that cannot be served is told in the log."""
        forget_address(self._folder)
        if self._port == NO_PORT:
            return
        listening = threading.Event()
        thread = threading.Thread(target=self._run, args=(kubeconfig, listening), name="inspector", daemon=True)
        thread.start()
        listening.wait(_PATIENCE)

    def _run(self, kubeconfig: Path, listening: threading.Event) -> None:
        import uvloop

        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve(kubeconfig, listening.set))
        except OSError as error:
            logger.error("the page of the cluster is not served: %s", error)
        finally:
            listening.set()

    async def _serve(self, kubeconfig: Path, listening: Callable[[], None]) -> None:
        from steersman.inspector.front import serving
        from steersman.webhooks.kubeconfig import load_kubeconfig

        async with serving(load_kubeconfig(kubeconfig), "", self._announce, self._port):
            listening()
            await asyncio.Event().wait()  # until the process ends

    def _announce(self, address: str) -> None:
        self.address = address
        write_whole(self._folder / FILE, address.encode())


def address_of_page(folder: Path) -> str:
    """Return the address that opens the page of the cluster in a folder, "" if it has none."""
    try:
        return read_own(folder / FILE).decode(errors="replace")
    except OSError:
        return ""


def forget_address(folder: Path) -> None:
    """Remove the address of an earlier run."""
    with contextlib.suppress(FileNotFoundError):
        (folder / FILE).unlink()


def page_line(address: str) -> str:
    """Return the line for a terminal with the address of a page."""
    return f"look at it:  {address}" if address else "look at it:  steersman inspect"
