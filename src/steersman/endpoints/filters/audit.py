"""Audit of requests (WithAudit, WithFailedAuthenticationAudit, and the audit of WithRequestDeadline)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from steersman.audit.backends.backend import together
from steersman.audit.latencies import AUTHENTICATION
from steersman.audit.policy import PANIC, RESPONSE_STARTED
from steersman.audit.trail import Auditor, Trail
from steersman.authentication.user import UserInfo
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
"""Limit of proxy addresses that are read from a request."""


def with_audit(auditor: Auditor) -> Filter:
    """Return a filter that records each request as the policy demands: its arrival, the start of a stream, its end.

    In strict mode, a request whose arrival cannot be recorded is answered with 500.
    """

    async def audit(request: Request, next_: Handler) -> Response:
        trail = begin(auditor, request)
        if trail is None:
            return await next_(request)
        request.audit = trail
        received = trail.record_arrival()
        if received is not None and not await auditor.wait_for(received):
            auditor.metrics.rejected.inc()
            return text_response(500, internal_error_text(request.uri, "failed to store audit event") + "\n")
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
        trail.set_response_code(response.status)
        recorded = _answered(auditor, trail, request, response)
        if auditor.backend.deferred:
            request.recorded = recorded
        else:
            await auditor.wait_for(recorded)
        return response

    return audit


def _answered(auditor: Auditor, trail: Trail, request: Request, response: Response) -> Awaitable[bool] | None:
    """Record the answer of a request, and its end unless the body is still being produced.

    Returns an awaitable that must complete before the answer is sent, or None.
    """
    body = response.body
    if not request.info.long_running:
        if not isinstance(body, StreamedBody):
            return trail.record_end()
        body.on_request_end(trail.record_end_in_background)
        return None
    started = trail.record_stage(RESPONSE_STARTED)
    if response.upgrade is None and isinstance(body, bytes | list):
        complete = trail.record_end()
        if auditor.backend.deferred:
            return complete or started
        return together([each for each in (started, complete) if each is not None])
    request.http.on_request_end = _in_turn(request.http.on_request_end, trail.record_end_in_background)
    return started


def _in_turn(first: Callable[[], None] | None, then: Callable[[], None]) -> Callable[[], None]:
    if first is None:
        return then

    def both() -> None:
        first()
        then()

    return both


def _cut_off(trail: Trail, request: Request) -> None:
    """Record a request that exceeded its deadline, or whose client left."""
    if not trail.is_answered:
        if request.deadline and monotonic() >= request.deadline:
            why = "Timeout: request did not complete within requested timeout - context deadline exceeded"
            trail.set_response_status(timeout(why).status())
        else:
            trail.set_response_status({"status": "Success", "message": "Connection closed early", "code": 200})
    trail.record_end_in_background()


def _panicked(auditor: Auditor, trail: Trail, error: Exception) -> None:
    """Record a request whose handler raised an unexpected error."""
    text = f"APIServer panic'd: {error}"
    trail.set_response_status({"status": "Failure", "message": text, "reason": "InternalError", "code": 500})
    auditor.run_in_background(trail.record_stage(PANIC))


def refused(auditor: Auditor | None, request: Request, message: str, answer: Callable[[], Response]) -> Response:
    """Record a request that is refused before authentication has succeeded, with the reason `message`."""
    trail = None if auditor is None else begin(auditor, request)
    if trail is None:
        return answer()
    request.audit = trail
    trail.set_response_status({"message": message})
    response = answer()
    trail.set_response_code(response.status)
    request.recorded = trail.record_stage(RESPONSE_STARTED)
    return response


def begin(auditor: Auditor, request: Request) -> Trail | None:
    """Return the audit trail of a request, or None if the policy does not record it."""
    info = request.info
    user: UserInfo | None = request.user  # None before authentication
    action = info.authorized_action
    recorded = auditor.config_for(user, action, None if info.resource_request else info.path)
    if recorded is None:
        return None
    agent = request.headers.get("user-agent", "")
    trail = auditor.start_trail(
        recorded,
        user,
        action,
        about_resource=info.resource_request,
        audit_id=request.audit_id,
        uri=request.uri,
        source_ips=source_ips(request),
        received=request.received,
        user_agent=agent if len(agent) <= _LONGEST_AGENT else f"{agent[:_LONGEST_AGENT]}...TRUNCATED",
    )
    trail.add_latency(AUTHENTICATION, request.authentication_seconds)
    for key, value in request.remarks.annotations:
        trail.annotate(key, value)
    return trail


def source_ips(request: Request) -> list[str]:
    """Return the source addresses of a request: proxies by its headers, then the peer of the connection."""
    headers, host = request.headers, request.http.peer.host
    if "x-forwarded-for" in headers or "x-real-ip" in headers or ":" in host:
        return _addresses(request, host)
    return [host] if host else []


def _addresses(request: Request, host: str) -> list[str]:
    headers = request.headers
    addresses: list[str] = []
    for text in next(iter(headers.get_all("x-forwarded-for")), "").split(",", _MOST_ADDRESSES)[:_MOST_ADDRESSES]:
        if (address := parse_ip_sloppy(text.strip(" \t"))) is not None:
            addresses.append(ip_text(address))
    real = parse_ip_sloppy(next(iter(headers.get_all("x-real-ip")), ""))
    if real is not None and ip_text(real) not in addresses:
        addresses.append(ip_text(real))
    peer = parse_ip_sloppy(host)
    if peer is not None and ip_text(peer) not in addresses[-1:]:
        addresses.append(ip_text(peer))
    return addresses
