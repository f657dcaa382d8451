"""The authorizer knows the stored roles and bindings, whatever happens to the caches they come from."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision
from steersman.authorization.rbac import RbacAuthorizer
from steersman.controlplane.objects import StoreObjects
from steersman.controlplane.rbac_feed import feed
from steersman.machinery.serializer import from_plain
from steersman.machinery.slow_lane import SlowLane
from steersman.registry.rbac.clusterrolebindings import CLUSTER_ROLE_BINDINGS
from steersman.registry.rbac.clusterroles import CLUSTER_ROLES
from steersman.registry.rbac.rolebindings import ROLE_BINDINGS
from steersman.registry.rbac.roles import ROLES
from steersman.rest.context import loopback
from steersman.storage.memory import MemoryStorage
from steersman.store.store import Store

GROUP = "rbac.authorization.k8s.io"
READ_PODS = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
ALICE = [{"kind": "User", "apiGroup": GROUP, "name": "alice"}]


class Rights:
    """Stores of the four kinds, and an authorizer fed from them."""

    def __init__(self) -> None:
        self.storage = MemoryStorage(compaction_interval=0, lease_interval=0)
        self.authorizer = RbacAuthorizer()
        services: Any = SimpleNamespace(event_ttl=0, slow_lane=SlowLane())
        resources = (ROLES, ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
        self.stores = {each.plural: Store(each, self.storage, services) for each in resources}

    async def put(self, plural: str, namespace: str, name: str, **body: Any) -> None:
        kind = self.stores[plural].resource.kind
        obj = from_plain(kind, {"metadata": {"name": name, "namespace": namespace}, **body})
        ctx = loopback(namespace)
        await self.stores[plural].create(ctx, obj)

    async def delete(self, plural: str, namespace: str, name: str) -> None:
        await StoreObjects(self.stores[plural]).delete(loopback(namespace, name), name)

    def may_read(self, namespace: str) -> bool:
        wanted = Attributes(UserInfo("alice"), "get", namespace, "", "v1", "pods", "", "p", resource_request=True)
        return self.authorizer.authorize(wanted).decision is Decision.ALLOW


@pytest.fixture
async def rights() -> AsyncIterator[Rights]:
    made = Rights()
    for store in made.stores.values():
        await store.start()
    await made.put("roles", "old", "reader", rules=READ_PODS)
    ref = {"kind": "Role", "apiGroup": GROUP, "name": "reader"}
    await made.put("rolebindings", "old", "alice", subjects=ALICE, roleRef=ref)
    feed(made.authorizer, lambda group, plural: made.stores[plural])
    yield made
    for store in made.stores.values():
        await store.stop()
    await made.storage.close()


async def bind(rights: Rights, namespace: str) -> None:
    await rights.put("roles", namespace, "reader", rules=READ_PODS)
    ref = {"kind": "Role", "apiGroup": GROUP, "name": "reader"}
    await rights.put("rolebindings", namespace, "alice", subjects=ALICE, roleRef=ref)


async def test_what_was_stored_and_what_is_counts_at_once(rights: Rights) -> None:
    assert rights.may_read("old")
    assert not rights.may_read("new")
    await bind(rights, "new")
    assert rights.may_read("new")
    await rights.delete("rolebindings", "new", "alice")
    assert not rights.may_read("new")
    await rights.delete("roles", "old", "reader")
    assert not rights.may_read("old")


async def test_rights_are_followed_after_a_cache_has_started_over(rights: Rights) -> None:
    await bind(rights, "new")
    bindings = rights.stores["rolebindings"]
    bindings.cacher._reset(RuntimeError("starting over"))
    entry = await rights.storage.get("/registry/rolebindings/old/alice")
    assert entry is not None
    await rights.storage.delete(entry.key, expected_revision=entry.mod_revision)
    await bindings.start()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not rights.may_read("old")
    assert rights.may_read("new")
    await rights.delete("rolebindings", "new", "alice")
    assert not rights.may_read("new")


async def test_a_role_that_cannot_be_read_grants_nothing_and_harms_no_other(
    rights: Rights, monkeypatch, caplog
) -> None:
    roles = rights.stores["roles"]
    decode = roles.encoding.decode

    def failing(body: bytes) -> Any:
        if b'"name":"broken"' in body:
            raise ValueError("no role")
        return decode(body)

    monkeypatch.setattr(roles.encoding, "decode", failing)
    await rights.storage.create(
        "/registry/roles/ns/broken", roles.encoding.value(decode(b'"metadata":{"name":"broken","uid":"u"}}'))
    )
    assert "/registry/roles/ns/broken cannot be read" in caplog.text
    await bind(rights, "new")
    assert rights.may_read("new")
