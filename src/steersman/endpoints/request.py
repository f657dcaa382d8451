"""The one context object of a request: what every filter and handler is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

from steersman.authentication.interface import NO_REMARKS
from steersman.authentication.user import ANONYMOUS
from steersman.endpoints.negotiation import LONGEST_ACCEPT, bounded
from steersman.endpoints.query import NO_QUERY, Query, first_parameter, first_parameters, parse_query
from steersman.endpoints.request_info import RequestInfo
from steersman.machinery.identity.action import NO_ACTION
from steersman.net.message import Headers, Response
from steersman.net.message import Request as HttpRequest
from steersman.rest.context import Context
from steersman.work.offloading import Account, offload_if
from steersman.work.threads import WorkerThreads

if TYPE_CHECKING:
    from steersman.audit.trail import Trail
    from steersman.authentication.user import UserInfo
    from steersman.flowcontrol.estimates import Estimate
    from steersman.flowcontrol.fairness import Flow
    from steersman.flowcontrol.queue_set import Ticket

SHORT_QUERY: Final = 512
"""Characters of a query that is read at once."""
_LONG: Final = 4 << 10
"""Characters of a query that may take more than a few milliseconds to read."""


class Request:
    """A request on its way through the filters to its handler.

    `http` is the message itself; `info` is set by the request-info filter, `user` by the authentication filter, and
    `action` by the route, once what was authorized is what it does, with the `subpath` behind a subresource. `received`
    and `deadline` are loop times in seconds; a deadline of 0 is none. A `query` that takes long to read is there once
    the request is authorized: filters before that ask for `parameter`. `account` is on whose account work is offloaded,
    None until some is. `audit` is what is recorded of it, None for nothing, and `recorded` what the
    answer waits for; `remarks` are those of who judged who sends it, which took some `authentication_seconds`. `flow`
    is where it stands in priority and fairness, None without; what begins a watch calls `initialized` when its first
    objects are out. With a flow come its `estimate` and its `ticket`, which is None for a request that was refused at
    once. `refused` is True once the authorizer has not allowed the request. Everything up to the revision `newest` has
    been told of, and nothing newer was committed when the request came; 0 where that was not asked.
    """

    __slots__ = (
        "_threads",
        "account",
        "action",
        "audit",
        "audit_id",
        "authentication_seconds",
        "deadline",
        "estimate",
        "flow",
        "headers",
        "http",
        "info",
        "initialized",
        "method",
        "newest",
        "path",
        "query",
        "received",
        "recorded",
        "refused",
        "remarks",
        "subpath",
        "ticket",
        "user",
        "warnings",
    )

    info: RequestInfo
    user: UserInfo
    query: Query
    estimate: Estimate
    ticket: Ticket | None

    def __init__(self, http: HttpRequest, threads: WorkerThreads | None = None) -> None:
        """`threads` are those of the server, in which work of the request is done; a server always gives them."""
        self.http = http
        self._threads = threads
        self.account: Account | None = None
        self.method: str = http.method
        self.path: str = http.path
        self.headers: Headers = http.headers
        self.action = NO_ACTION
        self.subpath = ""
        self.warnings: list[str] = []
        self.received = 0.0
        self.deadline = 0.0
        self.audit_id = ""
        self.audit: Trail | None = None
        self.remarks = NO_REMARKS
        self.authentication_seconds = 0.0
        self.recorded: Awaitable[bool] | None = None
        self.refused = False
        self.newest = 0
        self.flow: Flow | None = None
        self.initialized: Callable[[], None] | None = None
        accept = http.headers.get("accept")
        if accept is not None and len(accept) > LONGEST_ACCEPT:
            http.headers["accept"] = bounded(accept)
        query = http.query
        if not query:
            self.query = NO_QUERY
        elif len(query) < SHORT_QUERY:
            self.query = parse_query(query)

    def open_account(self) -> Account:
        """Return the account on which the request is worked on: that of its user, once the user is known."""
        assert self._threads is not None
        return Account(self._threads, self._account_of, keeps_size=True)

    def close_account(self) -> None:
        """Let go of the account, which others may keep, so that neither keeps the other alive."""
        assert self.account is not None
        self.account.user = self._account_of()
        self.account = None

    def _account_of(self) -> str:
        return self.user.name if hasattr(self, "user") else ANONYMOUS

    @property
    def has_long_query(self) -> bool:
        """Return True if the query, or an option of it, may take more than a few milliseconds to read."""
        return len(self.http.query) > _LONG

    @property
    def has_long_target(self) -> bool:
        """Return True if words that quote the path or the query may take more than a few milliseconds to make."""
        return len(self.path) + len(self.http.query) > _LONG

    def context(self, *, dry_run: bool = False) -> Context:
        """Return the request as the floors below see it."""
        return Context(self.user, self.action, dry_run, self.warnings, audit=self.audit, newest=self.newest)

    async def read_query(self) -> None:
        """Reads the query of somebody who may send it, where it has not been read at once."""
        self.query = await offload_if(self.has_long_query, parse_query, self.http.query)

    def parameter(self, name: str) -> str | None:
        """The first value of one parameter of the query, without reading the others of a long one."""
        text = self.http.query
        if not text:
            return None
        return self.query.get(name) if len(text) < SHORT_QUERY else first_parameter(text, name)

    def parameters(self, names: Iterable[str]) -> Query:
        """Return a query with the first value of each of these parameters, without reading the others of a long one.

        A short query is returned as it is, with all that it has.
        """
        text = self.http.query
        if len(text) < SHORT_QUERY:
            return self.query
        return first_parameters(text, names)


Handler = Callable[[Request], Awaitable[Response]]


class Filter(Protocol):
    """One layer around the handlers: it answers itself, or calls the next one."""

    def __call__(self, request: Request, next_: Handler) -> Awaitable[Response]: ...


def chain(filters: tuple[Filter, ...], handler: Handler) -> Handler:
    """`handler` inside all `filters`, the first outermost."""
    for each in reversed(filters):
        handler = _inside(each, handler)
    return handler


def _inside(layer: Filter, next_: Handler) -> Handler:
    return lambda request: layer(request, next_)  # a `partial` with a keyword costs as much as five such calls
