"""A server on etcd compares its caches with it, and reports the result in metrics."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from steersman.authentication.user import UserInfo
from steersman.controlplane import cache_checks
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import Options
from steersman.storage.cache.entry import Entry
from steersman.testing.client import Client
from tests.storage.etcd.process import EtcdProcess

pytestmark = pytest.mark.slow

ADMIN = UserInfo("admin", groups=("system:masters",))
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[list[EtcdProcess]]:
    made = [EtcdProcess(tmp_path / name) for name in ("one", "two")]
    for each in made:
        each.start()
    yield made
    for each in made:
        each.stop()


async def checks(client: Client) -> dict[tuple[str, str], int]:
    """Return the number of checks by resource and status."""
    text = (await client.get("/metrics")).body.decode()
    found = re.findall(
        r'^apiserver_storage_consistency_checks_total\{group="[^"]*",resource="([^"]+)",status="([^"]+)"\} (\d+)$',
        text,
        re.MULTILINE,
    )
    return {(resource, status): int(number) for resource, status, number in found}


async def counted(client: Client, *wanted: tuple[str, str]) -> None:
    while not set(wanted) <= (await checks(client)).keys():  # noqa: ASYNC110 - of another server's clock
        await asyncio.sleep(0.1)


async def test_a_cache_that_went_wrong_is_put_right(
    processes: list[EtcdProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_checks, "INTERVAL", 0.3)
    one, two = processes
    options = Options(
        data_dir=tmp_path / "server",
        listen=False,
        etcd_servers=(one.url,),
        etcd_servers_overrides=(f"/configmaps#{two.url}",),
    )
    plane = ControlPlane(options)
    await plane.start()
    try:
        client = Client(plane, {"admin": plane.token_of(ADMIN)}, "admin")
        assert (await client.post(CONFIG_MAPS, {"metadata": {"name": "c"}})).status == 201
        async with asyncio.timeout(60):
            await counted(client, ("configmaps", "success"), ("pods", "success"))
            assert {status for _, status in await checks(client)} == {"success"}
            cacher = plane.store("", "configmaps").cacher
            key = "/registry/configmaps/default/c"
            cacher.entries[key] = wrong = Entry(key, cacher.entries[key].body, 1)
            cacher.ordered.put(wrong)
            await counted(client, ("configmaps", "failure"))
            await cacher.wait_until_ready()
        assert (await client.get(f"{CONFIG_MAPS}/c")).status == 200
        assert cacher.entries[key].revision > 1
    finally:
        await plane.stop()
