"""Tracking of field ownership on every write (apimachinery `util/managedfields` FieldManager).

A writer becomes the owner of every field that it adds or changes; other managers lose the changed and removed fields.
The time of an entry changes only if its manager takes fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import eq
from typing import Any, Final, Literal, Protocol

import msgspec
from msgspec.structs import replace

from steersman.api.meta.v1 import ManagedFieldsEntry
from steersman.machinery.codec.serializer import decode_scalar
from steersman.machinery.codec.strict import Decoded
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.work.bounded_cache import BoundedCache

from .comparison import Comparison, Same, compare, same
from .field_set import FieldSet, difference, recursive_difference, union
from .fields_v1 import encode_fields
from .managers import (
    FIELDS_V1,
    RESET_MANAGERS,
    UNKNOWN,
    UPDATE,
    Managed,
    ManagedFieldsError,
    ManagerKey,
    Managers,
    cap_update_managers,
    decode_managers,
    encode_managers,
    manager_key,
    strip_identity,
)
from .outline import Outline, Outlines, struct_outline, weight_of
from .plain import Plain, differing_dicts, plain_object
from .reconcile import decode_reconciled, reconcile
from .result_cache import result_cache
from .schema import Schema
from .spec_merges import SPEC, SpecMerge, SpecMerges, joined, without_spec
from .typed_error import TypedError
from .update_cache import UpdateCache, update_inputs

_SHORT_SPEC: Final = 256
"""Bytes of the text of a spec below which its outline costs no more."""
_encode: Final = msgspec.json.Encoder().encode
_ENTRIES: Final = msgspec.json.Decoder(list[ManagedFieldsEntry], dec_hook=decode_scalar)


class OwnedKind(Protocol):
    """The operations on a kind in one version that field ownership needs (implemented by `kinds.Kind`)."""

    @property
    def gvk(self) -> GroupVersionKind:
        """Return group, version and kind."""
        ...

    @property
    def api_version(self) -> str:
        """Return the apiVersion of objects, e.g. `apps/v1`."""
        ...

    @property
    def schema(self) -> Schema:
        """Return the schema of objects, which says how lists and maps are merged."""
        ...

    @property
    def is_open(self) -> bool:
        """Return True if objects may have fields that their schema does not declare."""
        ...

    @property
    def empty(self) -> Plain:
        """Return an empty object as plain data, with which created objects are compared. It must not be changed."""
        ...

    def new(self) -> Any:
        """Return a new empty object."""
        ...

    def owned(self, obj: Any) -> Plain:
        """Return an object as plain data, without its managedFields."""
        ...

    def differing(self, old: Any, new: Any) -> tuple[Plain, Plain]:
        """Return two objects as `owned` does, without the members that are equal in both."""
        ...

    def from_applied(self, data: Plain) -> Decoded[Any]:
        """Return the object of plain data, without defaulting. Raises DecodeError."""
        ...


Convert = Callable[[Any, str], "tuple[OwnedKind, Any] | None"]
"""A function that converts an object of the kind, or a dict, to another version.

It returns the kind in that version and the object, or None if the version does not exist. Raises ValueError if the
object cannot be converted.
"""


def one_version_only(obj: Any, api_version: str) -> None:
    """Return None: a kind of one version drops the entries of all other versions."""


@dataclass(frozen=True, slots=True)
class FieldManager:
    """The field manager of one resource, or of one of its subresources, in one version.

    Objects are those of `kind`, or dicts. `resets` are the fields that the strategy resets, by version.
    """

    kind: OwnedKind
    subresource: str = ""
    resets: Mapping[str, FieldSet] = field(default_factory=dict)
    convert: Convert = one_version_only
    view: Callable[[Any], Any] | None = None
    """A function that returns a sent object as upstream's internal type would change it, None if that makes no
    difference.
    """
    api_version: str = field(init=False)
    """The version of the writes."""
    schema: Schema = field(init=False, compare=False)
    """The schema of that version."""
    is_same: Same = field(init=False, compare=False)
    """The comparison of two values of the kind's objects."""
    spec_merges: SpecMerges = field(init=False, default_factory=result_cache, compare=False)
    """A cache of the merges of applied specs."""
    _outlines: Outlines = field(init=False, compare=False)
    fields_by_outline: BoundedCache[Outline, msgspec.Raw | Literal[""]] = field(
        init=False, default_factory=result_cache, compare=False
    )
    """A cache of the FieldsV1 of new objects by their outlines; "" if an object sets no fields."""
    fields_by_spec: BoundedCache[tuple[Outline, bytes], msgspec.Raw | Literal[""]] = field(
        init=False, default_factory=result_cache, compare=False
    )
    """A cache of the FieldsV1 of new objects by the outline of all but the spec, and the text of the spec: a text is made
    faster than an outline.
    """
    _update_cache: UpdateCache = field(init=False, default_factory=UpdateCache, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "api_version", self.kind.api_version)
        object.__setattr__(self, "schema", self.kind.schema)
        object.__setattr__(self, "is_same", same if self.kind.is_open else eq)
        object.__setattr__(self, "_outlines", Outlines(self.schema.root, self.kind.empty))

    def create(self, obj: Any, manager: str, time: str) -> list[ManagedFieldsEntry]:
        """Return the entries of an object about to be created; entries that it already has are kept.

        `time` is a `meta/v1 Time`; `manager` comes from `manager_name`.
        """
        entries = managed_fields_of(obj)
        if self.view is not None:
            obj = self.view(obj)
        if not entries:
            # Most objects have no entries: no other manager has fields, and no cap applies.
            try:
                fields = self._fields_of_new(obj)
            except (ValueError, RecursionError):
                return []
            if fields is None:
                return []
            return [
                ManagedFieldsEntry(
                    manager=manager or UNKNOWN,
                    operation=UPDATE,
                    api_version=self.api_version,
                    time=time,
                    fields_type=FIELDS_V1,
                    fields_v1=fields,
                    subresource=self.subresource,
                )
            ]
        return self.update(obj, self.kind.new(), manager, time, is_create=True)

    def _fields_of_new(self, obj: Any) -> msgspec.Raw | None:
        """Return the FieldsV1 of the fields that a new object sets, None if it sets none. Raises TypedError."""
        root = self.schema.root.map
        if not isinstance(obj, msgspec.Struct) or root is None:
            return self._fields_by_outline(self._outlines.get(self.owned(obj)), obj)
        spec = getattr(obj, "spec", None)
        if not isinstance(spec, msgspec.Struct) or len(text := _encode(spec)) < _SHORT_SPEC:
            return self._fields_by_outline(struct_outline(root, obj), obj)
        rest = struct_outline(root, replace(obj, spec=None))
        known = None if rest is None else self.fields_by_spec[rest, text]
        if known is not None:
            return known or None
        fields = self._fields_by_outline(struct_outline(root, obj), obj)
        if rest is not None:
            self.fields_by_spec.keep((rest, text), fields or "", weight_of(rest) + len(text) + _size_of(fields))
        return fields

    def _fields_by_outline(self, outline: Outline | None, obj: Any) -> msgspec.Raw | None:
        """Return the FieldsV1 of the fields that a new object of this outline sets. Raises TypedError."""
        known = None if outline is None else self.fields_by_outline[outline]
        if known is not None:
            return known or None
        taken = strip_identity(self.compare(self.kind.empty, self.owned(obj)).changed)
        fields = encode_fields(taken) if taken else None
        if outline is not None:
            self.fields_by_outline.keep(outline, fields or "", weight_of(outline) + _size_of(fields))
        return fields

    def update(
        self, new: Any, old: Any, manager: str, time: str, *, is_create: bool = False
    ) -> list[ManagedFieldsEntry]:
        """Return the entries of `new`, which is about to replace `old`. A single empty entry in `new` resets them."""
        sent = [] if self.subresource else managed_fields_of(new)
        entries = sent or managed_fields_of(old)
        if not is_create:
            if not entries or sent == RESET_MANAGERS:
                return []
            new = new if self.view is None else self.view(new)
        key = manager_key(manager, UPDATE, self.api_version, self.subresource)
        try:
            comparison = self.compare(*_differing(self.kind, old, new))
            state = update_inputs(entries, key, comparison)
            known = self._update_cache.entries_after(state, entries, time)
            if known is not None:
                return known
            managers, is_read = self._managers(sent, old)
            if not managers and not is_create:
                return []
            taken = strip_identity(comparison.changed)
            found = encode_managers(self._changed(managers, new, old, comparison, key, taken, time))
            if state is not None and is_read:
                self._update_cache.store(state, entries, found, key, taken)
            return found
        except (ValueError, RecursionError):
            # As upstream: an object whose fields cannot be tracked is stored without entries, so that no entry is ever
            # wrong.
            return []

    def _managers(self, sent: list[ManagedFieldsEntry], old: Any) -> tuple[Managers, bool]:
        """Return the managers of the request if they are valid, otherwise (and on a subresource) those of the live
        object.

        The second value is True if the managers are those that were sent, or none were sent.
        """
        if sent == RESET_MANAGERS:
            return {}, False
        try:
            managers = decode_managers(sent)
        except ManagedFieldsError:
            managers = {}
        if managers:
            return managers, True
        try:
            return decode_managers(managed_fields_of(old)), not sent
        except ManagedFieldsError:
            return {}, False

    def new_manager_of_changes(self, old: Any, new: Any, manager: str, time: str) -> Managers:
        """Return one manager of all fields that are in `new` and not in `old`. Raises TypedError."""
        taken = strip_identity(self.compare(*_differing(self.kind, old, new)).changed)
        key = manager_key(manager, UPDATE, self.api_version, self.subresource)
        return {key: Managed(taken, self.api_version, time)} if taken else {}

    def _changed(
        self, managers: Managers, new: Any, old: Any, own: Comparison, key: ManagerKey, taken: FieldSet, time: str
    ) -> Managers:
        """Return the managers after the manager of `key` has taken some fields."""
        managers = self.reconciled(managers, old)
        managers = self.transfer(managers, self.comparisons(managers, new, old, own))
        if taken:
            mine = managers.get(key)
            managers[key] = Managed(taken if mine is None else union(mine.fields, taken), self.api_version, time)
        cap_update_managers(managers)
        return managers

    def owned(self, obj: Any) -> Plain:
        """Return an object as plain data, without its managedFields."""
        return plain_object(obj) if isinstance(obj, dict) else self.kind.owned(obj)

    def compare(self, old: Plain, new: Plain, of_spec: SpecMerge | None = None) -> Comparison:
        """Compare two objects, leaving out the fields that the strategy resets. Raises TypedError.

        `of_spec` has the differences of their specs if `new` has the merged one.
        """
        if of_spec is None or new.get(SPEC) is not of_spec.merged:
            return self._filtered(compare(self.schema.root, old, new, self.is_same), self.api_version)
        rest = compare(self.schema.root, without_spec(old), without_spec(new), self.is_same)
        changed, removed = of_spec.comparison.changed, of_spec.comparison.removed
        whole = Comparison(joined(rest.changed, changed), joined(rest.removed, removed))
        return self._filtered(whole, self.api_version)

    def _filtered(self, comparison: Comparison, api_version: str) -> Comparison:
        resets = self.resets.get(api_version)
        if resets is None or (
            resets.keys().isdisjoint(comparison.changed) and resets.keys().isdisjoint(comparison.removed)
        ):
            return comparison
        return Comparison(
            recursive_difference(comparison.changed, resets), recursive_difference(comparison.removed, resets)
        )

    def reconciled(self, managers: Managers, live: Any) -> Managers:
        """Return the managers with their sets adapted to the present schemas; managers of removed versions are dropped."""
        out: Managers = {}
        schemas: dict[str, Schema | None] = {self.api_version: self.schema}
        for key, managed in managers.items():
            version = managed.api_version
            if version not in schemas:
                converted = self.convert(live, version)
                schemas[version] = None if converted is None else converted[0].schema
            schema = schemas[version]
            if schema is not None:
                out[key] = managed.with_fields(_reconciled_fields(managed, schema))
        return out

    def comparisons(
        self, managers: Managers, new: Any, old: Any, own: Comparison | None = None
    ) -> dict[str, Comparison | None]:
        """Return the differences in each version in which a manager wrote; None for a removed version."""
        comparisons: dict[str, Comparison | None] = {
            self.api_version: self.compare(*_differing(self.kind, old, new)) if own is None else own
        }
        for managed in managers.values():
            version = managed.api_version
            if version in comparisons:
                continue
            update_inputs, after = self._converted("old", old, version), self._converted("new", new, version)
            if update_inputs is None or after is None:
                comparisons[version] = None
            else:
                kind, changed = after
                compared = compare(kind.schema.root, *_differing(kind, update_inputs[1], changed), self.is_same)
                comparisons[version] = self._filtered(compared, version)
        return comparisons

    def _converted(self, what: str, obj: Any, version: str) -> tuple[OwnedKind, Any] | None:
        try:
            return self.convert(obj, version)
        except TypedError as error:
            raise TypedError(f"failed to convert {what} object: {error}") from None

    def transfer(self, managers: Managers, comparisons: Mapping[str, Comparison | None]) -> Managers:
        """Return the managers without the fields that were changed or removed; managers without fields are dropped."""
        out: Managers = {}
        for key, managed in managers.items():
            compared = comparisons[managed.api_version]
            if compared is None:
                continue
            fields = managed.fields
            if compared.changed:
                fields = difference(fields, compared.changed)
            if compared.removed:
                fields = difference(fields, compared.removed)
            if fields:
                out[key] = managed.with_fields(fields)
        return out


def _differing(kind: OwnedKind, old: Any, new: Any) -> tuple[Plain, Plain]:
    return differing_dicts(old, new) if isinstance(new, dict) else kind.differing(old, new)


def managed_fields_of(obj: Any) -> list[ManagedFieldsEntry]:
    """Return the entries of an object; [] for a dict whose entries are malformed."""
    if isinstance(obj, dict):
        metadata = obj.get("metadata")
        entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
        if not entries:
            return []
        try:
            return _ENTRIES.decode(msgspec.json.encode(entries))
        except (msgspec.ValidationError, RecursionError):
            return []
    found: list[ManagedFieldsEntry] = obj.metadata.managed_fields
    return found


def _size_of(fields: msgspec.Raw | None) -> int:
    return 0 if fields is None else len(bytes(fields))


def _reconciled_fields(managed: Managed, schema: Schema) -> FieldSet:
    entry = managed.entry
    if entry is None or entry.fields_v1 is None:
        return reconcile(managed.fields, schema)
    return decode_reconciled(bytes(entry.fields_v1), schema)
