"""Requests of the page to the API server, passed on with the kubeconfig's rights."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import steersman
from steersman.client.transport import Fields, Response, Transport, Unreachable
from steersman.inspector.guard import Refused
from steersman.net import message
from steersman.net.message import BodyTooLarge
from steersman.work.patterns import late_pattern

AGENT: Final = f"steersman-inspector/{steersman.__version__}"
"""User agent of all requests that the page causes."""
_MOST_BODY: Final = 8 << 20
"""Longest request body in bytes; API servers take 3 MiB."""
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
_TAKEN: Final = ("accept", "content-type")
"""Request headers that are passed on. Others (cookies, impersonation) are not the page's to send."""
_PATH: Final = late_pattern(r"/[!-~]*")
_DOT_SEGMENTS: Final = late_pattern(r"/(?:\.|%2[eE]){1,2}(?:/|\Z)")
_GIVEN: Final = ("warning", "retry-after", "audit-id", "steersman-worker")
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
    check_target(target)
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
    return message.Response(answer.status, headers, _Body(answer))


def check_target(target: str) -> None:
    """Raise Refused unless a path and query of the page may be sent to the API server.

    Segments `.` and `..` would lead out of the path of a kubeconfig's server, to others of that server.
    """
    if not _PATH.fullmatch(target):
        raise Refused(400, "A path begins with a slash, and has neither spaces nor characters that are not ASCII.")
    if _DOT_SEGMENTS.search(target.partition("?")[0]):
        raise Refused(400, "A path has no segments . or ..")


def fields_of(request: message.Request) -> Fields:
    """Return the header fields that are passed on for a request."""
    given = [(name, request.headers[name]) for name in _TAKEN if name in request.headers]
    return [("user-agent", AGENT), *given]


class _Body(AsyncIterator[bytes]):
    """The body of the API server's answer. `aclose` closes the answer, also if nothing was read of it."""

    def __init__(self, answer: Response) -> None:
        self._answer = answer
        self._pieces = answer.pieces()

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._pieces)
        except Unreachable as error:
            raise message.BodyAborted(str(error)) from None

    async def aclose(self) -> None:
        await self._answer.aclose()
