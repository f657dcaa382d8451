"""The context object of a request, passed to every filter and handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from steersman.authentication.interface import NO_REMARKS, Remarks
from steersman.authentication.user import ANONYMOUS
from steersman.endpoints.negotiation import LONGEST_ACCEPT, bounded
from steersman.endpoints.query import NO_QUERY, Query, first_parameter, first_parameters, parse_query
from steersman.endpoints.request_info import RequestInfo
from steersman.machinery.identity.action import NO_ACTION, Action
from steersman.net.message import Headers, Response
from steersman.net.message import Request as HttpRequest
from steersman.rest.context import Context
from steersman.work.offloading import Account, offload_if
from steersman.work.threads import WorkerThreads

if TYPE_CHECKING:
    from steersman.audit.trail import Trail
    from steersman.authentication.user import UserInfo
    from steersman.authorization.interface import Verdict
    from steersman.flowcontrol.estimates import Estimate
    from steersman.flowcontrol.fairness import Flow
    from steersman.flowcontrol.queue_set import Ticket
    from steersman.tracing.trace import Trace

SHORT_QUERY: Final = 512
"""Characters of a query that is parsed immediately."""
_LONG: Final = 4 << 10
"""Characters of a query whose parsing may take more than a few milliseconds."""


_NOT_YET: Final[Any] = None
"""Value of an attribute that a filter has not set yet."""


class Request(Struct, eq=False):
    """A request on its way through the filters to its handler.

    - `http` is the message itself; `headers`, `method` and `path` are the message's.
    - `info` is set by the outermost filter, `user` by the authentication filter, and `action` by the route, after a
      comparison with what was authorized; `subpath` is the path after a subresource.
    - `received` and `deadline` are times of the monotonic clock in seconds; a deadline of 0 is none.
    - `query` is the parsed query. A long one is parsed after authorization: earlier filters use `parameter`.
    - `account` is the account for offloaded work, None before the request is processed.
    - `audit` is the audit trail, None without one; `recorded` must complete before the answer is sent.
    - `remarks` are the authenticator's; authentication took `authentication_seconds`.
    - `flow` is the request's flow in priority and fairness, None without; `estimate` and `ticket` belong to it.
      `ticket` is None for a request that was refused at once. A watch calls `initialized` when its initial objects are
      sent.
    - `watchers` is the number of watches that a write affects, as far as priority and fairness has counted them.
    - `verdict` is the authorizer's, None before authorization.
    - `refused` is True if the authorizer did not allow the request.
    - `trace` and its `entered` are only set for a request that is traced.
    - `newest` is the newest revision committed when the request arrived, which this process has processed; 0 if
      unknown.
    - `as_of` is the revision at which a get or list is answered, 0 for the present or the requested one.
    """

    http: HttpRequest
    _threads: WorkerThreads | None = None
    """The server's worker threads; only tests omit them."""
    account: Account | None = None
    method: str = ""
    path: str = ""
    headers: Headers = _NOT_YET
    action: Action = NO_ACTION
    subpath: str = ""
    warnings: list[str] = []
    received: float = 0.0
    deadline: float = 0.0
    audit_id: str = ""
    audit: Trail | None = None
    remarks: Remarks = NO_REMARKS
    authentication_seconds: float = 0.0
    recorded: Awaitable[bool] | None = None
    refused: bool = False
    verdict: Verdict | None = None
    newest: int = 0
    as_of: int = 0
    flow: Flow | None = None
    watchers: int = 0
    initialized: Callable[[], None] | None = None
    info: RequestInfo = _NOT_YET
    user: UserInfo = _NOT_YET
    query: Query = NO_QUERY
    estimate: Estimate = _NOT_YET
    ticket: Ticket | None = None
    trace: Trace = _NOT_YET
    entered: list[float] = _NOT_YET

    def __post_init__(self) -> None:
        http = self.http
        self.method, self.path, self.headers = http.method, http.path, http.headers
        accept = http.headers.get("accept")
        if accept is not None and len(accept) > LONGEST_ACCEPT:
            http.headers["accept"] = bounded(accept)
        if http.query and len(http.query) < SHORT_QUERY:
            self.query = parse_query(http.query)

    @property
    def uri(self) -> str:
        """The path and the query as they were sent."""
        http = self.http
        return f"{http.path}?{http.query}" if http.query else http.path

    def open_account(self) -> Account:
        """Return a new account for the request's work: the account of its user, once the user is known."""
        assert self._threads is not None
        return Account(self._threads, self._account_of, keeps_size=True)

    def close_account(self) -> None:
        """Detach the account, which other objects may hold, so that neither keeps the other alive."""
        assert self.account is not None
        self.account.user = self._account_of()
        self.account = None

    def _account_of(self) -> str:
        return ANONYMOUS if self.user is _NOT_YET else self.user.name

    @property
    def has_long_query(self) -> bool:
        """True if parsing the query, or an option in it, may take more than a few milliseconds."""
        return len(self.http.query) > _LONG

    @property
    def has_long_target(self) -> bool:
        """True if a text that quotes the path or the query may take more than a few milliseconds to build."""
        return len(self.path) + len(self.http.query) > _LONG

    def context(self, *, dry_run: bool = False) -> Context:
        """Return the context of the request for storage."""
        return Context(
            self.user, self.action, dry_run, self.warnings, audit=self.audit, newest=self.newest, as_of=self.as_of
        )

    async def read_query(self) -> None:
        """Parse a query that was not parsed immediately; call it after authorization."""
        self.query = await offload_if(self.has_long_query, parse_query, self.http.query)

    def parameter(self, name: str) -> str | None:
        """Return the first value of a parameter, without parsing the rest of a long query."""
        text = self.http.query
        if not text:
            return None
        return self.query.get(name) if len(text) < SHORT_QUERY else first_parameter(text, name)

    def parameters(self, names: Iterable[str]) -> Query:
        """Return a query with the first value of each of these parameters, without parsing the rest of a long query.

        A short query is returned with all parameters.
        """
        text = self.http.query
        if len(text) < SHORT_QUERY:
            return self.query
        return first_parameters(text, names)


Handler = Callable[[Request], Awaitable[Response]]


class Filter(Protocol):
    """A layer around the handlers: answers itself, or calls the next one."""

    def __call__(self, request: Request, next_: Handler) -> Awaitable[Response]: ...


def chain(filters: tuple[Filter, ...], handler: Handler) -> Handler:
    """Return `handler` wrapped in all `filters`, the first outermost."""
    for each in reversed(filters):
        handler = _with_next(each, handler)
    return handler


def _with_next(layer: Filter, next_: Handler) -> Handler:
    """Return a filter whose `next_` has a default, so that it is a handler.

    Nothing stands between two filters then: a `partial` with a keyword costs a request as much as five more calls.
    """
    if not isinstance(layer, FunctionType):
        return partial(layer, next_=next_)
    return FunctionType(layer.__code__, layer.__globals__, layer.__name__, (next_,), layer.__closure__)
