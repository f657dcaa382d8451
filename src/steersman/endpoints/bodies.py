"""Request bodies: reading within limits, and decoding of the objects in them.

Errors have the texts of k8s.io/apimachinery's `runtime` decoders as clients of upstream see them.
"""

from __future__ import annotations

from time import monotonic
from typing import Any, Final

import msgspec

from steersman.api.index import RETIRED
from steersman.authentication.user import SYSTEM_MASTERS
from steersman.endpoints.negotiation import JSON, PROTOBUF, YAML, body_media
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.kinds.built_in import is_built_in
from steersman.kinds.kind import Kind
from steersman.machinery.codec.protobuf import documents as protobuf
from steersman.machinery.codec.serializer import decode_plain
from steersman.machinery.codec.strict import Decoded, DecodeError, Media, peek_type_meta, strict_error, yaml_as_json
from steersman.machinery.errors.field import Path, invalid
from steersman.machinery.errors.status import (
    StatusError,
    bad_request,
    plain_internal,
    request_entity_too_large,
    unsupported_media_type,
)
from steersman.machinery.errors.status import invalid as invalid_object
from steersman.machinery.go.strings import trim_space
from steersman.machinery.identity.schema import (
    GroupKind,
    GroupVersionError,
    GroupVersionKind,
    go_package,
    no_kind_registered,
    no_type_registered,
    parse_group_version,
)
from steersman.machinery.large_work.large_requests import check_backlog
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.machinery.large_work.sizes import (
    check_count,
    is_large,
    is_large_protobuf,
    is_large_yaml,
    may_have_aliases,
)
from steersman.machinery.managed_fields import RESET_MANAGERS
from steersman.net.ascii import is_digits
from steersman.net.message import BodyAborted, BodyTooLarge
from steersman.tracing.trace import current_recorder
from steersman.work.offloading import current

APPLY_YAML: Final = "application/apply-patch+yaml"
"""Media type of a configuration for server-side apply."""
MUCH_TO_APPLY: Final = 8 * 1024
"""Bytes of a configuration, or of an object's field sets, above which an apply is offloaded: up to this size it takes a
few milliseconds. YAML takes several times longer to parse than JSON.
"""
SURELY_LARGE: Final = 64 << 10
"""Bytes above which work on every body is offloaded, whatever its content."""
FEWEST_DIGITS: Final = len(str(SURELY_LARGE))
"""Digits of the Content-Length of a body above SURELY_LARGE."""
_BACKSLASH: Final = ord("\\")
_LONGEST: Final = 20
_SUMMARY: Final = 30
_NO_PROTOBUF: Final = (
    "the body of the request was in an unknown format - accepted media types include: application/json, "
    "application/yaml"
)
_NULL_VERSION: Final = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
_YAML_HEADING: Final = "yaml: unmarshal errors:\n"


def large_length(request: Request) -> int:
    """Return the Content-Length of the body if it is large; otherwise 0."""
    length = request.headers.get("content-length", "")
    if len(length) < FEWEST_DIGITS or len(length) >= _LONGEST or not is_digits(length):
        return 0
    return size if (size := int(length)) > SURELY_LARGE else 0


async def read_body(scope: Scope, request: Request) -> bytes:
    """Return the whole body.

    Raises StatusError 413 for too many bytes, 500 if the body is malformed or never completes, and 429 before reading
    if the body is announced as large and many large requests of the same account are waiting.
    """
    data = body_at_hand(scope, request)
    return await arriving_body(scope, request) if data is None else data


async def arriving_body(scope: Scope, request: Request) -> bytes:
    """Return the whole body once it has arrived, after `body_at_hand` has returned None.

    Raises StatusError 413 and 500 as `read_body`.
    """
    limit = scope.shared.max_body_bytes
    try:
        data = await request.http.body.read(limit)
    except BodyTooLarge:
        raise request_entity_too_large(f"Request entity too large: limit is {limit}") from None
    except BodyAborted as error:
        raise plain_internal(str(error)) from None
    return _noted(scope, request, data)


def body_at_hand(scope: Scope, request: Request) -> bytes | None:
    """Return the whole body if it has arrived in one piece, otherwise None. Raises StatusError 429 as `read_body`."""
    limit = scope.shared.max_body_bytes
    if request.account is not None and request.account.permit is not None and 0 < large_length(request) <= limit:
        _check_room(request)
    data = request.http.body.whole(limit)
    return None if data is None else _noted(scope, request, data)


def _noted(scope: Scope, request: Request, data: bytes) -> bytes:
    """Count a body that was read, and return it."""
    scope.shared.metrics.received(request.action, len(data))
    if (recorder := current_recorder()) is not None:
        recorder.marks += ("limitedReadBody succeeded", monotonic(), {"len": len(data)})
    return data


def body_media_type(_scope: Scope, request: Request) -> str:
    """Return the media type of a body that holds an object. Raises StatusError 415."""
    content_type = request.headers.get("content-type", "")
    return JSON if content_type == JSON else body_media(content_type)


def is_large_body(scope: Scope, request: Request, data: bytes, media: str) -> bool:
    """Return True if work on the object in this body takes long.

    Raises StatusError 429 for a large body if many large requests of the same account are waiting.
    """
    if media == PROTOBUF:
        large = is_large_protobuf(data)
    elif media == APPLY_YAML:
        large = len(data) > MUCH_TO_APPLY or (
            is_large(data) if data[:1] == b"{" and not may_have_aliases(data) else is_large_yaml(data)
        )
    elif media == YAML:
        large = is_large_yaml(data)
    else:
        large = is_large(data)
    large = large or scope.kind.takes_long
    if large:
        _check_room(request)
    return large


def _check_room(request: Request) -> None:
    """Raise StatusError 429 while many large requests of the same account are waiting; never for administrators."""
    if SYSTEM_MASTERS not in request.user.groups:
        check_backlog(current())


def set_namespace(scope: Scope, request: Request, metadata: Any) -> None:
    """Set the namespace of an object to the URL's; a cluster-scoped object has none.

    Raises StatusError 400 if the body contradicts the URL.
    """
    namespace = request.action.namespace if scope.resource.namespaced else ""
    if not metadata.namespace or not namespace:
        metadata.namespace = namespace
    elif metadata.namespace != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def check_names(scope: Scope, request: Request, metadata: Any) -> None:
    """Check the name and set the namespace of an object by the URL. Raises StatusError 400 for a contradiction."""
    set_namespace(scope, request, metadata)
    name = request.action.name
    if not metadata.name:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if metadata.name != name:
        raise bad_request(f"the name of the object ({metadata.name}) does not match the name on the URL ({name})")


def decode(
    scope: Scope,
    request: Request,
    data: bytes,
    media: str,
    validation: str,
    kind: Kind[Any],
    also: tuple[str, ...] = (),
) -> Any:
    """Return the object in `data`, decoded as `kind`, with its kind and apiVersion cleared.

    API versions in `also` are accepted too. Unknown and duplicate fields become warnings, or 400 with `validation`
    Strict. Raises StatusError 400, and 413 for a body of too many values. Callers offload the call if `is_large_body`
    says so.
    """
    gvk = kind.gvk
    if media == PROTOBUF:
        return _decode_protobuf(scope, data, kind, also)
    language: Media = "yaml" if media == YAML else "json"
    strict = validation != "Ignore"
    decoded = _read_at_once(data, kind, strict=strict) if language == "json" else None
    if decoded is None:
        if scope.resource.by_definition and gvk == scope.gvk:
            _check_custom_kind(scope, data, language, strict=strict, of_status=request.action.subresource == "status")
        else:
            actual = _actual_kind(data, language, gvk)
            if actual != gvk and str(actual.group_version) not in also:
                raise _other_kind(scope, actual, gvk)
        try:
            decoded = kind.read(data, language, strict=strict)
        except DecodeError as error:
            raise cannot_be_handled(gvk, gvk, str(error)) from None
    if decoded.warnings:
        if validation == "Strict":
            raise cannot_be_handled(gvk, gvk, strict_error(decoded.warnings))
        request.warnings.extend(warning_texts(decoded.warnings))
    obj = decoded.obj
    if why := kind.internal_error(obj):
        raise cannot_be_handled(gvk, gvk, why)
    obj.kind = obj.api_version = ""
    if (
        not obj.metadata.managed_fields
        and data.find(b"managedFields") >= 0
        and _has_empty_managed_fields(data, language)
    ):
        obj.metadata.managed_fields = [*RESET_MANAGERS]
    return obj


def _read_at_once(data: bytes, kind: Kind[Any], *, strict: bool) -> Decoded[Any] | None:
    """Return the object in a JSON body of exactly this kind, decoded in one pass.

    Returns None for a body of another kind, and for a malformed one. Raises StatusError 413 for too many values.
    """
    check_count(data)
    if is_too_deep(data):
        return None
    try:
        decoded = kind.read(data, "json", strict=strict)
    except DecodeError:
        return None
    obj = decoded.obj
    if obj.kind == kind.name and obj.api_version == kind.api_version:
        return decoded
    if kind.needs_type_meta or obj.kind or obj.api_version:
        return None
    return decoded if data.isascii() and not _may_override_type(data) else None


def _may_override_type(data: bytes) -> bool:
    """Return True if JSON in ASCII may have a member that Go's decoder takes for the kind or version of an object.

    It does not mind the case of names, nor escapes in them.
    """
    text = data.lower()
    return (
        text.find(b'"kind"') >= 0 or text.find(b'"apiversion"') >= 0 or (_BACKSLASH in text and text.find(b"\\u") >= 0)
    )


class _OwnedMetadata(msgspec.Struct, rename="camel"):
    managed_fields: list[Any] | None = None


class _Owned(msgspec.Struct):
    metadata: _OwnedMetadata


_OWNED: Final = msgspec.json.Decoder(_Owned)


def _has_empty_managed_fields(data: bytes, language: Media) -> bool:
    """Return True if a document has an empty list of managers, which the decoded object cannot distinguish from none.

    An empty list asks for the removal of all managers. So does a list of one empty entry, which an object can
    represent.
    """
    if language == "yaml":
        data = yaml_as_json(data)
    try:
        return _OWNED.decode(data).metadata.managed_fields == []
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def _decode_protobuf(scope: Scope, data: bytes, kind: Kind[Any], also: tuple[str, ...]) -> Any:
    wanted, form = kind.gvk, kind.protobuf
    if form is None:
        raise unsupported_media_type(_NO_PROTOBUF)
    try:
        envelope = protobuf.decode_envelope(data)
        version = parse_group_version(envelope.api_version) if envelope.api_version else wanted.group_version
    except (DecodeError, GroupVersionError) as error:
        raise _unrecognized(wanted.kind, str(error), data) from None
    actual = version.with_kind(envelope.kind or wanted.kind)
    if actual != wanted and str(version) not in also:
        raise _other_kind(scope, actual, wanted)
    try:
        obj = form.decode(envelope.raw)
    except DecodeError as error:
        raise cannot_be_handled(wanted, wanted, str(error)) from None
    if why := kind.internal_error(obj):
        raise cannot_be_handled(wanted, wanted, why)
    return obj


def _actual_kind(data: bytes, language: Media, wanted: GroupVersionKind) -> GroupVersionKind:
    """Return the kind that the body states; missing parts are taken from `wanted`."""
    try:
        api_version, kind = peek_type_meta(data, language)
    except DecodeError as error:
        raise _unrecognized(wanted.kind, str(error), data) from None
    try:
        group_version = parse_group_version(api_version) if api_version else wanted.group_version
    except GroupVersionError as error:
        raise _unrecognized(wanted.kind, str(error), data) from None
    return group_version.with_kind(kind or wanted.kind)


def _check_custom_kind(scope: Scope, data: bytes, language: Media, *, strict: bool, of_status: bool) -> None:
    """Raise StatusError 400 or 422 for a body that is not of the kind of a definition.

    A body for the status subresource is reduced to its status, so that its kind does not matter.
    """
    gvk = scope.gvk
    try:
        api_version, kind = peek_type_meta(data, language)
    except DecodeError as error:
        raise _unrecognized(gvk.kind, str(error), data) from None
    if not kind:
        text = (yaml_as_json(data) if language == "yaml" and not strict else data).decode("utf-8", "replace")
        why = f"Object 'Kind' is missing in '{text}'"
        if not strict:  # upstream's lenient decoder looks for the kind itself, and falls back to that of the path
            raise cannot_be_handled(_actual_kind(data, language, gvk), gvk, why)
        raise _unrecognized(gvk.kind, why, data)
    try:
        version = parse_group_version(api_version)
    except GroupVersionError as error:
        raise _unrecognized(gvk.kind, str(error), data) from None
    if version != gvk.group_version:
        if not api_version and _has_null_version(data, language):
            raise cannot_be_handled(GroupVersionKind("", "", kind), gvk, _NULL_VERSION)
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version ({gvk.group_version})"
        )
    if kind != gvk.kind and not of_status:
        try:
            name = scope.kind.read(data, language, strict=False).obj.metadata.name
        except DecodeError as error:
            raise cannot_be_handled(gvk, gvk, str(error)) from None
        raise wrong_type_meta(gvk, api_version, kind, name)


def _has_null_version(data: bytes, language: Media) -> bool:
    plain = decode_plain(yaml_as_json(data) if language == "yaml" else data)
    return isinstance(plain, dict) and "apiVersion" in plain and plain["apiVersion"] is None


def wrong_type_meta(wanted: GroupVersionKind, api_version: str, kind: str, name: str) -> StatusError:
    """Return the 422 error for a custom object that states another kind or version."""
    version = str(wanted.group_version)
    errors = []
    if kind != wanted.kind:
        errors.append(invalid(Path("kind"), kind, f"must be {wanted.kind}"))
    if api_version != version:
        errors.append(invalid(Path("apiVersion"), api_version, f"must be {version}"))
    group = api_version.rpartition("/")[0]
    return invalid_object(GroupKind(group, kind), name, errors)


def _unrecognized(expected: str, why: str, data: bytes) -> StatusError:
    return bad_request(f"the object provided is unrecognized (must be of type {expected}): {why} ({summary(data)})")


def warning_texts(strict_errors: list[str]) -> list[str]:
    """Return the errors of strict decoding as warnings, without the heading of YAML's parser."""
    texts = []
    for text in strict_errors:
        texts += [trim_space(line) for line in text.removeprefix(_YAML_HEADING).split("\n")]
    return texts


def summary(data: bytes) -> str:
    """Return the beginning of a body for messages: as text if it looks like JSON, else in hexadecimal."""
    if not data:
        return "<empty>"
    cut = data[:_SUMMARY]
    text = cut.decode("utf-8", "replace") if data[:1] == b"{" else cut.hex()
    return f"{text} ..." if len(data) > _SUMMARY else text


def _other_kind(scope: Scope, actual: GroupVersionKind, wanted: GroupVersionKind) -> StatusError:
    version = actual.group_version
    if scope.resource.by_definition:
        return bad_request(no_type_registered(wanted))
    known = is_retired(actual) or is_built_in(actual)
    if actual.kind == wanted.kind and known:
        return bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({wanted.group_version})"
        )
    if not known:
        return cannot_be_handled(actual, wanted, no_kind_registered(actual.kind, str(version)))
    return cannot_be_handled(actual, wanted, no_conversion(scope, actual, wanted))


def is_retired(kind: GroupVersionKind) -> bool:
    """Return True if upstream can decode this version of a kind but no longer serves it."""
    return str(kind.group_version) in RETIRED.get(kind.kind, ())


def no_conversion(scope: Scope, actual: GroupVersionKind, wanted: GroupVersionKind) -> str:
    """Return the text for a known kind that cannot be converted to the wanted one."""
    # a resource in two groups has one internal type; a view of another kind (Scale) has its own
    package = go_package(scope.resource.group if wanted.group == scope.group else wanted.group)
    return f"converting ({actual.version}.{actual.kind}) to ({package}.{wanted.kind}): unknown conversion"


def cannot_be_handled(actual: GroupVersionKind, wanted: GroupVersionKind, why: str) -> StatusError:
    """Return the 400 error for a body that cannot be decoded as the kind of the endpoint."""
    return bad_request(f'{actual.kind} in version "{actual.version}" cannot be handled as a {wanted.kind}: {why}')
