"""Bounds on the large requests of one server."""

from __future__ import annotations

from steersman.machinery.errors.status import too_many_requests
from steersman.machinery.large_work.body_budget import BodyBudget
from steersman.machinery.large_work.permits import Permits
from steersman.work.offloading import Account


class LargeRequests:
    """Limits on the memory of large bodies, and on the number of large requests that are processed at once."""

    def __init__(self) -> None:
        self.bodies = BodyBudget()
        self.permits = Permits()


def check_backlog(account: Account) -> None:
    """Raise StatusError 429 if the account has as much queued work as it may have.

    Called before the work of a request begins, never in the middle of it.
    """
    if not account.has_room():
        raise too_many_requests("too many requests, please try again later", 1)
