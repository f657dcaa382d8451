"""PATCH: JSON patch (RFC 6902) and merge patch (RFC 7386) of an object or a subresource; server-side apply is beside.

Strategic merge patches are not there yet and are refused with 415.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

from steersman.admission.interface import UPDATE
from steersman.api.meta.v1 import PatchOptions
from steersman.endpoints.admit import attributes, check_update
from steersman.endpoints.bodies import read_body
from steersman.endpoints.handlers.apply import is_apply, server_side_apply
from steersman.endpoints.handlers.update import check_names
from steersman.endpoints.objects import item_response, representation
from steersman.endpoints.options import patch_options
from steersman.endpoints.ownership import deduplicate_owners, own_changed
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.machinery import json_patch, merge_patch
from steersman.machinery.errors import (
    Cause,
    StatusError,
    bad_request,
    not_found,
    unsupported_media_type,
)
from steersman.machinery.field import INVALID, quote
from steersman.machinery.managed_fields import FORGET_ALL
from steersman.machinery.serializer import decode_plain, encode_in_order, to_plain
from steersman.machinery.strict import DecodeError, decode_object, strict_error
from steersman.net.message import Response

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
_LATER: Final = ("application/strategic-merge-patch+json",)

Apply = Callable[[Any], Any]


async def patch(scope: Scope, request: Request) -> Response:
    """Changes the object as the body says and answers 200 with it."""
    if is_apply(request):
        return await server_side_apply(scope, request)
    wanted = representation(scope, request)
    apply, options = await apply_patch_body(scope, request)
    dry_run = bool(options.dry_run)
    chain = scope.shared.admission

    async def make(old: Any | None) -> Any:
        if old is None:
            raise not_found(scope.group_resource, request.info.name)
        new = _patched(scope, request, old, apply, options)
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


async def apply_patch_body(scope: Scope, request: Request) -> tuple[Apply, PatchOptions]:
    """What the body does to a document, and the options. Raises StatusError 400, 413, 415, 422."""
    media = request.headers.get("content-type", "").partition(";")[0].strip()
    if media not in (JSON_PATCH, MERGE_PATCH):
        raise _unsupported(media)
    data = await read_body(request, scope.shared.max_body_bytes, scope.shared.metrics)
    options = patch_options(request, apply=False)
    try:
        patch_value = decode_plain(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise bad_request(f"error decoding patch: {error}") from None
    strict = options.field_validation != "Ignore"
    if media == JSON_PATCH:
        refuse = options.field_validation == "Strict"
        return _json_patch(patch_value, request, strict=strict, refuse=refuse), options
    return partial(merge_patch.apply, patch=patch_value, strict=strict), options


def _unsupported(media: str) -> StatusError:
    if media in _LATER:
        return unsupported_media_type(f"patches of type {media} are not supported yet")
    error = unsupported_media_type("415: Unsupported Media Type")
    error.details_present = True
    return error


def _json_patch(patch_value: Any, request: Request, *, strict: bool, refuse: bool) -> Apply:
    operations, unknown = json_patch.decode(patch_value, strict=strict)
    if unknown:
        if refuse:
            raise bad_request(f"strict decoding error: {', '.join(unknown)}")
        request.warnings.extend(unknown)

    def apply(document: Any) -> Any:
        try:
            return json_patch.apply(document, operations)
        except json_patch.PatchError:
            # upstream keeps the reason to itself
            message = "the server rejected our request due to an error in our request"
            raise StatusError(422, "Invalid", message) from None

    return apply


def _patched(scope: Scope, request: Request, old: Any, apply: Apply, options: PatchOptions) -> Any:
    """The object after the patch, decoded, defaulted, in the stored version. Raises StatusError 400, 422."""
    versioned = scope.other.from_hub(old) if scope.other else old
    document = {"kind": scope.kind_name, "apiVersion": scope.api_version, **to_plain(versioned)}
    obj = decode_patched(scope, request, scope.kind, apply(document), options.field_validation)
    if scope.default is not None:
        scope.default(obj)
    obj.metadata.managed_fields = own_changed(scope, request, obj, versioned, options.field_manager)
    return scope.to_hub(obj)


def decode_patched(scope: Scope, request: Request, kind: type[Any], document: Any, validation: str) -> Any:
    """What a patch made of a document, as an object of `kind`. Raises StatusError 400, 422."""
    patched = encode_in_order(document)
    try:
        decoded = decode_object(kind, patched, "json", want_strict=validation != "Ignore")
    except DecodeError as error:
        raise _undecodable(patched, str(error)) from None
    if decoded.warnings:
        if validation == "Strict":
            raise _undecodable(patched, strict_error(decoded.warnings))
        request.warnings.extend(decoded.warnings)
    obj = decoded.obj
    obj.kind = obj.api_version = obj.metadata.self_link = ""
    metadata = document.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") == []:
        obj.metadata.managed_fields = [*FORGET_ALL]  # both ask to forget all managers
    check_names(scope, request, obj.metadata)
    return obj


def _undecodable(patched: bytes, why: str) -> StatusError:
    text = f"Invalid value: {quote(patched.decode())}: {why}"
    return StatusError(422, "Invalid", f' "" is invalid: patch: {text}', causes=(Cause(INVALID, text, "patch"),))
