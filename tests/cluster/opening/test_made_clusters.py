"""Dumps of whole clusters, made from a seed: they open without work for controllers and nodes, and are equal afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from bench.opening.dump import Maker, write_dump
from bench.opening.imports import comparable, different
from steersman.client.resources import PODS
from tests.cluster.opening.clusters import imported, opened

_ANNOTATIONS: Final = frozenset(
    {"simulation.steersman.dev/simulated", "volumes.kubernetes.io/controller-managed-attach-detach"}
)
"""Annotations that opened nodes get."""


def _without_marks(found: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what opening and its node add to it."""
    metadata = dict(found["metadata"])
    annotations = {key: each for key, each in metadata.pop("annotations", {}).items() if key not in _ANNOTATIONS}
    return {**found, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}


@pytest.mark.slow
async def test_a_cluster_of_a_seed_stays_as_it_was_and_is_imported_equal(tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    write_dump(dump, Maker(7, 12, 150).objects())
    given = comparable(dump)
    pods = {key: each for key, each in given.items() if key.kind == "Pod"}
    assert len(pods) == 150
    async with opened(dump, tmp_path / "data") as client:
        assert len((await client.list(PODS)).items) == 150
        first = await imported(client, tmp_path)
    found = comparable(first)
    assert {key: _without_marks(found[key]) for key in pods} == {
        key: _without_marks(each) for key, each in pods.items()
    }
    assert not given.keys() - found.keys()
    async with opened(first, tmp_path / "again") as client:
        second = await imported(client, tmp_path)
    assert not different(found, comparable(second))
