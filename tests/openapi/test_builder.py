"""Documents that are built of resources."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from steersman.api.index import ON_REQUEST
from steersman.endpoints.discovery import served_versions
from steersman.machinery.patch.merge_patch import apply
from steersman.openapi.schemas import recorded
from tests import ROOT
from tests.openapi.built_documents import EVERYTHING, documents_of, every_v3, v2

PODS = "/api/v1/namespaces/{namespace}/pods"


def undescribed(value: Any, *, named: bool = False) -> Any:
    """Return a document in the form in which tools/record_documents.py records it."""
    if isinstance(value, list):
        return [undescribed(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: undescribed(each, named=not named and key in ("properties", "definitions", "schemas", "paths"))
        for key, each in value.items()
        if named or key != "description" or not isinstance(each, str)
    }


def references(value: Any) -> set[str]:
    """Every reference in a document, without "#/"."""
    if isinstance(value, dict):
        own = {value["$ref"][2:]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def defined(document: Any) -> set[str]:
    """Everything a reference can be to."""
    if "definitions" in document:
        return {f"{section}/{name}" for section in ("definitions", "parameters") for name in document[section]}
    return {f"components/schemas/{name}" for name in document["components"].get("schemas", ())}


def test_generator_writes_what_is_in_the_package(tmp_path: Path) -> None:
    facts, output, on_request = tmp_path / "facts", tmp_path / "output", tmp_path / "on_request.json.gz"
    (facts / "all/openapi").mkdir(parents=True)
    for name, document in every_v3().items():
        (facts / f"all/openapi/{name.replace('/', '_')}.json").write_text(json.dumps(undescribed(document)))
    (facts / "openapi-v2.json").write_text(json.dumps(undescribed(v2())))
    (facts / "all/openapi-v2.json").write_text(json.dumps(undescribed(v2(everything=True))))
    generator = ROOT / "tools/generate_openapi.py"
    subprocess.run([sys.executable, generator, facts, "--output", output, "--on-request", on_request], check=True)
    package = files("steersman.openapi") / "data"
    described = {"layout.json", "descriptions"}  # by generators of their own
    assert {each.name for each in output.iterdir()} == {each.name for each in package.iterdir()} - described
    for each in output.iterdir():
        assert each.read_text() == (package / each.name).read_text()
    known = json.loads(gzip.decompress((ROOT / "tools/generate/v2_on_request.json.gz").read_bytes()))
    assert json.loads(gzip.decompress(on_request.read_bytes())) == undescribed(known)


def test_little_is_recorded() -> None:
    package = files("steersman.openapi") / "data"
    assert sum(len(each.read_bytes()) for each in package.iterdir() if each.is_file()) < 70_000


def test_what_is_off_by_default_is_added_on_request() -> None:
    added = v2(everything=True)["paths"].keys() - v2()["paths"].keys()
    kinds = {
        operation["x-kubernetes-group-version-kind"]["version"]
        for path in added
        for method, operation in v2(everything=True)["paths"][path].items()
        if method != "parameters" and "x-kubernetes-group-version-kind" in operation
    }
    assert kinds == {version for _, version in ON_REQUEST}


def test_every_built_in_resource_has_paths_in_its_document() -> None:
    for served in (each for resource in EVERYTHING for each in served_versions(resource)):
        name = f"apis/{served.group}/{served.version}" if served.group else f"api/{served.version}"
        plural = served.resource.plural
        assert any(path.endswith(f"/{plural}") or f"/{plural}/" in path for path in every_v3()[name]["paths"])


@pytest.mark.parametrize("name", ["", "api/v1", "apis/apps/v1", "apis/apiextensions.k8s.io/v1", "version"])
def test_a_document_has_the_schemas_that_it_leads_to_and_no_others(name: str) -> None:
    document = every_v3()[name] if name else v2()
    assert references(document) == defined(document)


def test_what_is_not_served_is_not_there_nor_are_the_schemas_only_it_needs() -> None:
    few = [each for each in EVERYTHING if each.plural in ("configmaps", "deployments")]
    documents = documents_of(few)
    assert {"api/v1", "apis/apps", "apis/apps/v1"} <= documents.keys()
    assert "apis/batch/v1" not in documents
    core = documents["api/v1"].build()
    assert {path.split("/")[-1] for path in core["paths"] if "{name}" not in path} == {"", "configmaps"}
    assert "io.k8s.api.core.v1.Pod" not in core["components"]["schemas"]
    assert documents["api/v1"].etag != documents_of(EVERYTHING)["api/v1"].etag
    assert references(core) == defined(core)


def test_operations_are_named_as_upstream_names_them() -> None:
    paths = every_v3()["api/v1"]["paths"]
    ids = {
        (f"{PODS}", "get"): "listCoreV1NamespacedPod",
        (f"{PODS}", "delete"): "deleteCoreV1CollectionNamespacedPod",
        (f"{PODS}/{{name}}/log", "get"): "readCoreV1NamespacedPodLog",
        (f"{PODS}/{{name}}/exec", "post"): "connectCoreV1PostNamespacedPodExec",
        (f"{PODS}/{{name}}/proxy/{{path}}", "head"): "connectCoreV1HeadNamespacedPodProxyWithPath",
        ("/api/v1/watch/pods", "get"): "watchCoreV1PodListForAllNamespaces",
        ("/api/v1/namespaces/{name}/finalize", "put"): "replaceCoreV1NamespaceFinalize",
    }
    assert {key: paths[key[0]][key[1]]["operationId"] for key in ids} == ids


def test_ids_of_operations_are_each_of_one_operation() -> None:
    ids = [
        operation["operationId"]
        for item in v2(everything=True)["paths"].values()
        for method, operation in item.items()
        if method != "parameters"
    ]
    assert len(ids) == len(set(ids))


def test_a_merge_patch_takes_away_changes_and_adds() -> None:
    assert apply({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": None, "e": 4}, "d": [5]}) == {
        "a": {"c": 2, "e": 4},
        "d": [5],
    }


def test_a_schema_nobody_knows_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"no schema io\.k8s\.api\.core\.v1\.Nothing"):
        recorded("io.k8s.api.core.v1.Nothing")
