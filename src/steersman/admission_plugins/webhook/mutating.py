"""MutatingAdmissionWebhook: other servers change an object before it is stored, one after the other."""

from __future__ import annotations

import logging
from time import perf_counter
from typing import Any, Final

import msgspec
from msgspec import Struct

from steersman.admission.changes import MOST_PATHS
from steersman.admission.interface import Attributes, Reinvocation
from steersman.admission_plugins.declaration import ConfiguredDeclaration
from steersman.admission_plugins.matching.rules import MatchedResource
from steersman.admission_plugins.matching.versions import Conversions
from steersman.admission_plugins.webhook.calling import CallFailed, Denied
from steersman.admission_plugins.webhook.dispatch import VersionedObjects, WebhookPlugin
from steersman.admission_plugins.webhook.hooks import Hook
from steersman.admission_plugins.webhook.review import Verdict, denial_error
from steersman.audit.documents import as_go_escapes
from steersman.audit.policy import Level
from steersman.kinds.built_in import find_built_in
from steersman.kinds.kind import Kind
from steersman.machinery.codec.serializer import decode_plain, encode_in_order
from steersman.machinery.codec.strict import DecodeError, decode_untyped
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import StatusError, internal, plain_internal
from steersman.machinery.identity.schema import GroupVersionKind, no_kind_registered
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.machinery.large_work.sizes import check_count, is_large
from steersman.machinery.patch import json_patch
from steersman.tracing.trace import current_recorder
from steersman.work.offloading import mark_large, offload

logger = logging.getLogger(__name__)

_UNAVAILABLE: Final = 503
_OPERATIONS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])


class _ReinvocationState:
    """State of a write between both rounds of the chain (apiserver `webhookReinvokeContext`).

    In the second round a webhook with reinvocation policy IfNeeded is called again, if the object was changed after its
    first call.
    """

    def __init__(self) -> None:
        self.reinvocable: set[str] = set()
        """Webhooks called since the last change of the object that request a second call."""
        self.to_reinvoke: set[str] = set()
        """Webhooks to call again, because the object was changed after their call."""
        self.is_patched = False
        """True if a patch has been applied, so that the object has been encoded to JSON and decoded again."""
        self.last_json: Any = None
        """JSON of the object in the stored version after the last call of the round. Bytes cannot be changed by later
        plugins.
        """

    def note_change(self) -> None:
        """Note that the object has changed: the webhooks called so far are to be called again."""
        self.to_reinvoke |= self.reinvocable
        self.reinvocable = set()


class MutatingAdmissionWebhook(WebhookPlugin):
    """Calls the webhooks in the order of their configurations; each gets the object as changed by the ones before."""

    name = "MutatingAdmissionWebhook"
    mutates = True
    plural = "mutatingwebhookconfigurations"

    async def admit(self, attributes: Attributes) -> None:
        """Change `attributes.obj` by the patches of all matching webhooks. Raises StatusError."""
        hooks = await self._matching_hooks(attributes)
        if not hooks:
            return
        context = attributes.reinvocation
        state: _ReinvocationState = context.plugin_states.setdefault(self.name, _ReinvocationState())
        if context.is_second and state.last_json != await self._object_json(attributes):
            state.note_change()
        try:
            objects: tuple[MatchedResource, VersionedObjects] | None = None
            conversion_error: StatusError | None = None
            for hook, matched in hooks:
                if not self._is_selected(hook, attributes):
                    continue
                if objects is None or objects[0] != matched:
                    if conversion_error is not None:
                        break
                    objects = matched, await self._versioned_objects(attributes, matched)
                conditions = hook.conditions
                if conditions is not None and not await self._conditions_hold(
                    conditions, hook, attributes, matched, objects[1]
                ):
                    continue
                if context.is_second and hook.uid not in state.to_reinvoke:
                    continue  # a webhook that was not called in the first round is not called in the second either
                with self._caller.span(hook, attributes, matched):
                    patched = await self._call(hook, attributes, matched, objects[1], state, context)
                if patched is None:
                    continue
                conversion_error = patched.conversion_error
                if conversion_error is not None:  # the other webhooks still get the new object, but it cannot be stored
                    objects = matched, objects[1].with_object(patched.obj, patched.document)
                else:
                    objects = await self._store_patched(attributes, matched, objects[1], patched)
            if conversion_error is not None:
                raise conversion_error
        finally:
            if any(hook.is_reinvocable for hook, _ in hooks):
                state.last_json = await self._object_json(attributes)

    async def _store_patched(
        self, attributes: Attributes, matched: MatchedResource, objects: VersionedObjects, patched: _PatchResult
    ) -> tuple[MatchedResource, VersionedObjects] | None:
        """Put a patched object into `attributes`. Return it for webhooks that match the same version, None without
        conversion.

        Those webhooks get the patched object itself, because a conversion there and back might add to it. Raises
        StatusError.
        """
        conversion = objects.conversion
        converted = None
        if conversion.converts:
            document = await offload(_encode_with_defaults, conversion.kind, patched.obj)
            converted = matched, objects.with_object(await offload(_decode, document, conversion.kind), document)
        attributes.obj = await conversion.convert_back(attributes, patched.obj)
        return converted

    async def _object_json(self, attributes: Attributes) -> Any:
        """Return the object's JSON in the stored version, to detect changes."""
        obj = attributes.obj
        if obj is None:
            return None
        return await offload(self._conversions.kind_of_object(attributes).body, obj)

    async def _call(
        self,
        hook: Hook,
        attributes: Attributes,
        matched: MatchedResource,
        objects: VersionedObjects,
        state: _ReinvocationState,
        context: Reinvocation,
    ) -> _PatchResult | None:
        """Call one webhook. Return the object that its patch results in, None without a patch. Raises StatusError."""
        began = perf_counter()
        failed: CallFailed | Denied | StatusError | None = None
        patched: _PatchResult | None = None
        is_changed = False
        try:
            verdict = await self._caller.call(hook, attributes, matched, objects.obj_json, objects.old_json)
            if verdict.patch:
                patched = await self._apply_patch(hook, verdict, objects)
        except (CallFailed, Denied, StatusError) as error:
            failed = error
        if patched is not None:
            # As upstream: times of new managedFields entries have nanoseconds until the first encoding to JSON.
            is_changed = patched.is_changed or (not state.is_patched and objects.changes_ownership)
            if is_changed:
                state.note_change()
                context.is_requested = True
            state.is_patched = True
            if (recorder := current_recorder()) is not None:
                recorder.add_event("Patch applied")
                recorder.set("changed", await offload(_patched_paths, verdict.patch))
        if hook.is_reinvocable:
            state.reinvocable.add(hook.uid)
        annotations = None if attributes.audit is None else self._annotations(hook, context)
        if annotations is not None:
            annotations.annotate_call(attributes, is_changed=is_changed)
            if patched is not None:
                await offload(annotations.annotate_patch, attributes, verdict.patch)
        if self._caller.record_outcome(hook, attributes, failed, began) and annotations is not None:
            annotations.annotate_failure(attributes)
        return patched

    def _annotations(self, hook: Hook, context: Reinvocation) -> _Annotations:
        return _Annotations(hook, f"round_{int(context.is_second)}_index_{self._configurations.index_of(hook)}")

    async def _apply_patch(self, hook: Hook, verdict: Verdict, objects: VersionedObjects) -> _PatchResult | None:
        """Apply a webhook's patch, offloaded if it is large. Raises the same exceptions as the function `_patch_object`."""
        if is_large(verdict.patch):
            mark_large()
        return await offload(_patch_object, hook, verdict, objects, self._conversions)


class _Annotations(Struct, frozen=True):
    """Audit annotations of one call of a webhook; `which` names the round and the index of the webhook."""

    hook: Hook
    which: str

    def annotate_call(self, attributes: Attributes, *, is_changed: bool) -> None:
        """Annotate that the webhook was called, and if it changed the object."""
        value = {"configuration": self.hook.configuration, "webhook": self.hook.name, "mutated": is_changed}
        attributes.annotate(f"mutation.webhook.admission.k8s.io/{self.which}", encode_in_order(value).decode())

    def annotate_patch(self, attributes: Attributes, patch: bytes) -> None:
        """Annotate the patch, recorded from the audit level Request on."""
        try:
            operations = _OPERATIONS.decode(msgspec.json.format(patch, indent=-1))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            logger.warning("unexpected error composing mutating webhook JSON patch annotation: %s", error)
            return
        value = {
            "configuration": self.hook.configuration,
            "webhook": self.hook.name,
            "patch": [{key: each[key] for key in sorted(each)} for each in operations],
            "patchType": "JSONPatch",
        }
        text = as_go_escapes(msgspec.json.encode(value)).decode()
        attributes.annotate(f"patch.webhook.admission.k8s.io/{self.which}", text, Level.REQUEST)

    def annotate_failure(self, attributes: Attributes) -> None:
        """Annotate that the webhook failed and the failure was ignored."""
        attributes.annotate(f"failed-open.mutation.webhook.admission.k8s.io/{self.which}", self.hook.name)


class _PatchResult(Struct, frozen=True):
    """Result of a patch."""

    obj: Any
    is_changed: bool
    """True if the patch changed the object."""
    conversion_error: StatusError | None = None
    """Error of an object whose kind was changed by the patch; it is raised after all webhooks have been called."""
    document: bytes = b""
    """JSON of an object whose kind was changed."""


def _patch_object(
    hook: Hook, verdict: Verdict, objects: VersionedObjects, versions: Conversions
) -> _PatchResult | None:
    """Apply a webhook's patch to the object. Return None for an empty patch.

    Raises CallFailed for a patch that cannot be decoded, and StatusError 500 for a patch that does not apply.
    """
    try:
        operations, _ = json_patch.decode(decode_untyped(verdict.patch), strict=False)
    except (DecodeError, StatusError) as error:
        raise CallFailed(hook, f"received undecodable patch in webhook response: {error}", _UNAVAILABLE) from None
    if not operations:
        return None
    if objects.obj_json is None:
        why = "attempted to modify the object, which is not supported for this operation"
        raise internal(f"admission webhook {quote(hook.name)} {why}")
    if verdict.patch_type != "JSONPatch":
        code = denial_error(hook.name, verdict.status).code
        raise CallFailed(hook, f"unsupported patch type {quote(verdict.patch_type)}", code)
    try:
        patched = json_patch.apply(decode_plain(objects.obj_json), operations)
    except json_patch.PatchError as error:
        raise internal(error) from None
    own = objects.conversion.kind
    kind = _kind_of(patched, own, versions)
    obj = _decode_patched(patched, kind)
    if kind is own:
        return _PatchResult(obj, obj != objects.obj)
    target = f"{own.group.partition('.')[0] or 'core'}.{own.name}"
    conversion_error = plain_internal(f"converting ({kind.version}.{kind.name}) to ({target}): unknown conversion")
    return _PatchResult(obj, True, conversion_error, _encode_with_defaults(kind, obj))


class _Operation(msgspec.Struct):
    """Path of an operation of a JSON patch."""

    path: str = ""


_PATHS: Final = msgspec.json.Decoder(list[_Operation])


def _patched_paths(patch: bytes) -> str:
    """Return the paths of a JSON patch."""
    try:
        return " ".join(each.path for each in _PATHS.decode(patch)[:MOST_PATHS])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""


def _encode_with_defaults(kind: Kind[Any], obj: Any) -> bytes:
    """Return the JSON of an object after setting its defaults."""
    kind.default(obj)
    return kind.prefix + kind.body(obj)


def _kind_of(patched: Any, own: Kind[Any], versions: Conversions) -> Kind[Any]:
    """Return the kind that a document states, `own` if it states none. Raises StatusError 500 for an unknown kind."""
    if not isinstance(patched, dict) or (patched.get("apiVersion"), patched.get("kind")) == (own.api_version, own.name):
        return own
    type_meta = patched.get("apiVersion"), patched.get("kind")
    api_version, name = (each if isinstance(each, str) else "" for each in type_meta)
    group, _, version = api_version.rpartition("/")
    gvk = GroupVersionKind(group, version, name)
    found = None if own.is_open else find_built_in(gvk)
    if found is None:
        raise internal(no_kind_registered(name, api_version))
    return versions.served_kind(gvk) or found


def _decode_patched(patched: Any, kind: Kind[Any]) -> Any:
    """Return the object in a document. Raises StatusError 500."""
    data = encode_in_order(patched)
    if is_too_deep(data):
        raise internal("the patched object is nested too deeply")
    check_count(data)
    return _decode(data, kind)


def _decode(data: bytes, kind: Kind[Any]) -> Any:
    """Return the object in JSON, with empty kind and apiVersion. Raises StatusError 500."""
    try:
        found = kind.read_internal(data, strict=False).obj
        if why := kind.internal_error(found):
            raise DecodeError(why)
    except DecodeError as error:
        raise internal(error) from None
    found.kind = found.api_version = ""
    return found


MUTATING_ADMISSION_WEBHOOK: Final = ConfiguredDeclaration(
    MutatingAdmissionWebhook, on_by_default=True, make=MutatingAdmissionWebhook
)
