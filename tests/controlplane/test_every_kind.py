"""Every stored kind is created, read in all forms, updated and deleted, from one list of samples."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest

from steersman.controlplane import on_request
from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS
from steersman.kinds.built_in import classes_of
from steersman.machinery.codec.protobuf import documents as protobuf
from steersman.machinery.codec.serializer import decode_json, encode
from steersman.machinery.identity.schema import GroupVersionKind
from tools.differential.case import named
from tools.differential.objects import Sample, every_sample

PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

SAMPLES = [
    pytest.param(sample, number, id=f"{sample.body['kind']}.{sample.api_version}-{number}")
    for number, sample in enumerate(every_sample())
]

pytestmark = pytest.mark.asyncio(loop_scope="session")


WRITTEN_BY_THE_SERVER = frozenset({"resourceVersion", "managedFields", "generation"})


def without_versions(obj: dict[str, Any]) -> dict[str, Any]:
    """Return an object without the members that every write changes."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in WRITTEN_BY_THE_SERVER}
    return {**obj, "metadata": metadata}


async def test_every_kind_that_is_stored_has_a_sample() -> None:
    stored = {
        (version, resource.plural)
        for resource in (*on_request.kube_api(lambda *_: True), *AGGREGATOR, *API_EXTENSIONS)
        if "create" in resource.verbs and "get" in resource.verbs and not resource.not_yet
        for version in (
            (resource.group, resource.version),
            *((each.group, each.version) for each in resource.other_versions),
        )
    }
    sampled = {(tuple(each.api_version.rpartition("/")[::2]), each.resource.plural) for each in every_sample()}
    assert {(tuple(version), plural) for version, plural in stored} - sampled == {
        (("apiregistration.k8s.io", "v1"), "apiservices")
    }


def compact(value: Any) -> bytes:
    """Return JSON without white space: templates in revisions stay undecoded and are compared as bytes."""
    return json.dumps(value, separators=(",", ":")).encode()


_TOLD = {"CustomResourceDefinition": "Established", "FlowSchema": "Dangling"}
"""The kinds with conditions that the server itself sets, and the type of the condition."""


async def told(api: Any, path: str, condition: str) -> Any:
    """Return an object once the server has set the condition."""
    while True:
        document = json.loads((await api.get(path)).body)
        if any(each["type"] == condition for each in document["status"].get("conditions") or ()):
            return document
        await asyncio.sleep(0.001)


@pytest.mark.parametrize(("sample", "number"), SAMPLES)
async def test_it_is_made_read_changed_and_deleted(
    api: Any, api_with_everything: Any, namespace: str, sample: Sample, number: int
) -> None:
    if sample.on_request:
        api = api_with_everything
    name = f"sample-{number}"
    body = named(copy.deepcopy(sample.body), name, namespace)
    body.pop("status", None)
    path = named(sample.path, name, namespace)
    for account in ("default", "web"):
        await api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": account}})
    answer = await api.post(named(sample.collection, name, namespace), compact(body), content_type="application/json")
    assert answer.status == 201, answer.body
    made = json.loads(answer.body)
    for key, value in body["metadata"].items():
        assert made["metadata"][key] == (value | made["metadata"][key] if key == "labels" else value)

    if made["kind"] in _TOLD:
        made = await told(api, path, _TOLD[made["kind"]])

    # read, in every form
    assert json.loads((await api.get(path)).body) == made
    group, _, version = sample.api_version.rpartition("/")
    kind = classes_of(group, version)[made["kind"]]
    wire = (await api.get(path, accept=PROTOBUF)).body
    again = protobuf.decode_object(kind, wire)
    assert protobuf.encode(again, GroupVersionKind(group, version, made["kind"])) == wire
    expected = json.loads(encode(decode_json(kind, json.dumps(made).encode())))
    for claim in expected["spec"].get("volumeClaimTemplates", ()) if made["kind"] == "StatefulSet" else ():
        del claim["kind"], claim["apiVersion"]  # only the whole document says these as protobuf
    assert json.loads(encode(again)) == expected
    table = json.loads((await api.get(path, accept=TABLE)).body)
    [row] = table["rows"]
    # upstream gives addresses an age that has no column
    assert len(row["cells"]) == len(table["columnDefinitions"]) + (made["kind"] == "IPAddress")
    assert row["cells"][0] == made["metadata"]["name"] or made["kind"] == "Event"
    partial = json.loads((await api.get(path, accept=PARTIAL)).body)
    assert (partial["kind"], partial["metadata"]) == ("PartialObjectMetadata", made["metadata"])

    # changed, as JSON and as protobuf
    changed = copy.deepcopy(made)
    changed["metadata"]["labels"] = {**made["metadata"].get("labels", {}), "changed": "yes"}
    answer = await api.request("PUT", path, compact(changed), content_type="application/json")
    assert answer.status == 200, answer.body
    updated = json.loads(answer.body)
    assert without_versions(updated) == without_versions(changed)
    updated["metadata"]["annotations"] = {**updated["metadata"].get("annotations", {}), "changed": "again"}
    document = protobuf.encode(
        decode_json(kind, json.dumps(updated).encode()), GroupVersionKind(group, version, made["kind"])
    )
    answer = await api.request("PUT", path, document, **{"content-type": PROTOBUF})
    assert answer.status == 200, answer.body
    assert without_versions(json.loads(answer.body)) == without_versions(updated)
    if sample.has_status and "status" in sample.body:
        answer = await api.put(f"{path}/status", {**json.loads(answer.body), "status": sample.body["status"]})
        assert answer.status == 200, answer.body
        found = json.loads(answer.body)["status"]
        assert {key: found.get(key) for key in sample.body["status"] if found.get(key)}

    # deleted
    answer = await api.delete(path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
    assert answer.status == 200, answer.body
    finalizers = {"metadata": {"finalizers": None}}
    await api.request("PATCH", path, finalizers, **{"content-type": "application/merge-patch+json"})
    if made["kind"] != "Namespace":
        assert (await api.get(path)).status == 404
