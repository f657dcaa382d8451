"""Server-side apply: PATCH with `application/apply-patch+yaml`, of an object or of a subresource that is the object.

The configuration is merged into the object and its manager becomes the owner of what it says; where there is no object,
it makes one. Follows k8s.io/apiserver `endpoints/handlers` (applyPatcher).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from steersman.admission.interface import CREATE, UPDATE
from steersman.api.meta.v1 import PatchOptions
from steersman.endpoints.admit import admit, check_update
from steersman.endpoints.bodies import read_body, warning_texts
from steersman.endpoints.handlers.authorize import check_authorized_create
from steersman.endpoints.handlers.update import check_names
from steersman.endpoints.objects import item_response, representation
from steersman.endpoints.options import patch_options
from steersman.endpoints.ownership import applier_of
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.kinds.kind import Kind
from steersman.machinery.codec.serializer import decode_plain
from steersman.machinery.codec.strict import DecodeError, has_unique_members
from steersman.machinery.errors.status import StatusError, bad_request, conflict, plain_internal
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.machinery.large_work.slow_lane import SlowLane, check_count, done, is_large, is_large_yaml
from steersman.machinery.managed_fields import Applier
from steersman.machinery.patch.json_patch import json_type
from steersman.machinery.values import times
from steersman.net.message import Response

APPLY_YAML: Final = "application/apply-patch+yaml"

_CONVERTING: Final = "error converting YAML to JSON: "
_SMALL: Final = 8 * 1024
"""Bytes of a configuration and of an object's field sets up to which an apply takes a few milliseconds; more is done in
the slow lane. YAML takes several times longer to read than JSON."""


def is_apply(request: Request) -> bool:
    """Whether a PATCH is one of these."""
    return request.headers.get("content-type", "").partition(";")[0].strip(" ") == APPLY_YAML


Run = Callable[..., Awaitable[Any]]


@dataclass(slots=True)
class Configuration:
    """What a manager applies, as sent.

    `error` is why it cannot be read, which is told only once there is something to apply it to; `duplicates` are its
    keys given twice, in upstream's words. `lane` is where it is worked on: `slow_lane` if it is large, else None.
    """

    options: PatchOptions
    warnings: list[str]
    slow_lane: SlowLane
    lane: SlowLane | None
    value: dict[str, Any] | None = None
    error: StatusError | None = None
    duplicates: str = ""

    def read(self, data: bytes) -> None:
        """Takes the value out of a body, which is YAML; JSON is nearly always that too, and is read faster."""
        value: Any = _read_json(data)
        if value is None:
            value, self.duplicates, self.error = _read_yaml(data)
        if isinstance(value, dict):
            self.value = value
        elif self.error is None:
            why = f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}"
            self.error = bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")

    def _refusal(self) -> StatusError:
        """The error, which is forgotten: raised, it knows who raises it, and so this."""
        error, self.error = self.error, None
        return error or bad_request("there is no configuration")

    def described(self, applier: Applier) -> str:
        """The object as messages name it."""
        return applier.described(self.value or {})

    async def applied(
        self, applier: Applier, live: Any, kind: Kind[Any], *, defaults: bool = True, run: Run = done
    ) -> tuple[Any, bool]:  # fmt: skip
        """`live` with the configuration applied, defaulted where that changes it, its managedFields with it.

        `live` is an empty object where there is none yet; it stays as it is. The flag says whether more is changed
        than managedFields. Raises StatusError 400, 409, 500.
        """
        if self.value is None:
            raise self._refusal()
        options = self.options
        manager, force = options.field_manager, bool(options.force)
        work = partial(_apply, applier, live, self.value, manager, kind, force=force, defaults=defaults)
        owned = sum(len(each.fields_v1 or b"") for each in live.metadata.managed_fields)
        result: tuple[Any, bool] = await run(self.slow_lane if owned > _SMALL else self.lane, work)
        if self.duplicates:
            if options.field_validation == "Strict":
                raise bad_request(f"error strict decoding YAML: {self.duplicates}")
            if options.field_validation != "Ignore":
                self.warnings += warning_texts([self.duplicates.removeprefix(_CONVERTING)])
        return result


def _apply(
    applier: Applier, live: Any, value: dict[str, Any], manager: str, kind: Kind[Any], *, force: bool, defaults: bool
) -> tuple[Any, bool]:
    applied = applier.apply(live, value, manager, times.now(), force=force)
    if applied.obj is None:
        obj = kind.copy(live)
    else:
        try:
            obj = kind.from_plain(applied.obj).obj
        except DecodeError as error:
            why = f"unable to convert unstructured object to {applier.kind}: {error}"
            text = f"failed to convert new object ({applier.described(value)}) to proper version: {why}"
            raise plain_internal(text) from None
        obj.kind = obj.api_version = obj.metadata.self_link = ""
        if defaults:
            kind.default(obj)
    obj.metadata.managed_fields = applied.entries
    return obj, applied.obj is not None


_NOT_QUITE_YAML: Final = re.compile(rb"[^\n -~]|\\/|\\u[dD][89a-fA-F]")
"""What YAML reads otherwise than JSON does, or not at all: escapes, and everything but printable ASCII, to be sure."""


def _read_json(data: bytes) -> Any:
    """The object in a body of JSON that says the same as YAML; None for any other body."""
    if data[:1] != b"{":
        return None
    check_count(data)
    if _NOT_QUITE_YAML.search(data):
        return None
    if is_too_deep(data):
        return None
    try:
        value = decode_plain(data)
    except msgspec.DecodeError:
        return None
    return value if has_unique_members(data) else None


def _read_yaml(data: bytes) -> tuple[Any, str, StatusError | None]:
    """The value of the first document, what it says about keys given twice, and why it cannot be read."""
    from steersman.machinery.codec import yaml  # most servers never see any

    try:
        found, duplicates = yaml.load(data)
        value = {} if found is None else yaml.json_value(found)
    except yaml.YAMLError as error:
        return None, "", bad_request(f"error decoding YAML: {_CONVERTING}{error}")
    return value, duplicates and f"{_CONVERTING}{duplicates}", None


async def read_configuration(scope: Scope, request: Request) -> Configuration:
    """The body and the options of an apply. Raises StatusError 400 for a body that does not complete, 413, 422,
    429."""
    data = await read_body(scope, request)
    options = patch_options(request, apply=True)
    large = len(data) > _SMALL or (is_large(data) if data[:1] == b"{" else is_large_yaml(data))
    slow_lane = scope.lane_to_begin(request) if large else scope.lane(request)
    configuration = Configuration(options, request.warnings, slow_lane, slow_lane if large else None)
    await done(configuration.lane, configuration.read, data)
    return configuration


async def server_side_apply(scope: Scope, request: Request) -> Response:
    """Merges the body into the object and answers 200 with it, or 201 where that made it."""
    wanted = representation(scope, request)
    configuration = await read_configuration(scope, request)
    options = configuration.options
    ctx = scope.context(request, dry_run=bool(options.dry_run), lane=configuration.lane)
    subresource = request.action.subresource
    applier = applier_of(scope, subresource)

    async def make(old: Any | None) -> Any:
        live = scope.kind.new() if old is None else old
        if old is not None and scope.other is not None:
            live = await scope.run(ctx.lane, scope.other.from_hub, old)
        new, is_changed = await configuration.applied(applier, live, scope.kind, run=scope.run)
        same = None if is_changed else old
        work = partial(_applied_hub, scope, request, configuration, new, same, is_new=old is None)
        hub = await scope.run(ctx.lane, work)
        return await admit(scope, request, ctx, CREATE if old is None else UPDATE, hub, old, options)

    item, created = await scope.storage.update(
        ctx, request.action.name, make,
        check_create=check_authorized_create(scope, request, ctx, options),
        check_update=check_update(scope, request, ctx, options),
        force_allow_create=not subresource,
        subresource=subresource,
    )  # fmt: skip
    return await item_response(scope, request, item, wanted, 201 if created else 200)


def _applied_hub(
    scope: Scope, request: Request, configuration: Configuration, new: Any, same: Any | None, *, is_new: bool
) -> Any:
    """What an apply made, in the stored version; `same` is what is stored if nothing changes but managedFields."""
    if why := scope.kind.internal_error(new):
        described = configuration.described(applier_of(scope, request.action.subresource))
        raise plain_internal(f"failed to convert to unversioned ({described}): {why}")
    if is_new and new.metadata.uid:
        mismatch = f"the provided object specified uid {new.metadata.uid}, and no existing object was found"
        raise conflict(scope.group_resource, request.action.name, f"uid mismatch: {mismatch}")
    check_names(scope, request, new.metadata)
    if same is None or scope.other is None:
        return scope.to_hub(new)
    hub = scope.resource.kind.copy(same)  # no way through another version
    hub.metadata.managed_fields = new.metadata.managed_fields
    return hub
