"""Applying patches to objects, by media type (k8s.io/apiserver `endpoints/handlers/patch.go`).

As upstream, a patch is validated only when there is an object to apply it to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from steersman.endpoints.bodies import APPLY_YAML, is_retired, no_conversion, wrong_type_meta
from steersman.endpoints.negotiation import route_unsupported_media_type
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.endpoints.writing import Write
from steersman.kinds.built_in import find_built_in, is_built_in_group_kind
from steersman.kinds.kind import Kind
from steersman.machinery.codec.serializer import decode_plain, encode_in_order, encode_sorted
from steersman.machinery.codec.strict import (
    Decoded,
    DecodeError,
    decode_untyped,
    duplicate_members,
    peek_type_meta,
    strict_error,
)
from steersman.machinery.errors.field import INVALID, quote
from steersman.machinery.errors.go_print import go_value
from steersman.machinery.errors.status import (
    Cause,
    StatusError,
    bad_request,
    generic_server_response,
    plain_internal,
    unsupported_media_type,
)
from steersman.machinery.identity.schema import (
    GroupVersionError,
    GroupVersionKind,
    go_package,
    no_internal_kind,
    no_kind_registered,
    parse_group_version,
)
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.machinery.large_work.sizes import check_count, is_large
from steersman.machinery.managed_fields import RESET_MANAGERS
from steersman.machinery.patch import json_patch, merge_patch, strategic_merge_patch

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
DEFINED: Final = (JSON_PATCH, MERGE_PATCH, APPLY_YAML)
"""Media types of patches and applies for kinds without a Go type, in the order of the error text."""
_TOO_DEEP: Final = "the patch is nested too deeply"


def patch_media_type(scope: Scope, request: Request) -> str:
    """Return the media type of a patch, one of the three above.

    Raises StatusError 415. Kinds without a Go type support no strategic merge patch, as their list keys are unknown.
    """
    media = media_type(request)
    if scope.kind.go_type is not None:
        if media not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH):
            raise route_unsupported_media_type()
    elif media not in (JSON_PATCH, MERGE_PATCH):
        raise unknown_patch_format()
    return media


def media_type(request: Request) -> str:
    """Return the media type of the request's body without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip(" ")


def unknown_patch_format() -> StatusError:
    """Return the 415 error for a patch of a kind without a Go type in an unsupported media type."""
    text = f"the body of the request was in an unknown format - accepted media types include: {', '.join(DEFINED)}"
    return unsupported_media_type(text)


def patched(write: Write, current: Any, kind: Kind[Any]) -> Any:
    """Return the result of a patch of `current`, an object of `kind`, without defaults.

    Raises StatusError 400, 413 and 422.
    """
    check_count(write.data)
    try:
        obj = _KINDS[write.media](write, current, kind)
    except RecursionError:
        raise bad_request(_TOO_DEEP) from None
    obj.kind = obj.api_version = obj.metadata.self_link = ""
    return obj


def _document(kind: Kind[Any], members: dict[str, Any]) -> dict[str, Any]:
    """Return an object as it is patched: its members, with its kind and apiVersion."""
    return {"kind": kind.name, "apiVersion": kind.api_version, **members}


def _is_strict(patch: Write) -> bool:
    """Return True if unknown and duplicate fields are to be reported."""
    return bool(patch.options.field_validation != "Ignore")


def _duplicates(patch: Write, value: Any) -> list[str]:
    """Return texts about duplicate members of the patch, which was decoded to `value`; [] if these are not reported.

    Raises StatusError 400.
    """
    try:
        return duplicate_members(patch.data, value) if _is_strict(patch) else []
    except DecodeError as error:
        raise bad_request(str(error)) from None


def _check_objections(patch: Write, shown: Callable[[], str], objections: list[str]) -> None:
    """Warn of unknown and duplicate fields, or raise StatusError 422 with the document that `shown` returns."""
    if objections:
        if patch.options.field_validation == "Strict":
            raise _undecodable(shown(), strict_error(objections))
        patch.request.warnings.extend(objections)


def _json_patched(patch: Write, current: Any, kind: Kind[Any]) -> Any:
    try:
        value = decode_untyped(patch.data)
    except DecodeError as error:
        if not _is_strict(patch):
            raise bad_request(str(error)) from None
        # the likely position of a number that is too large
        text = str(error).replace("Go value of type float64", "Go struct field jsonPatchOp.value of type float64")
        raise bad_request(f"error decoding patch: {text}") from None
    operations, objections = json_patch.decode(value, strict=_is_strict(patch))
    objections += [f"json patch {text}" for text in _duplicates(patch, value)]
    try:
        patched = json_patch.apply(_document(kind, kind.to_plain(current)), operations)
    except json_patch.PatchError as error:
        # upstream does not show the reason
        raise generic_server_response(422, message=str(error)) from None
    return _decoded(patch, patched, kind, objections)


def _merge_patched(patch: Write, current: Any, kind: Kind[Any]) -> Any:
    try:
        value = decode_untyped(patch.data)
    except DecodeError as error:
        text = f"error decoding patch: {error}" if _is_strict(patch) else merge_patch.INVALID_PATCH
        raise bad_request(text) from None
    duplicates = _duplicates(patch, value)
    reached = {"metadata": {}, **value} if isinstance(value, dict) else {}
    document = _document(kind, kind.to_plain_for(current, reached))
    patched = merge_patch.apply(document, value, strict=_is_strict(patch))
    return _decoded(patch, patched, kind, duplicates)


def _decoded(patch: Write, patched: Any, kind: Kind[Any], objections: list[str]) -> Any:
    """Return a patched document as an object. Raises StatusError 422."""
    data = encode_in_order(patched) if not kind.is_open else encode_sorted(patched)
    _check_count(patched, data)
    if is_too_deep(data):
        raise bad_request(_TOO_DEEP)
    try:
        decoded = _read(patch, patched, data, kind)
        if why := kind.internal_error(decoded.obj):
            raise DecodeError(why)
    except DecodeError as error:
        raise _undecodable(data.decode(), str(error)) from None
    _check_objections(patch, data.decode, objections + decoded.warnings)
    return _forgetful(decoded.obj, patched)


def _check_count(patched: Any, data: bytes) -> None:
    """Raise StatusError 413 if an object has too many values; its managedFields do not count, as the server writes
    them.
    """
    metadata = patched.get("metadata") if isinstance(patched, dict) else None
    if isinstance(metadata, dict) and "managedFields" in metadata and is_large(data):
        others = {name: value for name, value in metadata.items() if name != "managedFields"}
        data = encode_in_order({**patched, "metadata": others})
    check_count(data)


def _read(patch: Write, patched: Any, data: bytes, kind: Kind[Any]) -> Decoded[Any]:
    """Return the object in a document of bounded depth, which may state another kind. Raises DecodeError."""
    gvk = kind.gvk
    if isinstance(patched, dict) and (patched.get("kind"), patched.get("apiVersion")) == (kind.name, kind.api_version):
        return kind.read_internal(data, strict=_is_strict(patch))
    if patch.scope.resource.by_definition and gvk == patch.scope.gvk:
        return _read_custom(patch, data, kind)
    api_version, name = peek_type_meta(data)
    if not api_version:
        _check_internal(patch, name or gvk.kind, gvk)
        # upstream decodes this into its internal type, which has no JSON names
        unknown = [f"unknown field {quote(each)}" for each in patched if each not in ("kind", "apiVersion")]
        return Decoded(kind.new(), unknown if _is_strict(patch) else [])
    try:
        actual = parse_group_version(api_version).with_kind(name or gvk.kind)
    except GroupVersionError as error:
        raise DecodeError(str(error)) from None
    if actual.kind == gvk.kind and is_retired(actual):
        return kind.read_internal(data, strict=_is_strict(patch))
    versions = patch.scope.resource.versions
    source = versions.get(actual)
    read = find_built_in(actual) if source is None else source.kind
    if read is None:
        raise DecodeError(no_kind_registered(actual.kind, api_version))
    decoded: Decoded[Any] = read.read_internal(data, strict=_is_strict(patch))
    target = versions.get(gvk)
    if source is None or target is None:
        raise DecodeError(no_conversion(patch.scope, actual, gvk))
    source.kind.default(decoded.obj)
    return Decoded(target.from_hub(source.to_hub(decoded.obj)), decoded.warnings)


def _read_custom(patch: Write, data: bytes, kind: Kind[Any]) -> Decoded[Any]:
    """Return the custom object in a document, with upstream's error texts. Raises DecodeError and StatusError 422."""
    api_version, name = peek_type_meta(data)
    if not name:
        raise DecodeError(f"Object 'Kind' is missing in '{data.decode()}'")
    found: Decoded[Any] = kind.read_internal(data, strict=_is_strict(patch))
    group, _, version = api_version.rpartition("/")
    others = patch.scope.resource.versions
    if group == kind.group and GroupVersionKind(group, version, kind.name) not in others and _is_strict(patch):
        # upstream knows no fields of versions that do not exist
        members = sorted(decode_plain(data).keys() - {"apiVersion", "kind", "metadata"})
        _check_objections(patch, data.decode, [f"unknown field {quote(each)}" for each in members])
    if patch.request.action.subresource == "status":  # all but the status is ignored
        return found
    raise wrong_type_meta(kind.gvk, api_version, name, found.obj.metadata.name)


def _check_internal(patch: Write, name: str, wanted: GroupVersionKind) -> None:
    """Raise DecodeError if a document without an apiVersion states another kind than the wanted one.

    As upstream, the kind is looked up among the internal types of the group.
    """
    if name == wanted.kind:
        return
    if not is_built_in_group_kind(wanted.group, name):
        raise DecodeError(no_internal_kind(name, wanted.group))
    internal = wanted._replace(version=go_package(wanted.group), kind=name)
    raise DecodeError(no_conversion(patch.scope, internal, wanted))


def _strategic_merge_patched(patch: Write, current: Any, kind: Kind[Any]) -> Any:
    try:
        value = decode_untyped(patch.data, as_sent=True)
    except DecodeError as error:
        raise bad_request(str(error)) from None
    if not isinstance(value, dict | None):
        found = json_patch.json_type(value)
        raise bad_request(f"json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
    changes = value or {}
    duplicates = _duplicates(patch, value)
    assert kind.go_type is not None
    document = _document(kind, kind.to_plain(current))
    patched = strategic_merge_patch.apply(document, changes, kind.go_type)
    shown = partial(go_value, changes)
    try:
        decoded = kind.from_plain(patched)
    except DecodeError as error:
        raise _undecodable(shown(), str(error)) from None
    if _is_strict(patch):
        _check_objections(patch, shown, duplicates + decoded.warnings)
    if why := kind.internal_error(decoded.obj):
        raise plain_internal(why)
    return _forgetful(decoded.obj, patched)


def _forgetful(obj: Any, document: dict[str, Any]) -> Any:
    """Return the object with an explicit request to drop all managers if the document has an empty list of managers.

    The decoded object cannot distinguish an empty list from none.
    """
    metadata = document.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") == []:
        obj.metadata.managed_fields = [*RESET_MANAGERS]
    return obj


def _undecodable(shown: str, why: str) -> StatusError:
    text = f"Invalid value: {quote(shown)}: {why}"
    return StatusError(422, "Invalid", f' "" is invalid: patch: {text}', causes=(Cause(INVALID, text, "patch"),))


_KINDS: Final = {
    JSON_PATCH: _json_patched,
    MERGE_PATCH: _merge_patched,
    STRATEGIC_MERGE_PATCH: _strategic_merge_patched,
}
