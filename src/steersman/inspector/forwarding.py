"""Requests of the page to the API server, passed on with the kubeconfig's rights."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import steersman
from steersman.client.transport import Fields, Response, Transport, Unreachable
from steersman.inspector.guard import Refused
from steersman.net import message
from steersman.net.message import BodyTooLarge

AGENT: Final = f"steersman-inspector/{steersman.__version__}"
"""User agent of all requests that the page causes."""
_MOST_BODY: Final = 8 << 20
"""Longest request body in bytes; API servers take 3 MiB."""
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
_TAKEN: Final = ("accept", "content-type")
"""Request headers that are passed on. Others (cookies, impersonation) are not the page's to send."""
_GIVEN: Final = ("warning", "retry-after", "audit-id")
"""Response headers that are passed back."""
_SAFE_TYPES: Final = ("application/json", "application/yaml", "text/plain")
INERT: Final = (
    ("content-security-policy", "default-src 'none'; sandbox"),
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
)
"""Headers of responses whose content comes from the API server or from objects. A browser that is led to such an
address runs nothing of it, whatever a pod behind the API server's proxy answers.
"""


async def forward(request: message.Request, target: str, transport: Transport) -> message.Response:
    """Pass a request on to `target` (path and query) and stream the response back.

    Raises Refused if the request is not passed on, Unreachable if the API server does not answer.
    """
    if request.method not in _METHODS:
        raise Refused(405, f"{request.method} is not passed on.")
    try:
        body = await request.body.read(_MOST_BODY)
    except BodyTooLarge:
        raise Refused(413, f"The body is longer than {_MOST_BODY} bytes.") from None
    answer = await transport.send(request.method, target, fields_of(request), body)
    kind = answer.header("content-type") or "application/octet-stream"
    headers = [*INERT, ("content-type", kind)]
    if kind.partition(";")[0].rstrip(" ") not in _SAFE_TYPES:
        headers.append(("content-disposition", "attachment"))
    headers += [(name, value) for name in _GIVEN if (value := answer.header(name))]
    return message.Response(answer.status, headers, _pieces(answer))


def fields_of(request: message.Request) -> Fields:
    """Return the header fields that are passed on for a request."""
    given = [(name, request.headers[name]) for name in _TAKEN if name in request.headers]
    return [("user-agent", AGENT), *given]


async def _pieces(answer: Response) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.pieces():
            yield piece
    except Unreachable as error:
        raise message.BodyAborted(str(error)) from None
    finally:
        await answer.aclose()
