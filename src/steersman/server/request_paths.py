"""/debug/requests: requests as they are answered, and the steps of each.

- `GET /debug/requests` lists the kept requests, the oldest first.
- `GET /debug/requests?watch=true` streams a JSON line for each request at its end; with `detail=true` also one for each
  watch at its beginning, and the lines of updates have the paths of the fields that have changed.
- `GET /debug/requests/ID` returns one request with its steps, and with the RBAC rule that allowed it.

Filters are `user`, `verb`, `resource` (or `resource/subresource`), `namespace`, `userAgent` (a part of it), `code` (such as
404 or 4xx), `slow` (a duration such as 50ms) and `failed=true`.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from steersman.api.rbac.v1 import PolicyRule
from steersman.authorization.attributes import Attributes
from steersman.endpoints.answered import AnsweredRequest
from steersman.endpoints.query import Query, checked_flag
from steersman.endpoints.request import Handler, Request
from steersman.endpoints.responses import JSON_TYPE, error_response, method_not_allowed
from steersman.machinery.codec.serializer import encode_in_order, to_plain
from steersman.machinery.errors.status import StatusError, bad_request, too_many_requests
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.net.ascii import is_digits
from steersman.net.message import BodyWriter, Response
from steersman.server.request_traces import PATH, RequestTraces, leave_out
from steersman.server.server import Server
from steersman.tracing.documents import document, summary
from steersman.tracing.trace import Trace, cut
from steersman.work.yielding import run_in_slices

MOST_UNREAD: Final = 1 << 20
"""Unsent bytes of a stream above which further requests are dropped and counted."""
WORKER: Final = "steersman-worker"
"""Header field that tells which of several processes has answered."""
_DELAY: Final = 0.1
"""Seconds for which requests are collected before they are written to a stream."""
_MOST_WAITING: Final = 5_000
"""Requests that wait for their lines; further requests are dropped and counted."""
_AT_ONCE: Final = 200
"""Lines that are written together."""
MOST_STREAMS: Final = 16
"""Most streams at once."""
_LONGEST: Final = 64
"""Most characters of a duration or a code."""

_AUTHORIZATION: Final = "authorization"
_ENCODER: Final = msgspec.json.Encoder()

Matches = Callable[[dict[str, Any]], bool]
"""Condition about the summary of a request."""


RuleBehind = Callable[[Attributes, str], Awaitable[tuple[int, PolicyRule] | None]]
"""Function that returns the rule, and its position in its role, for which a request was allowed with a reason."""


def install_request_paths(server: Server, traces: RequestTraces, rule_behind: RuleBehind, worker: str = "") -> None:
    """Add the paths, which the index does not list. Raises ValueError if a path is taken.

    `worker` tells which of several processes this one is, as in "2 of 4"; each has its own requests.
    """
    server.add_path(PATH, partial(_of_worker, worker, partial(_requests, server, traces)), listed=False)
    server.add_prefix(f"{PATH}/", partial(_of_worker, worker, partial(_one, traces, rule_behind)))


async def _of_worker(worker: str, handle: Handler, request: Request) -> Response:
    """Return the answer of `handle`, which says of which process it is."""
    leave_out()
    response = await handle(request)
    if worker:
        response.headers.append((WORKER, worker))
    return response


async def _requests(server: Server, traces: RequestTraces, request: Request) -> Response:
    try:
        _check_method(request)
        matches = matcher(request.query)
        streams = checked_flag("watch", request.query.get("watch"))
        in_detail = checked_flag("detail", request.query.get("detail"))
    except StatusError as error:
        return error_response(request, error)
    if not streams:
        found = [each for each in map(summary, traces.recent()) if matches(each)]
        return Response(200, [JSON_TYPE], _line({"requests": found}))
    if traces.subscriber_count >= MOST_STREAMS:
        return error_response(request, too_many_requests(f"at most {MOST_STREAMS} streams of requests may be open"))
    return Response(200, [JSON_TYPE], RequestStream(server, traces, matches, in_detail=in_detail))


async def _one(traces: RequestTraces, rule_behind: RuleBehind, request: Request) -> Response:
    # clients choose their audit IDs, which a path has escaped
    wanted = unquote(request.path.removeprefix(f"{PATH}/"))
    try:
        _check_method(request)
        if (found := traces.find(wanted)) is None:
            raise StatusError(404, "NotFound", f"no request {wanted[:_LONGEST]!r} is kept")
    except StatusError as error:
        return error_response(request, error)
    shown = document(found)
    if isinstance(found.answered, AnsweredRequest):
        await _add_rule(found.answered, rule_behind, shown["steps"])
    return Response(200, [JSON_TYPE], _line(shown))


async def _add_rule(answered: AnsweredRequest, rule_behind: RuleBehind, steps: list[dict[str, Any]]) -> None:
    """Add the RBAC rule that allowed a request, as the role has it now, to the attributes of the authorization."""
    step = next((each for each in steps if each["name"] == _AUTHORIZATION), None)
    verdict, attributes = answered.verdict, answered.attributes
    if step is None or verdict is None or attributes is None or not verdict.allowed:
        return
    found = await rule_behind(attributes, verdict.reason)
    if found is not None:
        number, rule = found
        step["attributes"]["rule"] = cut(f"rules[{number}]: {encode_in_order(to_plain(rule)).decode()}")


def _check_method(request: Request) -> None:
    """Raise StatusError 405 for anything but a read: the right to another verb is not the right to read."""
    if request.method not in ("GET", "HEAD"):
        raise method_not_allowed()


class RequestStream:
    """The open answer of a stream of requests (net.message.Stream)."""

    def __init__(self, server: Server, traces: RequestTraces, matches: Matches, *, in_detail: bool = False) -> None:
        """With `in_detail` there are lines about watches that begin, and about the fields that writes change."""
        self._server = server
        self._traces = traces
        self._matches = matches
        self._in_detail = in_detail
        self._writer: BodyWriter | None = None
        self._leave: Callable[[], None] | None = None
        self._waiting: deque[tuple[Trace, bool]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._dropped = 0

    def start(self, writer: BodyWriter) -> None:
        """Begin to send requests."""
        self._writer = writer
        if self._server.lifecycle.shutting_down:
            writer.end()
            return
        self._server.watches.add(self)
        self._leave = self._traces.subscribe(self._take, in_detail=self._in_detail)

    def closed(self) -> None:
        """Release everything at the end of the answer."""
        self._server.watches.discard(self)
        if self._leave is not None:
            self._leave()
        if self._timer is not None:
            self._timer.cancel()
        self._writer = self._leave = self._timer = None

    def finish(self) -> None:
        """End the stream, as the server is shutting down."""
        while self._write_some():
            pass
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.end()

    def _take(self, trace: Trace, is_open: bool) -> None:
        """Keep a trace until its line is made with the others of the moment: the request does not wait for that."""
        writer = self._writer
        if writer is None:
            return
        if len(self._waiting) >= _MOST_WAITING or writer.buffered > MOST_UNREAD:
            self._dropped += 1
            return
        self._waiting.append((trace, is_open))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_DELAY, self._flush)

    def _flush(self) -> None:
        """Write the lines of the waiting requests."""
        self._timer = None
        run_in_slices(self._write_some)

    def _write_some(self) -> bool:
        """Write the lines of some waiting requests; return True if there are more."""
        waiting, matches = self._waiting, self._matches
        taken = [waiting.popleft() for _ in range(min(len(waiting), _AT_ONCE))]
        found = [summary(trace, is_open=is_open) for trace, is_open in taken]
        if matches is not _every:
            found = [each for each in found if matches(each)]
        if self._dropped:
            found.insert(0, {"dropped": self._dropped})
            self._dropped = 0
        if self._writer is not None and found:
            self._writer.write(_lines(found))
        return bool(waiting)


def matcher(query: Query) -> Matches:
    """Return the condition of the filters in a query. Raises StatusError 400 for a malformed one."""
    given: list[Matches] = []
    for name in ("user", "namespace"):
        if wanted := query.get(name, ""):
            given.append(partial(_has, name, wanted))
    if wanted := query.get("verb", ""):
        given.append(partial(_has_one, "verb", frozenset(wanted.split(","))))
    if wanted := query.get("resource", ""):
        resource, _, subresource = wanted.partition("/")
        given.append(partial(_has, "resource", resource))
        if subresource:
            given.append(partial(_has, "subresource", subresource))
    if wanted := query.get("userAgent", ""):
        given.append(partial(_contains, wanted))
    if wanted := query.get("code", ""):
        given.append(_of_code(wanted))
    if wanted := query.get("slow", ""):
        given.append(partial(_takes, _seconds(wanted)))
    if checked_flag("failed", query.get("failed")):
        given.append(_failed)
    return (lambda found: all(each(found) for each in given)) if given else _every


def _every(_: dict[str, Any]) -> bool:
    return True


def _has(fact: str, wanted: str, found: dict[str, Any]) -> bool:
    return bool(found[fact] == wanted)


def _has_one(fact: str, wanted: frozenset[str], found: dict[str, Any]) -> bool:
    return found[fact] in wanted


def _contains(wanted: str, found: dict[str, Any]) -> bool:
    return wanted in found["userAgent"]


def _takes(least: float, found: dict[str, Any]) -> bool:
    return bool(found["milliseconds"] >= 1000 * least)


def _failed(found: dict[str, Any]) -> bool:
    return bool(found["code"] >= 400)


def _of_code(wanted: str) -> Matches:
    """Return the condition of a code such as 404, or of a class such as 4xx."""
    digits = wanted.removesuffix("xx") if len(wanted) == 3 else ""
    if not is_digits(digits):
        raise bad_request(f"code must be a number such as 404, or a class such as 4xx: {wanted[:_LONGEST]!r}")
    return lambda found: str(found["code"]).startswith(digits)


def _seconds(text: str) -> float:
    try:
        if len(text) > _LONGEST:
            raise DurationError("too long")
        return parse_duration(text) / 1e9
    except DurationError:
        raise bad_request(f"slow must be a duration such as 50ms: {text[:_LONGEST]!r}") from None


def _lines(found: list[dict[str, Any]]) -> bytes:
    """Return one line of JSON for each."""
    try:
        return _ENCODER.encode_lines(found)
    except UnicodeEncodeError:
        return b"".join(map(_line, found))


def _line(found: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(found) + b"\n"
    except UnicodeEncodeError:  # a header field or name that is not UTF-8
        return json.dumps(found, separators=(",", ":")).encode() + b"\n"
