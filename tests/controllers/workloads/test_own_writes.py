"""Tests of the record of own writes."""

from __future__ import annotations

from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import ObjectMeta
from steersman.controllers.workloads.own_writes import OwnWrites


def version(number: int, uid: str = "u") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(uid=uid, resource_version=str(number)))


def test_an_object_is_behind_until_the_version_that_was_written_is_seen() -> None:
    written: OwnWrites[str] = OwnWrites()
    assert not written.is_stale("a", version(1))
    written.record("a", version(5))
    assert written.is_stale("a", version(4))
    assert not written.is_stale("a", version(4, "made again"))
    assert not written.is_stale("a", version(6))
    assert not written.is_stale("a", version(4))
