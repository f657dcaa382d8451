"""Clusters that are not used, and what is told of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from steersman.storage.etcd import EtcdStorage
from steersman.storage.etcd.checks import why_silent, wrong_with_members
from steersman.storage.etcd.members import endpoints
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
    with pytest.raises(StorageFormatError, match="/registry/services/web is not what an API server stores"):
        await EtcdStorage.open([etcd_process.url])
    other = await EtcdStorage.open([etcd_process.url], root="/own")
    await other.close()


async def test_a_silent_cluster_is_told_with_the_reason_of_each_member() -> None:
    with pytest.raises(
        StorageUnavailable, match=r"no member of etcd answers: http://127.0.0.1:1: .*connection refused"
    ):
        await EtcdStorage.open(["http://127.0.0.1:1"], start_seconds=0.2)


def test_a_version_that_is_too_old_is_told() -> None:
    old = dataclasses.replace(WELL, version="3.3.27")
    assert wrong_with_members(TWO, [WELL, old]) == "http://b:2379 runs etcd 3.3.27; 3.4 or later is needed"
    assert wrong_with_members(TWO, [WELL, WELL]) == ""
    assert wrong_with_members(TWO, [WELL, StorageUnavailable("no")]) == ""


def test_members_without_a_majority_are_told() -> None:
    told = why_silent(TWO, [WELL, StorageUnavailable("refused")], "etcdserver: no leader")
    assert told.startswith("etcd has no quorum: http://a:2379 answers")
    assert "no leader" in told
