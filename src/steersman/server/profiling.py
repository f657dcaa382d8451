"""/debug/pprof: profiles of the process, for authorized users.

The formats are Python's, not Go's: a CPU profile in pstats' binary form, memory and stacks as text.
"""

from __future__ import annotations

import asyncio
import gc
import marshal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from steersman.endpoints.request import Request
from steersman.endpoints.responses import NOSNIFF, TEXT_TYPE, not_found_text, text_response
from steersman.net.message import Response
from steersman.server.server import Server
from steersman.work.patterns import late_pattern

if TYPE_CHECKING:  # spares most servers the import: they have no watchdog
    from steersman.server.loop_watchdog import Hold

_LONGEST = 120
_SECONDS = late_pattern("[0-9]{1,6}")
_TYPES_SHOWN = 50
_PAGES = {
    "profile": "CPU profile (?seconds=N, 30 unless given), for Python's pstats",
    "heap": "Objects alive by type (?gc=1 collects garbage first)",
    "goroutine": "Stacks of all tasks and threads",
    "block": "Callbacks that have blocked the event loop (with --contention-profiling)",
}


def install_profiling(server: Server) -> None:
    """Add the profiling paths."""
    server.add_path("/debug/pprof/", _index, listed=False)
    server.add_path("/debug/pprof", _index, listed=False)
    server.add_path("/debug/pprof/profile", _Profile().answer, listed=False)
    server.add_path("/debug/pprof/heap", _heap, listed=False)
    server.add_path("/debug/pprof/goroutine", _stacks, listed=False)
    server.add_prefix("/debug/pprof/", _unknown)


def install_contention_profiling(server: Server, holds: Callable[[], Sequence[Hold]]) -> None:
    """Add the path for contention: callbacks that have blocked the event loop."""
    server.add_path("/debug/pprof/block", partial(_block, holds), listed=False)


async def _block(holds: Callable[[], Sequence[Hold]], request: Request) -> Response:
    lines = [f"{each.seconds:>12.3f} s {each.times:>8} times {each.where}: {each.stack}\n" for each in holds()]
    return Response(200, [TEXT_TYPE, NOSNIFF], "".join(lines).encode())


async def _index(request: Request) -> Response:
    from html import escape  # slow to load

    rows = "".join(
        f'<li><a href="{escape(name)}">{escape(name)}</a>: {escape(text)}</li>' for name, text in _PAGES.items()
    )
    page = f"<html><head><title>/debug/pprof/</title></head><body><ul>{rows}</ul></body></html>\n"
    return Response(200, [("content-type", "text/html; charset=utf-8"), NOSNIFF], page.encode())


async def _unknown(request: Request) -> Response:
    return not_found_text()


class _Profile:
    """CPU profiling, one profile at a time."""

    def __init__(self) -> None:
        self._running = False

    async def answer(self, request: Request) -> Response:
        """Profile the event loop for some seconds and answer with the profile."""
        seconds = request.query.get("seconds", "30")
        if not _SECONDS.fullmatch(seconds) or not 0 < int(seconds) <= _LONGEST:
            return text_response(400, f"seconds must be a number from 1 to {_LONGEST}\n")
        if self._running:
            return text_response(500, "Could not enable CPU profiling: cpu profiling already in use\n")
        self._running = True
        import cProfile  # slow to import, and most servers are never profiled
        import pstats

        profile = cProfile.Profile()
        try:
            profile.enable()
            await asyncio.sleep(int(seconds))
        finally:
            profile.disable()
            self._running = False
        stats = pstats.Stats(profile)
        headers = [
            ("content-type", "application/octet-stream"),
            NOSNIFF,
            ("content-disposition", 'attachment; filename="profile"'),
        ]
        return Response(200, headers, marshal.dumps(stats.stats))  # type: ignore[attr-defined]


async def _heap(request: Request) -> Response:
    if request.query.get("gc"):
        gc.collect()
    counts = Counter(type(each).__qualname__ for each in gc.get_objects())
    lines = [f"{count:>10} {name}\n" for name, count in counts.most_common(_TYPES_SHOWN)]
    return Response(200, [TEXT_TYPE, NOSNIFF], "".join(lines).encode())


async def _stacks(request: Request) -> Response:
    parts = []
    for task in asyncio.all_tasks():
        frames = task.get_stack(limit=20)
        lines = [f"  {frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}\n" for frame in frames]
        parts.append(f"task {task.get_name()}\n{''.join(lines)}\n")
    for ident, frame in sys._current_frames().items():
        parts.append(f"thread {ident}\n{''.join(traceback.format_stack(frame))}\n")
    return Response(200, [TEXT_TYPE, NOSNIFF], "".join(parts).encode())
