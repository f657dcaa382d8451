"""Servers of tests, which know their address."""

from __future__ import annotations

from steersman.net.server import HttpServer


class ListeningServer(HttpServer):
    """A server that has been started by the fixture `serve`."""

    address: tuple[str, int]
    """The address it listens on."""
