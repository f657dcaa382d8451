"""Typed access to the objects of a declared class, through requests to the server in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final, Generic, TypeVar

from steersman.api.meta.v1 import ObjectMeta
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.transport import Transport
from steersman.kinds.open import OpenObject
from steersman.library.declaration import Declaration, declaration_of
from steersman.library.instances import Instances
from steersman.library.models import Plain, member_names
from steersman.library.storage import Event
from steersman.machinery.codec.serializer import from_plain, to_plain

T = TypeVar("T")

_MANAGER: Final = "steersman"
"""The default field manager."""
_STATUS: Final = "status"
_NOT_APPLIED = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
"""Members of metadata that the server sets."""


class ObjectsClient(Generic[T]):
    """The objects of one class, in the stored version: `server.objects(Flunder)`.

    Each method sends a request like any client's, which passes admission, hooks and validation. The request user is
    `system:apiserver`, who may do everything. The class must have a field `metadata`, an ObjectMeta.

    StatusError has the code and reason that any client gets: 404 NotFound, 409 AlreadyExists or Conflict, 422 Invalid.
    ValueError is raised for an object that was stored with an earlier form of the class and does not fit it any more.
    """

    def __init__(self, transport: Transport, model: type[T]) -> None:
        """Create the client. Raises TypeError for a class that is not declared, or has no metadata."""
        declaration = declaration_of(model)
        if "metadata" not in member_names(model):
            raise TypeError(f"{model.__name__} has no field `metadata`, by which its objects are named")
        self._transport = transport
        self._client = Client(transport, _MANAGER)
        self._resource = _resource_of(declaration)
        self._instances = Instances(declaration)

    async def get(self, name: str, namespace: str = "") -> T:
        """Return an object."""
        return self._instance(await self._client.get(self._resource, name, namespace))

    async def list(self, namespace: str = "", *, label_selector: str = "", field_selector: str = "") -> list[T]:
        """Return the objects of a namespace ("" for all)."""
        found = await self._client.list(
            self._resource, namespace, label_selector=label_selector, field_selector=field_selector
        )
        return [self._instance(each) for each in found.items]

    async def watch(
        self, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> AsyncGenerator[Event[T], None]:
        """Yield every existing object as ADDED, and then each change.

        The iteration lasts until it is closed (`contextlib.aclosing`), or until the server ends the watch after 30 to
        60 minutes.
        """
        watching = self._client.watch(
            self._resource, namespace, label_selector=label_selector, field_selector=field_selector
        )
        async with watching as batches:
            async for batch in batches:
                for each in batch:
                    if each.type != "BOOKMARK":
                        yield Event(each.type, self._instance(each.object))

    async def create(self, obj: T) -> T:
        """Create an object in the namespace of its metadata, and return it as stored."""
        return self._instance(await self._client.create(self._resource, self._plain(obj)))

    async def update(self, obj: T) -> T:
        """Replace the object of this name, and return it as stored; its status is kept.

        Raises a Conflict if the object has changed since it was read.
        """
        return await self._update(obj, "")

    async def update_status(self, obj: T) -> T:
        """Replace the status of an object, under the same condition as `update`."""
        return await self._update(obj, _STATUS)

    async def apply(self, obj: T, *, manager: str = _MANAGER, force: bool = False) -> T:
        """Apply all fields of the object as a field manager (server-side apply), and create it if it does not exist.

        Without `force`, fields of other managers lead to a Conflict.
        """
        plain = self._plain(obj)
        plain["metadata"] = {name: each for name, each in plain["metadata"].items() if name not in _NOT_APPLIED}
        plain.pop(_STATUS, None)
        meta = plain["metadata"]
        client = Client(self._transport, manager)
        found = await client.apply(self._resource, meta.get("name", ""), meta.get("namespace", ""), plain, force=force)
        return self._instance(found)

    async def delete(self, name: str, namespace: str = "") -> None:
        """Delete an object; an object with finalizers exists until they are removed."""
        await self._client.delete(self._resource, name, namespace)

    async def _update(self, obj: T, subresource: str) -> T:
        return self._instance(await self._client.update(self._resource, self._plain(obj), subresource))

    def _instance(self, plain: Plain) -> T:
        content = {name: each for name, each in plain.items() if name not in ("apiVersion", "kind", "metadata")}
        found: T = self._instances.stored_instance(OpenObject(from_plain(ObjectMeta, plain["metadata"]), content))
        return found

    def _plain(self, obj: T) -> Plain:
        opened = self._instances.to_object(obj)
        return {
            "apiVersion": self._resource.api_version,
            "kind": self._resource.kind,
            "metadata": to_plain(opened.metadata),
            **opened.content,
        }


def _resource_of(declaration: Declaration) -> APIResource[dict[str, Any]]:
    return APIResource(
        declaration.group, declaration.stored.name, declaration.plural, declaration.kind, dict, declaration.namespaced
    )
