"""Clusters that are refused, and the errors."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from steersman.storage.etcd import EtcdStorage
from steersman.storage.etcd.checks import members_error, no_quorum_message
from steersman.storage.etcd.members import Endpoint, endpoints
from steersman.storage.etcd.messages import Status
from steersman.storage.interface import StorageFormatError, StorageUnavailable
from steersman.storage.moving.cluster import Cluster
from tests.storage.etcd.process import EtcdProcess

TWO = endpoints(["http://a:2379", "http://b:2379"])
WELL = Status(cluster=0xABC, version="3.6.8", leader=1)


@pytest.fixture
def another_process(tmp_path: Path) -> Iterator[EtcdProcess]:
    process = EtcdProcess(tmp_path / "another")
    process.start()
    yield process
    process.stop()


async def test_members_of_different_clusters_are_refused(
    etcd_process: EtcdProcess, another_process: EtcdProcess
) -> None:
    with pytest.raises(StorageUnavailable, match="members of different clusters: http://"):
        await EtcdStorage.open([etcd_process.url, another_process.url])


async def test_a_member_that_does_not_answer_may_be_one(etcd_process: EtcdProcess) -> None:
    storage = await EtcdStorage.open([etcd_process.url, "http://127.0.0.1:1"])
    await storage.close()


async def test_keys_of_something_else_are_told(etcd_process: EtcdProcess) -> None:
    cluster = Cluster([etcd_process.url], None, "/registry")
    await cluster.store("/registry/services/web", b"10.0.0.1:80", 0)
    cluster.close()
    with pytest.raises(StorageFormatError, match="/registry/services/web in etcd was not stored by an API server"):
        await EtcdStorage.open([etcd_process.url])
    other = await EtcdStorage.open([etcd_process.url], root="/own")
    await other.close()


async def test_a_silent_cluster_is_told_with_the_reason_of_each_member() -> None:
    with pytest.raises(
        StorageUnavailable, match=r"no member of etcd answers: http://127.0.0.1:1: .*connection refused"
    ):
        await EtcdStorage.open(["http://127.0.0.1:1"], start_seconds=0.2)


async def test_what_a_member_wants_that_hangs_up_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    member = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = member.sockets[0].getsockname()[1]
    with pytest.raises(StorageUnavailable, match=r"unexpected EOF \(if it speaks TLS, its URL begins with https://\)"):
        await EtcdStorage.open([f"http://127.0.0.1:{port}"], start_seconds=0.6)
    member.close()
    messages = [each.message for each in caplog.records if "etcd does not answer" in each.message]
    assert messages == ["etcd does not answer, trying for 0.6 s: unexpected EOF"]


def test_a_member_that_hangs_up_may_want_a_certificate() -> None:
    told = no_quorum_message([Endpoint("https://a:2379")], [StorageUnavailable("unexpected EOF")], "unexpected EOF")
    assert told == (
        "no member of etcd answers: https://a:2379: unexpected EOF (if it requires client certificates, "
        "none is set or this one is not accepted: --etcd-certfile, --etcd-keyfile)"
    )


def test_a_version_that_is_too_old_is_told() -> None:
    old = dataclasses.replace(WELL, version="3.3.27")
    assert members_error(TWO, [WELL, old]) == "http://b:2379 runs etcd 3.3.27; 3.4.31, 3.5.13 or later is needed"
    assert members_error(TWO, [WELL, WELL]) == ""
    assert members_error(TWO, [WELL, StorageUnavailable("no")]) == ""


def test_members_without_a_majority_are_told() -> None:
    told = no_quorum_message(TWO, [WELL, StorageUnavailable("refused")], "etcdserver: no leader")
    assert told.startswith("etcd has no quorum: http://a:2379 answers")
    assert "no leader" in told


@pytest.mark.parametrize(
    ("version", "is_refused"),
    [
        ("3.4.30", True),
        ("3.4.31", False),
        ("3.5.0", True),
        ("3.5.12", True),
        ("3.5.13", False),
        ("3.6.0", False),
        ("3.6.0-rc.1", False),
        ("3.3.27", True),
        ("4.0.0", False),
        ("built by hand", False),
    ],
)
def test_members_whose_watches_say_too_early_that_they_are_done_are_refused(version: str, is_refused: bool) -> None:
    assert bool(members_error(TWO, [WELL, dataclasses.replace(WELL, version=version)])) is is_refused
