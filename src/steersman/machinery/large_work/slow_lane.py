"""Where large work is done: beside the event loop, so that the size of one request is not felt by the others.

A body is weighed before anything is made of it. What is small is worked on where it is; for what is large every step
(decoding, defaulting, validating, encoding) runs in the slow lane. A body of more values than any object has is
refused, as one call into a codec, which holds the interpreter, is to take some 50 ms at most.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from steersman.machinery.errors.status import StatusError, request_entity_too_large, too_many_requests
from steersman.machinery.lane.threads import Threads
from steersman.machinery.large_work.body_room import BodyRoom
from steersman.machinery.large_work.nesting import MAX_DEPTH, measured
from steersman.machinery.large_work.places import Place, Places

P = ParamSpec("P")
R = TypeVar("R")

MAX_OBJECTS: Final = 1 << 15
"""Objects and lists in one body. The largest definitions of custom resources have some 10,000."""
MAX_VALUES: Final = 1 << 16
"""Values in one body: members of objects and items of lists."""

_SURELY_SMALL: Final = 6_000
"""Bytes of JSON that are not looked at: at most 2,000 of the dearest values."""
_LARGE: Final = 64 << 10
_MANY: Final = 1_000
"""Values from which JSON is large whatever its size: the dearest (`{}` in a list of containers, which is wrong in three
ways) cost 30 us each."""
_LARGE_YAML: Final = 2 << 10
_LARGE_PROTOBUF: Final = 4 << 10


def is_large(data: bytes) -> bool:
    """Whether working on an object of this JSON may take longer than a turn of the loop should."""
    size = len(data)
    return size > _SURELY_SMALL and (size > _LARGE or data.count(b",") > _MANY or data.count(b"{") > _MANY)


def is_large_yaml(data: bytes) -> bool:
    """The same of YAML, which takes many times longer to read."""
    return len(data) > _LARGE_YAML


def is_large_protobuf(data: bytes) -> bool:
    """The same of protobuf, where an object may take two bytes."""
    return len(data) > _LARGE_PROTOBUF


def check_count(data: bytes) -> None:
    """Raises StatusError 413 for JSON of more than MAX_OBJECTS objects and lists, or MAX_VALUES values.

    What is nested more deeply than anything may be is left to the decoder, which refuses it in upstream's words.
    """
    if len(data) <= MAX_OBJECTS:
        return
    if data.count(b"{") + data.count(b"[") > MAX_OBJECTS or data.count(b",") > MAX_VALUES:
        found = measured(data)
        if found.depth > MAX_DEPTH:
            return
        if found.objects > MAX_OBJECTS:
            raise too_many_objects()
        if found.commas > MAX_VALUES:
            raise too_many_values()


def too_many_objects() -> StatusError:
    """413 for a body that has more than MAX_OBJECTS."""
    return request_entity_too_large(f"Request entity too large: limit is {MAX_OBJECTS} objects and lists")


def too_many_values() -> StatusError:
    """413 for a body that has more than MAX_VALUES."""
    return request_entity_too_large(f"Request entity too large: limit is {MAX_VALUES} values")


class SlowLane:
    """Where large work is done for one user, in turn with that of the others.

    What the server does for itself, or for many at once, belongs to no user and is done before everything else.
    """

    __slots__ = ("_number", "_place", "_threads", "_user", "bodies", "places")

    def __init__(
        self, threads: Threads | None = None, user: str = "", bodies: BodyRoom | None = None,
        places: Places | None = None, place: Place | None = None,
    ) -> None:  # fmt: skip
        self._threads = threads or Threads()
        self.bodies = bodies or BodyRoom()
        """Where large bodies have room while the requests that brought them are worked on."""
        self.places = places or Places()
        """For those of them whose work has begun."""
        self._place = place
        self._user = user
        self._number = next(self._threads.numbers)

    def of(self, user: str, place: Place | None = None) -> SlowLane:
        """The same threads, for one request of `user`, which begins once it has its place, if it needs one."""
        return SlowLane(self._threads, user, self.bodies, self.places, place)

    def check_room(self) -> None:
        """Raises StatusError 429 if as much of the user's waits as may; asked before a request is begun, not amid."""
        if not self._threads.has_room(self._user):
            raise too_many_requests("too many requests, please try again later", 1)

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """What `work` gives or raises; it touches nothing that belongs to the loop."""
        if self._place is not None:
            await self._place.take()
        return await self._threads.run(self._user, self._number, partial(work, *args, **kwargs))

    def close(self) -> None:
        """Takes no more work, of any user; what has not begun is not done."""
        self._threads.close()


async def done(lane: SlowLane | None, work: Callable[..., R], *args: Any) -> R:
    """What `work` gives for `args`: in the lane for what is large, at once where there is none."""
    return work(*args) if lane is None else await lane.run(work, *args)
