"""The one context object of a request: what every filter and handler is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from steersman.endpoints.request_info import Query, RequestInfo
from steersman.net.message import Headers, Response
from steersman.net.message import Request as HttpRequest

if TYPE_CHECKING:
    from steersman.authentication.user import UserInfo


class Request:
    """A request on its way through the filters to its handler.

    `http` is the message itself; `info` is set by the request-info filter and `user` by the authentication filter.
    `received` and `deadline` are loop times in seconds; a deadline of 0 is none.
    """

    __slots__ = ("audit_id", "deadline", "headers", "http", "info", "method", "path", "query", "received", "user",
                 "warnings")  # fmt: skip

    info: RequestInfo
    user: UserInfo

    def __init__(self, http: HttpRequest, query: Query) -> None:
        self.http = http
        self.method: str = http.method
        self.path: str = http.path
        self.headers: Headers = http.headers
        self.query = query
        self.warnings: list[str] = []
        self.received = 0.0
        self.deadline = 0.0
        self.audit_id = ""


Handler = Callable[[Request], Awaitable[Response]]


class Filter(Protocol):
    """One layer around the handlers: it answers itself, or calls the next one."""

    def __call__(self, request: Request, next_: Handler) -> Awaitable[Response]: ...


def chain(filters: tuple[Filter, ...], handler: Handler) -> Handler:
    """`handler` inside all `filters`, the first outermost."""
    for each in reversed(filters):
        handler = partial(each, next_=handler)
    return handler
