"""Rewriting of objects that are stored in another version than the current one.

Corresponds to upstream's storage-version-migrator, which sends empty patches. Here the write happens below validation
and admission: the object stays the same, and gets a new resourceVersion.
"""

from __future__ import annotations

import logging
import socket
import uuid
from typing import Any, Final

from steersman.controlplane.identity_lease import server_id
from steersman.controlplane.stored_versions.agreement import Agreement
from steersman.controlplane.stored_versions.records import Records
from steersman.controlplane.stores import Stores
from steersman.kinds.stored_form import NotAnObject, StoredForm
from steersman.machinery.identity.schema import GroupResource
from steersman.server.version import GIT_VERSION
from steersman.storage.interface import (
    SEALED,
    Conflict,
    KeyValue,
    Storage,
    Undecodable,
    Unreadable,
    Unwritable,
)
from steersman.storage.keys import after
from steersman.store.store import Store
from steersman.work.yielding import TimeSlice

logger = logging.getLogger(__name__)

_PAGE: Final = 50
_PASSES: Final = 5


class Rewriting:
    """Rewriting of the objects in these stores, if they are of built-in kinds."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def rewrite(self, resource: GroupResource) -> bool:
        """Rewrite all objects in other versions; return False if some could not be. Raises StorageUnavailable."""
        store = self._stores.store(resource.group, resource.resource)
        form, stored = self._stores.forms[resource], self._stores.storage_of(resource)
        try:
            for _ in range(_PASSES):
                if not await _pass(store, form, stored):
                    return True
        except (Undecodable, Unreadable, Unwritable) as error:
            logger.warning("some objects of %s stay in other stored versions: %s", resource, error)
        return False


async def _pass(store: Store[Any], form: StoredForm, stored: Storage) -> int:
    """Rewrite objects once through all keys; return the number of objects found in other versions."""
    found, start, more = 0, "", True
    time_slice = TimeSlice()
    while more:
        page = await stored.range(store.prefix, start=start, limit=_PAGE)
        for item in page.items:
            if _version(form, item) != form.written:
                found += 1
                await _write_anew(store, item)
            await time_slice.pause_if_over()
        more = page.more and bool(page.items)
        if more:
            start = after(page.items[-1].key)
    return found


def _version(form: StoredForm, item: KeyValue) -> str:
    """Return the stored version of an item. Raises Undecodable and Unreadable."""
    if item.value.startswith(SEALED):
        raise Unreadable(item.key, "identity transformer tried to read encrypted data")
    try:
        return form.version_of(item.value)
    except NotAnObject as error:
        raise Undecodable(item.key, str(error)) from error


async def _write_anew(store: Store[Any], item: KeyValue) -> None:
    """Rewrite an object, unless somebody else has just written it. An expiring object's time to live starts again."""
    current = await store.storage.get(item.key)
    if current is None or current.mod_revision != item.mod_revision:
        return
    try:
        await store.storage.update(item.key, current.value, expected_revision=current.mod_revision, ttl=store.ttl)
    except Conflict:
        return


def agreement_on(storage: Storage, stores: Stores) -> Agreement:
    """Return the agreement of the servers on a storage to which others write too."""
    name = f"{server_id(socket.gethostname())}_{uuid.uuid4()}"
    return Agreement(Records(storage, name), stores.forms, Rewriting(stores).rewrite, GIT_VERSION)
