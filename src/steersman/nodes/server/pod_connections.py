"""Open connections to ports of pods, which are closed with their pod."""

from __future__ import annotations

import asyncio

from steersman.net.upgrade import UpgradedConnection


class PodConnections:
    """Open connections by the UID of their pod."""

    def __init__(self) -> None:
        self._open: dict[str, list[asyncio.Transport]] = {}

    def add(self, uid: str, connection: UpgradedConnection) -> UpgradedConnection:
        """Add a connection to a pod, and return it."""
        connections = self._open.setdefault(uid, [])
        connections[:] = [each for each in connections if not each.is_closing()]
        connections.append(connection.transport)
        return connection

    def end(self, uid: str) -> None:
        """Close all connections to a pod that has ended."""
        for each in self._open.pop(uid, ()):
            each.abort()
