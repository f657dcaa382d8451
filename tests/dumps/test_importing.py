"""Imports and recordings of a running server."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from steersman.api.core.v1 import ConfigMap, Secret
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.resources import CONFIG_MAPS, SECRETS
from steersman.client.transport import Unreachable
from steersman.dumps import importing
from steersman.dumps.fields import parse_field
from steersman.dumps.importing import import_cluster
from steersman.dumps.recording import Full, Recorder
from steersman.dumps.recordings import open_to_append, read_changes
from tests.controllers.waiting import eventually


async def imported(client: Client, **options: Any) -> dict[tuple[str, str], Any]:
    pieces: list[bytes] = []
    await import_cluster(client, pieces.append, **{"secrets": False, **options})
    items = json.loads(b"".join(pieces))["items"]
    return {(each["kind"], each["metadata"]["name"]): each for each in items}


async def test_an_import_has_all_objects_without_values_of_secrets(client: Client) -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"key":"b3RoZXI="}}', "note": "x"}
    metadata = ObjectMeta(name="s", namespace="default", annotations=annotations)
    await client.create(SECRETS, Secret(metadata=metadata, data={"key": b"value"}))
    for number in range(3):
        made = ConfigMap(metadata=ObjectMeta(name=f"c{number}", namespace="default"), data={"a": "b"})
        await client.create(CONFIG_MAPS, made)
    found = await imported(client)
    assert {"c0", "c1", "c2"} <= {name for kind, name in found if kind == "ConfigMap"}
    secret = found["Secret", "s"]
    assert (secret["apiVersion"], secret["data"], secret["metadata"]["annotations"]) == (
        "v1",
        {"key": ""},
        {"note": "x"},
    )
    assert ("Namespace", "default") in found
    cut = await imported(
        client, secrets=True, fields=[parse_field("configmaps:data"), parse_field("metadata.managedFields")]
    )
    assert cut["Secret", "s"]["data"] == {"key": "dmFsdWU="}
    assert "data" not in cut["ConfigMap", "c0"]
    assert not any("managedFields" in each["metadata"] for each in cut.values())


async def test_an_import_is_no_larger_than_a_dump_may_be(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "MOST_BYTES", 2 << 20)
    await imported(client)
    for number in range(3):
        made = ConfigMap(metadata=ObjectMeta(name=f"c{number}", namespace="default"), data={"a": "b" * 900_000})
        await client.create(CONFIG_MAPS, made)
    with pytest.raises(Unreachable, match="more than 2 MiB, which no dump may have"):
        await imported(client)
    assert "data" not in (await imported(client, fields=[parse_field("configmaps:data")]))["ConfigMap", "c0"]


async def test_a_recording_has_each_change_once(client: Client, tmp_path: Path) -> None:
    config_map = ConfigMap(metadata=ObjectMeta(name="c", namespace="default"), data={"a": "b"})
    await client.create(CONFIG_MAPS, config_map)
    file = tmp_path / "day.rec"
    recorder = Recorder(client, open_to_append(file), secrets=False, most_bytes=1 << 30)
    running = asyncio.ensure_future(recorder.run())

    async def changes() -> list[tuple[str, Any]]:
        found = [each for each in read_changes(file) if each.object["metadata"]["name"] == "c"]
        return [(each.type, each.object.get("data")) for each in found]

    await eventually(changes)
    await client.patch(CONFIG_MAPS, "c", "default", {"data": {"a": "c"}})
    await client.delete(CONFIG_MAPS, "c", "default")

    async def is_deleted() -> bool:
        return (await changes())[-1][0] == "DELETED"

    await eventually(is_deleted)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert await changes() == [("PRESENT", {"a": "b"}), ("MODIFIED", {"a": "c"}), ("DELETED", {"a": "c"})]


async def test_a_recording_ends_at_its_size(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "day.rec"
    descriptor = open_to_append(file)
    recorder = Recorder(client, descriptor, secrets=False, most_bytes=20_000)
    try:
        await recorder.run()
    except Full:
        pass
    else:
        raise AssertionError("it goes on")
    finally:
        os.close(descriptor)
    assert 10_000 < len(file.read_bytes()) <= 20_000
    assert list(read_changes(file))
