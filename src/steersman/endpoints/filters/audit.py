"""Records requests (WithAudit, WithFailedAuthenticationAudit, and the audit of WithRequestDeadline)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from steersman.audit.policy import PANIC, RESPONSE_STARTED
from steersman.audit.trail import Auditor, Trail
from steersman.authorization.forbidden import internal_error_text
from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.responses import error_response, text_response
from steersman.endpoints.streamed import StreamedBody
from steersman.machinery.errors.status import StatusError, timeout
from steersman.machinery.validation.ip import ip_text, parse_ip_sloppy
from steersman.machinery.values.times import monotonic
from steersman.net.message import Response

_LONGEST_AGENT = 1024
_MOST_ADDRESSES = 64
"""Addresses of proxies that are read of a request."""


def with_audit(auditor: Auditor) -> Filter:
    """Records what the policy says of each request: that it came, that a long answer begins, and its end.

    500 for a request whose coming cannot be recorded, where the mode is strict.
    """

    async def audit(request: Request, next_: Handler) -> Response:
        trail = begin(auditor, request)
        if trail is None:
            return await next_(request)
        request.audit = trail
        received = trail.receive()
        if received is not None and not await received:
            auditor.metrics.rejected.inc()
            return text_response(500, internal_error_text(request_uri(request), "failed to store audit event") + "\n")
        try:
            response = await next_(request)
        except StatusError as error:
            response = error_response(request, error)
        except asyncio.CancelledError:
            _cut_off(trail, request)
            raise
        except Exception as error:
            _panicked(auditor, trail, error)
            raise
        trail.response_code(response.status)
        await _answered(auditor, trail, request, response)
        return response

    return audit


async def _answered(auditor: Auditor, trail: Trail, request: Request, response: Response) -> None:
    """Records that there is an answer, and that it is over: at once, unless it is still to be made."""
    body = response.body
    if request.info.long_running:
        started = trail.process(RESPONSE_STARTED)
        if started is not None:
            await started
        if response.upgrade is not None or not isinstance(body, bytes | list):
            request.http.when_over = _in_turn(request.http.when_over, trail.finish)
            return
    elif isinstance(body, StreamedBody):
        body.when_over(trail.finish)
        return
    complete = trail.complete()
    if complete is not None:
        await complete


def _in_turn(first: Callable[[], None] | None, then: Callable[[], None]) -> Callable[[], None]:
    if first is None:
        return then

    def both() -> None:
        first()
        then()

    return both


def _cut_off(trail: Trail, request: Request) -> None:
    """Records a request whose time is up, or whose client has gone."""
    if not trail.is_answered:
        if request.deadline and monotonic() >= request.deadline:
            why = "Timeout: request did not complete within requested timeout - context deadline exceeded"
            trail.response_status(timeout(why).status())
        else:
            trail.response_status({"status": "Success", "message": "Connection closed early", "code": 200})
    trail.finish()


def _panicked(auditor: Auditor, trail: Trail, error: Exception) -> None:
    """Records a request on which the server has failed."""
    text = f"APIServer panic'd: {error}"
    trail.response_status({"status": "Failure", "message": text, "reason": "InternalError", "code": 500})
    auditor.later(trail.process(PANIC))


async def refused(auditor: Auditor | None, request: Request, message: str, answer: Callable[[], Response]) -> Response:
    """Records a request that is refused before anybody knows who sent it, and why if its answer does not say it."""
    trail = None if auditor is None else begin(auditor, request)
    if trail is None:
        return answer()
    request.audit = trail
    trail.response_status({"message": message})
    response = answer()
    trail.response_code(response.status)
    started = trail.process(RESPONSE_STARTED)
    if started is not None:
        await started
    return response


def begin(auditor: Auditor, request: Request) -> Trail | None:
    """What a request leaves in the trail; None for nothing."""
    info = request.info
    path = None if info.resource_request else info.path
    return auditor.begin(_Told(request), getattr(request, "user", None), info.judged, path)


class _Told:
    """What a request says of itself."""

    __slots__ = ("_request",)

    def __init__(self, request: Request) -> None:
        self._request = request

    @property
    def uri(self) -> str:
        return request_uri(self._request)

    @property
    def audit_id(self) -> str:
        return self._request.audit_id

    @property
    def received(self) -> float:
        return self._request.received

    @property
    def user_agent(self) -> str:
        agent = self._request.headers.get("user-agent", "")
        return agent if len(agent) <= _LONGEST_AGENT else f"{agent[:_LONGEST_AGENT]}...TRUNCATED"

    @property
    def source_ips(self) -> list[str]:
        headers, host = self._request.headers, self._request.http.peer.host
        if "x-forwarded-for" in headers or "x-real-ip" in headers:
            return _addresses(self._request, host)
        return [host] if host and ":" not in host else _addresses(self._request, host)


def request_uri(request: Request) -> str:
    """The path and the query, as they were sent."""
    http = request.http
    return f"{http.path}?{http.query}" if http.query else http.path


def _addresses(request: Request, host: str) -> list[str]:
    """Where a request comes from: through the proxies that it names, from the one that is connected."""
    headers = request.headers
    found: list[str] = []
    for text in next(iter(headers.get_all("x-forwarded-for")), "").split(",", _MOST_ADDRESSES)[:_MOST_ADDRESSES]:
        if (address := parse_ip_sloppy(text.strip(" \t"))) is not None:
            found.append(ip_text(address))
    real = parse_ip_sloppy(next(iter(headers.get_all("x-real-ip")), ""))
    if real is not None and ip_text(real) not in found:
        found.append(ip_text(real))
    peer = parse_ip_sloppy(host)
    if peer is not None and ip_text(peer) not in found[-1:]:
        found.append(ip_text(peer))
    return found
