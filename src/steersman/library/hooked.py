"""Calls of a class's hooks from the strategy, the Inquiry and the Allocator of its resource."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from steersman.apiextensions.strategy import CustomResourceStrategy, StatusStrategy, Versions
from steersman.kinds.open import OpenObject
from steersman.library.declaration import declaration_of
from steersman.library.hooks import CREATE, DELETE, UPDATE, HookSet, Objects, Request
from steersman.library.instances import Instances, StoredInstances
from steersman.library.merging import changed, difference
from steersman.library.models import ModelError, Plain
from steersman.library.user_code import NoJson, check_values, computing, kept_running
from steersman.machinery.errors import status as errors
from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.registry.services import Services
from steersman.rest.allocator import Allocator, Inquiry
from steersman.rest.context import Context
from steersman.work.offloading import offload

logger = logging.getLogger(__name__)

_STATUS: Final = "status"
_IDENTITY: Final = (
    "name",
    "generate_name",
    "namespace",
    "self_link",
    "uid",
    "resource_version",
    "generation",
    "creation_timestamp",
    "deletion_timestamp",
    "deletion_grace_period_seconds",
    "managed_fields",
)
"""Metadata that hooks must not change."""


class Hooked:
    """The hooks of one resource, called with objects of any of its versions."""

    def __init__(self, hooks: HookSet, instances: Instances, versions: Versions) -> None:
        self._hooks = hooks
        self._instances = instances
        self._versions = versions

    def prepare(self, ctx: Context, new: OpenObject, old: OpenObject | None, subresource: str = "") -> None:
        """Call the `prepare` hooks; with a subresource only changes of the status are kept. Raises StatusError.

        An object that does not fit its class is left to validation.
        """
        hooks = self._hooks.for_subresource(subresource).prepare
        if not hooks:
            return
        version = self._versions.for_request(ctx)
        try:
            instance = self._instances.to_stored_instance(new, version.declared.name)
        except ModelError:
            return
        before = self._instances.content(instance, version.declared.name, new)
        request = self._request(ctx, new, old, subresource)
        for each in hooks:
            with _same_identity(new, each), computing(each.__qualname__):
                each(instance, request)
                _check_prepared(each, instance)
        try:
            after = self._instances.content(instance, version.declared.name, new)
            if after != before:
                if subresource:
                    before, after = _only_status(before), _only_status(after)
                new.content = changed(new.content, before, after)
                version.kind.structural.fit(new.content, lenient=True)
                version.kind.default(new)
            if version is not self._versions.stored:
                self._keep_unsaid(new, instance, version.declared.name, subresource, is_new=old is None)
        except ModelError as error:  # the class of the request's version cannot represent the prepared object
            raise errors.invalid(version.kind.group_kind, new.metadata.name, list(_unfit(new, error))) from None

    def _keep_unsaid(self, new: OpenObject, prepared: Any, version: str, subresource: str, *, is_new: bool) -> None:
        """Store in `new.unsaid` what `prepare` has set and the version of the request cannot represent."""
        stored = self._versions.stored.declared.name
        new.unsaid = None
        said = self._instances.content(self._instances.to_stored_instance(new, version), stored, new)
        wanted = self._instances.content(prepared, stored, new)
        if subresource:
            said, wanted = _only_status(said), _only_status(wanted)
        elif not is_new and self._versions.stored.declared.has_status:
            said.pop(_STATUS, None)
            wanted.pop(_STATUS, None)
        new.unsaid = difference(said, wanted) or None

    def validate(
        self, ctx: Context, new: OpenObject, old: OpenObject | None, subresource: str = ""
    ) -> Iterator[FieldError]:
        """Yield the errors that the class finds in an object without schema errors."""
        try:
            instance = self._instances.to_stored_instance(new, self._versions.for_request(ctx).declared.name)
        except ModelError as error:
            yield from _unfit(new, error)
            return
        if new.unsaid is not None and (errors := self._errors_as_stored(new, instance)):
            yield from errors
            return
        request = self._request(ctx, new, old, subresource)
        for each in self._hooks.validate:
            with _same_identity(new, each), computing(each.__qualname__):
                errors_of_hook = list(_errors_of(each, each(instance, request)))
            yield from errors_of_hook

    def _errors_as_stored(self, new: OpenObject, instance: Any) -> list[FieldError]:
        """Return the stored version's schema errors for an object with `unsaid` content, set by `prepare`."""
        stored = self._versions.stored
        whole = OpenObject(new.metadata, self._instances.content(instance, stored.declared.name, new))
        stored.kind.default(whole)
        return stored.kind.structural.validate(stored.kind.whole(whole))

    async def admit(
        self, ctx: Context, new: OpenObject, old: OpenObject | None, services: Services, subresource: str
    ) -> None:
        """Call the `admit` hooks, which may refuse a write. Raises StatusError.

        An object with schema errors is left to validation.
        """
        version = self._versions.for_request(ctx)
        if await offload(version.kind.structural.validate, version.kind.whole(new)):
            return
        try:
            instance = await offload(self._instances.to_stored_instance, new, version.declared.name)
        except ModelError as error:
            raise errors.invalid(version.kind.group_kind, new.metadata.name, list(_unfit(new, error))) from None
        request = await offload(self._request, ctx, new, old, subresource, services=services)
        for each in self._hooks.for_subresource(subresource).admit:
            with _same_identity(new, each), kept_running(each.__qualname__, may_wait=True):
                await each(instance, request)

    async def after_write(
        self,
        ctx: Context,
        obj: OpenObject,
        old: OpenObject | None,
        operation: str,
        services: Services,
        subresource: str,
    ) -> None:
        """Call the `after_write` hooks; a deleted object is passed in the stored version. Errors are logged."""
        try:
            instance = await offload(self._instances.to_stored_instance, obj, self._version(ctx, operation))
            request = await offload(self._request, ctx, obj, old, subresource, operation, services)
            for each in self._hooks.for_subresource(subresource).after_write:
                with kept_running(each.__qualname__, may_wait=True):
                    waiting = each(instance, request)
                    if inspect.isawaitable(waiting):
                        await waiting
        except Exception:
            logger.exception("an after_write hook of %s failed", obj.metadata.name)

    def _version(self, ctx: Context, operation: str) -> str:
        """Return the version of the objects that a hook gets."""
        return (self._versions.stored if operation == DELETE else self._versions.for_request(ctx)).declared.name

    def _request(
        self,
        ctx: Context,
        new: OpenObject,
        old: OpenObject | None,
        subresource: str,
        operation: str = "",
        services: Services | None = None,
    ) -> Request[Any]:
        before = None
        if old is not None:
            try:
                before = self._instances.to_stored_instance(old, self._version(ctx, operation))
            except ModelError:  # stored with an earlier form of the class
                logger.warning("the stored form of %s does not fit its class", old.metadata.name)
        objects = None if services is None else partial(objects_of, services)
        name = operation or (CREATE if old is None else UPDATE)
        return Request(name, new.metadata, before, subresource, ctx, objects)


@contextmanager
def _same_identity(obj: OpenObject, hook: Callable[..., Any]) -> Iterator[None]:
    """Raise StatusError 500 if a hook changes the identity of an object.

    The object would be stored under another name than the request's, for which the user was authorized.
    """
    meta = obj.metadata
    before = {name: getattr(meta, name) for name in _IDENTITY}
    yield
    found = [name for name in _IDENTITY if getattr(meta, name) != before[name]]
    if found:
        for name, value in before.items():
            setattr(meta, name, value)
        fields = ", ".join(f"metadata.{name}" for name in found)
        raise errors.plain_internal(
            f"the hook {hook.__qualname__} has changed {fields}: it may change labels, annotations, finalizers and "
            f"owner_references"
        )


def _check_prepared(hook: Callable[..., Any], instance: Any) -> None:
    """Raise StatusError 500 if a hook has put values into an object that JSON cannot represent."""
    try:
        check_values(instance)
    except NoJson as error:
        raise errors.plain_internal(
            f"the hook {hook.__qualname__} has set a value that JSON cannot represent: {error}"
        ) from None


def _errors_of(hook: Callable[..., Any], given: Any) -> Iterator[FieldError]:
    """Yield the errors from a `validate` hook. Raises StatusError 500 for anything but FieldErrors."""
    if given is None:
        return
    if isinstance(given, FieldError):
        yield given
        return
    found = given if isinstance(given, Iterable) and not isinstance(given, str | bytes) else [given]
    for each in found:
        if not isinstance(each, FieldError):
            kind = type(each).__name__
            raise errors.plain_internal(f"the hook {hook.__qualname__} returned a {kind}: it must yield FieldErrors")
        yield each


def _unfit(obj: OpenObject, error: ModelError) -> Iterator[FieldError]:
    """Yield the errors that a class finds in an object, at the fields if the class tells them."""
    if not error.found:
        yield invalid(Path(), obj.content, str(error))
    for each in error.found:
        path = Path()
        for step in each.location:
            path = path[step] if isinstance(step, int) else path.child(step)
        yield invalid(path, each.value, each.detail)


def _only_status(content: Plain) -> Plain:
    return {_STATUS: content[_STATUS]} if _STATUS in content else {}


def objects_of(services: Services, model: type[Any]) -> Objects[Any]:
    """Return access to the stored objects of a class; see Request.objects."""
    declaration = declaration_of(model)
    return StoredInstances(Instances(declaration), services.objects(declaration.group, declaration.plural))


class HookedStrategy(CustomResourceStrategy):
    """The strategy of custom resources with hooks."""

    def __init__(self, versions: Versions, hooked: Hooked) -> None:
        super().__init__(versions)
        self._hooked = hooked

    def prepare_for_create(self, ctx: Context, obj: OpenObject) -> None:
        super().prepare_for_create(ctx, obj)
        self._hooked.prepare(ctx, obj, None)

    def prepare_for_update(self, ctx: Context, new: OpenObject, old: OpenObject) -> None:
        if self._versions.for_request(ctx).declared.has_status:
            new.content.pop(_STATUS, None)
            if _STATUS in old.content:
                new.content[_STATUS] = old.content[_STATUS]
        self._hooked.prepare(ctx, new, old)
        super().prepare_for_update(ctx, new, old)

    def validate(self, ctx: Context, obj: OpenObject) -> Iterator[FieldError]:
        found = list(super().validate(ctx, obj))
        return iter(found or self._hooked.validate(ctx, obj, None))

    def validate_update(self, ctx: Context, new: OpenObject, old: OpenObject) -> Iterator[FieldError]:
        found = list(super().validate_update(ctx, new, old))
        return iter(found or self._hooked.validate(ctx, new, old))


class HookedStatusStrategy(StatusStrategy):
    """The strategy of `/status` of custom resources with hooks."""

    def __init__(self, versions: Versions, hooked: Hooked) -> None:
        super().__init__(versions)
        self._hooked = hooked

    def prepare_for_update(self, ctx: Context, new: OpenObject, old: OpenObject) -> None:
        super().prepare_for_update(ctx, new, old)
        self._hooked.prepare(ctx, new, old, _STATUS)

    def validate_update(self, ctx: Context, new: OpenObject, old: OpenObject) -> Iterator[FieldError]:
        found = list(super().validate_update(ctx, new, old))
        return iter(found or self._hooked.validate(ctx, new, old, _STATUS))


class Admission(Inquiry[OpenObject]):
    """The Inquiry that calls `admit` hooks."""

    def __init__(self, hooked: Hooked, subresource: str, services: Services) -> None:
        self._hooked = hooked
        self._subresource = subresource
        self._services = services

    async def look_up(self, ctx: Context, new: OpenObject, old: OpenObject | None) -> None:
        """Call the hooks; see Inquiry."""
        await self._hooked.admit(ctx, new, old, self._services, self._subresource)


class AfterWrite(Allocator[OpenObject]):
    """The Allocator that calls `after_write` hooks; it reserves nothing."""

    def __init__(self, hooked: Hooked, subresource: str, services: Services) -> None:
        self._hooked = hooked
        self._subresource = subresource
        self._services = services

    async def allocate(
        self, ctx: Context, new: OpenObject, old: OpenObject | None
    ) -> Callable[[bool], Awaitable[None] | None]:
        """Return the function that calls the hooks; see Allocator."""
        operation = CREATE if old is None else UPDATE

        def finish(stored: bool) -> Awaitable[None] | None:
            if not stored:
                return None
            return self._hooked.after_write(ctx, new, old, operation, self._services, self._subresource)

        return finish

    async def release(self, ctx: Context, obj: OpenObject) -> None:
        """Call the hooks for a deleted object; see Allocator."""
        await self._hooked.after_write(ctx, obj, obj, DELETE, self._services, "")
