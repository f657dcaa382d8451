"""Field ownership: managedFields on every write (k8s.io/apimachinery `util/managedfields`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final

import msgspec

from steersman.api.meta.v1 import ManagedFieldsEntry
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.kinds.kind import Kind
from steersman.kinds.open import OpenObject
from steersman.machinery.managed_fields import (
    VIEWS,
    Applier,
    Convert,
    FieldManager,
    FieldSet,
    ManagedFieldsError,
    OwnedKind,
    TypedError,
    Version,
    VersionConverter,
    decode_managers,
    fields_at,
    fits,
    manager_name,
    one_version_only,
    to_parent,
    to_scale,
)
from steersman.machinery.values import times
from steersman.rest.conversion import Conversion
from steersman.rest.resource import Resource, Subresource

_STATUS: Final = "status"
_INVALID_OWNERS: Final = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating "
    "admission controller; please fix your requests: {}"
)
_DUPLICATES: Final = (
    ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner references in 1.20+, and may "
    "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}"
)


def keep_valid_owners(request: Request, obj: Any, before: list[ManagedFieldsEntry]) -> None:
    """Restore the managedFields of an object, with a warning, if an admission plugin has made them malformed.

    Follows apiserver `endpoints/handlers/fieldmanager.NewManagedFieldsValidatingAdmissionController`.
    """
    if obj.metadata.managed_fields == before:
        return
    try:
        decode_managers(obj.metadata.managed_fields)
    except ManagedFieldsError as error:
        obj.metadata.managed_fields = before
        request.warnings.append(_INVALID_OWNERS.format(error))


def field_manager(scope: Scope, subresource: str) -> FieldManager:
    """Return the field manager of a resource, or one of its subresources, in the version of `scope`."""
    found = scope.field_managers.get(subresource)
    if found is None:
        found = scope.field_managers[subresource] = _field_manager(scope.resource, scope.kind, subresource)
    return found


def stored_field_manager(resource: Resource[Any], subresource: str) -> FieldManager:
    """Return the field manager for writes of the server itself, which use the stored version."""
    return _field_manager(resource, resource.kind, subresource)


def _field_manager(resource: Resource[Any], kind: Kind[Any], subresource: str) -> FieldManager:
    version = resource.versions.get(kind.gvk)
    below = None if version is None else version.subresources
    return FieldManager(
        kind,
        subresource,
        _resets(resource, kind, subresource, resource.subresources if below is None else below),
        _converter(resource, kind),
        VIEWS.get((kind.group, resource.plural)),
    )


def _resets(
    resource: Resource[Any], kind: Kind[Any], subresource: str, below: Sequence[Subresource[Any]]
) -> Mapping[str, FieldSet]:
    """Return the fields that a write to a resource or subresource resets, by version.

    For a custom resource, only those of the version written.
    """
    group = kind.group
    versions = (
        [kind] if resource.by_definition else [each.kind for each in resource.versions.values() if each.group == group]
    )
    strategies = {"": resource.strategy, **{each.name: each.strategy for each in below}}
    strategy = strategies.get(subresource)
    resets = () if strategy is None else strategy.resets_in(kind.version)
    return dict.fromkeys((each.api_version for each in versions), fields_at(*resets)) if resets else {}


def applier_of(scope: Scope, subresource: str) -> Applier:
    """Return the applier for a resource, or one of its subresources, in the version of `scope`."""
    return Applier(scope.field_managers.get(subresource) or field_manager(scope, subresource))


def _converter(resource: Resource[Any], kind: Kind[Any]) -> Convert:
    """Return the converter between the versions of one group; entries written in another group, as for events, get no
    owner.
    """
    if resource.by_definition:
        return partial(_of_definition, _converter_of_all(resource, kind))
    return _converter_of_all(resource, kind)


def _of_definition(convert: Convert, obj: Any, api_version: str) -> tuple[OwnedKind, Any]:
    """Convert an object of a definition. Raises TypedError for a version that the definition no longer has.

    As upstream, an apply reports the error, and another write loses the owners.
    """
    found = convert(obj, api_version)
    if found is None:
        raise TypedError(f"request to convert CR to an invalid group/version: {api_version}")
    return found


def _converter_of_all(resource: Resource[Any], kind: Kind[Any]) -> Convert:
    if resource.conversion is not None:  # among all there are, those too that are served no more
        return _ready_converter(resource.conversion, kind)
    if not resource.other_versions:
        return one_version_only
    versions = {
        each.kind.api_version: Version(each.kind, each.to_hub, each.from_hub)
        for each in resource.versions.values()
        if each.group == kind.group
    }
    return VersionConverter(kind.api_version, versions)


def _ready_converter(conversion: Conversion, kind: Kind[Any]) -> Convert:
    def convert(obj: Any, source: Version, target: Version) -> Any:
        if conversion.renames:
            return obj
        return conversion.convert(obj, conversion.kinds[source.api_version], conversion.kinds[target.api_version])

    versions = {name: Version(each) for name, each in conversion.kinds.items()}
    return VersionConverter(kind.api_version, versions, convert)


def own_new(scope: Scope, request: Request, obj: Any, given: str) -> list[ManagedFieldsEntry]:
    """Return the entries of a new object of the request's version; `given` is the request's fieldManager."""
    subresource = request.action.subresource
    fields = scope.field_managers.get(subresource) or field_manager(scope, subresource)
    if scope.resource.by_definition and not _has_types(scope, fields, obj, None):
        return []
    written = obj if scope.other is None else _by_hub(scope, obj)
    return fields.create(written, manager_name(given, request.headers.get("user-agent", "")), times.now())


def own_changed(scope: Scope, request: Request, new: Any, old: Any, given: str) -> list[ManagedFieldsEntry]:
    """Return the entries of an object that is to replace `old`, both of the request's version."""
    subresource = request.action.subresource
    fields = scope.field_managers.get(subresource) or field_manager(scope, subresource)
    if scope.resource.by_definition and not _has_types(scope, fields, new, old):
        return []
    written = new if scope.other is None else _by_hub(scope, new)
    return fields.update(written, old, manager_name(given, request.headers.get("user-agent", "")), times.now())


def _has_types(scope: Scope, fields: FieldManager, obj: OpenObject, old: OpenObject | None) -> bool:
    """Return True if a write of a custom object matches the types of its schema; otherwise upstream drops the owners.

    The part that will be stored has been validated. The remaining parts may not match: those that are discarded, and
    those stored earlier in another version or under another schema.
    """
    if old is not None and not fits(fields.schema, old.content):
        return False
    of_status = bool(fields.subresource)
    before = {} if old is None else old.content
    lost = {
        name: value
        for name, value in obj.content.items()
        if (name == _STATUS) != of_status and (name not in before or before[name] != value)
    }
    return not lost or fits(fields.schema, lost)


def _by_hub(scope: Scope, obj: Any) -> Any:
    """Return an object as it looks after conversion to the stored version and back; ownership is computed from that."""
    assert scope.other is not None
    return scope.other.from_hub(scope.other.to_hub(obj))


def own_action(request: Request, kind: Kind[Any], obj: Any, given: str) -> list[ManagedFieldsEntry]:
    """Return the entries of an object that is POSTed to a subresource and has the subresource's own `kind`."""
    return _action_manager(kind, request.action.subresource).create(
        obj, manager_name(given, request.headers.get("user-agent", "")), times.now()
    )


@lru_cache(maxsize=64)
def _action_manager(kind: Kind[Any], subresource: str) -> FieldManager:
    return FieldManager(kind, subresource)


def show_in_view(scope: Scope, parent: Any, view: Any) -> None:
    """Set the entries of a Scale: those of the owners of the number of replicas in its parent."""
    view.metadata.managed_fields = to_scale(parent.metadata.managed_fields, scope.replicas_paths)


def own_view(
    scope: Scope, request: Request, kind: Kind[Any], parent: Any, view: Any, before: Any, given: str, is_applied: bool
) -> None:
    """Set the entries of a Scale that is to be written, and of the previous one, as admission sees them.

    The Scale of an apply has its entries already.
    """
    show_in_view(scope, parent, before)
    if not is_applied:
        view.metadata.managed_fields = _view_manager(kind).update(
            view, before, manager_name(given, request.headers.get("user-agent", "")), times.now()
        )


def own_by_view(scope: Scope, parent: Any, view: Any) -> None:
    """Record the owners of the number of replicas in the parent after a write of the Scale."""
    own = parent.metadata
    entries = view.metadata.managed_fields
    own.managed_fields = to_parent(own.managed_fields, entries, scope.api_version, scope.replicas_paths)


@lru_cache(maxsize=16)
def view_applier(kind: Kind[Any]) -> Applier:
    """Return the applier for a Scale."""
    return Applier(_view_manager(kind))


@lru_cache(maxsize=16)
def _view_manager(kind: Kind[Any]) -> FieldManager:
    return FieldManager(kind, "scale")


def deduplicate_owners(request: Request, obj: Any, *, after_admission: bool) -> None:
    """Drop duplicate owner references, with a warning."""
    references = obj.metadata.owner_references
    if len(references) < 2:
        return
    kept: dict[tuple[Any, ...], Any] = {}
    duplicates = []
    for each in references:
        if kept.setdefault(msgspec.structs.astuple(each), each) is not each:
            duplicates.append(each.uid)
    if duplicates:
        when = " after mutating admission happens" if after_admission else ""
        request.warnings.append(_DUPLICATES.format(when, ", ".join(duplicates)))
        obj.metadata.owner_references = list(kept.values())
