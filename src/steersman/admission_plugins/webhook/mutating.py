"""MutatingAdmissionWebhook: other servers change an object before it is stored, one after the other."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import msgspec
from msgspec import Struct

from steersman.admission.interface import Attributes, Reinvocation
from steersman.admission_plugins.declaration import ConfiguredDeclaration
from steersman.admission_plugins.matching.rules import Seen
from steersman.admission_plugins.matching.versions import Versions
from steersman.admission_plugins.webhook.calling import CallFailed, Denied
from steersman.admission_plugins.webhook.dispatch import Shown, WebhookPlugin
from steersman.admission_plugins.webhook.hooks import Hook
from steersman.admission_plugins.webhook.review import Verdict, denial
from steersman.audit.documents import as_go_escapes
from steersman.audit.policy import Level
from steersman.kinds.built_in import find
from steersman.kinds.kind import Kind
from steersman.machinery.codec.serializer import decode_plain, encode_in_order
from steersman.machinery.codec.strict import DecodeError, decode_untyped
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import StatusError, internal, plain_internal
from steersman.machinery.identity.schema import GroupVersionKind, no_kind_registered
from steersman.machinery.large_work.nesting import is_too_deep
from steersman.machinery.large_work.sizes import check_count, is_large
from steersman.machinery.patch import json_patch
from steersman.work.offloading import mark_large, offload

logger = logging.getLogger(__name__)

_UNAVAILABLE: Final = 503
_OPERATIONS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])


class _Round:
    """State of a write between both rounds of the chain (apiserver `webhookReinvokeContext`).

    In the second round a webhook with reinvocation policy IfNeeded is called again, if the object was changed after its
    first call.
    """

    def __init__(self) -> None:
        self.asked: set[str] = set()
        """Webhooks called since the last change of the object that request a second call."""
        self.again: set[str] = set()
        """Webhooks to call again, because the object was changed after their call."""
        self.is_patched = False
        """True if a patch has been applied, so that the object has been encoded to JSON and decoded again."""
        self.last: Any = None
        """JSON of the object in the stored version after the last call of the round. Bytes cannot be changed by later
        plugins.
        """

    def object_changed(self) -> None:
        """Note that the object has changed: the webhooks called so far are to be called again."""
        self.again |= self.asked
        self.asked = set()


class MutatingAdmissionWebhook(WebhookPlugin):
    """Calls the webhooks in the order of their configurations; each gets the object as changed by the ones before."""

    name = "MutatingAdmissionWebhook"
    mutates = True
    plural = "mutatingwebhookconfigurations"

    async def admit(self, attributes: Attributes) -> None:
        """Change `attributes.obj` by the patches of all matching webhooks. Raises StatusError."""
        about = await self._about(attributes)
        if not about:
            return
        context = attributes.reinvocation
        kept: _Round = context.plugin_states.setdefault(self.name, _Round())
        if context.is_second and kept.last != await self._outline(attributes):
            kept.object_changed()
        try:
            shown: tuple[Seen, Shown] | None = None
            lost: StatusError | None = None
            for hook, seen in about:
                if not self._is_selected(hook, attributes):
                    continue
                if shown is None or shown[0] != seen:
                    if lost is not None:
                        break
                    shown = seen, await self._shown(attributes, seen)
                conditions = hook.conditions
                if conditions is not None and not await self._is_met(conditions, hook, attributes, seen, shown[1]):
                    continue
                if context.is_second and hook.uid not in kept.again:
                    continue  # a webhook that was not called in the first round is not called in the second either
                patched = await self._ask(hook, attributes, seen, shown[1], kept, context)
                if patched is None:
                    continue
                lost = patched.lost
                if lost is not None:  # the other webhooks still get the new object, but it cannot be stored
                    shown = seen, shown[1].become(patched.obj, patched.document)
                else:
                    shown = await self._taken_back(attributes, seen, shown[1], patched)
            if lost is not None:
                raise lost
        finally:
            if any(hook.reinvoked for hook, _ in about):
                kept.last = await self._outline(attributes)

    async def _taken_back(
        self, attributes: Attributes, seen: Seen, shown: Shown, patched: _Patched
    ) -> tuple[Seen, Shown] | None:
        """Put a patched object into `attributes`. Return it for webhooks that match the same version, None without
        conversion.

        Those webhooks get the patched object itself, because a conversion there and back might add to it. Raises
        StatusError.
        """
        form = shown.form
        again = None
        if form.converts:
            document = await offload(_defaulted, form.kind, patched.obj)
            again = seen, shown.become(await offload(_decoded, document, form.kind), document)
        attributes.obj = await form.taken_back(attributes, patched.obj)
        return again

    async def _outline(self, attributes: Attributes) -> Any:
        """Return the object's JSON in the stored version, to detect changes."""
        obj = attributes.obj
        if obj is None:
            return None
        return await offload(self._versions.own(attributes).body, obj)

    async def _ask(
        self, hook: Hook, attributes: Attributes, seen: Seen, shown: Shown, kept: _Round, context: Reinvocation
    ) -> _Patched | None:
        """Call one webhook. Return the object that its patch results in, None without a patch. Raises StatusError."""
        began = perf_counter()
        failed: CallFailed | Denied | StatusError | None = None
        patched: _Patched | None = None
        is_changed = False
        try:
            verdict = await self._caller.call(hook, attributes, seen, shown.obj_json, shown.old_json)
            if verdict.patch:
                patched = await self._patched(hook, verdict, shown)
        except (CallFailed, Denied, StatusError) as error:
            failed = error
        if patched is not None:
            # As upstream: times of new managedFields entries have nanoseconds until the first encoding to JSON.
            is_changed = patched.is_changed or (not kept.is_patched and shown.is_change)
            if is_changed:
                kept.object_changed()
                context.is_requested = True
            kept.is_patched = True
        if hook.reinvoked:
            kept.asked.add(hook.uid)
        told = None if attributes.audit is None else self._told(hook, context)
        if told is not None:
            told.asked(attributes, is_changed=is_changed)
            if patched is not None:
                await offload(told.patched, attributes, verdict.patch)
        if self._caller.judge(hook, attributes, failed, began) and told is not None:
            told.failed_open(attributes)
        return patched

    def _told(self, hook: Hook, context: Reinvocation) -> _Told:
        return _Told(hook, f"round_{int(context.is_second)}_index_{self._configurations.number(hook)}")

    async def _patched(self, hook: Hook, verdict: Verdict, shown: Shown) -> _Patched | None:
        """Apply a webhook's patch, offloaded if it is large. Raises the same exceptions as the function `_patched`."""
        if is_large(verdict.patch):
            mark_large()
        return await offload(_patched, hook, verdict, shown, self._versions)


class _Told(Struct, frozen=True):
    """Audit annotations of one call of a webhook; `which` names the round and the index of the webhook."""

    hook: Hook
    which: str

    def asked(self, attributes: Attributes, *, is_changed: bool) -> None:
        """Annotate that the webhook was called, and if it changed the object."""
        value = {"configuration": self.hook.configuration, "webhook": self.hook.name, "mutated": is_changed}
        attributes.annotate(f"mutation.webhook.admission.k8s.io/{self.which}", encode_in_order(value).decode())

    def patched(self, attributes: Attributes, patch: bytes) -> None:
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

    def failed_open(self, attributes: Attributes) -> None:
        """Annotate that the webhook failed and the failure was ignored."""
        attributes.annotate(f"failed-open.mutation.webhook.admission.k8s.io/{self.which}", self.hook.name)


@dataclass(frozen=True)
class _Patched:
    """Result of a patch."""

    obj: Any
    is_changed: bool
    """True if the patch changed the object."""
    lost: StatusError | None = None
    """Error of an object whose kind was changed by the patch; it is raised after all webhooks have been called."""
    document: bytes = b""
    """JSON of an object whose kind was changed."""


def _patched(hook: Hook, verdict: Verdict, shown: Shown, versions: Versions) -> _Patched | None:
    """Apply a webhook's patch to the object. Return None for an empty patch.

    Raises CallFailed for a patch that cannot be decoded, and StatusError 500 for a patch that does not apply.
    """
    try:
        operations, _ = json_patch.decode(decode_untyped(verdict.patch), strict=False)
    except (DecodeError, StatusError) as error:
        raise CallFailed(hook, f"received undecodable patch in webhook response: {error}", _UNAVAILABLE) from None
    if not operations:
        return None
    if shown.obj_json is None:
        why = "attempted to modify the object, which is not supported for this operation"
        raise internal(f"admission webhook {quote(hook.name)} {why}")
    if verdict.patch_type != "JSONPatch":
        code = denial(hook.name, verdict.status).code
        raise CallFailed(hook, f"unsupported patch type {quote(verdict.patch_type)}", code)
    try:
        patched = json_patch.apply(decode_plain(shown.obj_json), operations)
    except json_patch.PatchError as error:
        raise internal(error) from None
    own = shown.form.kind
    kind = _kind_of(patched, own, versions)
    obj = _read(patched, kind)
    if kind is own:
        return _Patched(obj, obj != shown.obj)
    target = f"{own.group.partition('.')[0] or 'core'}.{own.name}"
    lost = plain_internal(f"converting ({kind.version}.{kind.name}) to ({target}): unknown conversion")
    return _Patched(obj, True, lost, _defaulted(kind, obj))


def _defaulted(kind: Kind[Any], obj: Any) -> bytes:
    """Return the JSON of an object after setting its defaults."""
    kind.default(obj)
    return kind.prefix + kind.body(obj)


def _kind_of(patched: Any, own: Kind[Any], versions: Versions) -> Kind[Any]:
    """Return the kind that a document states, `own` if it states none. Raises StatusError 500 for an unknown kind."""
    if not isinstance(patched, dict) or (patched.get("apiVersion"), patched.get("kind")) == (own.api_version, own.name):
        return own
    said = patched.get("apiVersion"), patched.get("kind")
    api_version, name = (each if isinstance(each, str) else "" for each in said)
    group, _, version = api_version.rpartition("/")
    gvk = GroupVersionKind(group, version, name)
    found = None if own.is_open else find(gvk)
    if found is None:
        raise internal(no_kind_registered(name, api_version))
    return versions.of_kind(gvk) or found


def _read(patched: Any, kind: Kind[Any]) -> Any:
    """Return the object in a document. Raises StatusError 500."""
    data = encode_in_order(patched)
    if is_too_deep(data):
        raise internal("the object that a patch has made is nested too deeply")
    check_count(data)
    return _decoded(data, kind)


def _decoded(data: bytes, kind: Kind[Any]) -> Any:
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
