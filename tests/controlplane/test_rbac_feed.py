"""The authorizer knows the stored roles and bindings, whatever happens to the caches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from threading import get_ident
from types import SimpleNamespace
from typing import Any

import pytest

from steersman.api.rbac.v1 import RoleRef
from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, Verdict, decide
from steersman.authorization.rbac import RbacAuthorizer
from steersman.controlplane import rbac_feed
from steersman.controlplane.objects import StoreObjects
from steersman.controlplane.rbac_feed import feed
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.identity.action import Action
from steersman.registry.rbac.clusterrolebindings import CLUSTER_ROLE_BINDINGS
from steersman.registry.rbac.clusterroles import CLUSTER_ROLES
from steersman.registry.rbac.rolebindings import ROLE_BINDINGS
from steersman.registry.rbac.roles import ROLES
from steersman.rest.bound import bind
from steersman.rest.capabilities import Change
from steersman.rest.context import loopback
from steersman.storage.memory import MemoryStorage
from steersman.store.store import Store
from steersman.work.offloading import Account
from tests.noted import noted
from tests.struct_class import struct_class

GROUP = "rbac.authorization.k8s.io"
READ_PODS = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
ALICE = [{"kind": "User", "apiGroup": GROUP, "name": "alice"}]

REF = {"kind": "Role", "apiGroup": GROUP, "name": "reader"}


class Rights:
    """Stores of the four kinds, and an authorizer fed from them."""

    def __init__(self) -> None:
        self.storage = MemoryStorage(compaction_interval=0, lease_interval=0)
        self.authorizer = RbacAuthorizer()
        services: Any = SimpleNamespace()
        resources = (ROLES, ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
        self.stores = {each.plural: Store(bind(each, services), self.storage) for each in resources}

    async def put(self, plural: str, namespace: str, name: str, **body: Any) -> None:
        kind = self.stores[plural].kind
        obj = from_plain(struct_class(kind), {"metadata": {"name": name, "namespace": namespace}, **body})
        ctx = loopback(namespace)
        await self.stores[plural].create(ctx, obj)

    async def delete(self, plural: str, namespace: str, name: str) -> None:
        await StoreObjects(self.stores[plural]).delete(loopback(namespace, name), name)

    def may_read(self, namespace: str) -> bool:
        wanted = Attributes(UserInfo("alice"), Action("get", "", "v1", "pods", "", namespace, "p"))
        verdict = self.authorizer.authorize(wanted)
        assert isinstance(verdict, Verdict)
        return verdict.decision is Decision.ALLOW


@pytest.fixture
async def rights() -> AsyncIterator[Rights]:
    made = Rights()
    for store in made.stores.values():
        await store.start()
    await made.put("roles", "old", "reader", rules=READ_PODS)
    await made.put("rolebindings", "old", "alice", subjects=ALICE, roleRef=REF)
    feed(made.authorizer, lambda group, plural: made.stores[plural])
    yield made
    for store in made.stores.values():
        await store.stop()
    await made.storage.close()


async def bind_alice(rights: Rights, namespace: str) -> None:
    await rights.put("roles", namespace, "reader", rules=READ_PODS)
    await rights.put("rolebindings", namespace, "alice", subjects=ALICE, roleRef=REF)


async def test_what_was_stored_and_what_is_counts_at_once(rights: Rights) -> None:
    assert rights.may_read("old")
    assert not rights.may_read("new")
    await bind_alice(rights, "new")
    assert rights.may_read("new")
    await rights.delete("rolebindings", "new", "alice")
    assert not rights.may_read("new")
    await rights.delete("roles", "old", "reader")
    assert not rights.may_read("old")


async def test_rights_are_followed_after_a_cache_has_started_over(rights: Rights) -> None:
    await bind_alice(rights, "new")
    bindings = rights.stores["rolebindings"]
    bindings.cacher.reset(RuntimeError("starting over"))
    entry = await rights.storage.get("/registry/rolebindings/old/alice")
    assert entry is not None
    await rights.storage.delete(entry.key, expected_revision=entry.mod_revision)
    await bindings.cacher.start()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not rights.may_read("old")
    assert rights.may_read("new")
    await rights.delete("rolebindings", "new", "alice")
    assert not rights.may_read("new")


async def test_a_role_that_cannot_be_read_grants_nothing_and_harms_no_other(
    rights: Rights, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    roles = rights.stores["roles"]
    decode = roles.kind.decode

    def failing(body: bytes) -> Any:
        if b'"name":"broken"' in body:
            raise ValueError("no role")
        return decode(body)

    monkeypatch.setattr(roles.kind, "decode", failing)
    await rights.storage.create(
        "/registry/roles/ns/broken", roles.kind.value(decode(b'"metadata":{"name":"broken","uid":"u"}}'))
    )
    assert "decoding /registry/roles/ns/broken failed" in caplog.text
    await bind_alice(rights, "new")
    assert rights.may_read("new")


def hold_reading(monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """Hold the decoding of large objects; return an event that is set when it has started, and one that releases it."""
    started, go_on = asyncio.Event(), asyncio.Event()
    run = Account.run_in_thread

    async def held(account: Account, work: Any, *args: Any) -> Any:
        if work.__name__ == "_decoded":
            started.set()
            await go_on.wait()
        return await run(account, work, *args)

    monkeypatch.setattr(Account, "run_in_thread", held)
    return started, go_on


class TestLargeOnes:
    """Large roles and bindings are decoded in worker threads, and requests that need them wait: no right is early or
    late.
    """

    LARGE = READ_PODS * 2_000
    CROWD = [{"kind": "User", "apiGroup": GROUP, "name": f"user{number}"} for number in range(2_000)]

    async def judged(self, rights: Rights, namespace: str) -> bool:
        wanted = Attributes(UserInfo("alice"), Action("get", "", "v1", "pods", "", namespace, "p"))
        return (await decide(rights.authorizer, wanted)).allowed

    async def replace(self, rights: Rights, plural: str, name: str, **body: Any) -> None:
        kind = rights.stores[plural].kind

        async def make(old: Any) -> Any:
            return from_plain(struct_class(kind), {"metadata": {"name": name, "namespace": "old"}, **body})

        await rights.stores[plural].update(loopback("old", name), name, Change(make))

    async def test_a_right_counts_when_its_write_is_acknowledged(self, rights: Rights) -> None:
        await rights.put("roles", "new", "reader", rules=self.LARGE)
        await rights.put("rolebindings", "new", "alice", subjects=self.CROWD + ALICE, roleRef=REF)
        assert await self.judged(rights, "new")
        assert await self.judged(rights, "old")

    async def test_a_right_that_is_taken_away_does_not_count_from_then_on(self, rights: Rights) -> None:
        other = [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}] * 2_000
        await self.replace(rights, "roles", "reader", rules=other)
        assert not await self.judged(rights, "old")
        await self.replace(rights, "roles", "reader", rules=self.LARGE)
        assert await self.judged(rights, "old")
        await self.replace(rights, "rolebindings", "alice", subjects=self.CROWD, roleRef=REF)
        assert not await self.judged(rights, "old")

    async def test_who_waits_is_judged_by_what_there_was_however_often_it_changes(
        self, rights: Rights, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started, go_on = hold_reading(monkeypatch)
        await self.replace(rights, "roles", "reader", rules=self.LARGE)
        first = asyncio.ensure_future(self.judged(rights, "old"))
        await started.wait()
        await self.replace(rights, "roles", "reader", rules=self.LARGE + READ_PODS)
        await self.replace(rights, "roles", "reader", rules=self.LARGE + READ_PODS * 2)
        second = asyncio.ensure_future(self.judged(rights, "old"))
        await asyncio.sleep(0)
        assert not first.done()
        go_on.set()
        assert await first
        assert await second
        rules = await rights.authorizer.rules_of(RoleRef(kind="Role", name="reader"), "old")
        assert len(rules) == 2_002

    async def test_a_version_that_is_replaced_before_it_is_read_lets_nobody_wait_for_ever(
        self, rights: Rights, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started, go_on = hold_reading(monkeypatch)
        await self.replace(rights, "roles", "reader", rules=self.LARGE)
        await started.wait()
        await self.replace(rights, "roles", "reader", rules=self.LARGE + READ_PODS)
        waiting = asyncio.ensure_future(self.judged(rights, "old"))
        await asyncio.sleep(0)
        await self.replace(rights, "roles", "reader", rules=self.LARGE + READ_PODS * 2)
        go_on.set()
        async with asyncio.timeout(10):
            assert await waiting

    async def test_what_is_deleted_or_made_small_meanwhile_stays_so(self, rights: Rights) -> None:
        await self.replace(rights, "roles", "reader", rules=self.LARGE)
        reading = asyncio.ensure_future(self.judged(rights, "old"))
        await self.replace(rights, "roles", "reader", rules=[])
        assert not rights.may_read("old")
        await reading
        assert await rights.authorizer.rules_of(RoleRef(kind="Role", name="reader"), "old") == ()
        await self.replace(rights, "roles", "reader", rules=self.LARGE)
        await rights.delete("roles", "old", "reader")
        await self.replace(rights, "rolebindings", "alice", subjects=ALICE + self.CROWD, roleRef=REF)
        await rights.delete("rolebindings", "old", "alice")
        await asyncio.gather(*(asyncio.to_thread(int) for _ in range(3)))
        assert not await self.judged(rights, "old")
        assert not rights.authorizer._roles
        assert not rights.authorizer._by_namespace

    async def test_nothing_of_them_is_read_on_the_loop(self, rights: Rights, monkeypatch: pytest.MonkeyPatch) -> None:
        at: set[int] = set()
        for name in ("RoleRules", "Binding"):
            make = getattr(rbac_feed, name)
            monkeypatch.setattr(rbac_feed, name, noted(make, lambda *args: at.add(get_ident())))
        await rights.put("roles", "new", "reader", rules=self.LARGE)
        await rights.put("rolebindings", "new", "alice", subjects=self.CROWD + ALICE, roleRef=REF)
        assert await self.judged(rights, "new")
        assert at
        assert get_ident() not in at
