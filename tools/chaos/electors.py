"""Leader election on one Lease as client-go does it: there are never two leaders."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from tools.chaos.asking import Answer, Asker, Violation
from tools.chaos.writers import NAMESPACE

_PATH: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
_NAME: Final = "leader"
_DURATION: Final = 3.0
"""Seconds that others wait after they have seen the lease change last."""
_DEADLINE: Final = 2.0
"""Seconds for which the leader believes in it after it has begun to renew it."""
_PERIOD: Final = 0.4
_RELEASES: Final = 0.03


@dataclass(frozen=True)
class Reign:
    """One who took itself for the leader, in seconds of one clock."""

    who: str
    first: float
    last: float


class Elector:
    """One candidate."""

    def __init__(self, asker: Asker, name: str) -> None:
        self._asker = asker
        self._name = name
        self._seen: Any = None
        self._seen_at = 0.0
        self.reigns: list[Reign] = []

    async def run(self) -> None:
        """Tries to lead, until cancelled. Raises Violation."""
        while True:
            await self._step()
            await asyncio.sleep(_PERIOD * self._asker.chance.uniform(0.7, 1.3))

    async def _step(self) -> None:
        answer = await self._asker.ask("GET", f"{_PATH}/{_NAME}")
        if not isinstance(answer, Answer) or answer.status not in (200, 404):
            return
        now = time.monotonic()
        if answer.status == 404:
            await self._write("POST", _PATH, {"metadata": {"name": _NAME}}, self._name)
            return
        lease = answer.body
        if lease["metadata"]["resourceVersion"] != self._seen:
            self._seen, self._seen_at = lease["metadata"]["resourceVersion"], now
        holder = lease["spec"].get("holderIdentity", "")
        if holder not in ("", self._name) and self._seen_at + _DURATION > now:
            return
        releases = holder == self._name and self._asker.chance.random() < _RELEASES
        await self._write("PUT", f"{_PATH}/{_NAME}", lease, "" if releases else self._name)

    async def _write(self, method: str, target: str, lease: Any, holder: str) -> None:
        began = time.monotonic()
        if not holder:  # it does not lead any more from before it says so
            self.reigns = [Reign(each.who, each.first, min(each.last, began)) for each in self.reigns]
        lease["spec"] = {
            "holderIdentity": holder,
            "leaseDurationSeconds": int(_DURATION),
            "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        answer = await self._asker.ask(method, target, lease)
        if isinstance(answer, Answer) and answer.status in (200, 201) and holder:
            if answer.body["spec"]["holderIdentity"] != self._name:
                raise Violation(f"{self._name} was answered with {answer.body}")
            self.reigns.append(Reign(self._name, time.monotonic(), began + _DEADLINE))
            self._asker.counts["renewals of the lease"] += 1


def overlaps(reigns: Iterable[Reign]) -> list[str]:
    """Times at which two led."""
    found = []
    last: Reign | None = None
    for each in sorted((each for each in reigns if each.first < each.last), key=lambda reign: reign.first):
        if last is not None and last.who != each.who and each.first < last.last:
            found.append(f"{last.who} led from {last.first:.3f} to {last.last:.3f}, {each.who} from {each.first:.3f}")
        if last is None or each.last > last.last:
            last = each
    return found
