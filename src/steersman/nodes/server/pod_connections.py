"""Open connections to ports of pods, which end with their pod as those in its network namespace do."""

from __future__ import annotations

import asyncio

from steersman.net.upgrade import UpgradedConnection


class PodConnections:
    """Connections by the UID of their pod."""

    def __init__(self) -> None:
        self._open: dict[str, list[asyncio.Transport]] = {}

    def add(self, uid: str, connection: UpgradedConnection) -> UpgradedConnection:
        """Return `connection`, which `end` closes from now on."""
        found = self._open.setdefault(uid, [])
        found[:] = [each for each in found if not each.is_closing()]
        found.append(connection.transport)
        return connection

    def end(self, uid: str) -> None:
        """Close all connections to a pod that has ended."""
        for each in self._open.pop(uid, ()):
            each.abort()
