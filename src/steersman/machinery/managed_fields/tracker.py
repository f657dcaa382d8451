"""Ownership of fields, tracked on every write (apimachinery `util/managedfields` FieldManager).

Whoever writes becomes the owner of every field that the write adds or changes; others lose what was changed or
removed. An entry's time changes only when its manager takes fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec

from steersman.api.meta.v1 import ManagedFieldsEntry
from steersman.machinery.codec.serializer import decode_scalar
from steersman.machinery.codec.strict import Decoded
from steersman.machinery.identity.schema import GroupVersionKind

from .comparison import Comparison, compare
from .field_set import FieldSet, difference, union
from .fields_v1 import encode_fields
from .filters import Filter
from .managers import (
    FIELDS_V1,
    FORGET_ALL,
    UNKNOWN,
    UPDATE,
    Managed,
    ManagedFieldsError,
    Managers,
    cap_update_managers,
    decode_managers,
    encode_managers,
    manager_key,
    strip_identity,
)
from .outline import Known, Outlines
from .plain import Plain, differing_dicts, plain_object
from .reconcile import decode_reconciled, reconcile
from .schema import Schema

_ENTRIES: Final = msgspec.json.Decoder(list[ManagedFieldsEntry], dec_hook=decode_scalar)


class OwnedKind(Protocol):
    """What is asked of a kind in one version to track who owns what of its objects (kinds.Kind)."""

    @property
    def gvk(self) -> GroupVersionKind: ...

    @property
    def api_version(self) -> str: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def empty(self) -> Plain:
        """An empty object as data: what a created one is compared with. Nothing may change it."""
        ...

    def new(self) -> Any:
        """An empty object."""
        ...

    def owned(self, obj: Any) -> Plain:
        """An object as data, without its managedFields."""
        ...

    def differing(self, old: Any, new: Any) -> tuple[Plain, Plain]:
        """Two objects as `owned` has them, without members that are equal in both."""
        ...

    def from_plain(self, data: Plain) -> Decoded[Any]:
        """The object of plain data. Raises DecodeError."""
        ...


Convert = Callable[[Any, str], "tuple[OwnedKind, Any] | None"]
"""An object of the kind, or a dict, in another version, and the kind in that version; None if there is none.

Raises ValueError if it cannot be converted.
"""


def one_version_only(obj: Any, api_version: str) -> None:
    """For kinds of one version: entries of any other are dropped."""


@dataclass(frozen=True, slots=True)
class FieldManager:
    """Tracks the writes to one resource, or to one of its subresources, in one version.

    Objects are those of `kind`, or dicts. `resets` are the fields that the strategy resets, by version.
    """

    kind: OwnedKind
    subresource: str = ""
    resets: Mapping[str, Filter] = field(default_factory=dict)
    convert: Convert = one_version_only
    view: Callable[[Any], Any] | None = None
    """How an object that was sent looks after its way through upstream's internal type, where that shows."""
    api_version: str = field(init=False)
    """The version written in."""
    _outlines: Outlines = field(init=False, compare=False)
    _known: Known = field(init=False, default_factory=Known, compare=False)
    """What new objects set, by their outlines."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "api_version", self.kind.api_version)
        object.__setattr__(self, "_outlines", Outlines(self.kind.schema.root, self.kind.empty))

    def create(self, obj: Any, manager: str, time: str) -> list[ManagedFieldsEntry]:
        """The entries of an object about to be created; those it came with count.

        `time` is a `meta/v1 Time`; `manager` comes from `manager_name`.
        """
        entries = managed_fields_of(obj)
        if self.view is not None:
            obj = self.view(obj)
        if not entries:
            # Most objects come without: nothing to share fields with, to take from or to cap.
            try:
                fields = self._fields_of_new(self.owned(obj))
            except (ValueError, RecursionError):
                return []
            if fields is None:
                return []
            return [ManagedFieldsEntry(
                manager=manager or UNKNOWN, operation=UPDATE, api_version=self.api_version, time=time,
                fields_type=FIELDS_V1, fields_v1=fields, subresource=self.subresource,
            )]  # fmt: skip
        return self.update(obj, self.kind.new(), manager, time, is_create=True)

    def _fields_of_new(self, plain: Plain) -> msgspec.Raw | None:
        """The FieldsV1 of what a new object sets; None if that is nothing. Raises TypedError."""
        outline = self._outlines.of(plain)
        if outline is not None and outline in self._known:
            return self._known[outline]
        taken = strip_identity(self._compare(self.kind.empty, plain).changed)
        fields = encode_fields(taken) if taken else None
        if outline is not None:
            self._known.remember(outline, fields)
        return fields

    def update(
        self, new: Any, old: Any, manager: str, time: str, *, is_create: bool = False
    ) -> list[ManagedFieldsEntry]:
        """The entries of `new`, about to replace `old`. One empty entry in it asks to forget all that there were."""
        managers = self._managers(new, old)
        if not managers and not is_create:
            return []
        if self.view is not None and not is_create:
            new = self.view(new)
        try:
            managers = self._update(managers, new, old, manager, time)
        except (ValueError, RecursionError):
            # As upstream: what cannot be tracked is stored without entries, so that there is never a wrong one.
            return []
        return encode_managers(managers)

    def _managers(self, new: Any, old: Any) -> Managers:
        """Those of the request, if it has any that can be read; otherwise, and on a subresource, the live object's."""
        if not self.subresource:
            entries = managed_fields_of(new)
            if entries == FORGET_ALL:
                return {}
            try:
                managers = decode_managers(entries)
            except ManagedFieldsError:
                managers = {}
            if managers:
                return managers
        try:
            return decode_managers(managed_fields_of(old))
        except ManagedFieldsError:
            return {}

    def take_over(self, old: Any, new: Any, manager: str, time: str) -> Managers:
        """One manager for all that is in `new` and not in `old`. Raises TypedError."""
        taken = strip_identity(self._compare(*self._differing(old, new)).changed)
        key = manager_key(manager, UPDATE, self.api_version, self.subresource)
        return {key: Managed(taken, self.api_version, time)} if taken else {}

    def _update(self, managers: Managers, new: Any, old: Any, manager: str, time: str) -> Managers:
        comparison = self._compare(*self._differing(old, new))
        managers = self.reconciled(managers, old)
        managers = self.transfer(managers, self.comparisons(managers, new, old, comparison))
        taken = strip_identity(comparison.changed)
        if taken:
            key = manager_key(manager, UPDATE, self.api_version, self.subresource)
            before = managers.get(key)
            fields = taken if before is None else union(before.fields, taken)
            managers[key] = Managed(fields, self.api_version, time)
        cap_update_managers(managers)
        return managers

    @property
    def schema(self) -> Schema:
        """That of the version written in."""
        return self.kind.schema

    def owned(self, obj: Any) -> Plain:
        """An object as data, without its managedFields."""
        return plain_object(obj) if isinstance(obj, dict) else self.kind.owned(obj)

    def _differing(self, old: Any, new: Any) -> tuple[Plain, Plain]:
        return _differing(self.kind, old, new)

    def _compare(self, old: Any, new: Any) -> Comparison:
        return self._filtered(compare(self.schema.root, old, new), self.api_version)

    def _filtered(self, comparison: Comparison, api_version: str) -> Comparison:
        keep = self.resets.get(api_version)
        if keep is None:
            return comparison
        return Comparison(keep(comparison.changed), keep(comparison.removed))

    def reconciled(self, managers: Managers, live: Any) -> Managers:
        """The managers' sets by the schemas of today; those of a version that is gone are dropped."""
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
        """What changed by each version that a manager wrote in; None for a version there is not any more."""
        found: dict[str, Comparison | None] = {
            self.api_version: self._compare(*self._differing(old, new)) if own is None else own
        }
        for managed in managers.values():
            version = managed.api_version
            if version in found:
                continue
            before, after = self.convert(old, version), self.convert(new, version)
            if before is None or after is None:
                found[version] = None
            else:
                kind, changed = after
                compared = compare(kind.schema.root, *_differing(kind, before[1], changed))
                found[version] = self._filtered(compared, version)
        return found

    def transfer(self, managers: Managers, comparisons: Mapping[str, Comparison | None]) -> Managers:
        """What managers keep of their fields; one that keeps nothing is gone."""
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
    """The entries an object has; none for a dict whose entries cannot be read."""
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


def _reconciled_fields(managed: Managed, schema: Schema) -> FieldSet:
    entry = managed.entry
    if entry is None or entry.fields_v1 is None:
        return reconcile(managed.fields, schema)
    return decode_reconciled(bytes(entry.fields_v1), schema)
