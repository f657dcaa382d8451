"""First states of servers in memory: a server begins with the objects that an equal server created at its start.

Half of a start is the creation of the same two hundred objects. The first server of every set of options creates them
in each process of tests, and so does every server of a test with the fixture `from_nothing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import wraps
from pathlib import Path
from typing import Final

import pytest

from steersman.controlplane.addresses import Address
from steersman.controlplane.audit_options import AuditOptions
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import Options
from steersman.controlplane.parts.storing import OpenStorage
from steersman.storage.interface import KeyValue, Storage
from steersman.storage.memory import MemoryStorage, Snapshot

_OF_ONE_SERVER: Final = ("/registry/leases/", "/registry/masterleases/")
"""Key prefixes of objects that belong to the server that wrote them."""
_NEUTRAL: Final = (
    "token_auth_file",
    "tracing_config_file",
    "authentication_token_webhook_config_file",
    "service_account_signing_key_file",
    "service_account_key_file",
    *(each.name for each in fields(AuditOptions)),
)
"""Options that change no object of a start, with paths that are others in every test."""
_MOST: Final = 64
"""Most first states that a process keeps. The least recently used one goes first: options with paths come only once."""


class FirstStates:
    """First states of one process, by options and CA."""

    def __init__(self) -> None:
        self.are_used = True
        self._known: dict[tuple[str, bytes], dict[str, KeyValue]] = {}

    def begin(self, options: Options, storage: Storage) -> None:
        """Write the first state of an equal server, if there is one, into a new storage in memory."""
        if not self.are_used or not isinstance(storage, MemoryStorage):
            return
        key = _key(options)
        if known := self._known.pop(key, None):
            self._known[key] = known
            storage.restore(Snapshot(known, {}, {}))

    def keep(self, plane: ControlPlane) -> None:
        """Keep the state of a server that has just started, if no state of equal options is kept."""
        if not isinstance(plane.storage, MemoryStorage) or plane.options.encryption_provider_config:
            return
        key = _key(plane.options)
        if key not in self._known:
            if len(self._known) >= _MOST:
                del self._known[next(iter(self._known))]
            self._known[key] = shared_objects(plane.snapshot().values)


def shared_objects(values: Mapping[str, KeyValue]) -> dict[str, KeyValue]:
    """Return what is stored without the objects that belong to the server that wrote them."""
    return {key: value for key, value in values.items() if not key.startswith(_OF_ONE_SERVER)}


def _key(options: Options) -> tuple[str, bytes]:
    """Return the options that change the objects of a start, and the CA, which the server publishes."""
    authority = options.data_dir / "ca.crt"
    default = Options(data_dir=Path())
    alike = replace(options, data_dir=Path(), **{name: getattr(default, name) for name in _NEUTRAL})
    values = repr([getattr(alike, each.name) for each in fields(alike)])
    return values, authority.read_bytes() if authority.exists() else b""


@contextmanager
def used(states: FirstStates) -> Iterator[None]:
    """Make all servers of this process begin with first states."""
    open_storage, start = OpenStorage.open, ControlPlane.start

    @wraps(open_storage)
    async def open_with_state(self: OpenStorage) -> Storage:
        storage = await open_storage(self)
        states.begin(self.options, storage)
        return storage

    @wraps(start)
    async def start_and_keep(self: ControlPlane) -> Address:
        address = await start(self)
        states.keep(self)
        return address

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpenStorage, "open", open_with_state)
        patch.setattr(ControlPlane, "start", start_and_keep)
        yield
