"""Validation of CustomResourceDefinitions (apiextensions.k8s.io `apis/apiextensions/validation/validation.go`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from steersman.api.apiextensions.v1 import (
    CustomResourceDefinition,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion,
    CustomResourceSubresources,
)
from steersman.machinery.errors.field import FieldError, Path, invalid, required, too_many
from steersman.machinery.validation.formats import is_dns1035_label, is_dns1123_subdomain
from steersman.machinery.validation.leaves import validate_choice, validate_immutable
from steersman.registry.apiextensions.approval import validate_approval
from steersman.registry.apiextensions.conversion_validation import NONE, validate_conversion
from steersman.registry.apiextensions.format_warnings import parts
from steersman.registry.apiextensions.internal import InternalSpec, PlainSchema
from steersman.registry.apiextensions.names import require_names, validate_names
from steersman.registry.apiextensions.printing import versions_text
from steersman.registry.apiextensions.ratcheting import NEW, Allowance, allowance_of_update
from steersman.registry.apiextensions.selectable_fields import validate_selectable_fields
from steersman.registry.apiextensions.version_validation import (
    validate_column,
    validate_deprecation,
    validate_subresources,
)
from steersman.schema import RuleValidator, has_defaults, has_extensions, schema_errors
from steersman.work.threads import give_way

SCOPES: Final = ("Cluster", "Namespaced")

MAX_VERSIONS: Final = 100
"""Limit of versions, which upstream lacks: each version has its own paths, APIService and OpenAPI document."""

_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")
_STORED: Final = _STATUS / "storedVersions"
_PRESERVE: Final = _SPEC / "preserveUnknownFields"


def validate_definition(definition: CustomResourceDefinition) -> Iterator[FieldError]:
    """Validate a new definition. The store validates the metadata."""
    internal = InternalSpec(definition.spec)
    yield from _SpecValidation(internal, NEW).errors()
    yield from _validate_the_rest(definition, None)


def validate_definition_update(new: CustomResourceDefinition, old: CustomResourceDefinition) -> Iterator[FieldError]:
    """Validate the update of a definition."""
    internal = InternalSpec(new.spec)
    allowance = allowance_of_update(internal, old)
    yield from _SpecValidation(internal, allowance).errors()
    names, old_names = new.spec.names, old.spec.names
    if allowance.is_established:
        yield from validate_immutable(new.spec.scope, old.spec.scope, _SPEC / "scope")
        yield from validate_immutable(names.kind, old_names.kind, _SPEC.child("names", "kind"))
    yield from validate_immutable(new.spec.group, old.spec.group, _SPEC / "group")
    yield from validate_immutable(names.plural, old_names.plural, _SPEC.child("names", "plural"))
    yield from _validate_the_rest(new, old)


def validate_status_update(new: CustomResourceDefinition) -> Iterator[FieldError]:
    """Validate the status of a definition: only its accepted names."""
    yield from validate_names(new.status.accepted_names, _STATUS / "acceptedNames")


def _validate_the_rest(new: CustomResourceDefinition, old: CustomResourceDefinition | None) -> Iterator[FieldError]:
    yield from validate_status_update(new)
    yield from validate_stored_versions(new.status.stored_versions, new.spec.versions or ())
    yield from validate_approval(new, old)
    if new.spec.preserve_unknown_fields and not (old is not None and old.spec.preserve_unknown_fields):
        yield invalid(
            _PRESERVE,
            True,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        )


def validate_stored_versions(
    stored: list[str] | None, versions: Sequence[CustomResourceDefinitionVersion]
) -> Iterator[FieldError]:
    """Require that every stored version is still a version, as stored objects could not be read otherwise."""
    if not stored:
        yield invalid(_STORED, stored, "must have at least one stored version")
        return
    places = {name: index for index, name in enumerate(stored)}
    for version in versions:
        if version.storage and version.name not in places:
            yield invalid(_STORED, stored, f"must have the storage version {version.name}")
        places.pop(version.name, None)
    for name, index in places.items():
        yield invalid(
            _STORED[index],
            name,
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
            f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
            "status.storedVersions",
        )


class _SpecValidation:
    """The validation of one spec in internal form, under an Allowance."""

    def __init__(self, internal: InternalSpec, allowance: Allowance) -> None:
        self._internal = internal
        self._allowance = allowance
        self._spec: CustomResourceDefinitionSpec = internal.spec
        self._checks = allowance.checks

    def errors(self) -> Iterator[FieldError]:
        """Yield all errors in upstream's order."""
        spec, allowance = self._spec, self._allowance
        if len(self._internal.versions) > MAX_VERSIONS:
            yield too_many(_SPEC / "versions", len(self._internal.versions), MAX_VERSIONS)
            return
        yield from _validate_group(spec.group, _SPEC / "group")
        yield from validate_choice(spec.scope, SCOPES, _SPEC / "scope")
        yield from self._require_schemas()
        yield from self._validate_versions()
        yield from self._count_versions()
        yield from require_names(spec.names, _SPEC / "names")
        yield from validate_names(spec.names, _SPEC / "names")
        yield from self._validate_common()
        if spec.preserve_unknown_fields and spec.conversion is not None and spec.conversion.strategy != NONE:
            detail = "must be None if spec.preserveUnknownFields is true"
            yield invalid(_SPEC.child("conversion", "strategy"), spec.conversion.strategy, detail)
        yield from validate_conversion(
            spec.conversion,
            _SPEC / "conversion",
            any_review_version=allowance.any_review_version,
            any_ca_bundle=allowance.any_ca_bundle,
        )

    def _require_schemas(self) -> Iterator[FieldError]:
        """Validate that schemas exist where required, and decide if they must be structural."""
        spec, schemas = self._spec, self._internal.schemas
        prunes = not spec.preserve_unknown_fields
        structural = self._checks.structural or prunes
        if schemas.common is None and (self._allowance.requires_schemas or prunes):
            detail = "" if self._allowance.requires_schemas else "because otherwise all fields are pruned"
            for index, (version, schema) in enumerate(zip(self._internal.versions, schemas.own, strict=True)):
                if schema is None and (version.served or self._allowance.requires_schemas):
                    yield required((_SPEC / "versions")[index].child("schema", "openAPIV3Schema"), detail)
        if any(has_defaults(schema) for schema in schemas.values):
            structural = True
            if not prunes:
                yield invalid(_PRESERVE, True, "must be false in order to use defaults in the schema")
        structural = structural or any(has_extensions(schema) for schema in schemas.values)
        if structural != self._checks.structural:
            self._checks = replace(self._checks, structural=structural)

    def _validate_versions(self) -> Iterator[FieldError]:
        internal = self._internal
        has_own = any(internal.subresources.own)
        for index, version in enumerate(internal.versions):
            give_way()
            path = (_SPEC / "versions")[index]
            if messages := is_dns1035_label(version.name):
                yield invalid(path / "name", version.name, ",".join(messages))
            yield from validate_deprecation(version, path)
            own = internal.subresources.own[index]
            subresources = own if has_own else internal.subresources.common
            yield from self._validate_schema(
                internal.schemas.own[index], path / "schema", version.name, status=_has_status(subresources)
            )
            yield from validate_subresources(own, path / "subresources")
            for at, column in enumerate(internal.columns.own[index] or ()):
                yield from validate_column(column, (path / "additionalPrinterColumns")[at])
            yield from self._validate_fields(index, path)

    def _validate_schema(
        self, schema: PlainSchema | None, path: Path, version: str, *, status: bool
    ) -> Iterator[FieldError]:
        """Validate the schema of `version`; `status` is True if there is a status subresource."""
        if schema is not None:
            yield from schema_errors(
                schema,
                path / "openAPIV3Schema",
                self._checks,
                status_enabled=status,
                rules=_rule_checker(schema, limits_each=version not in self._allowance.unchanged_schemas),
            )

    def _validate_fields(self, index: int, path: Path) -> Iterator[FieldError]:
        """Validate the selectable fields of a version that has its own."""
        fields = self._internal.selectable_fields.own[index]
        if not fields:
            return
        schema, name = self._internal.schemas.own[index], self._internal.versions[index].name
        if schema is None:
            detail = "may only be set when `version.schema.openAPIV3Schema` is not included"
            yield invalid(path / "selectableFields", "", detail)
            return
        any_number = name in self._allowance.unlimited_fields
        yield from validate_selectable_fields(fields, schema, path / "selectableFields", any_number=any_number)

    def _count_versions(self) -> Iterator[FieldError]:
        versions = self._internal.versions
        wrong = []
        if len({version.name for version in versions}) < len(versions):
            wrong.append("must contain unique version names")
        if sum(version.storage for version in versions) != 1:
            wrong.append("must have exactly one version marked as storage version")
        if wrong:
            text = versions_text(self._internal)
            yield from (invalid(_SPEC / "versions", text, message) for message in wrong)
        first = self._internal.version
        if first and (messages := is_dns1035_label(first)):
            yield invalid(_SPEC / "version", first, ",".join(messages))

    def _validate_common(self) -> Iterator[FieldError]:
        """Validate the members that all versions share."""
        internal = self._internal
        status = any(_has_status(each) for each in internal.subresources.values)
        yield from self._validate_schema(internal.schemas.common, _SPEC / "validation", internal.version, status=status)
        yield from validate_subresources(internal.subresources.common, _SPEC / "subresources")
        for index, column in enumerate(internal.columns.common or ()):
            yield from validate_column(column, (_SPEC / "additionalPrinterColumns")[index])
        fields, path = internal.selectable_fields.common, _SPEC / "selectableFields"
        if not fields:
            return
        if internal.validation.common is None:
            yield invalid(path, "", "may only be set when validations.schema is included")
        elif internal.schemas.common is not None:
            any_number = "" in self._allowance.unlimited_fields
            yield from validate_selectable_fields(fields, internal.schemas.common, path, any_number=any_number)


def _validate_group(group: str, path: Path) -> Iterator[FieldError]:
    if not group:
        yield required(path)
    elif messages := is_dns1123_subdomain(group):
        yield invalid(path, group, ",".join(messages))
    elif "." not in group:
        yield invalid(path, group, "should be a domain with at least one dot")


def _has_status(subresources: CustomResourceSubresources | None) -> bool:
    return subresources is not None and subresources.status is not None


def _rule_checker(schema: PlainSchema, *, limits_each: bool) -> RuleValidator | None:
    """Return a checker of the rules of a schema; None if it has no rules, as importing expressions is slow."""
    if not any("x-kubernetes-validations" in part for part in parts(schema)):
        return None
    from steersman.validation_rules.definition import DefinitionRules

    return DefinitionRules(limits_each=limits_each)
