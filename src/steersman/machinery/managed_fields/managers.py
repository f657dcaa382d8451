"""Managers of an object's fields: decoding, capping and encoding of `metadata.managedFields`.

Follows k8s.io/apimachinery `util/managedfields/internal` (managedfields.go, capmanagers.go).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from steersman.api.meta.v1 import ManagedFieldsEntry

from .field_set import EMPTY, LEAF, FieldSet, difference, union_of
from .fields_v1 import FieldsError, decode_fields, encode_fields
from .path_elements import SELF

APPLY: Final = "Apply"
UPDATE: Final = "Update"
FIELDS_V1: Final = "FieldsV1"
UNKNOWN: Final = "unknown"
"""The name of a manager that gives no name."""

_IDENTITY: Final = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
NEVER_OWNED: Final[FieldSet] = {
    "f:apiVersion": LEAF,
    "f:kind": LEAF,
    "f:metadata": {SELF: LEAF} | {f"f:{name}": LEAF for name in _IDENTITY},
}
"""The fields of an object's identity and those that the server sets (upstream's stripMetaManager)."""

RESET_MANAGERS: Final = [ManagedFieldsEntry()]
"""The list by which a client resets managedFields. An empty list means the same and is replaced by this one."""

MAX_UPDATE_MANAGERS: Final = 10
OLD_UPDATES: Final = "ancient-changes"


class ManagedFieldsError(ValueError):
    """The error for malformed entries, with upstream's message."""


class ManagerKey(NamedTuple):
    """The identity of an entry; the version is empty for applies, because it only counts for updates."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    @property
    def identifier(self) -> str:
        """Return the key as upstream writes it; managers are sorted by it."""
        members = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return msgspec.json.encode({name: value for name, value in members.items() if value}).decode()


def manager_key(manager: str, operation: str, api_version: str, subresource: str) -> ManagerKey:
    """Return the key of the manager of the present write; an empty name becomes "unknown"."""
    return ManagerKey(manager or UNKNOWN, operation, "" if operation == APPLY else api_version, subresource)


def key_of_entry(entry: ManagedFieldsEntry) -> ManagerKey:
    """Return the key of an entry's manager."""
    version = "" if entry.operation == APPLY else entry.api_version
    return ManagerKey(entry.manager, entry.operation, version, entry.subresource)


class Managed(Struct, frozen=True):
    """The fields of one manager, in the version in which it wrote them.

    `entry` is the entry from which they were decoded, as long as it is still accurate.
    """

    fields: FieldSet
    api_version: str
    time: str | None
    entry: ManagedFieldsEntry | None = None

    def with_fields(self, fields: FieldSet) -> Managed:
        """Return a copy with another field set."""
        return self if fields is self.fields else Managed(fields, self.api_version, self.time)

    def with_time(self, time: str) -> Managed:
        """Return a copy with another time."""
        entry = None if self.entry is None else msgspec.structs.replace(self.entry, time=time)
        return Managed(self.fields, self.api_version, time, entry)


Managers = dict[ManagerKey, Managed]


def decode_managers(entries: Sequence[ManagedFieldsEntry]) -> Managers:
    """Decode entries into managers. Raises ManagedFieldsError."""
    managers: Managers = {}
    for index, entry in enumerate(entries):
        if entry.operation not in (APPLY, UPDATE):
            raise ManagedFieldsError("operation must be `Apply` or `Update`")
        if not entry.api_version:
            raise ManagedFieldsError("apiVersion must not be empty")
        if entry.fields_type != FIELDS_V1:
            what = f'invalid fieldsType "{entry.fields_type}"' if entry.fields_type else "missing fieldsType"
            raise ManagedFieldsError(f"{what} in managed fields entry {index}")
        key = key_of_entry(entry)
        try:
            fields, is_canonical = decode_fields(bytes(entry.fields_v1)) if entry.fields_v1 else (EMPTY, False)
        except FieldsError as error:
            raise ManagedFieldsError(f"error decoding set: {error}") from error
        managers[key] = Managed(fields, entry.api_version, entry.time, entry if is_canonical else None)
    return managers


def encode_managers(managers: Managers) -> list[ManagedFieldsEntry]:
    """Return the sorted entries of managers."""
    return in_order_of_entries(list(starmap(_entry, managers.items())))


def in_order_of_entries(entries: list[ManagedFieldsEntry]) -> list[ManagedFieldsEntry]:
    """Sort entries in place and return them: applies first, the oldest first, then by name, version and subresource."""
    if len(entries) > 1:
        entries.sort(
            key=lambda each: (each.operation, each.time or "", each.manager, each.api_version, each.subresource)
        )
    return entries


def _entry(key: ManagerKey, managed: Managed) -> ManagedFieldsEntry:
    if managed.entry is not None:
        return managed.entry
    return ManagedFieldsEntry(
        manager=key.manager,
        operation=key.operation,
        api_version=managed.api_version,
        time=managed.time,
        fields_type=FIELDS_V1,
        fields_v1=encode_fields(managed.fields),
        subresource=key.subresource,
    )


def cap_update_managers(managers: Managers, limit: int = MAX_UPDATE_MANAGERS) -> None:
    """Merge the oldest updates of each version into one of the manager `ancient-changes`, until at most `limit` are
    left.
    """
    updaters = [key for key in managers if key.operation == UPDATE]
    if len(updaters) <= limit:
        return
    updaters.sort(key=lambda key: (managers[key].time or "", key.identifier))
    count = len(updaters)
    first_of: dict[str, ManagerKey] = {}
    gathered: dict[ManagerKey, list[FieldSet]] = {}
    for key in updaters:
        if count <= limit:
            break
        managed = managers[key]
        version = managed.api_version
        first = first_of.setdefault(version, key)
        if first is key:
            continue
        bucket = ManagerKey(OLD_UPDATES, UPDATE, version, "")
        if bucket not in managers:
            managers[bucket] = managers.pop(first)
            gathered.pop(bucket, None)
        # A bucket that is itself among the oldest entries is merged with itself and disappears, as upstream has it.
        gathered.setdefault(bucket, [managers[bucket].fields]).append(managed.fields)
        managers[bucket] = Managed(EMPTY, version, managed.time)
        del managers[key]
        count -= 1
    for bucket, sets in gathered.items():
        if bucket in managers:
            managers[bucket] = managers[bucket].with_fields(union_of(sets))


def strip_identity(fields: FieldSet) -> FieldSet:
    """Return a set without the fields that nobody may own."""
    return difference(fields, NEVER_OWNED)
