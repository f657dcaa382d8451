"""Large stored objects: whatever reads them, none is decoded or encoded whole by the thread of the loop."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from differential.case import named
from differential.objects import Sample, every_sample

from steersman.machinery.slow_lane import is_large
from steersman.store.encoding import Encoding

PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
MERGE = "application/merge-patch+json"

MANY = {f"label-{number}": "" for number in range(1_500)}
"""Labels that make any object large."""

SAMPLES = [
    pytest.param(sample, number, id=f"{sample.body['kind']}.{sample.api_version}-{number}")
    for number, sample in enumerate(every_sample())
]

ELSEWHERE = ("rbac_feed.py",)
"""Modules that answer for themselves."""

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def on_the_loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Where large objects were decoded or encoded by the loop's own thread."""
    loop = threading.get_ident()
    found: list[str] = []
    decode, value = Encoding._decode, Encoding.value

    def note(data: bytes) -> None:
        if threading.get_ident() == loop and is_large(data):
            stack = [each for each in traceback.extract_stack()[:-2] if "steersman" in each.filename]
            if not any(each.filename.endswith(ELSEWHERE) for each in stack):
                found.append(" < ".join(f"{each.filename.rpartition('/')[2]}:{each.lineno}" for each in stack[:-7:-1]))

    def noted_decode(self: Any, data: bytes) -> Any:
        note(data)
        return decode(self, data)

    def noted_value(self: Any, obj: Any) -> bytes:
        made = value(self, obj)
        note(made)
        return made

    monkeypatch.setattr(Encoding, "_decode", noted_decode)
    monkeypatch.setattr(Encoding, "value", noted_value)
    yield found
    assert not found


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


async def first_event(api: Any, target: str) -> dict[str, Any]:
    """The first event of a watch, which is then left."""
    async with await api.open("GET", target) as response, asyncio.timeout(10):
        data = b""
        async for part in response:
            data += part
            if b"\n" in data:
                break
    event: dict[str, Any] = json.loads(data.partition(b"\n")[0])
    return event


def selectors(sample: Sample, name: str) -> list[str]:
    """A selector by name, and one for each field that can be selected, which looks at every object."""
    every = [f"fieldSelector=metadata.name%3D{name}", "labelSelector=label-7%3D", "fieldSelector=metadata.name!%3Dx"]
    fields = sample.resource.selectable_fields
    other = [each for each in sample.resource.other_versions if sample.api_version == f"{each.group}/{each.version}"]
    if other and other[0].selectable_fields is not None:
        fields = other[0].selectable_fields  # type: ignore[assignment]
    return every + [f"fieldSelector={field}!%3Dnobody" for field in fields]


@pytest.mark.parametrize(("sample", "number"), SAMPLES)
async def test_every_verb(
    api: Any, api_with_everything: Any, namespace: str, on_the_loop: list[str], sample: Sample, number: int
) -> None:
    if sample.on_request:
        api = api_with_everything
    name = f"large-{number}"
    body = named(copy.deepcopy(sample.body), name, namespace)
    body.pop("status", None)
    body["metadata"]["labels"] = {**body["metadata"].get("labels", {}), **MANY}
    collection, path = named(sample.collection, name, namespace), named(sample.path, name, namespace)
    await api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    await api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "web"}})
    answer = await api.post(collection, compact(body), content_type="application/json")
    assert answer.status == 201, answer.body
    name = answer.json()["metadata"]["name"]
    for accept in ("application/json", PROTOBUF, TABLE, PARTIAL, "application/yaml"):
        assert (await api.get(path, accept=accept)).status == 200
    for accept in ("application/json", PROTOBUF, TABLE, PARTIAL_LIST):
        assert (await api.get(collection, accept=accept)).status == 200
    changes = [{"metadata": {"annotations": {"change": text}}} for text in "ab"]
    for selector in selectors(sample, name):
        # one that nobody has looked at, each time
        answer = await api.request("PATCH", path, changes[0], content_type=MERGE)
        assert answer.status == 200, answer.body
        changes.reverse()
        answer = await api.get(f"{collection}?{selector}")
        assert answer.status == 200, answer.body
        assert name in [each["metadata"]["name"] for each in answer.json()["items"]], selector
        if "watch" in sample.resource.verbs:
            answer = await api.request("PATCH", path, changes[0], content_type=MERGE)
            changes.reverse()
            assert (await first_event(api, f"{collection}?watch=1&{selector}"))["type"] == "ADDED"
    whole = (await api.get(path)).json()
    whole["metadata"].setdefault("annotations", {})["change"] = "c"
    answer = await api.request("PUT", path, compact(whole), content_type="application/json")
    assert answer.status == 200, answer.body
    for each in sample.resource.subresources:
        if each.strategy is not None and "get" in each.verbs:
            answer = await api.get(f"{path}/{each.name}")
            assert answer.status == 200, answer.body
            await api.request("PUT", f"{path}/{each.name}", compact(answer.json()), content_type="application/json")
    await api.delete(path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background", "dryRun": ["All"]})
    answer = await api.delete(path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
    assert answer.status == 200, answer.body
    await api.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
