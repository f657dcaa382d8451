"""A cluster whose state is shown on a terminal."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from steersman.authentication.user import UserInfo
from steersman.cli.durations import in_words
from steersman.cli.up.figures import Figures, LiveFigures, nodes_in_words, pods_in_words
from steersman.cli.up.screen import GREEN, RED, YELLOW, Line, Screen, StreamAbove
from steersman.work.periodic import Periodic

if TYPE_CHECKING:
    from steersman.cli.up.trouble import Trouble
    from steersman.cluster.cluster import Cluster
    from steersman.controlplane.addresses import Address

_EVERY: Final = 0.5
_OFTEN: Final = 0.1
"""Seconds between two updates: while the cluster runs, and while it starts."""
_TITLE: Final = 11
"""Columns of the titles of lines."""
_WATCHER: Final = UserInfo("steersman:view", groups=("system:masters",))


class ShownCluster:
    """A cluster, and the lines on a terminal that show its state."""

    def __init__(self, make: Callable[[], Cluster], nodes: int, page: Callable[[], str]) -> None:
        """Store the settings: `make` is called by `start`, `page` returns the address of the cluster's page.

        `nodes` is the expected number of nodes.
        """
        self._page = page
        self._page_shown = ""
        self._make = make
        self._cluster: Cluster | None = None
        self._wanted = nodes
        self._screen = Screen(sys.stdout)
        self._followed: LiveFigures | None = None
        self._address: Address | None = None
        self._began = time.monotonic()
        self._ending = False
        self._drawing = Periodic("view of the cluster", self._draw_anew, self._pause, is_upkeep=False)

    async def start(self) -> Address:
        """Start the cluster. Raises the errors of its start."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGWINCH, self._screen.redraw)
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler) and sys.stderr.isatty():
                handler.setStream(StreamAbove(self._screen))
        self._drawing.start()
        self._drawing.wake()
        try:
            await asyncio.sleep(0)
            self._cluster = self._make()
            return await self._cluster.start()
        except BaseException:
            await self._end()
            raise

    def ready(self, address: Address) -> None:
        """Show the cluster as running from now on."""
        self._address = address
        self._screen.above(f"kubectl    export KUBECONFIG={address.kubeconfig}")  # never cut, for copying
        self._draw()

    async def stop(self) -> None:
        """Stop the cluster; the last lines stay on the terminal."""
        self._ending = True
        self._draw()
        await self._end()
        if self._cluster is not None:
            await self._cluster.stop()
        self._screen.above("ended")

    async def _end(self) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGWINCH)
        await self._drawing.stop()
        if self._followed is not None:
            await self._followed.stop()
        self._screen.show(())

    async def _draw_anew(self) -> None:
        self._follow()
        self._draw()

    def _pause(self) -> float:
        return _OFTEN if self._address is None else _EVERY

    def _follow(self) -> None:
        """Start the statistics once the server answers."""
        server = None if self._cluster is None else self._cluster.plane.server
        if self._cluster is None or self._followed is not None or server is None or not server.lifecycle.serving:
            return
        client = self._cluster.client(_WATCHER, "steersman")
        self._followed = LiveFigures(client, server.config.metrics.total.sum)
        self._followed.start()

    def _draw(self) -> None:
        figures = Figures() if self._followed is None else self._followed.now()
        if self._ending:
            self._screen.show(["ending"])
        elif self._address is None:
            self._screen.show([starting(figures, self._wanted, served=self._followed is not None)])
        else:
            page = self._page()
            if page != self._page_shown:  # each address opens the page once
                self._page_shown = page
                self._screen.above(f"page       {page}")
            trouble = None if self._followed is None else self._followed.trouble
            self._screen.show(view(figures, self._address, time.monotonic() - self._began, trouble))


def starting(figures: Figures, nodes: int, *, served: bool) -> str:
    """Return the line that is shown until the cluster is ready."""
    if not served:
        return "starting: the API server"
    return f"starting: controllers, scheduler, nodes ({figures.ready} of {nodes} ready)"


def view(figures: Figures, address: Address, seconds: float, trouble: Trouble | None = None) -> list[Line]:
    """Return the lines of a running cluster: statistics, pods with problems and the reasons, and the last warnings."""
    lines = [
        *_part("steersman", [f"{address.url}, up {in_words(seconds)}, {figures.requests:.0f} requests a second"]),
        *_part("nodes", [nodes_in_words(figures)], GREEN if figures.ready == figures.nodes else YELLOW),
        *_part("pods", [pods_in_words(figures)]),
    ]
    if trouble is not None:
        lines += _part("failed", trouble.failed(), RED)
        lines += _part("pending", trouble.pending(), YELLOW)
        lines += _part("warnings", trouble.warnings(), YELLOW)
    return [*lines, *_part("ctrl-c", ["ends the cluster"])]


def _part(title: str, texts: Sequence[str], colour: str = "") -> list[Line]:
    """Return lines with the title in front of the first one."""
    return [Line(f"{'' if number else title:<{_TITLE}}{text}", colour, _TITLE) for number, text in enumerate(texts)]
