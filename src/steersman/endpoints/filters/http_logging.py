"""The access log (WithHTTPLogging)."""

from __future__ import annotations

import logging

from steersman.endpoints.request import Handler, Request
from steersman.endpoints.streamed import on_request_end
from steersman.machinery.values.durations import format_duration
from steersman.machinery.values.times import monotonic
from steersman.net.message import Response

_LONGEST_ID = 64
"""Limit of characters logged of an id that a client has chosen."""
_LONGEST_NAME = 64
"""Limit of characters logged of the name of a flow schema or a priority level."""
logger = logging.getLogger("steersman.http")


async def with_http_logging(request: Request, next_: Handler) -> Response:
    """Log one line at level INFO at the end of an answer. Headers and bodies are never logged: they may hold
    secrets.
    """
    response = await next_(request)

    def log() -> None:
        logger.info(
            'HTTP verb="%s" URI="%s" latency="%.3fms" userAgent="%s" audit-ID="%s" srcIP="%s"%s resp=%d',
            request.method,
            request.path,
            (monotonic() - request.received) * 1000,
            request.headers.get("user-agent", ""),
            request.audit_id[:_LONGEST_ID],
            request.http.peer.host,
            _flow_fields(request),
            response.status,
        )

    on_request_end(response, log)
    return response


def _flow_fields(request: Request) -> str:
    """Return the log fields of priority and fairness, "" without a flow."""
    flow = request.flow
    if flow is None:
        return ""
    estimate, ticket = request.estimate, request.ticket
    fields = [
        f' apf_pl="{flow.level.name[:_LONGEST_NAME]}" apf_fs="{flow.schema[:_LONGEST_NAME]}"',
        f"apf_iseats={estimate.initial} apf_fseats={estimate.final}",
        f'apf_additionalLatency="{_text(estimate.linger)}"',
    ]
    if ticket is not None and ticket.started >= 0.0:
        duration = _text(monotonic() - ticket.started)
        if request.initialized is not None:
            fields.append(f'apf_init_latency="{duration}"')
        fields.append(f'apf_execution_time="{duration}"')
    return " ".join(fields)


def _text(seconds: float) -> str:
    return format_duration(int(seconds * 1e9))
