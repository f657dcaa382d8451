"""Sources of objects for explanations: a live API server, or a dump of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from steersman.api.core.v1 import Event
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.discovery import DiscoveryResult, preferred_resources
from steersman.client.errors import is_not_found
from steersman.client.resources import EVENTS
from steersman.explain.finding import Reference
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values.times import unix_now
from steersman.scheduler.decisions import PATH, Decision, DecisionList

T = TypeVar("T")


class Unreadable(Exception):
    """The error for objects that cannot be read: the user may not, or the server does not serve the resource."""

    def __init__(self, resource: APIResource[Any], why: str) -> None:
        super().__init__(f"cannot read {resource.group_resource}: {why}")
        self.resource = resource


class World(ABC):
    """Objects of a cluster. Each list is read once; the objects are shared and must not be changed."""

    def __init__(self) -> None:
        self._lists: dict[tuple[APIResource[Any], type, str], Sequence[Any]] = {}
        self._discovered: DiscoveryResult | None = None

    @property
    @abstractmethod
    def now(self) -> float:
        """Time of the observation in seconds since 1970."""
        ...

    @abstractmethod
    async def get(self, resource: APIResource[T], name: str, namespace: str = "") -> T | None:
        """Return an object, None if it does not exist. Raises Unreadable, and Unreachable."""
        ...

    @abstractmethod
    async def _list(self, resource: APIResource[T], namespace: str, field_selector: str) -> Sequence[T]: ...

    @abstractmethod
    async def _discover(self) -> DiscoveryResult: ...

    async def list(self, resource: APIResource[T], namespace: str = "") -> Sequence[T]:
        """Return the objects of a namespace, or of all namespaces. Raises Unreadable, and Unreachable."""
        everywhere = self._lists.get((resource, resource.type, ""))
        if everywhere is not None:
            return [each for each in everywhere if not namespace or namespace_of(each) == namespace]
        key = (resource, resource.type, namespace)
        if key not in self._lists:
            self._lists[key] = await self._list(resource, namespace, "")
        return self._lists[key]

    async def events(self, of: Reference, uid: str = "") -> Sequence[Event]:
        """Return the events about an object, of the object with `uid` if one is given. Raises Unreadable."""
        selector = f"involvedObject.kind={of.kind},involvedObject.name={of.name}"
        if of.namespace:
            selector += f",involvedObject.namespace={of.namespace}"
        found = await self._list(EVENTS, of.namespace, selector)
        return [each for each in found if is_about(each, of, uid)]

    async def decisions(self, namespace: str, name: str) -> Sequence[Decision]:
        """Return the last decisions of the scheduler about a pod, none where they are not kept or cannot be read."""
        return ()

    async def resources(self) -> DiscoveryResult:
        """Return the resources that the cluster serves. Raises StatusError, Unreachable."""
        if self._discovered is None:
            self._discovered = await self._discover()
        return self._discovered


def is_about(event: Event, of: Reference, uid: str = "") -> bool:
    """Return True if an event is about an object, and about the object with `uid` if both name a uid."""
    about = event.involved_object
    if (about.kind, about.name, about.namespace) != (of.kind, of.name, of.namespace):
        return False
    return not uid or not about.uid or about.uid == uid


def namespace_of(obj: Any) -> str:
    """Return the namespace of an object, which is a Struct or plain data."""
    if isinstance(obj, dict):
        return str((obj.get("metadata") or {}).get("namespace") or "")
    return str(obj.metadata.namespace)


class LiveWorld(World):
    """Objects of a running cluster, read by a client when they are first needed."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self.client = client

    @property
    def now(self) -> float:
        return unix_now()

    async def get(self, resource: APIResource[T], name: str, namespace: str = "") -> T | None:
        try:
            return await self.client.get(resource, name, namespace)
        except StatusError as error:
            if is_not_found(error) and error.name:
                return None
            raise Unreadable(resource, str(error)) from None
        except msgspec.MsgspecError as error:
            raise Unreadable(resource, str(error)) from None

    async def _list(self, resource: APIResource[T], namespace: str, field_selector: str) -> Sequence[T]:
        try:
            return [each async for each in self.client.iterate(resource, namespace, field_selector=field_selector)]
        except StatusError as error:
            raise Unreadable(resource, str(error)) from None
        except msgspec.MsgspecError as error:
            raise Unreadable(resource, str(error)) from None

    async def _discover(self) -> DiscoveryResult:
        return await preferred_resources(self.client)

    async def decisions(self, namespace: str, name: str) -> Sequence[Decision]:
        try:
            plain = await self.client.get_plain(f"{PATH}/{quote(namespace, safe='')}/{quote(name, safe='')}")
            return msgspec.convert(plain, DecisionList).decisions
        except (StatusError, msgspec.MsgspecError):  # other servers do not have the path
            return ()
