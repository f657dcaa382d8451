"""Objects that a running server restores, and its identity lease."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from steersman.api.coordination.v1 import Lease, LeaseSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.controlplane import upkeep
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.identity_lease import server_id
from steersman.controlplane.legacy_token_tracking import NAME, LegacyTokenTracking
from steersman.controlplane.options import Options
from steersman.machinery.values import times
from steersman.registry.core.services import ip_repair as service_ip_repair
from steersman.rest.context import loopback
from steersman.rest.objects import Reading
from steersman.testing.keys import make_keys

DATA: Reading[dict[str, str]] = Reading(lambda config_map: config_map.data, "data")
IDENTITY = {"apiserver.kubernetes.io/identity": "kube-apiserver"}


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Callable[[], Any]]:
    """Yield `start()`, which starts a server on one folder after stopping the previous one."""
    running: list[ControlPlane] = []
    make_keys(tmp_path)

    async def started() -> ControlPlane:
        await stop()
        plane = ControlPlane(Options(data_dir=tmp_path, listen=False, advertise_address="192.0.2.10"))
        running.append(plane)
        await plane.start()
        return plane

    async def stop() -> None:
        while running:
            await running.pop().stop()

    yield started
    await stop()


async def until(condition: Callable[[], Any], seconds: int = 1) -> None:
    """Wait until a condition holds, at most `seconds`."""
    for _ in range(200 * seconds):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came to be")


@pytest.mark.parametrize(
    ("group", "plural", "namespace", "name"),
    [
        ("", "services", "default", "kubernetes"),
        ("", "endpoints", "default", "kubernetes"),
        ("discovery.k8s.io", "endpointslices", "default", "kubernetes"),
        ("networking.k8s.io", "servicecidrs", "", "kubernetes"),
        ("", "namespaces", "", "kube-node-lease"),
        ("", "configmaps", "kube-system", "extension-apiserver-authentication"),
    ],
)
async def test_what_every_cluster_has_is_made_again(
    start: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, group: str, plural: str, namespace: str, name: str
) -> None:
    monkeypatch.setattr(upkeep, "SOON", 0.02)
    monkeypatch.setattr(upkeep, "ENDPOINTS_INTERVAL", 0.02)
    monkeypatch.setattr(upkeep, "MINUTE", 0.02)
    plane = await start()
    objects = plane.objects(group, plural)
    before = await objects.get_cached(namespace, name)
    if plural == "namespaces":
        store = plane.store(group, plural)
        revision = (await store.get(loopback(name=name), name)).revision
        await store.storage.delete(store.key("", name), expected_revision=revision)
    else:
        await objects.delete(loopback(namespace, name), name)
    await until(lambda: objects.is_cached(namespace, name))
    after = await objects.get_cached(namespace, name)
    assert after.metadata.uid != before.metadata.uid
    assert getattr(after, "spec", None) == getattr(before, "spec", None)


async def test_how_aggregated_servers_know_this_one_is_made_again_at_once(start: Callable[[], Any]) -> None:
    plane = await start()
    objects, name = plane.objects("", "configmaps"), "extension-apiserver-authentication"
    before = (await objects.get_cached("kube-system", name)).data
    await objects.delete(loopback("kube-system", name), name)
    await until(lambda: objects.is_cached("kube-system", name))
    assert (await objects.get_cached("kube-system", name)).data == before


async def test_how_aggregated_servers_know_this_one_is_put_right_every_minute(
    start: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "MINUTE", 0.01)
    plane = await start()
    objects, name = plane.objects("", "configmaps"), "extension-apiserver-authentication"
    before = (await objects.get_cached("kube-system", name)).data

    def spoil(old: Any) -> Any:
        old.data = {"client-ca-file": "nobody", "mine": "goes"}
        return old

    await objects.update(loopback("kube-system", name), name, spoil)
    await until(lambda: objects.read_cached("kube-system", name, DATA)["client-ca-file"] == before["client-ca-file"])
    assert (await objects.get_cached("kube-system", name)).data == before


async def test_upkeep_of_what_is_there_writes_nothing(
    start: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "SOON", 0.01)
    monkeypatch.setattr(upkeep, "MINUTE", 0.01)
    plane = await start()
    await asyncio.sleep(0.03)
    before = plane.storage.revision
    await asyncio.sleep(0.1)
    assert plane.storage.revision == before


async def test_a_missing_address_of_a_service_comes_back_when_the_service_changes(start: Callable[[], Any]) -> None:
    plane = await start()
    addresses = plane.objects("networking.k8s.io", "ipaddresses")
    await addresses.delete(loopback(name="10.0.0.1"), "10.0.0.1")

    def label(old: Any) -> Any:
        old.metadata.labels["changed"] = "yes"
        return old

    await plane.objects("", "services").update(loopback("default", "kubernetes"), "kubernetes", label)
    await until(lambda: addresses.is_cached("", "10.0.0.1"))


SERVICE = "/registry/services/specs/default/kubernetes"


def spoil_file(folder: Path, statement: str, *values: object) -> None:
    """Modify the database of a stopped server."""
    with closing(sqlite3.connect(folder / "steersman.db")) as database:
        assert database.execute(statement, values).rowcount > 0
        database.commit()


@pytest.mark.parametrize("owner", ["kubernetes", "ghost"])
async def test_an_address_whose_service_is_gone_is_freed_while_the_server_runs(
    start: Callable[[], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    owner: str,
) -> None:
    plane = await start()
    before = (await plane.objects("", "services").get_cached("default", "kubernetes")).metadata.uid
    if owner == "ghost":

        def pass_on(old: Any) -> Any:
            old.spec.parent_ref.name = "ghost"
            return old

        addresses = plane.store("networking.k8s.io", "ipaddresses")
        monkeypatch.setattr(type(addresses.strategy), "validate_update", lambda *_: ())
        await plane.objects("networking.k8s.io", "ipaddresses").update(loopback(name="10.0.0.1"), "10.0.0.1", pass_on)
    await plane.stop()
    spoil_file(tmp_path, "DELETE FROM log WHERE key = ?", SERVICE)
    monkeypatch.setattr(upkeep, "SOON", 0.02)
    monkeypatch.setattr(upkeep, "ENDPOINTS_INTERVAL", 0.02)
    plane = await start()
    services = plane.objects("", "services")
    assert not services.is_cached("default", "kubernetes")
    assert [each.getMessage() for each in caplog.records if each.name.endswith("kubernetes_service.service")][:1] == [
        'unable to sync kubernetes service: Service "kubernetes" is invalid: spec.clusterIPs: Invalid value: '
        '["10.0.0.1"]: failed to allocate IP 10.0.0.1: provided IP is already allocated'
    ]
    monkeypatch.setattr(service_ip_repair, "GRACE", 1.0)
    await until(lambda: services.is_cached("default", "kubernetes"), seconds=5)
    assert (await services.get_cached("default", "kubernetes")).metadata.uid != before
    parent = (await plane.objects("networking.k8s.io", "ipaddresses").get_cached("", "10.0.0.1")).spec.parent_ref
    assert (parent.namespace, parent.name) == ("default", "kubernetes")


# The lease


def test_a_server_is_called_as_kube_apiserver_on_its_host() -> None:
    assert server_id("vm") == "apiserver-wlv32tlttr4jl3gtroqexyxapa"


async def test_a_server_has_a_lease_while_it_runs(start: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "RENEWAL", 0.02)
    plane = await start()
    leases = plane.objects("coordination.k8s.io", "leases")
    [first] = leases.list("kube-system")
    assert first.metadata.labels.items() >= IDENTITY.items()
    assert first.metadata.annotations == {"kubernetes.io/peer-advertise-address": "192.0.2.10:6443"}
    assert first.spec.holder_identity.startswith(f"{first.metadata.name}_")
    assert first.spec.lease_duration_seconds == 3600
    await until(lambda: next(leases.list("kube-system")).spec.renew_time != first.spec.renew_time)
    await leases.delete(loopback("kube-system", first.metadata.name), first.metadata.name)
    await until(lambda: leases.count("kube-system") == 1)
    again = await start()
    [second] = again.objects("coordination.k8s.io", "leases").list("kube-system")
    assert second.metadata.name == first.metadata.name
    assert second.spec.holder_identity != first.spec.holder_identity


async def test_a_lease_goes_with_its_server(start: Callable[[], Any]) -> None:
    plane = await start()
    leases = plane.objects("coordination.k8s.io", "leases")
    await plane.server.stop()
    assert leases.count("kube-system") == 0


async def test_leases_of_servers_that_are_gone_are_collected(start: Callable[[], Any]) -> None:
    plane = await start()
    now = datetime.now(UTC)
    objects = plane.objects("coordination.k8s.io", "leases")
    for name, labels, ago in (("old", IDENTITY, 3700), ("alive", IDENTITY, 60), ("other", {}, 3700)):
        renewed = times.format_micro_time(now - timedelta(seconds=ago))
        spec = LeaseSpec(holder_identity=name, lease_duration_seconds=3600, renew_time=renewed)
        metadata = ObjectMeta(name=name, namespace="kube-system", labels=dict(labels))
        await objects.create(loopback("kube-system"), Lease(metadata=metadata, spec=spec))
    plane = await start()
    names = {lease.metadata.name for lease in plane.objects("coordination.k8s.io", "leases").list("kube-system")}
    assert names >= {"alive", "other"}
    assert "old" not in names


# Tokens in secrets


async def test_the_day_from_which_old_tokens_are_tracked_is_kept(start: Callable[[], Any]) -> None:
    plane = await start()
    objects = plane.objects("", "configmaps")
    since = (await objects.get_cached("kube-system", NAME)).data["since"]
    assert datetime.strptime(since, "%Y-%m-%d").replace(tzinfo=UTC) <= datetime.now(UTC)
    now = 0.0
    tracking = LegacyTokenTracking(objects, clock=lambda: now)
    await objects.delete(loopback("kube-system", NAME), NAME)
    await tracking.sync()
    await objects.delete(loopback("kube-system", NAME), NAME)
    now = 1799.0
    await tracking.sync()
    assert (await objects.get_cached("kube-system", NAME)) is None
    now = 1800.0
    await tracking.sync()
    assert (await objects.get_cached("kube-system", NAME)).data == {"since": since}


@pytest.mark.parametrize("since", ["", "yesterday", "2026-13-01", "2026-1-1"])
async def test_a_day_that_is_none_is_mended(start: Callable[[], Any], since: str) -> None:
    plane = await start()
    objects = plane.objects("", "configmaps")
    today = (await objects.get_cached("kube-system", NAME)).data["since"]

    def spoil(old: Any) -> Any:
        old.data["since"] = since
        return old

    await objects.update(loopback("kube-system", NAME), NAME, spoil)
    await until(lambda: objects.read_cached("kube-system", NAME, DATA)["since"] == today)
