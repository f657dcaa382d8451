"""Ratcheting: invalid values that an update of a definition may keep.

Follows apiextensions.k8s.io `ValidateCustomResourceDefinitionUpdate` and its inspection of the old object.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from steersman.api.apiextensions.v1 import CustomResourceDefinition
from steersman.machinery.errors.field import Path
from steersman.registry.apiextensions.conditions import is_established
from steersman.registry.apiextensions.conversion_validation import client_config, review_versions
from steersman.registry.apiextensions.internal import InternalSpec, equal_as_json
from steersman.registry.apiextensions.selectable_fields import MAX_SELECTABLE_FIELDS
from steersman.registry.validation.webhook_clients import are_supported, validate_ca_bundle
from steersman.schema import SchemaChecks


@dataclass(frozen=True, slots=True)
class Allowance:
    """The rules to which a definition is held; the defaults are those for a new definition."""

    checks: SchemaChecks = field(default_factory=SchemaChecks)
    requires_schemas: bool = True
    any_review_version: bool = False
    any_ca_bundle: bool = True
    """True for a definition that is not established yet."""
    is_established: bool = False
    """True if the kind and the scope are in use and so immutable."""
    unlimited_fields: frozenset[str] = frozenset()
    """Versions that may exceed the limit of selectable fields; "" stands for the shared fields."""
    unchanged_schemas: frozenset[str] = frozenset()
    """Versions whose schema has not changed."""
    old: InternalSpec | None = None


NEW = Allowance()


def allowance_of_update(new: InternalSpec, definition: CustomResourceDefinition) -> Allowance:
    """Return the rules for an update of the stored `definition`."""
    old = InternalSpec(definition.spec)
    return Allowance(
        checks=SchemaChecks.of_update(old.schemas.values),
        requires_schemas=_has_schemas(old),
        any_review_version=not are_supported(review_versions(definition.spec.conversion)),
        any_ca_bundle=_has_any_ca_bundle(definition),
        is_established=is_established(definition),
        unlimited_fields=frozenset(_unlimited_fields(new, old)),
        unchanged_schemas=frozenset(_unchanged_schemas(new, old)),
        old=old,
    )


def _has_schemas(old: InternalSpec) -> bool:
    return old.schemas.common is not None or all(schema is not None for schema in old.schemas.own)


def _has_any_ca_bundle(definition: CustomResourceDefinition) -> bool:
    if not is_established(definition):
        return True
    config = client_config(definition)
    if config is None or not config.ca_bundle:
        return False
    return any(validate_ca_bundle(config.ca_bundle, Path("caBundle")))


def _unlimited_fields(new: InternalSpec, old: InternalSpec) -> Iterator[str]:
    now, before = new.selectable_fields, old.selectable_fields
    if len(before.common or ()) > MAX_SELECTABLE_FIELDS and equal_as_json(now.common, before.common):
        yield ""
    old_fields = {version.name: fields for version, fields in zip(old.versions, before.own, strict=True)}
    for version, fields in zip(new.versions, now.own, strict=True):
        was = old_fields.get(version.name)
        if was is not None and len(was) > MAX_SELECTABLE_FIELDS and equal_as_json(fields, was):
            yield version.name


def _unchanged_schemas(new: InternalSpec, old: InternalSpec) -> Iterator[str]:
    for version in new.versions:
        is_new, now = new.validation_of(version.name)
        is_old, before = old.validation_of(version.name)
        if is_new and is_old and equal_as_json(now, before):
            yield version.name
