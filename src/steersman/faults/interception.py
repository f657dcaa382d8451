"""Observation of every request right before its handler and right after it, with the choice of another answer."""

from __future__ import annotations

from enum import Enum
from typing import Final, Protocol

from steersman.faults.fault import Met, Status
from steersman.machinery.errors.status import StatusError
from steersman.net.message import Stream


class Cut(Enum):
    """Marker of a connection that is cut off without an answer."""

    CUT = "cut"


CUT: Final = Cut.CUT
Instead = Status | Cut | None
"""Answer in place of a request's own; None for the request's own."""


class OpenWatch(Stream, Protocol):
    """Body of a watch that can be ended."""

    def finish(self) -> None:
        """End the watch after the events that were written."""
        ...

    def failed(self, error: StatusError | None) -> None:
        """End the watch with an event of an error."""
        ...


class Interception(Protocol):
    """Observer of one request."""

    async def before(self) -> Instead:
        """Return the answer of a request that is not carried out, None to carry it out."""
        ...

    async def after(self, code: int) -> Instead:
        """Return another answer than the handler's, whose status code is `code`. An error of the handler stays."""
        ...

    def watch(self, body: OpenWatch) -> Stream:
        """Return the body of a watch in place of its own."""
        ...


class Interceptor(Protocol):
    """Observer of all requests for resources."""

    def begin(self, met: Met) -> Interception | None:
        """Return the observer of a request, None for a request that nobody observes."""
        ...
