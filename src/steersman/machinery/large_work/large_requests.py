"""Bounds on the large requests of one server."""

from __future__ import annotations

from steersman.machinery.errors.status import too_many_requests
from steersman.machinery.large_work.body_room import BodyRoom
from steersman.machinery.large_work.places import Places
from steersman.work.offloading import Account


class LargeRequests:
    """Bounds on the bytes of large bodies in memory, and on the large requests that are worked on at once."""

    def __init__(self) -> None:
        self.bodies = BodyRoom()
        self.places = Places()


def check_room(account: Account) -> None:
    """Raise StatusError 429 if as much of the user's work waits as may; asked before a request begins, not amid."""
    if not account.has_room():
        raise too_many_requests("too many requests, please try again later", 1)
