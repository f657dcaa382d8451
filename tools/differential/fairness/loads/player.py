"""Plays a script on a server, tick by tick, and tells what came of it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from .gate import EXTRA, Gate
from .requests import Requests
from .script import FILLING, TICK, Action, Arrive, Event, HangUp, Release, Script

_PART: Final = 4
_PATIENCE: Final = 0.2
"""Seconds, at most, until the next of those comes that have a seat when it begins: which queue has which matters."""
_RELEASED: Final = 403
_LONGEST: Final = 80


class Play:
    """One script on one server. `name` begins the names of its objects, and no other's."""

    def __init__(self, script: Script, name: str, requests: Requests, gate: Gate) -> None:
        self._script = script
        self._name = name
        self._requests = requests
        self._gate = gate
        self._tick = 0
        self._at_gate: set[int] = set()
        self._under_way: dict[int, asyncio.Task[None]] = {}
        self._came = asyncio.Event()
        self.events: list[Event] = []

    def came(self, number: int) -> None:
        """The webhook is asked about a request."""
        self._at_gate.add(number)
        self._came.set()
        self.events.append((self._tick, "seat", number))

    async def play(self, begins: float) -> list[Event]:
        """Play the script and return its events, in the order of ticks."""
        loop = asyncio.get_running_loop()
        arrivals = self._script.arrivals()
        number = self._script.filled
        await asyncio.sleep(begins - FILLING - loop.time())
        for each in range(number):
            self._send(each, arrivals[each])
            self._came.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._came.wait(), _PATIENCE)
        for tick in range(1, _LONGEST):
            await asyncio.sleep(begins + tick * TICK - loop.time())
            self._tick = tick
            done = tick > len(self._script.actions)
            if done and not self._under_way:
                break
            action: Action = Release(0) if done else self._script.actions[tick - 1]
            if isinstance(action, Arrive):
                self._send(number, action)
                number += 1
            elif isinstance(action, Release) and self._at_gate:
                self._release(sorted(self._at_gate)[action.which % len(self._at_gate)])
            elif isinstance(action, HangUp):
                self._hang_up(action.which)
        else:
            self.events.append((_LONGEST, "never answered", min(self._under_way, default=-1)))
        for task in self._under_way.values():
            task.cancel()
        return sorted(self.events)

    def _send(self, number: int, request: Arrive) -> None:
        self._under_way[number] = asyncio.create_task(self._request(number, request))

    async def _request(self, number: int, request: Arrive) -> None:
        script = self._script
        path = f"/api/v1/namespaces/{script.namespaces[request.namespace]}/configmaps/held"
        if request.patience:
            path += f"?timeout={round(_PART * request.patience * TICK * 1000)}ms"
        fields = {
            "Impersonate-User": script.users[request.schema][request.user],
            "Impersonate-Group": "loads",
            f"Impersonate-Extra-{EXTRA}": f"{self._name}-{number}",
        }
        try:
            code, head = await self._requests.delete(path, fields)
        except (OSError, asyncio.IncompleteReadError):
            self.events.append((self._tick, "connection closed", number))
        else:
            if code != _RELEASED:
                again = head.get("retry-after", "1")
                self.events.append((self._tick, f"{code}" + (f", again in {again}" if again != "1" else ""), number))
        self._under_way.pop(number, None)

    def _release(self, number: int) -> None:
        self._at_gate.discard(number)
        self._gate.release(f"{self._name}-{number}")

    def _hang_up(self, which: int) -> None:
        queued = sorted(self._under_way.keys() - self._at_gate)
        # what has been let go is answered at any moment, and does not wait
        queued = [each for each in queued if not any(e[2] == each for e in self.events)]
        if queued:
            number = queued[which % len(queued)]
            self._under_way.pop(number).cancel()
