"""A small cluster for registry tests: real stores in memory, one for each requested resource."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from ipaddress import ip_network
from typing import Any

import pytest

from steersman.api.meta.v1 import DeleteOptions
from steersman.authentication.user import UserInfo
from steersman.authorization.always_allow import AlwaysAllowAuthorizer
from steersman.authorization.interface import Authorizer
from steersman.authorization.union import UnionRuleResolver
from steersman.controlplane.objects import StoreObjects
from steersman.controlplane.rbac_feed import feed
from steersman.machinery.codec.serializer import from_plain, to_plain
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action
from steersman.registry.services import Services
from steersman.rest.bound import bind
from steersman.rest.capabilities import Change
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.storage.memory import MemoryStorage
from steersman.store.store import Store
from tests.struct_class import struct_class

ADMIN = UserInfo("admin", groups=("system:masters",))


class Cluster:
    """A cluster whose methods take and return plain data, defaulted as a decoder would."""

    def __init__(self, resources: tuple[Resource[Any], ...], ranges: tuple[str, ...], authorizer: Authorizer) -> None:
        self.storage = MemoryStorage()
        self.signed: list[dict[str, Any]] = []
        self.services = Services(
            objects=self.objects,
            storage_of=lambda resource: self.storage,
            authorizer=authorizer,
            rule_resolver=UnionRuleResolver(()),
            service_cluster_ip_ranges=tuple(map(ip_network, ranges)),
            service_node_ports=range(30000, 32768),
            allow_privileged=True,
            service_account_issuer="https://issuer.example.com",
            api_audiences=("https://api.example.com",),
            sign_token=self._sign,
            event_ttl=3600,
            authenticate_token=lambda *token: None,
        )
        self.stores = {(each.group, each.plural): Store(bind(each, self.services), self.storage) for each in resources}

    def objects(self, group: str, plural: str) -> StoreObjects:
        return StoreObjects(self.stores[group, plural])

    def _sign(self, claims: dict[str, Any]) -> str:
        self.signed.append(claims)
        return "signed"

    def _plain(self, store: Store[Any], item: Any) -> dict[str, Any]:
        plain: dict[str, Any] = to_plain(store.decode(item))
        return plain

    def read(self, store: Store[Any], body: dict[str, Any]) -> Any:
        obj = from_plain(struct_class(store.kind), body)
        store.kind.default(obj)
        return obj

    def context(self, store: Store[Any], namespace: str, name: str, **more: Any) -> Context:
        resource = store.resource
        action = Action(
            more.pop("verb", ""),
            more.pop("group", resource.group),
            resource.version,
            resource.plural,
            more.pop("subresource", ""),
            namespace if resource.namespaced else "",
            name,
        )
        return Context(**{"user": ADMIN, "action": action, **more})

    async def create(self, plural: str, body: dict[str, Any], *, group: str = "", **more: Any) -> dict[str, Any]:
        """Create an object in the namespace `ns`; `more` goes into the context."""
        store = self.stores[group, plural]
        item = await store.create(self.context(store, "ns", "", **more), self.read(store, body))
        return self._plain(store, item)

    async def update(
        self, plural: str, body: dict[str, Any], *, group: str = "", subresource: str = "", **more: Any
    ) -> dict[str, Any]:
        store = self.stores[group, plural]
        name = body["metadata"]["name"]

        async def make(old: Any) -> Any:
            return self.read(store, body)

        ctx = self.context(store, "ns", name, **more)
        item, _ = await store.update(ctx, name, Change(make, subresource=subresource))
        return self._plain(store, item)

    async def change(self, plural: str, name: str, *, group: str = "", **spec: Any) -> dict[str, Any]:
        """Update an object with these members of the spec."""
        body = await self.get(plural, name, group=group)
        body["spec"] |= spec
        body["spec"] = {key: value for key, value in body["spec"].items() if value is not None}
        return await self.update(plural, body, group=group)

    async def get(self, plural: str, name: str, *, group: str = "") -> dict[str, Any]:
        store = self.stores[group, plural]
        return self._plain(store, await store.get(self.context(store, "ns", name), name))

    async def delete(self, plural: str, name: str, *, group: str = "", **more: Any) -> dict[str, Any]:
        store = self.stores[group, plural]
        item, _ = await store.delete(self.context(store, "ns", name, **more), name, DeleteOptions())
        return self._plain(store, item)

    async def faults(self, request: Any) -> list[str]:
        """Return the errors of a refused request, as `field: message`."""
        with pytest.raises(StatusError) as caught:
            await request
        return [f"{cause.field}: {cause.message}" for cause in caught.value.causes]


@pytest.fixture
async def cluster() -> AsyncIterator[Callable[..., Any]]:
    """`await cluster(RESOURCE, ...)` starts a Cluster with these resources; it stops after the test."""
    started: list[Cluster] = []

    async def start(
        *resources: Resource[Any], ranges: tuple[str, ...] = ("10.0.0.0/24",), authorizer: Authorizer | None = None
    ) -> Cluster:
        made = Cluster(resources, ranges, authorizer or AlwaysAllowAuthorizer())
        for store in made.stores.values():
            await store.start()
        if ("rbac.authorization.k8s.io", "roles") in made.stores:
            feed(made.services.roles, lambda group, plural: made.stores[group, plural])
        started.append(made)
        return made

    yield start
    for each in started:
        for store in each.stores.values():
            await store.stop()
        await each.storage.close()
