"""/debug/requests: requests as they are answered, and the steps of each.

- `GET /debug/requests` lists the kept requests, the oldest first.
- `GET /debug/requests?watch=true` streams a JSON line for each request at its end.
- `GET /debug/requests/ID` returns one request with its steps.

Filters are `user`, `verb`, `resource` (or `resource/subresource`), `namespace`, `userAgent` (a part of it), `code` (such as
404 or 4xx), `slow` (a duration such as 50ms) and `failed=true`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

from steersman.endpoints.query import Query
from steersman.endpoints.request import Request
from steersman.endpoints.responses import JSON_TYPE, error_response
from steersman.machinery.errors.status import StatusError, bad_request, too_many_requests
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.net.ascii import is_digits
from steersman.net.message import BodyWriter, Response
from steersman.server.request_traces import PATH, RequestTraces
from steersman.server.server import Server
from steersman.tracing.documents import document, summary
from steersman.tracing.trace import Trace

MOST_UNREAD: Final = 1 << 20
"""Unsent bytes of a stream above which further requests are dropped and counted."""
_DELAY: Final = 0.05
"""Seconds for which requests are collected before they are written to a stream."""
MOST_STREAMS: Final = 16
"""Most streams at once."""
_LONGEST: Final = 64
"""Most characters of a duration or a code."""

Matches = Callable[[Trace], bool]


def install_request_paths(server: Server, traces: RequestTraces) -> None:
    """Add the paths, which the index does not list. Raises ValueError if a path is taken."""
    server.add_path(PATH, partial(_requests, server, traces), listed=False)
    server.add_prefix(f"{PATH}/", partial(_one, traces))


async def _requests(server: Server, traces: RequestTraces, request: Request) -> Response:
    try:
        matches = matcher(request.query)
    except StatusError as error:
        return error_response(request, error)
    if request.query.get("watch") not in ("true", "1"):
        found = [summary(each) for each in traces.recent() if matches(each)]
        return Response(200, [JSON_TYPE], _line({"requests": found}))
    if traces.subscriber_count >= MOST_STREAMS:
        return error_response(request, too_many_requests(f"at most {MOST_STREAMS} streams of requests may be open"))
    return Response(200, [JSON_TYPE], RequestStream(server, traces, matches))


async def _one(traces: RequestTraces, request: Request) -> Response:
    wanted = request.path.removeprefix(f"{PATH}/")
    found = traces.find(wanted)
    if found is None:
        return error_response(request, StatusError(404, "NotFound", f"no request {wanted[:_LONGEST]!r} is kept"))
    return Response(200, [JSON_TYPE], _line(document(found)))


class RequestStream:
    """The open answer of a stream of requests (net.message.Stream)."""

    def __init__(self, server: Server, traces: RequestTraces, matches: Matches) -> None:
        self._server = server
        self._traces = traces
        self._matches = matches
        self._writer: BodyWriter | None = None
        self._leave: Callable[[], None] | None = None
        self._lines: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._dropped = 0

    def start(self, writer: BodyWriter) -> None:
        """Begin to send requests."""
        self._writer = writer
        if self._server.lifecycle.shutting_down:
            writer.end()
            return
        self._server.watches.add(self)
        self._leave = self._traces.subscribe(self._take)

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
        self._flush()
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.end()

    def _take(self, trace: Trace) -> None:
        writer = self._writer
        if writer is None or not self._matches(trace):
            return
        if writer.buffered > MOST_UNREAD:
            self._dropped += 1
            return
        if self._dropped:
            self._lines.append(_line({"dropped": self._dropped}))
            self._dropped = 0
        self._lines.append(_line(summary(trace)))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_DELAY, self._flush)

    def _flush(self) -> None:
        """Write the requests of the last moment at once."""
        self._timer = None
        lines, self._lines = self._lines, []
        if self._writer is not None:
            self._writer.write(b"".join(lines))


def matcher(query: Query) -> Matches:
    """Return the condition of the filters in a query. Raises StatusError 400 for a malformed one."""
    given: list[Matches] = []
    for name in ("user", "verb", "namespace"):
        if wanted := query.get(name, ""):
            given.append(partial(_has, name, wanted))
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
    if query.get("failed") in ("true", "1"):
        given.append(_failed)
    return lambda trace: all(each(trace) for each in given)


def _has(fact: str, wanted: str, trace: Trace) -> bool:
    return bool(trace.facts[fact] == wanted)


def _contains(wanted: str, trace: Trace) -> bool:
    return wanted in trace.facts["userAgent"]


def _takes(least: float, trace: Trace) -> bool:
    return trace.seconds >= least


def _failed(trace: Trace) -> bool:
    return bool(trace.facts["code"] >= 400)


def _of_code(wanted: str) -> Matches:
    """Return the condition of a code such as 404, or of a class such as 4xx."""
    digits = wanted.removesuffix("xx") if len(wanted) == 3 else ""
    if not is_digits(digits):
        raise bad_request(f"code must be a number such as 404, or a class such as 4xx: {wanted[:_LONGEST]!r}")
    return lambda trace: str(trace.facts["code"]).startswith(digits)


def _seconds(text: str) -> float:
    try:
        if len(text) > _LONGEST:
            raise DurationError("too long")
        return parse_duration(text) / 1e9
    except DurationError:
        raise bad_request(f"slow must be a duration such as 50ms: {text[:_LONGEST]!r}") from None


def _line(found: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(found) + b"\n"
    except UnicodeEncodeError:  # a header field or name that is not UTF-8
        return json.dumps(found, separators=(",", ":")).encode() + b"\n"
