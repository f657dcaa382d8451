"""Server-side apply: merges an applied configuration into an object and updates the field ownership.

Follows apimachinery `util/managedfields/internal` and structured-merge-diff `merge.Updater.Apply`.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from steersman.api.meta.v1 import ManagedFieldsEntry
from steersman.machinery.codec.json_syntax import MAX_DEPTH_TEXT
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.status import StatusError, bad_request, plain_internal
from steersman.machinery.identity.schema import GroupVersionError, GroupVersionKind, parse_group_version

from .conflicts import ApplyConflicts
from .field_set import FieldSet, contains, difference, intersection, paths, recursive_difference, set_of
from .last_applied import KUBECTL, allowed_conflicts, last_applied, with_last_applied
from .managers import (
    APPLY,
    Managed,
    ManagedFieldsError,
    ManagerKey,
    Managers,
    decode_managers,
    encode_managers,
    manager_key,
    strip_identity,
)
from .pruning import are_all_in, prune
from .schema import Schema
from .spec_merges import Merging, merge_specs, texts_of, weight_of_merge, without_spec
from .tracker import FieldManager, managed_fields_of
from .typed_error import TypedError
from .typed_value import validate, validate_lists

Plain = dict[str, Any]

BEFORE_FIRST_APPLY: Final = "before-first-apply"


class Applied(Struct, frozen=True):
    """The result of an apply: the object as plain data in the request's version, without managedFields, and its
    entries.

    `obj` is None if nothing but the entries may have changed. It is not defaulted yet.
    """

    obj: Plain | None
    entries: list[ManagedFieldsEntry]


class Applier:
    """Server-side apply to one resource, or to one of its subresources, in one version."""

    __slots__ = ("fields", "kind")

    def __init__(self, fields: FieldManager) -> None:
        self.fields = fields
        self.kind: GroupVersionKind = fields.kind.gvk
        """The kind that applied configurations must have."""

    def apply(self, live: Any, patch: Plain, manager: str, time: str, *, force: bool = False) -> Applied:
        """Apply `patch` to `live`, which is an empty object of the kind for a create.

        Raises StatusError: 400 for a patch of another kind, 409 for conflicts unless forced, 500 for an object that
        does not fit the schema.
        """
        self._check(patch)
        whole = {**self.fields.owned(live), "kind": self.kind.kind, "apiVersion": self.fields.api_version}
        try:
            managers = decode_managers(managed_fields_of(live))
        except ManagedFieldsError as error:
            raise plain_internal(f"failed to decode managed fields: {error}") from None
        if not managers:
            managers = self._owner_before(live, whole, time)
        merging = self._validated(patch, whole, is_plain=isinstance(live, dict) or self.fields.kind.is_open)
        try:
            applied, obj = self._with_last_applied(merging, managers, manager, time, force=force)
        except ApplyConflicts as conflicts:
            raise conflicts.status() from None
        except RecursionError:
            raise plain_internal(f"failed to merge config: {MAX_DEPTH_TEXT}") from None
        except ValueError as error:
            raise plain_internal(f"failed to merge config: {error}") from None
        if manager == KUBECTL and last_applied(obj or whole):
            obj = with_last_applied(obj or whole, patch)
        return Applied(obj, encode_managers(applied))

    def _check(self, patch: Plain) -> None:
        kind = _kind_of(patch)
        if kind != self.kind:
            raise bad_request(f"invalid object type: {kind}")
        if _has_managed_fields(patch):
            raise bad_request("metadata.managedFields must be nil")

    def _validated(self, patch: Plain, live: Plain, *, is_plain: bool) -> Merging:
        """Validate a configuration and the live object, and return them with the merge of their specs.

        Specs whose merge is cached were valid. Raises StatusError 500.
        """
        fields = self.fields
        root, merges = fields.schema.root, fields.spec_merges
        texts = texts_of(root, live, patch)
        known = None if texts is None else merges[texts]
        if known is not None:
            self._validate(without_spec(patch), without_spec(live), is_plain=is_plain)
            return Merging(live, patch, known)
        self._validate(patch, live, is_plain=is_plain)
        if texts is None:
            return Merging(live, patch)
        try:
            made = merge_specs(root, live, patch, fields.is_same)
        except (ValueError, RecursionError):  # the merge of the whole objects will raise it, too
            return Merging(live, patch)
        merges.keep(texts, made, weight_of_merge(texts))
        return Merging(live, patch, made)

    def _validate(self, patch: Plain, live: Plain, *, is_plain: bool) -> None:
        root = self.fields.schema.root
        try:
            validate(root, patch)
        except (TypedError, RecursionError) as error:
            raise self._untyped("patch", patch, error) from None
        try:
            if is_plain:
                validate(root, live, allow_duplicates=True)
            else:
                validate_lists(root, live)
        except (TypedError, RecursionError) as error:
            raise self._untyped("live", live, error) from None

    def _untyped(self, what: str, obj: Plain, error: Exception) -> StatusError:
        return plain_internal(f"failed to create typed {what} object ({self.described(obj)}): {_told(error)}")

    def described(self, obj: Plain) -> str:
        """Return the name of an object for messages: `NAMESPACE/NAME; GROUP/VERSION, Kind=KIND`."""
        metadata = obj.get("metadata")
        named = metadata if isinstance(metadata, dict) else {}
        namespace, name = (text if isinstance(text := named.get(key), str) else "" for key in ("namespace", "name"))
        return f"{namespace}/{name}; {self.kind}"

    def _owner_before(self, live: Any, whole: Plain, time: str) -> Managers:
        """Return one manager that owns all present fields, for the first apply to an object without entries.

        Raises StatusError 500 for an object that does not fit its schema.
        """
        if self.fields.kind.is_open:
            try:
                validate(self.fields.schema.root, whole, allow_duplicates=True)
            except (TypedError, RecursionError) as error:
                text = f"failed to convert new object ({self.described(whole)}) to smd typed: {_told(error)}"
                raise plain_internal(f"failed to create manager for existing fields: {text}") from None
        return self.fields.new_manager_of_changes(
            {**_type_of(whole), **self.fields.kind.empty}, whole, BEFORE_FIRST_APPLY, time
        )

    def _with_last_applied(
        self, merging: Merging, managers: Managers, manager: str, time: str, *, force: bool
    ) -> tuple[Managers, Plain | None]:
        """Apply the configuration; kubectl's conflicts are forced where the annotation of client-side apply shows that kubectl
        owns them.

        Raises ApplyConflicts.
        """
        try:
            return self._apply(merging, managers, manager, time, force=force)
        except ApplyConflicts as conflicts:
            allowed: FieldSet = {}
            if manager == KUBECTL:
                allowed = allowed_conflicts(self.fields.schema, merging.live, self.fields.api_version)
            if not allowed:
                raise
            rest = {key: _beyond(fields, allowed) for key, fields in conflicts.fields.items()}
            if any(rest.values()):
                raise ApplyConflicts({key: fields for key, fields in rest.items() if fields}) from None
            return self._apply(merging, managers, manager, time, force=True)

    def _apply(
        self, merging: Merging, managers: Managers, manager: str, time: str, *, force: bool
    ) -> tuple[Managers, Plain | None]:
        live, api_version = merging.live, self.fields.api_version
        key = manager_key(manager, APPLY, api_version, self.fields.subresource)
        try:
            managers = self.fields.reconciled(managers, live)
        except TypedError as error:  # the live object, in the version of another manager, has an error
            raise plain_internal(str(error)) from None
        merged, fields = merging.merged(self.fields.schema.root)
        last = managers.get(key)
        resets = self.fields.resets.get(api_version)
        if resets is not None:
            fields = recursive_difference(fields, resets)
        owned = strip_identity(fields)
        mine = Managed(owned, api_version, None)
        if last is not None:
            if last.fields == owned and are_all_in(api_version, *managers.values()):
                mine = last  # most applies set the same fields as before
            else:
                managers[key] = Managed(fields, api_version, last.time)
                merged = self._pruned(merged, managers, last, fields) if last.fields else merged
                mine = Managed(owned, api_version, last.time)
            del managers[key]
        managers = self._settled(managers, merging, merged, force=force)
        is_changed = merged is not live and not self.fields.is_same(merged, live)
        if owned:
            managers[key] = mine.with_time(time) if is_changed else mine
        return managers, merged if is_changed else None

    def _pruned(self, merged: Plain, managers: Managers, last: Managed, fields: FieldSet) -> Plain:
        try:
            return prune(merged, managers, last, fields, self.fields.api_version, self._convert)
        except DecodeError as error:
            why = "failed to convert merged object to last applied version: unable to convert unstructured object to"
            raise plain_internal(f"failed to prune fields: {why} {self.kind}: {error}") from None

    def _settled(self, managers: Managers, merging: Merging, merged: Plain, *, force: bool) -> Managers:
        """Return the other managers after the merge. Raises ApplyConflicts if they own changed fields, unless forced."""
        try:
            own = self.fields.compare(merging.live, merged, merging.of_spec)
            comparisons = self.fields.comparisons(managers, merged, merging.live, own)
        except TypedError as error:
            raise plain_internal(str(error)) from None
        if not force:
            conflicts: dict[ManagerKey, FieldSet] = {}
            for each, managed in managers.items():
                comparison = comparisons[managed.api_version]
                taken = None if comparison is None else intersection(managed.fields, comparison.changed)
                if taken:
                    conflicts[each] = taken
            if conflicts:
                raise ApplyConflicts(conflicts)
        return self.fields.transfer(managers, comparisons)

    def _convert(self, obj: Plain, api_version: str) -> tuple[Schema, Plain] | None:
        if obj.get("apiVersion") == api_version and api_version == self.fields.api_version:
            return self.fields.schema, obj
        converted = self.fields.convert(obj, api_version)
        return None if converted is None else (converted[0].schema, converted[1])


def _told(error: Exception) -> str:
    return MAX_DEPTH_TEXT if isinstance(error, RecursionError) else str(error)


def _type_of(obj: Plain) -> Plain:
    return {name: obj[name] for name in ("apiVersion", "kind")}


def _kind_of(patch: Plain) -> GroupVersionKind:
    api_version, kind = patch.get("apiVersion"), patch.get("kind")
    try:
        version = parse_group_version(api_version if isinstance(api_version, str) else "")
    except GroupVersionError:
        return GroupVersionKind("", "", "")
    return version.with_kind(kind if isinstance(kind, str) else "")


def _has_managed_fields(patch: Plain) -> bool:
    """Return True if the patch has a list of managedFields entries, even an empty one.

    Malformed entries are left to the schema, which refuses them.
    """
    metadata = patch.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    return isinstance(entries, list) and (not entries or bool(managed_fields_of(patch)))


def _beyond(fields: FieldSet, allowed: FieldSet) -> FieldSet:
    """Return the fields that are not among the allowed ones."""
    if not difference(fields, allowed):
        return {}
    return set_of(path for path in paths(fields) if not contains(allowed, path))
