"""A cluster whose start and life are shown on a terminal."""

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
from steersman.cli.up.figures import Figures, Followed, nodes_in_words, pods_in_words
from steersman.cli.up.screen import GREEN, RED, YELLOW, Above, Line, Screen
from steersman.work.periodic import Periodic

if TYPE_CHECKING:
    from steersman.cli.up.trouble import Trouble
    from steersman.cluster.cluster import Cluster
    from steersman.controlplane.addresses import Address

_EVERY: Final = 0.5
_OFTEN: Final = 0.1
"""Seconds between two looks: while it runs, and while it starts."""
_TITLE: Final = 11
"""Columns of the titles of lines."""
_WATCHER: Final = UserInfo("steersman:view", groups=("system:masters",))


class ShownCluster:
    """A cluster, and lines on a terminal that say what becomes of it."""

    def __init__(self, make: Callable[[], Cluster], nodes: int) -> None:
        """`make` is called once something can be shown; `nodes` are those that are to be there."""
        self._make = make
        self._cluster: Cluster | None = None
        self._wanted = nodes
        self._screen = Screen(sys.stdout)
        self._followed: Followed | None = None
        self._address: Address | None = None
        self._began = time.monotonic()
        self._ending = False
        self._drawing = Periodic("view of the cluster", self._draw_anew, self._pause, is_upkeep=False)

    async def start(self) -> Address:
        """Starts the cluster. Raises what its start raises, below what was shown last."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGWINCH, self._screen.redraw)
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler) and sys.stderr.isatty():
                handler.setStream(Above(self._screen))
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
        """From now on it is shown as running."""
        self._address = address
        self._screen.above(f"kubectl    export KUBECONFIG={address.kubeconfig}")  # whole, so that it can be copied
        self._draw()

    async def stop(self) -> None:
        """Ends the cluster; what it was last stays on the terminal."""
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
        """Begins to, once there is a server that answers."""
        server = None if self._cluster is None else self._cluster.plane.server
        if self._cluster is None or self._followed is not None or server is None or not server.lifecycle.serving:
            return
        client = self._cluster.client(_WATCHER, "steersman")
        self._followed = Followed(client, server.config.metrics.total.sum)
        self._followed.start()

    def _draw(self) -> None:
        figures = Figures() if self._followed is None else self._followed.now()
        if self._ending:
            self._screen.show(["ending"])
        elif self._address is None:
            self._screen.show([starting(figures, self._wanted, served=self._followed is not None)])
        else:
            trouble = None if self._followed is None else self._followed.trouble
            self._screen.show(view(figures, self._address, time.monotonic() - self._began, trouble))


def starting(figures: Figures, nodes: int, *, served: bool) -> str:
    """The line that is shown until the cluster is ready."""
    if not served:
        return "starting: the API server"
    return f"starting: controllers, scheduler, nodes ({figures.ready} of {nodes} ready)"


def view(figures: Figures, address: Address, seconds: float, trouble: Trouble | None = None) -> list[Line]:
    """The lines that are shown while it runs: figures, pods that are in trouble and why, the last warnings."""
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
    """Lines with their title before the first one."""
    return [Line(f"{'' if number else title:<{_TITLE}}{text}", colour, _TITLE) for number, text in enumerate(texts)]
