"""The strategies of custom resources.

Follows k8s.io/apiextensions-apiserver `pkg/registry/customresource` (strategy.go, status_strategy.go, validator.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from steersman.apiextensions.scale import scale_errors
from steersman.apiextensions.version import Version
from steersman.kinds.open import OpenObject
from steersman.machinery.errors.field import FieldError, Path, quote, required
from steersman.machinery.errors.status import forbidden
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.managed_fields import same
from steersman.machinery.validation.formats import is_qualified_name
from steersman.machinery.validation.object_meta import STANDARD_FINALIZERS
from steersman.rest.context import Context
from steersman.rest.strategy import Strategy
from steersman.schema import Correlated, blocks_rules
from steersman.work.offloading import can_move_to_thread, ensure_offloaded

_STATUS: Final = "status"
_EVENT_LOOP_BUDGET: Final = 5_000
"""The cost budget of rules on the event loop, equal to some milliseconds."""


class Lifecycle:
    """The lifecycle of a definition, shared by all its generations."""

    def __init__(self) -> None:
        self.is_ending = False


class Versions:
    """The versions of a definition, its storage version and its lifecycle."""

    def __init__(self, versions: Sequence[Version], stored: Version, plural: str) -> None:
        self._plural = plural
        self.every = versions
        self._by_name = {each.declared.name: each for each in versions}
        self.stored = stored
        self.lifecycle = Lifecycle()

    def for_request(self, ctx: Context) -> Version:
        """Return the version of a request; the storage version for writes of the server itself."""
        return self.get(ctx.action.version)

    def get(self, version: str) -> Version:
        """Return the version of this name, the storage version if there is none."""
        return self._by_name.get(version, self.stored)

    def cool(self) -> None:
        """Drop everything compiled.

        Compiled schemas contain reference cycles, so they would stay until a garbage collection, which takes time in
        proportion to their size.
        """
        for each in self.every:
            each.rules = None
            each.kind.cool()

    def check_create(self, name: str) -> None:
        """Raise StatusError 403 if the definition is terminating."""
        if self.lifecycle.is_ending:
            resource = GroupResource(self.stored.kind.group, self._plural)
            raise forbidden(resource, name, "create not allowed while custom resource definition is terminating")


class CustomResourceStrategy(Strategy[OpenObject]):
    """The strategy of the objects of one definition; updates are validated in the version of the request."""

    allow_unconditional_update = False
    metadata_on_update = "twice"

    def __init__(self, versions: Versions) -> None:
        self._versions = versions

    def resets_in(self, version: str) -> tuple[str, ...]:
        return ("status",) if self._versions.get(version).declared.has_status else ()

    def prepare_for_create(self, ctx: Context, obj: OpenObject) -> None:
        self._versions.check_create(obj.metadata.name)
        if self._versions.for_request(ctx).declared.has_status:
            obj.content.pop(_STATUS, None)
        obj.metadata.generation = 1

    def check_stored(self, ctx: Context, obj: OpenObject) -> None:
        """Check the lifecycle again right before the object is stored.

        The definition may have been terminated during validation. An object stored now would survive the deletion of
        all others, and appear again in the next definition of this name.
        """
        self._versions.check_create(obj.metadata.name)

    def prepare_for_update(self, ctx: Context, new: OpenObject, old: OpenObject) -> None:
        version = self._versions.for_request(ctx)
        before = old.content
        if version.declared.has_status:
            new.content.pop(_STATUS, None)
            if _STATUS in before:
                new.content[_STATUS] = before[_STATUS]
        if not same(new.content, before):
            new.metadata.generation = old.metadata.generation + 1

    def validate(self, ctx: Context, obj: OpenObject) -> Iterator[FieldError]:
        version = self._versions.for_request(ctx)
        structural, plain = version.kind.structural, version.kind.whole(obj)
        errors = structural.validate(plain)
        errors += scale_errors(version.declared, obj.content)
        errors += structural.validate_embedded(plain)
        errors += structural.validate_lists(plain)
        # The store validates the name with the metadata, but no rule is evaluated for an object without a name.
        lacking = () if obj.metadata.name else (required(Path("metadata", "name"), ""),)
        return self._with_rules(ctx, version, errors, plain, None, None, lacking)

    def warnings_on_create(self, ctx: Context, obj: OpenObject) -> Iterator[str]:
        return finalizer_warnings(obj.metadata.finalizers)

    def warnings_on_update(self, ctx: Context, new: OpenObject, old: OpenObject) -> Iterator[str]:
        if not new.metadata.finalizers:
            return iter(())
        return finalizer_warnings(set(new.metadata.finalizers).difference(old.metadata.finalizers))

    def validate_update(self, ctx: Context, new: OpenObject, old: OpenObject) -> Iterator[FieldError]:
        version = self._versions.for_request(ctx)
        kind = version.kind
        plain, before = kind.whole(new), kind.whole(old)
        correlated = kind.structural.correlate(plain, before)
        errors = self._schema_errors(version, new, plain, before, correlated)
        return self._with_rules(ctx, version, errors, plain, before, correlated)

    def _schema_errors(
        self, version: Version, new: OpenObject, plain: dict[str, Any], before: dict[str, Any], correlated: Correlated
    ) -> list[FieldError]:
        structural = version.kind.structural
        errors = structural.validate_update(plain, before, correlated=correlated)
        errors += scale_errors(version.declared, new.content)
        errors += structural.validate_embedded(plain)
        errors += structural.validate_lists(plain, before)
        return errors

    def _with_rules(
        self,
        ctx: Context,
        version: Version,
        errors: list[FieldError],
        plain: dict[str, Any],
        before: dict[str, Any] | None,
        correlated: Correlated | None,
        others: Iterable[FieldError] = (),
    ) -> Iterator[FieldError]:
        """Yield the errors and those of the rules, unless `errors` or `others` prevent the evaluation of rules."""
        if not version.kind.structural.has_rules:
            return iter(errors)
        blocked = blocks_rules([*errors, *others])
        if blocked is not None:
            return iter([*errors, blocked])
        is_here = can_move_to_thread()
        rules = version.rules
        if rules is None:
            ensure_offloaded()
            rules = version.compile_rules()
        evaluation = rules.evaluate(
            plain, before, budget=_EVENT_LOOP_BUDGET if is_here else None, correlated=correlated
        )
        if is_here and evaluation.budget < 0:
            ensure_offloaded()
        ctx.warn_all(evaluation.warnings)
        return iter(errors + evaluation.errors)


class StatusStrategy(CustomResourceStrategy):
    """The strategy of `/status`: keeps everything but the status and managedFields."""

    def resets_in(self, version: str) -> tuple[str, ...]:
        return ("metadata", "spec")

    def prepare_for_update(self, ctx: Context, new: OpenObject, old: OpenObject) -> None:
        content = dict(old.content)
        content.pop(_STATUS, None)
        if _STATUS in new.content:
            content[_STATUS] = new.content[_STATUS]
        new.content = content
        entries = new.metadata.managed_fields
        new.metadata = msgspec.structs.replace(old.metadata)
        new.metadata.managed_fields = entries

    def warnings_on_update(self, ctx: Context, new: OpenObject, old: OpenObject) -> Iterator[str]:
        return iter(())

    def _schema_errors(
        self, version: Version, new: OpenObject, plain: dict[str, Any], before: dict[str, Any], correlated: Correlated
    ) -> list[FieldError]:
        structural = version.kind.structural
        errors = structural.validate_status(plain, before, correlated=correlated)
        errors += scale_errors(version.declared, new.content, of_status=True)
        errors += structural.validate_lists(plain, before)
        return errors


_PREFER: Final = "prefer a domain-qualified finalizer name{} to avoid accidental conflicts with other finalizer writers"


def finalizer_warnings(finalizers: Iterable[str]) -> Iterator[str]:
    """Yield warnings about the names of new finalizers."""
    for name in sorted(set(finalizers)):
        texts = list(is_qualified_name(name))
        if "/" not in name and name not in STANDARD_FINALIZERS:
            texts.append(_PREFER.format(" including a path (/)" if "." in name else ""))
        yield from (f"metadata.finalizers: {quote(name)}: {text}" for text in texts)
