"""The part of a control plane that stores the cluster's own definitions in a storage that is empty.

They are stored as the server would have them once they are applied and established. A new cluster so starts without a
write for each definition, of its names, and of its conditions, and serves their objects from the beginning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, ClassVar, Final
from uuid import uuid4

from steersman.cluster.definitions import Plain, stored_spec
from steersman.controlplane.parts.resources import BuiltInResources
from steersman.controlplane.parts.storing import ObjectStores, OpenStorage, before_caches, is_empty
from steersman.machinery.codec.serializer import encode
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.values import times
from steersman.storage.interface import KeyExists, Storage
from steersman.work.parts import Part

_DEFINITIONS: Final = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")


def parts_with(definitions: Sequence[Plain], parts: Sequence[type[Part]]) -> Sequence[type[Part]]:
    """Return parts that also store definitions, given as manifests of one version each."""
    if not definitions:
        return parts

    class Stored(FirstDefinitions):
        pass

    Stored.definitions = definitions
    return before_caches(Stored, parts)


class FirstDefinitions(Part):
    """Definitions in a storage that was empty. Nothing is stored in any other."""

    definitions: ClassVar[Sequence[Plain]] = ()
    opened: OpenStorage
    objects: ObjectStores
    resources: BuiltInResources

    async def start(self, ending: AsyncExitStack) -> None:
        if not await is_empty(self.opened.storage):
            return
        stores = self.objects.stores
        store, form = stores.storage_of(_DEFINITIONS), stores.forms[_DEFINITIONS]
        prefix = stores.store(_DEFINITIONS.group, _DEFINITIONS.resource).prefix
        now = times.now()
        values = {
            each["metadata"]["name"]: form.stored(form.value(encode(established(each, now))))
            for each in self.definitions
        }
        await asyncio.gather(*(create_if_missing(store, f"{prefix}{name}", value) for name, value in values.items()))


async def create_if_missing(storage: Storage, key: str, value: bytes) -> None:
    """Store a key unless another server has stored it meanwhile."""
    with suppress(KeyExists):
        await storage.create(key, value)


def established(definition: Plain, now: str) -> Plain:
    """Return a definition as the server has it after `install`, all at one time, without a resourceVersion."""
    spec = definition["spec"]
    names = spec["names"]
    conditions = [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
        _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
    ]
    applied = {"f:spec": {**_fields(spec), "f:names": _fields(names)}}
    written = {
        "f:status": {
            "f:acceptedNames": _fields(names),
            "f:conditions": {f'k:{{"type":"{each["type"]}"}}': {".": {}, **_fields(each)} for each in conditions},
        }
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": definition["metadata"]["name"],
            "uid": str(uuid4()),
            "generation": 1,
            "creationTimestamp": now,
            "managedFields": [
                _owned("steersman", "Apply", now, applied),
                {**_owned("kube-apiserver", "Update", now, written), "subresource": "status"},
            ],
        },
        "spec": stored_spec(definition),
        "status": {
            "conditions": conditions,
            "acceptedNames": names,
            "storedVersions": [each["name"] for each in spec["versions"]],
        },
    }


def _condition(kind: str, reason: str, message: str, now: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}


def _fields(names: Iterable[str]) -> dict[str, Any]:
    return {f"f:{each}": {} for each in names}


def _owned(manager: str, operation: str, now: str, fields: Plain) -> Plain:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "apiextensions.k8s.io/v1",
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
