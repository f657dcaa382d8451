"""Writing answers: objects, Status errors, plain text; in JSON or YAML, pretty, compressed.

Follows k8s.io/apiserver `endpoints/handlers/responsewriters`.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.endpoints.negotiation import JSON, YAML, Representation, negotiate, wants_pretty
from steersman.endpoints.request import Request
from steersman.machinery.errors import StatusError
from steersman.machinery.serializer import encode_in_order, pretty
from steersman.net.message import Response

JSON_TYPE: Final = ("content-type", JSON)
NOSNIFF: Final = ("x-content-type-options", "nosniff")
TEXT_TYPE: Final = ("content-type", "text/plain; charset=utf-8")

COMPRESS_OVER: Final = 128 * 1024
"""Bytes from which an answer is compressed for a client that accepts gzip."""


def error_response(request: Request, error: StatusError) -> Response:
    """The Status of `error` in the media type the client accepts, JSON if none."""
    try:
        accept = request.headers.get("accept", "")
        found = negotiate(accept, tables=True, partial=True, pretty=pretty_wanted(request))
        wanted = Representation(found.media, found.pretty)
    except StatusError as refused:
        wanted = Representation(JSON, pretty_wanted(request))
        if error.code != 406:
            error = refused
    response = plain_response(error.status(), wanted, error.code)
    if error.retry_after:
        response.headers.append(("retry-after", str(error.retry_after)))
    response.headers.extend(error.headers)
    return response


def plain_response(value: dict[str, Any], wanted: Representation, code: int = 200) -> Response:
    """A JSON value as the answer."""
    return encoded_response(encode_in_order(value), wanted, code)


def encoded_response(data: bytes, wanted: Representation, code: int = 200) -> Response:
    """Compact JSON as the answer, turned into what is wanted."""
    if wanted.media == YAML:
        from steersman.machinery.yaml import from_json  # most servers are never asked for any

        return Response(code, [("content-type", YAML)], from_json(data))
    return Response(code, [JSON_TYPE], (pretty(data) if wanted.pretty else data) + b"\n")


def pretty_wanted(request: Request) -> bool:
    """Whether this client wants JSON indented."""
    return wants_pretty(request.query.get("pretty"), request.headers.get("user-agent", ""))


def text_response(code: int, text: str) -> Response:
    """Plain text, as Go's http.Error writes it."""
    return Response(code, [TEXT_TYPE, NOSNIFF], text.encode())


def not_found_text() -> Response:
    """What an unknown path gets."""
    return text_response(404, "404 page not found\n")


def unknown_resource() -> StatusError:
    """404 within a known API group version."""
    return StatusError(404, "NotFound", "the server could not find the requested resource")


def method_not_allowed() -> StatusError:
    """405 on a known path."""
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
