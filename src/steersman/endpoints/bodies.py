"""Request bodies: reading them within bounds, and decoding the object they hold.

The texts are those of k8s.io/apimachinery's `runtime` decoders as clients of upstream see them.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.endpoints.negotiation import YAML, body_media
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.machinery.errors import StatusError, bad_request, request_entity_too_large
from steersman.machinery.schema import GroupVersionKind
from steersman.machinery.scheme import kind_of
from steersman.machinery.strict import DecodeError, TypeMetaError, decode_object, peek_type_meta
from steersman.net.message import BodyAborted, BodyTooLarge

_SUMMARY: Final = 30


async def read_body(request: Request, limit: int) -> bytes:
    """The whole body. Raises StatusError 413 over `limit` bytes, 400 if it never completes."""
    try:
        return await request.http.body.read(limit)
    except BodyTooLarge:
        raise request_entity_too_large(f"Request entity too large: limit is {limit}") from None
    except BodyAborted as error:
        raise bad_request(f"unable to read the request body: {error}") from None


def request_media(request: Request) -> str:
    """The media type of the body. Raises StatusError 415."""
    return body_media(request.headers.get("content-type", ""))


def decode_body(scope: Scope, request: Request, data: bytes, media: str, validation: str, kind: type[Any]) -> Any:
    """The object in `data` as `kind`, with its kind and apiVersion set aside.

    Unknown and duplicate fields become warnings, or 400 with `validation` Strict. Raises StatusError 400.
    """
    wanted = kind_of(kind)
    language = "yaml" if media == YAML else "json"
    found = _type_meta(data, language, wanted.kind)
    actual = GroupVersionKind.parse(found[0] or wanted.api_version, found[1] or wanted.kind)
    if actual is None:
        raise _unrecognized(wanted.kind, f"unexpected GroupVersion string: {found[0]}", data)
    if actual != wanted:
        raise _other_kind(scope, actual, wanted)
    try:
        decoded = decode_object(kind, data, language, want_strict=validation != "Ignore")
    except DecodeError as error:
        raise cannot_be_handled(wanted, wanted, str(error)) from None
    if decoded.warnings:
        if validation == "Strict":
            texts = ", ".join(decoded.warnings)
            raise cannot_be_handled(wanted, wanted, f"strict decoding error: {texts}")
        request.warnings.extend(decoded.warnings)
    obj = decoded.obj
    obj.kind = obj.api_version = ""
    return obj


def _type_meta(data: bytes, language: str, expected: str) -> tuple[str, str]:
    try:
        return peek_type_meta(data, language)
    except TypeMetaError as error:
        raise _unrecognized(expected, str(error), data) from None


def _unrecognized(expected: str, why: str, data: bytes) -> StatusError:
    return bad_request(f"the object provided is unrecognized (must be of type {expected}): {why} ({summary(data)})")


def summary(data: bytes) -> str:
    """The beginning of a body, as text if it looks like JSON, else in hexadecimal."""
    if not data:
        return "<empty>"
    cut = data[:_SUMMARY]
    text = cut.decode("utf-8", "replace") if data[:1] == b"{" else cut.hex()
    return f"{text} ..." if len(data) > _SUMMARY else text


def _other_kind(scope: Scope, actual: GroupVersionKind, wanted: GroupVersionKind) -> StatusError:
    if not scope.shared.scheme.recognizes(actual):
        if actual.kind == wanted.kind and actual.group != wanted.group and scope.shared.scheme.knows_group_kind(actual):
            return bad_request(
                f"the API version in the data ({actual.api_version}) does not match the expected API version "
                f"({wanted.api_version})"
            )
        where = 'no kind "{}" is registered for version "{}" in scheme "pkg/runtime/scheme.go:111"'
        return cannot_be_handled(actual, wanted, where.format(actual.kind, actual.api_version))
    if actual.kind == wanted.kind:
        return bad_request(
            f"the API version in the data ({actual.api_version}) does not match the expected API version "
            f"({wanted.api_version})"
        )
    package = scope.shared.scheme.go_package(wanted)
    text = f"converting ({actual.version}.{actual.kind}) to ({package}.{wanted.kind}): unknown conversion"
    return cannot_be_handled(actual, wanted, text)


def cannot_be_handled(actual: GroupVersionKind, wanted: GroupVersionKind, why: str) -> StatusError:
    """400 for a body that does not decode to the kind of the endpoint."""
    return bad_request(f'{actual.kind} in version "{actual.version}" cannot be handled as a {wanted.kind}: {why}')
