"""Objects in a snapshot of etcd, in which each is stored in a form of its kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS, KUBE_API
from steersman.controlplane.stored_forms import stored_form
from steersman.dumps.errors import DumpError
from steersman.dumps.reading import MOST_BYTES, MOST_OBJECTS, Dump, DumpObject, Head, Metadata
from steersman.kinds.stored_form import JSON, NotAnObject, StoredForm
from steersman.rest.resource import KEYS, Resource
from steersman.storage.etcd.snapshot_file import SnapshotError, is_snapshot, read_snapshot
from steersman.storage.interface import SEALED

_HEAD: Final = msgspec.json.Decoder(Head)
_HEAD_BYTES: Final = 32


def is_etcd_snapshot(path: Path) -> bool:
    """Return True for a file of etcd. Raises OSError."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return is_snapshot(file.read(_HEAD_BYTES))


def read_etcd_snapshot(path: Path, notes: list[str]) -> Dump:
    """Return the objects in a snapshot of etcd. `notes` gets notes for the user. Raises DumpError."""
    try:
        values = read_snapshot(path, MOST_BYTES)
    except SnapshotError as error:
        raise DumpError(f"{path}: {error}") from None
    except OSError as error:
        raise DumpError(f"{path}: {error.strerror or error}") from None
    if len(values) > MOST_OBJECTS:
        raise DumpError(f"{path}: more than {MOST_OBJECTS} objects")
    forms = {resource.key_prefix: form for resource in _resources() if (form := stored_form(resource, JSON))}
    objects: list[DumpObject] = []
    sealed = 0
    for key, stored in values.items():
        if stored.value.startswith(SEALED):
            sealed += 1
        elif (found := _object(path, key.decode(errors="replace"), stored.value, forms)) is not None:
            objects.append(found)
    if sealed:
        notes.append(f"{sealed} objects are encrypted and left out")
    if not objects:
        raise DumpError(f"{path}: no objects of Kubernetes in it")
    return Dump(objects)


def _resources() -> tuple[Resource[Any, Any], ...]:
    return (*AGGREGATOR, *KUBE_API, *API_EXTENSIONS)


def _object(path: Path, key: str, value: bytes, forms: dict[str, StoredForm]) -> DumpObject | None:
    """Return the object of a key, None for other data of servers. Raises DumpError."""
    parts = key.split("/")  # "", the root of the cluster's keys, and the resource's prefix of one or two parts
    form = None
    for length in (4, 3):
        form = form or forms.get(f"{KEYS}/{'/'.join(parts[2:length])}/")
    try:
        data = form.value(value) if form is not None else value
        head = _HEAD.decode(data)
    except NotAnObject as error:
        raise DumpError(f"{path}: {key}: {error}") from None
    except msgspec.MsgspecError:
        return None  # such as ranges of addresses
    if not head.kind or not head.api_version or head.metadata is None or not head.metadata.name:
        return None
    metadata: Metadata = head.metadata
    return DumpObject(head.api_version, head.kind, metadata.namespace, metadata.name, data)
