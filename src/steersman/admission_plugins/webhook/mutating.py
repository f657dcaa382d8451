"""MutatingAdmissionWebhook: lets other servers change what is about to be written, one after the other."""

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
    """What is remembered from the first round to the second, in which webhooks are asked again that want to be where
    the object was changed after them (apiserver `webhookReinvokeContext`)."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        """Those of this round that want to be asked again."""
        self.again: set[str] = set()
        """Those that will be."""
        self.is_patched = False
        """Whether the object has been sent as JSON and come back."""
        self.last: Any = None
        """The object as the last of them left it: as it is stored, in bytes, so that nobody can change it."""

    def object_changed(self) -> None:
        """Somebody has changed the object after those that were asked."""
        self.again |= self.asked
        self.asked = set()


class MutatingAdmissionWebhook(WebhookPlugin):
    """In the order of their configurations, each seeing what the ones before have made of the object."""

    name = "MutatingAdmissionWebhook"
    mutates = True
    plural = "mutatingwebhookconfigurations"

    async def admit(self, attributes: Attributes) -> None:
        """Changes `attributes.obj`. Raises StatusError."""
        about = await self._about(attributes)
        if not about:
            return
        context = attributes.reinvocation
        kept: _Round = context.kept.setdefault(self.name, _Round())
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
                    continue  # even if it would want to be asked now: it was not before
                patched = await self._ask(hook, attributes, seen, shown[1], kept, context)
                if patched is None:
                    continue
                lost = patched.lost
                if lost is not None:  # the others are shown what it has become, and then it cannot be stored
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
        """Takes what a patch has made into `attributes`. What is of another version is shown to those that see the same
        as it is now: conversion, there and back, might add to it. Raises StatusError."""
        form = shown.form
        again = None
        if form.converts:
            document = await offload(_defaulted, form.kind, patched.obj)
            again = seen, shown.become(await offload(_decoded, document, form.kind), document)
        attributes.obj = await form.taken_back(attributes, patched.obj)
        return again

    async def _outline(self, attributes: Attributes) -> Any:
        """What tells an object from what it was."""
        obj = attributes.obj
        if obj is None:
            return None
        return await offload(self._versions.own(attributes).body, obj)

    async def _ask(
        self, hook: Hook, attributes: Attributes, seen: Seen, shown: Shown, kept: _Round, context: Reinvocation
    ) -> _Patched | None:
        """Asks one webhook; what its patch makes of the object, if it sends one. Raises StatusError."""
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
            # as upstream: fields that the request itself gives a new owner have a time of nanoseconds until then
            is_changed = patched.is_changed or (not kept.is_patched and shown.is_change)
            if is_changed:
                kept.object_changed()
                context.wanted = True
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
        """What a patch makes of the object, which may be large from now on. Raises as `_patched`."""
        if is_large(verdict.patch):
            mark_large()
        return await offload(_patched, hook, verdict, shown, self._versions)


class _Told(Struct, frozen=True):
    """What the audit is told of a webhook that was asked in a round; `which` is the round and its number."""

    hook: Hook
    which: str

    def asked(self, attributes: Attributes, *, is_changed: bool) -> None:
        """Whether it has changed the object."""
        value = {"configuration": self.hook.configuration, "webhook": self.hook.name, "mutated": is_changed}
        attributes.annotate(f"mutation.webhook.admission.k8s.io/{self.which}", encode_in_order(value).decode())

    def patched(self, attributes: Attributes, patch: bytes) -> None:
        """What it has changed, where so much is recorded."""
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
        """That the request goes on though it has failed."""
        attributes.annotate(f"failed-open.mutation.webhook.admission.k8s.io/{self.which}", self.hook.name)


@dataclass(frozen=True)
class _Patched:
    """An object that a patch has made."""

    obj: Any
    is_changed: bool
    """Whether it is another than it was."""
    lost: StatusError | None = None
    """What is told in the end of an object of another kind than the request's."""
    document: bytes = b""
    """The JSON of such an object."""


def _patched(hook: Hook, verdict: Verdict, shown: Shown, versions: Versions) -> _Patched | None:
    """What a patch makes of the object, None where it is empty. Raises CallFailed, and StatusError 500 for a patch that
    does not fit."""
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
    """The JSON of an object once it is defaulted."""
    kind.default(obj)
    return kind.prefix + kind.body(obj)


def _kind_of(patched: Any, own: Kind[Any], versions: Versions) -> Kind[Any]:
    """The kind that a document says to be of. Raises StatusError 500 where nothing has it."""
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
    """The object in a document. Raises StatusError 500."""
    data = encode_in_order(patched)
    if is_too_deep(data):
        raise internal("the object that a patch has made is nested too deeply")
    check_count(data)
    return _decoded(data, kind)


def _decoded(data: bytes, kind: Kind[Any]) -> Any:
    """Raises StatusError 500."""
    try:
        found = kind.read_own(data, strict=False).obj
        if why := kind.internal_error(found):
            raise DecodeError(why)
    except DecodeError as error:
        raise internal(error) from None
    found.kind = found.api_version = ""
    return found


MUTATING_ADMISSION_WEBHOOK: Final = ConfiguredDeclaration(
    MutatingAdmissionWebhook, on_by_default=True, make=MutatingAdmissionWebhook
)
