"""Where a server is between its start and its end; filters and health checks ask."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Lifecycle:
    """`serving` once every path is installed, `shutting_down` from the first signal on (readyz fails),
    `not_accepting` once no new request is taken."""

    serving: bool = False
    shutting_down: bool = False
    not_accepting: bool = False
