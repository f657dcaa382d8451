"""A server on etcd: metrics, and resources in a separate cluster."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from steersman.api.core.v1 import ConfigMap, Event, ObjectReference
from steersman.api.meta.v1 import ObjectMeta
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import Options, OptionsError
from steersman.machinery.errors.status import StatusError
from steersman.rest.context import loopback
from steersman.storage.interface import StorageUnavailable
from steersman.storage.moving.cluster import Cluster
from tests.storage.etcd.process import EtcdProcess

_SIZE = re.compile(r'apiserver_storage_size_bytes\{\S+="(\S+)"\} (\d+)')


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[list[EtcdProcess]]:
    made = [EtcdProcess(tmp_path / name) for name in ("one", "two")]
    for each in made:
        each.start()
    yield made
    for each in made:
        each.stop()


async def keys_of(process: EtcdProcess) -> list[str]:
    cluster = Cluster([process.url], None, "/registry")
    try:
        revision, _, _ = await cluster.state()
        return [cluster.inner(each.key) async for page in cluster.pages(revision) for each in page]
    finally:
        cluster.close()


def scraped(plane: ControlPlane) -> str:
    assert plane.server is not None
    return "".join(plane.server.config.registry.expose())


async def test_a_resource_lies_in_the_cluster_that_a_flag_names(processes: list[EtcdProcess], tmp_path: Path) -> None:
    one, two = processes
    plane = ControlPlane(
        Options(
            data_dir=tmp_path / "server",
            listen=False,
            etcd_servers=(one.url,),
            etcd_servers_overrides=(f"/events#{two.url}", f"/configmaps#{two.url}"),
        )
    )
    await plane.start()
    try:
        event = Event(
            metadata=ObjectMeta(name="an-event", namespace="default"),
            involved_object=ObjectReference(namespace="default"),
        )
        await plane.objects("", "events").create(loopback("default"), event)
        assert plane.server is not None
        paths = plane.server.readyz.paths
        assert {"/readyz/etcd-override-0", "/readyz/etcd-override-readiness-0"} <= set(paths)
        assert "/readyz/etcd-override-1" not in paths  # both are on the same members
        text = scraped(plane)
    finally:
        await plane.stop()
    assert "/registry/events/default/an-event" in await keys_of(two)
    first = await keys_of(one)
    assert not [key for key in first if key.startswith(("/registry/events/", "/registry/configmaps/"))]
    assert "/registry/namespaces/default" in first
    assert 'etcd_requests_total{operation="create",group="",resource="events"} 1' in text
    assert re.search(r'etcd_request_duration_seconds_count\{operation="create",group="",resource="events"\} 1', text)
    assert "etcd_lease_object_counts_count" in text


async def test_the_size_of_each_cluster_is_asked_for(processes: list[EtcdProcess], tmp_path: Path) -> None:
    one, two = processes
    options = Options(
        data_dir=tmp_path / "server",
        listen=False,
        etcd_servers=(one.url,),
        etcd_servers_overrides=(f"/events#{two.url}",),
    )
    plane = ControlPlane(options)
    await plane.start()
    try:
        async with asyncio.timeout(10):
            while len(sizes := _SIZE.findall(scraped(plane))) < 2:  # noqa: ASYNC110 - it is asked for by itself
                await asyncio.sleep(0.01)
    finally:
        await plane.stop()
    assert [name for name, _ in sizes] == ["etcd-0", "etcd-1"]
    assert all(int(size) > 4096 for _, size in sizes)


async def test_a_cluster_that_has_died_is_counted_and_told(processes: list[EtcdProcess], tmp_path: Path) -> None:
    one, two = processes
    options = Options(
        data_dir=tmp_path / "server",
        listen=False,
        etcd_servers=(one.url,),
        etcd_readycheck_timeout=0.5,
        etcd_servers_overrides=(f"/configmaps#{two.url}",),
    )
    plane = ControlPlane(options)
    await plane.start()
    try:
        two.kill()
        with pytest.raises(StatusError):
            await plane.objects("", "configmaps").create(
                loopback("default"), ConfigMap(metadata=ObjectMeta(name="a", namespace="default"))
            )
        assert re.search(
            r'etcd_request_errors_total\{operation="create",group="",resource="configmaps"\} 1', scraped(plane)
        )
        assert plane.server is not None
        answered = dict([each async for each in plane.server.readyz.results()])
    finally:
        await plane.stop()
    assert answered["etcd-override-readiness-0"]
    assert not answered["etcd-readiness"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"etcd_servers_overrides": ("/events#http://a:1",)}, "--etcd-servers must be specified"),
        ({"etcd_servers": ("ftp://a",)}, "not the URL of an etcd member"),
        ({"etcd_servers": ("http://127.0.0.1:1",), "storage": "memory"}, "contradict"),
    ],
)
async def test_flags_that_cannot_be_followed_end_the_start(
    tmp_path: Path, options: dict[str, object], told: str
) -> None:
    plane = ControlPlane(Options(data_dir=tmp_path / "server", listen=False, **options))  # type: ignore[arg-type]
    with pytest.raises(OptionsError, match=told):
        await plane.start()


async def test_nothing_is_told_of_a_file_on_etcd(
    processes: list[EtcdProcess], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster([processes[0].url], None, "/registry")
    await cluster.store("/registry/configmaps/default/bad", b"{not an object", 0)
    cluster.close()
    options = Options(data_dir=tmp_path / "server", listen=False, etcd_servers=(processes[0].url,))
    plane = ControlPlane(options)
    with caplog.at_level("ERROR"):
        try:
            await plane.start()
        except StorageUnavailable as error:
            told = str(error)
        else:
            await plane.stop()
            told = caplog.text
    assert "in etcd the object /registry/configmaps/default/bad cannot be read" in told
    assert "steersman.db" not in told
