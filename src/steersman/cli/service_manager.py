"""Notifications to the service manager that started this process (systemd's `sd_notify`)."""

from __future__ import annotations

import logging
import os
import socket

logger = logging.getLogger(__name__)


class ServiceManager:
    """The service manager that listens on the socket in `$NOTIFY_SOCKET`; without one, nothing is sent.

    The variable is removed from the environment, so that child processes do not send notifications.
    """

    def __init__(self) -> None:
        self._path = os.environ.pop("NOTIFY_SOCKET", "")

    def ready(self, status: str) -> None:
        """Notify that the server is ready, with a status line for `systemctl status`."""
        self._send(f"READY=1\nSTATUS={status}")

    def stopping(self) -> None:
        """Notify that the server is stopping."""
        self._send("STOPPING=1")

    def _send(self, text: str) -> None:
        if not self._path:
            return
        address = f"\0{self._path[1:]}" if self._path.startswith("@") else self._path
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(text.encode(), address)
        except OSError as error:
            logger.warning(
                "notifying the service manager at %s of %s failed: %s", self._path, text.split("\n")[0], error
            )
