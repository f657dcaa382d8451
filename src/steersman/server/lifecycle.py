"""The phase of a server between its start and its end, for filters and health checks."""

from __future__ import annotations

from msgspec import Struct


class Lifecycle(Struct):
    """The phase of a server.

    `serving` is True once every path is installed, `shutting_down` from the first signal on (readyz fails), and
    `not_accepting` once no new requests are accepted.
    """

    serving: bool = False
    shutting_down: bool = False
    not_accepting: bool = False
