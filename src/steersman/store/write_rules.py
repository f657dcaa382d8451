"""Preparation and validation before every write: the strategy's hooks in their order, and the rules for all kinds.

Follows k8s.io/apiserver `registry/rest/{create,update}.go`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Generic, TypeVar

from steersman.kinds.kind import Kind
from steersman.machinery.errors import field
from steersman.machinery.errors import status as errors
from steersman.machinery.managed_fields import differ_in_times_only
from steersman.machinery.validation.object_meta import (
    name_is_path_segment,
    validate_new_metadata,
    validate_object_meta,
    validate_object_meta_update,
    validate_standard_finalizers,
)
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.rest.strategy import Strategy
from steersman.store import metadata

T = TypeVar("T")

META: Final = field.Path("metadata")


class WriteRules(Generic[T]):
    """Preparation and validation of a resource's objects; the base class of its stores."""

    resource: Resource[T]
    kind: Kind[T]
    strategy: Strategy[T]

    def before_create(self, ctx: Context, obj: T) -> None:
        """Prepare and validate a new object by the strategy's hooks and the rules for all kinds. Raises StatusError."""
        strategy = self.strategy
        meta: Any = obj.metadata  # type: ignore[attr-defined]
        metadata.match_namespace(meta, ctx.action.namespace if self.resource.namespaced else "")
        strategy.prepare_for_create(ctx, obj)
        does = strategy.does
        is_last = "validates_metadata_last" in does and strategy.validates_metadata_last(ctx)
        errors_found = [] if is_last else list(self._validate_new_metadata(obj, meta))
        errors_found += field.first_errors(strategy.validate(ctx, obj))
        if is_last and not errors_found:
            errors_found = list(self._validate_new_metadata(obj, meta))
        if errors_found:
            raise errors.invalid(self.resource.group_kind, meta.name, errors_found)
        if "warnings_on_create" in does:
            ctx.warn_all(strategy.warnings_on_create(ctx, obj))
        if "canonicalize" in does:
            strategy.canonicalize(obj)

    def _validate_new_metadata(self, obj: T, meta: Any, *, names_only: bool = False) -> Iterator[field.FieldError]:
        resource = self.resource
        judge = resource.name_validator_of
        return validate_new_metadata(
            meta,
            namespaced=resource.namespaced,
            name_validator=resource.name_validator if judge is None else judge(obj),
            names_only=names_only,
            any_finalizers=resource.any_finalizers,
        )

    def before_update(self, ctx: Context, new: Any, old: Any, strategy: Strategy[T]) -> None:
        """Prepare and validate an update by the strategy's hooks and the rules for all kinds. Raises StatusError."""
        metadata.match_namespace(new.metadata, ctx.action.namespace if self.resource.namespaced else "")
        new.metadata.generation = old.metadata.generation
        strategy.prepare_for_update(ctx, new, old)
        metadata.keep_system_fields(new.metadata, old.metadata)
        errors_found = list(
            validate_object_meta(
                new.metadata, namespaced=self.resource.namespaced, name_validator=name_is_path_segment, path=META
            )
        )
        is_valid = not errors_found
        changed = list(validate_object_meta_update(new.metadata, old.metadata, META, is_valid=is_valid))
        errors_found += changed
        if strategy.metadata_on_update != "once":
            errors_found += changed
        if new.metadata.finalizers and strategy.metadata_on_update == "finalizers":
            errors_found += validate_standard_finalizers(new.metadata.finalizers, META / "finalizers")
        if self.resource.revalidates_metadata and strategy is self.strategy:
            errors_found += self._validate_new_metadata(new, new.metadata, names_only=is_valid)
        errors_found += field.first_errors(strategy.validate_update(ctx, new, old))
        if errors_found:
            raise errors.invalid(self.resource.group_kind, new.metadata.name, errors_found)
        if "warnings_on_update" in strategy.does:
            ctx.warn_all(strategy.warnings_on_update(ctx, new, old))
        if "canonicalize" in strategy.does:
            strategy.canonicalize(new)
        if differ_in_times_only(new.metadata.managed_fields, old.metadata.managed_fields):
            _keep_times(self.kind, new, old)


def _keep_times(kind: Kind[Any], new: Any, old: Any) -> None:
    """Restore the old managedFields if an update changes nothing but their times, so that it changes nothing."""
    entries, new.metadata.managed_fields = new.metadata.managed_fields, old.metadata.managed_fields
    if kind.value(new) != kind.value(old):
        new.metadata.managed_fields = entries
