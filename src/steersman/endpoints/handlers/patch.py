"""PATCH of an object or a subresource: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch.

Server-side apply is not there yet and is refused with 415.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from steersman.admission.interface import UPDATE
from steersman.api.meta.v1 import PatchOptions
from steersman.endpoints.admit import attributes, check_update
from steersman.endpoints.bodies import read_body
from steersman.endpoints.handlers.update import check_names
from steersman.endpoints.objects import item_response, representation
from steersman.endpoints.options import patch_options
from steersman.endpoints.ownership import deduplicate_owners, own_changed
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.machinery import json_patch, merge_patch, strategic_merge_patch
from steersman.machinery.errors import (
    Cause,
    StatusError,
    bad_request,
    generic_server_response,
    not_found,
    unsupported_media_type,
)
from steersman.machinery.field import INVALID, quote
from steersman.machinery.go_print import go_value
from steersman.machinery.go_types import struct_of
from steersman.machinery.schema import GroupVersionKind
from steersman.machinery.serializer import encode_in_order, to_plain
from steersman.machinery.strict import (
    Decoded,
    DecodeError,
    decode_object,
    decode_untyped,
    duplicate_members,
    strict_error,
)
from steersman.machinery.unstructured import from_unstructured
from steersman.net.message import Response

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
_LATER: Final = (APPLY_PATCH, "application/apply-patch+cbor")
_SMALL: Final = 64 * 1024


async def patch(scope: Scope, request: Request) -> Response:
    """Changes the object as the body says and answers 200 with it."""
    wanted = representation(scope, request)
    body = await read_patch(scope, request)
    options = body.options
    dry_run = bool(options.dry_run)
    chain = scope.shared.admission

    async def make(old: Any | None) -> Any:
        if old is None:
            raise not_found(scope.group_resource, request.info.name)
        current = scope.other.from_hub(old) if scope.other else old
        obj = await body.applied_to(current, scope.gvk)
        if scope.default is not None:
            scope.default(obj)
        obj.metadata.managed_fields = own_changed(scope, request, obj, current, options.field_manager)
        new = scope.to_hub(obj)
        if chain.handles(UPDATE):
            await chain.admit(attributes(scope, request, UPDATE, obj=new, old=old, options=options, dry_run=dry_run))
        deduplicate_owners(request, new, after_admission=True)
        return new

    item, _ = await scope.storage.update(
        scope.context(request, dry_run=dry_run), request.info.name, make,
        check_update=check_update(scope, request, options, dry_run=dry_run),
        subresource=request.info.subresource,
    )  # fmt: skip
    return item_response(scope, request, item, wanted)


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch as it was sent; what is in it is looked at when there is an object to apply it to."""

    scope: Scope
    request: Request
    media: str
    data: bytes
    options: PatchOptions

    @property
    def want_strict(self) -> bool:
        """Whether unknown and repeated fields are looked for."""
        return self.options.field_validation != "Ignore"

    async def applied_to(self, current: Any, gvk: GroupVersionKind) -> Any:
        """The object that the patch makes of `current`, which is of `gvk`; not defaulted. Raises StatusError.

        A large patch is applied in a thread.
        """
        work = partial(self._applied_to, current, gvk)
        if len(self.data) <= _SMALL:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self.scope.shared.executor, work)

    def _applied_to(self, current: Any, gvk: GroupVersionKind) -> Any:
        document = {"kind": gvk.kind, "apiVersion": str(gvk.group_version), **to_plain(current)}
        obj = _APPLY[self.media](self, document, type(current))
        obj.kind = obj.api_version = obj.metadata.self_link = ""
        check_names(self.scope, self.request, obj.metadata)
        return obj

    def judge(self, shown: Callable[[], str], objections: list[str]) -> None:
        """Warns of unknown and repeated fields; raises StatusError 422, which shows what they are in, with Strict."""
        if objections:
            if self.options.field_validation == "Strict":
                raise _undecodable(shown(), strict_error(objections))
            self.request.warnings.extend(objections)


async def read_patch(scope: Scope, request: Request) -> Patch:
    """The body and the options of a PATCH. Raises StatusError 400, 413, 415, 422."""
    media = request.headers.get("content-type", "").partition(";")[0].strip()
    _check_media(scope.kind, media)
    data = await read_body(request, scope.shared.max_body_bytes, scope.shared.metrics)
    return Patch(scope, request, media, data, patch_options(request, apply=False))


def _check_media(kind: type[Any], media: str) -> None:
    """Raises StatusError 415. Only for generated classes is it known how a strategic merge patch merges their lists."""
    if media in _LATER:
        raise unsupported_media_type(f"patches of type {media} are not supported yet")
    if not issubclass(kind, msgspec.Struct):
        known = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
        if media not in known:
            text = "the body of the request was in an unknown format - accepted media types include: "
            raise unsupported_media_type(text + ", ".join(known))
    elif media not in _APPLY:
        error = unsupported_media_type("415: Unsupported Media Type")
        error.details_present = True
        raise error


def _json_patched(patch: Patch, document: dict[str, Any], kind: type[Any]) -> Any:
    try:
        value = decode_untyped(patch.data)
    except DecodeError as error:
        raise bad_request(f"error decoding patch: {error}" if patch.want_strict else str(error)) from None
    operations, objections = json_patch.decode(value, strict=patch.want_strict)
    if patch.want_strict:
        objections += [f"json patch {text}" for text in duplicate_members(patch.data)]
    try:
        patched = json_patch.apply(document, operations)
    except json_patch.PatchError as error:
        raise generic_server_response(422, message=str(error)) from None
    return _decode_patched(patch, patched, kind, objections)


def _merge_patched(patch: Patch, document: dict[str, Any], kind: type[Any]) -> Any:
    try:
        value = decode_untyped(patch.data)
    except DecodeError as error:
        text = f"error decoding patch: {error}" if patch.want_strict else merge_patch.INVALID_PATCH
        raise bad_request(text) from None
    patched = merge_patch.apply(document, value, strict=patch.want_strict)
    return _decode_patched(patch, patched, kind, duplicate_members(patch.data) if patch.want_strict else [])


def _decode_patched(patch: Patch, patched: Any, kind: type[Any], objections: list[str]) -> Any:
    """What a patch made of a document, as an object. Raises StatusError 422."""
    data = encode_in_order(patched)
    try:
        decoded: Decoded[Any] = decode_object(kind, data, "json", want_strict=patch.want_strict)
    except DecodeError as error:
        raise _undecodable(data.decode(), str(error)) from None
    patch.judge(data.decode, objections + decoded.warnings)
    return decoded.obj


def _strategic_merge_patched(patch: Patch, document: dict[str, Any], kind: type[Any]) -> Any:
    try:
        value = decode_untyped(patch.data, as_sent=True)
    except DecodeError as error:
        raise bad_request(str(error)) from None
    if not isinstance(value, dict | None):
        found = json_patch.json_type(value)
        raise bad_request(f"json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
    changes = value or {}
    patched = strategic_merge_patch.apply(document, changes, struct_of(kind))
    shown = partial(go_value, changes)
    try:
        decoded = from_unstructured(kind, patched, want_strict=patch.want_strict)
    except DecodeError as error:
        raise _undecodable(shown(), str(error)) from None
    patch.judge(shown, (duplicate_members(patch.data) if patch.want_strict else []) + decoded.warnings)
    return decoded.obj


def _undecodable(shown: str, why: str) -> StatusError:
    text = f"Invalid value: {quote(shown)}: {why}"
    return StatusError(422, "Invalid", f' "" is invalid: patch: {text}', causes=(Cause(INVALID, text, "patch"),))


_APPLY: Final[dict[str, Callable[[Patch, dict[str, Any], type[Any]], Any]]] = {
    JSON_PATCH: _json_patched,
    MERGE_PATCH: _merge_patched,
    STRATEGIC_MERGE_PATCH: _strategic_merge_patched,
}
