"""Encoding of answers: objects, Status errors, plain text; in JSON or YAML, indented, compressed.

Follows k8s.io/apiserver `endpoints/handlers/responsewriters`.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api import load
from steersman.endpoints.negotiation import JSON, PROTOBUF, YAML, Representation, negotiate, wants_pretty
from steersman.endpoints.request import Request
from steersman.endpoints.spans import ENCODE
from steersman.kinds.built_in import classes_of
from steersman.machinery.codec.protobuf import documents as protobuf
from steersman.machinery.codec.serializer import decode_json, encode_in_order, pretty
from steersman.machinery.codec.strict import peek_type_meta
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.schema import parse_group_version
from steersman.net.message import Response
from steersman.tracing.trace import current_recorder
from steersman.work.offloading import offload_if

JSON_TYPE: Final = ("content-type", JSON)
PROTOBUF_TYPE: Final = ("content-type", PROTOBUF)
YAML_TYPE: Final = ("content-type", YAML)
NOSNIFF: Final = ("x-content-type-options", "nosniff")
TEXT_TYPE: Final = ("content-type", "text/plain; charset=utf-8")


def error_response(request: Request, error: StatusError) -> Response:
    """Return the Status of `error` in an acceptable media type; indented JSON if the client accepts none, or only
    Tables.
    """
    status = error.status()
    try:
        wanted = negotiate(request.headers.get("accept", ""), pretty=pretty_wanted(request))
    except StatusError:
        response = plain_response(status, Representation(JSON, pretty=True), error.code)
    else:
        response = status_response(request, status, wanted, error.code)
    if error.retry_after:
        response.headers.append(("retry-after", str(error.retry_after)))
    response.headers.extend(error.headers)
    return response


_MANY_CAUSES: Final = 1_000
_LONG_MESSAGE: Final = 64 << 10


async def long_error_response(request: Request, error: StatusError) -> Response:
    """Return `error_response`, built in a worker thread if the error is long, or may quote a long path or query."""
    is_long = request.has_long_target or len(error.causes) > _MANY_CAUSES or len(error.message) > _LONG_MESSAGE
    return await offload_if(is_long, error_response, request, error)


def status_response(request: Request, status: dict[str, Any], wanted: Representation, code: int = 200) -> Response:
    """Return a Status as the answer."""
    if request.audit is not None:
        request.audit.set_response_status(status)
    return object_response(request, encode_in_order(status), wanted, code)


def object_response(request: Request, data: bytes, wanted: Representation, code: int = 200) -> Response:
    """Return an object, given as compact JSON, as the answer in the wanted representation."""
    recorder = current_recorder()
    if recorder is None:
        return encoded_object(request, data, wanted, code)
    with recorder.begin(ENCODE, wanted.media):
        return encoded_object(request, data, wanted, code)


def encoded_object(request: Request, data: bytes, wanted: Representation, code: int = 200) -> Response:
    """Return an object as `object_response` does, for a caller that records the step of an encoder."""
    if request.audit is not None:
        request.audit.set_response_object((data,))
    return encoded_response(data, wanted, code)


def plain_response(value: dict[str, Any], wanted: Representation, code: int = 200) -> Response:
    """Return a JSON value as the answer."""
    return encoded_response(encode_in_order(value), wanted, code)


def encoded_response(data: bytes, wanted: Representation, code: int = 200) -> Response:
    """Return compact JSON as the answer in the wanted representation."""
    if wanted.media == PROTOBUF:
        return Response(code, [PROTOBUF_TYPE], protobuf_document(data))
    if wanted.media == YAML:
        from steersman.machinery.codec.yaml import from_json  # most servers are never asked for any

        return Response(code, [YAML_TYPE], from_json(data))
    return Response(code, [JSON_TYPE], pretty(data) if wanted.pretty else data + b"\n")


def protobuf_document(data: bytes) -> bytes:
    """Return the protobuf document of an object of a built-in kind, given as JSON."""
    api_version, kind = peek_type_meta(data)
    gvk = parse_group_version(api_version or "v1").with_kind(kind)
    if gvk.group == "meta.k8s.io":
        cls = classes_of("", "v1").get(kind) or load(gvk.group, gvk.version)[kind]
    else:
        cls = classes_of(gvk.group, gvk.version)[kind]
    return protobuf.encode(decode_json(cls, data), gvk)


def pretty_wanted(request: Request) -> bool:
    """Return True if this client wants indented JSON."""
    return wants_pretty(request.parameter("pretty"), request.headers.get("user-agent", ""))


def text_response(code: int, text: str) -> Response:
    """Return a plain text answer as Go's http.Error writes it."""
    return Response(code, [TEXT_TYPE, NOSNIFF], text.encode())


def not_found_text() -> Response:
    """Return the answer for an unknown path."""
    return text_response(404, "404 page not found\n")


def unknown_resource() -> StatusError:
    """Return the 404 error for an unknown resource in a known group version."""
    return StatusError(404, "NotFound", "the server could not find the requested resource")


def method_not_allowed() -> StatusError:
    """Return the 405 error for a known path."""
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
