"""The part of a control plane that stores the objects of a dump before anything reads them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from steersman.cluster.opening.completing import complete
from steersman.cluster.opening.errors import CannotOpen
from steersman.cluster.opening.items import Item
from steersman.cluster.opening.note import Note, remove_note, write_note
from steersman.controlplane.control_plane import PARTS
from steersman.controlplane.data_folder import file_of
from steersman.controlplane.options import Options
from steersman.controlplane.parts.resources import BuiltInResources
from steersman.controlplane.parts.storing import ObjectStores, OpenStorage, before_caches, is_empty
from steersman.dumps.errors import DumpError
from steersman.dumps.reading import Dump, DumpObject
from steersman.kinds.stored_form import NotAnObject
from steersman.machinery.codec.serializer import encode
from steersman.machinery.identity.schema import GroupResource
from steersman.rest.resource import KEYS, Resource
from steersman.store.store import MAX_SIZE
from steersman.work.offloading import offload_if
from steersman.work.parts import Part

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 1000
"""Objects that are written at the same time."""
_EVENTS: Final = GroupResource("", "events")
_DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")


class _Names(msgspec.Struct):
    kind: str
    plural: str


class _DefinitionSpec(msgspec.Struct):
    group: str
    names: _Names
    scope: str


class _Definition(msgspec.Struct):
    spec: _DefinitionSpec


_DEFINITIONS: Final = msgspec.json.Decoder(_Definition)


class _Target(NamedTuple):
    """Storage of the objects of a kind."""

    resource: GroupResource
    prefix: str
    namespaced: bool
    built_in: Resource[Any, Any] | None = None


class _Row(NamedTuple):
    resource: GroupResource
    key: str
    value: bytes


def parts_with(dump: Dump, note: Note, notes: list[str]) -> Sequence[type[Part]]:
    """Return the parts of a control plane that begins with the objects of a dump.

    `note` is for the data folder. `notes` gets notes for the user.
    """

    class Opened(OpenedDump):
        pass

    Opened.dump, Opened.note, Opened.notes = dump, note, notes
    return before_caches(Opened, PARTS)


class OpenedDump(Part):
    """The objects of a dump in a storage that was empty."""

    dump: ClassVar[Dump] = Dump([])
    note: ClassVar[Note] = Note()
    notes: ClassVar[list[str]] = []
    options: Options
    opened: OpenStorage
    objects: ObjectStores
    resources: BuiltInResources

    async def start(self, ending: AsyncExitStack) -> None:
        if not await is_empty(self.opened.storage):
            raise CannotOpen(
                f"{self.options.data_dir} has the objects of a cluster already: choose another --data-dir, or delete them "
                "with `steersman reset`"
            )
        keeps = file_of(self.options) is not None
        if keeps:
            write_note(self.options.data_dir, self.note)
        try:
            rows = await offload_if(True, self._rows)
        except DumpError as error:
            if keeps:
                remove_note(self.options.data_dir)
            raise CannotOpen(str(error)) from None
        type(self).dump = Dump([])  # which is large
        await self._store(rows)
        if keeps:
            self.note.complete = True
            write_note(self.options.data_dir, self.note)

    def _targets(self) -> dict[tuple[str, str], _Target]:
        """Return where the objects of each kind are stored, by group and kind."""
        found: dict[tuple[str, str], _Target] = {}
        for bound, _ in self.resources.served:
            resource = bound.resource
            if bound.answerer is not None or bound.reader is not None:
                continue
            target = _Target(resource.group_resource, resource.key_prefix, resource.namespaced, resource)
            for gvk in resource.versions:
                found[gvk.group, gvk.kind] = target
        for each in self.dump.objects:
            if (each.api_version.rpartition("/")[0], each.kind) == _DEFINITION:
                spec = _definition(each)
                name = GroupResource(spec.group, spec.names.plural)
                target = _Target(name, f"{KEYS}/{spec.group}/{spec.names.plural}/", spec.scope == "Namespaced")
                found.setdefault((spec.group, spec.names.kind), target)
        return found

    async def _store(self, rows: list[_Row]) -> None:
        stores = self.objects.stores
        storages = {each: stores.storage_of(each) for each in {row.resource for row in rows}}
        ttl = {_EVENTS: self.options.event_ttl}
        for at in range(0, len(rows), _AT_ONCE):
            await asyncio.gather(
                *(
                    storages[row.resource].create(row.key, row.value, ttl=ttl.get(row.resource, 0))
                    for row in rows[at : at + _AT_ONCE]
                )
            )
        logger.info("opened a dump: %d objects", len(rows))

    def _rows(self) -> list[_Row]:
        """Return the keys and values of the objects, completed. Raises DumpError."""
        targets = self._targets()
        completed = complete(self.dump.objects, {kind: each.namespaced for kind, each in targets.items()})
        self.notes.extend(completed.notes)
        rows = []
        for each in completed.items:
            target = targets[each.group, each.kind]
            namespace = f"{each.namespace}/" if target.namespaced else ""
            value = self._value(target, each)
            if len(value) > MAX_SIZE:
                raise DumpError(f"{each}: {len(value)} bytes, and an object may have {MAX_SIZE}")
            rows.append(_Row(target.resource, f"{target.prefix}{namespace}{each.name}", value))
        return rows

    def _value(self, target: _Target, item: Item) -> bytes:
        """Return the bytes to store for an object. Raises DumpError."""
        if target.built_in is None:
            plain = item.plain()
            plain["metadata"].pop("resourceVersion", None)
            return encode(plain)
        form = self.objects.stores.forms[target.resource]
        try:
            return form.stored(form.value(item.json()))
        except NotAnObject as error:
            raise DumpError(f"{item}: {error}") from None


def _definition(found: DumpObject) -> _DefinitionSpec:
    try:
        return _DEFINITIONS.decode(found.data).spec
    except msgspec.MsgspecError as error:
        raise DumpError(f"{found.kind} {found.name}: {error}") from None
