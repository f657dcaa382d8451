"""Values of a built-in kind in the forms in which its objects may be stored (`kinds.stored_form`)."""

from __future__ import annotations

from steersman.kinds.stored_form import NotAnObject, StoredForm
from steersman.machinery.large_work.sizes import is_large, is_large_protobuf
from steersman.storage.interface import SEALED, KeyValue, Undecodable
from steersman.work.offloading import offload_if


class StoredObjects:
    """A `storage.mapped.ValueMap` of objects. `seals` becomes True once an object in another form was read."""

    def __init__(self, form: StoredForm) -> None:
        self._form = form
        self._left = (form.prefix, SEALED)
        """The prefixes of stored bytes that are not mapped: objects in the served form, and encrypted values."""
        self.seals = False

    @property
    def writes_as_given(self) -> bool:
        """Return True if objects are stored in the form in which they are served."""
        return self._form.writes_unchanged

    def is_value(self, stored: bytes) -> bool:
        """Return True for objects in the served form, and for encrypted values, which are left alone."""
        return stored.startswith(self._left)

    def takes_long(self, stored: bytes) -> bool:
        """Return True for stored bytes that are large, by the limit for JSON or for protobuf."""
        return is_large(stored) if stored[:1] == b"{" else is_large_protobuf(stored)

    def value_now(self, item: KeyValue) -> bytes:
        """Return the object in the served form. Raises Undecodable."""
        self.seals = True
        try:
            return self._form.value(item.value)
        except NotAnObject as error:
            raise Undecodable(item.key, str(error)) from error

    async def value(self, item: KeyValue) -> bytes:
        """Return the object in the served form; a large one is converted in a worker thread. Raises Undecodable."""
        return await offload_if(self.takes_long(item.value), self.value_now, item)

    async def stored(self, key: str, value: bytes) -> bytes:
        """Return the bytes to store for an object; a large one is converted in a worker thread."""
        return await offload_if(is_large(value), self._form.stored, value)

    async def is_stale(self, item: KeyValue) -> bool:
        """Return True if the value would now be stored differently; like upstream, stored forms are compared."""
        stored = item.value
        if self._form.writes_unchanged and self._form.is_unchanged(stored):
            return False
        value = stored if self.is_value(stored) else await self.value(item)
        return await self.stored(item.key, value) != stored
