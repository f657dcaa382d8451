"""Server-side apply: PATCH with `application/apply-patch+yaml`, of an object or a subresource with the object's own
kind.

The configuration is merged into the object, and its manager becomes the owner of the fields in it. If there is no
object, it is created. Follows k8s.io/apiserver `endpoints/handlers` (applyPatcher).
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from steersman.endpoints.bodies import APPLY_YAML, MUCH_TO_APPLY, check_names, warning_texts
from steersman.endpoints.objects import item_response
from steersman.endpoints.options import apply_options
from steersman.endpoints.ownership import applier_of
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.endpoints.spans import ABOUT_TO_ADMIT, ABOUT_TO_PATCH, in_serialization
from steersman.endpoints.writing import Write, parse, store_changed
from steersman.kinds.kind import Kind
from steersman.machinery.codec.serializer import decode_plain
from steersman.machinery.codec.strict import DecodeError, has_unique_members, is_as_long_as
from steersman.machinery.errors.status import StatusError, bad_request, conflict, plain_internal
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.machinery.large_work.sizes import check_count
from steersman.machinery.managed_fields import Applier
from steersman.machinery.patch.json_patch import json_type
from steersman.machinery.values import times
from steersman.net.message import Response
from steersman.rest.capabilities import Updater
from steersman.tracing.trace import StepKind, add_event, current_recorder, in_step
from steersman.work.offloading import mark_large, offload
from steersman.work.patterns import late_pattern

_APPLY: Final = StepKind("apply")
_CONVERTING: Final = "error converting YAML to JSON: "


def is_apply(request: Request) -> bool:
    """Return True if a PATCH is a server-side apply."""
    return request.headers.get("content-type", "").partition(";")[0].strip(" ") == APPLY_YAML


class Configuration(Struct):
    """A configuration to apply, as sent.

    `error` is the error of a malformed configuration, raised only once the live object is known; `duplicates` is
    upstream's text about duplicate keys.
    """

    write: Write[Updater]
    value: dict[str, Any] | None = None
    error: StatusError | None = None
    duplicates: str = ""

    def read(self, data: bytes) -> None:
        """Parse the value of a body, which is YAML; most bodies are also JSON, whose parser is faster."""
        value: Any = _read_json(data)
        if value is None:
            value, self.duplicates, self.error = _read_yaml(data)
        if isinstance(value, dict):
            self.value = value
        elif self.error is None:
            why = f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}"
            self.error = bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")

    def _refusal(self) -> StatusError:
        """Return the error and drop it: a raised error refers to the frames that raise it, and so to this object."""
        error, self.error = self.error, None
        return error or bad_request("there is no configuration")

    def described(self, applier: Applier) -> str:
        """Return the object as messages name it."""
        return applier.described(self.value or {})

    async def applied(self, applier: Applier, live: Any, kind: Kind[Any], *, defaults: bool = True) -> tuple[Any, bool]:
        """Return `live` with the configuration applied, with its managedFields, and defaulted where that changes it.

        `live` is an empty object if there is none yet; it is not modified. The second value is True if more than
        managedFields has changed. Raises StatusError 400, 409 and 500.
        """
        if self.value is None:
            raise self._refusal()
        write = self.write
        options, scope = write.options, write.scope
        manager, force = options.field_manager, bool(options.force)
        work = partial(_apply, applier, live, self.value, manager, kind, force=force, defaults=defaults)
        owned = 0
        for each in live.metadata.managed_fields:
            owned += len(each.fields_v1 or b"")
        if owned > MUCH_TO_APPLY:
            mark_large()
        result: tuple[Any, bool] = await scope.run(work)
        if self.duplicates:
            if options.field_validation == "Strict":
                raise bad_request(f"error strict decoding YAML: {self.duplicates}")
            if options.field_validation != "Ignore":
                write.request.warnings += warning_texts([self.duplicates.removeprefix(_CONVERTING)])
        return result


def _apply(
    applier: Applier, live: Any, value: dict[str, Any], manager: str, kind: Kind[Any], *, force: bool, defaults: bool
) -> tuple[Any, bool]:
    applied = applier.apply(live, value, manager, times.now(), force=force)
    if applied.obj is None:
        obj = kind.copy(live)
    else:
        try:
            obj = kind.from_applied(applied.obj).obj
        except DecodeError as error:
            why = f"unable to convert unstructured object to {applier.kind}: {error}"
            text = f"failed to convert new object ({applier.described(value)}) to proper version: {why}"
            raise plain_internal(text) from None
        obj.kind = obj.api_version = obj.metadata.self_link = ""
        if defaults:
            kind.default(obj)
    obj.metadata.managed_fields = applied.entries
    return obj, applied.obj is not None


_TAB, _RETURN, _BACKSLASH, _DELETE = b"\t\r\\\x7f"
_NOT_QUITE_YAML: Final = late_pattern(rb"[^\n -~]|\\/|\\u[dD][89a-fA-F]")
"""Search for input that YAML reads differently from JSON or not at all: some escapes, and all but printable ASCII."""


def _read_json(data: bytes) -> Any:
    """Return the value of a body in JSON that means the same as YAML; None for any other body."""
    if data[:1] != b"{":
        return None
    check_count(data)
    if not data.isascii() or is_too_deep(data):
        return None
    try:
        value = decode_plain(data)
    except msgspec.DecodeError:
        return None
    if not _has_usual_bytes(data) and _NOT_QUITE_YAML.search(data):
        return None
    return value if is_as_long_as(data, value) or has_unique_members(data) else None


def _has_usual_bytes(data: bytes) -> bool:
    """Return True if JSON in ASCII is printable, with line feeds, and without escapes: single bytes are found fast."""
    return not (_TAB in data or _RETURN in data or _BACKSLASH in data or _DELETE in data)


def _read_yaml(data: bytes) -> tuple[Any, str, StatusError | None]:
    """Return the value of the first document, a text about duplicate keys, and the error if it is malformed."""
    from steersman.machinery.codec import yaml  # most servers never see any

    try:
        parsed, duplicates = yaml.load(data)
        value = {} if parsed is None else yaml.json_value(parsed)
    except yaml.YAMLError as error:
        return None, "", bad_request(f"error decoding YAML: {_CONVERTING}{error}")
    return value, duplicates and f"{_CONVERTING}{duplicates}", None


async def read_configuration(scope: Scope[Updater], request: Request) -> Configuration:
    """Read the body and the options of an apply.

    Raises StatusError 406, 400 for a body that does not complete, 413, 422 and 429.
    """
    write = await parse(scope, request, lambda _scope, _request: APPLY_YAML, apply_options)
    if request.audit is not None:
        await offload(request.audit.set_patch, write.data)
    add_event("Recorded the audit event")
    configuration = Configuration(write)
    await offload(configuration.read, write.data)
    return configuration


async def server_side_apply(scope: Scope[Updater], request: Request) -> Response:
    """Merge the body into the object and answer 200 with it, or 201 if it was created."""
    configuration = await read_configuration(scope, request)
    write = configuration.write
    applier = applier_of(scope, request.action.subresource)

    recorder = current_recorder()

    async def prepare(old: Any | None) -> Any:
        live = scope.kind.new() if old is None else old
        if old is not None and scope.other is not None:
            live = await scope.run(scope.other.from_hub, old)
        if recorder is not None:
            recorder.add_outer_event(ABOUT_TO_PATCH)
        new, is_changed = await in_step(_APPLY, configuration.applied(applier, live, scope.kind))
        same = None if is_changed else old
        applied = await scope.run(partial(_applied, configuration, new, same, is_new=old is None))
        if recorder is not None:
            recorder.add_outer_event(ABOUT_TO_ADMIT)
        return applied

    item, created = await store_changed(write, prepare, may_create=not request.action.subresource)
    add_event("Object stored in database")
    return await in_serialization(
        write.wanted, item_response(scope, request, item, write.wanted, 201 if created else 200)
    )


def _applied(configuration: Configuration, new: Any, same: Any | None, *, is_new: bool) -> Any:
    """Return the applied object in the stored version; `same` is the stored object if only managedFields change."""
    scope, request = configuration.write.scope, configuration.write.request
    if why := scope.kind.internal_error(new):
        described = configuration.described(applier_of(scope, request.action.subresource))
        raise plain_internal(f"failed to convert to unversioned ({described}): {why}")
    if is_new and new.metadata.uid:
        mismatch = f"the provided object specified uid {new.metadata.uid}, and no existing object was found"
        raise conflict(scope.group_resource, request.action.name, f"uid mismatch: {mismatch}")
    check_names(scope, request, new.metadata)
    if scope.other is None:
        return new
    if same is None:
        return scope.to_hub(new)
    hub = scope.resource.kind.copy(same)  # avoids a conversion through another version
    hub.metadata.managed_fields = new.metadata.managed_fields
    return hub
