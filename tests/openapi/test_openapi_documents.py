"""The stored OpenAPI documents, and cutting them down to what is served."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from steersman.api.index import ON_REQUEST
from steersman.controlplane import on_request
from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS, KUBE_API
from steersman.endpoints.discovery import served_versions
from steersman.openapi.documents import Tree, manifest
from steersman.openapi.selection import Served, select
from steersman.rest.resource import Resource

ALL_PATHS = frozenset({"/version", "/.well-known/openid-configuration", "/openid/v1/jwks"})


def serving(resources: Iterable[Resource[Any]]) -> Served:
    """A server that has these, in all their versions."""
    every = [found for each in (*resources, *API_EXTENSIONS, *AGGREGATOR) for found in served_versions(each)]
    return Served(frozenset((each.group, each.version, each.resource.plural) for each in every), ALL_PATHS)


DEFAULT = serving(KUBE_API)
EVERYTHING = serving(on_request.kube_api(lambda *_: True))
CONFIG_MAPS = Served(frozenset({("", "v1", "configmaps"), ("apps", "v1", "deployments")}), frozenset())


def schemas_of(document: Tree) -> Tree:
    found: Tree = document["definitions"] if "definitions" in document else document["components"]["schemas"]
    return found


def references(value: Any) -> set[str]:
    """Every reference in a document, without "#/"."""
    if isinstance(value, dict):
        own = {value["$ref"][2:]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_documents_are_those_the_manifest_names() -> None:
    folder = files("steersman.openapi") / "data"
    stored = [manifest().v2, manifest().v2_on_request, *manifest().v3.values()]
    assert {each.name for each in folder.iterdir()} == {each.file for each in stored} | {"manifest.json"}
    for each in stored:
        data = gzip.decompress((folder / each.file).read_bytes())
        assert hashlib.sha256(data).hexdigest() == each.sha256, each.file


def test_generator_writes_what_is_in_the_package(tmp_path: Path) -> None:
    facts, output = tmp_path / "facts", tmp_path / "output"
    (facts / "openapi").mkdir(parents=True)
    for name, stored in manifest().v3.items():
        (facts / "openapi" / f"{name.replace('/', '_')}.json").write_text(json.dumps(stored.load()))
    (facts / "openapi-v2.json").write_text(json.dumps(manifest().v2.load()))
    (facts / "all").mkdir()
    sections = ("paths", "definitions", "parameters")
    v2, more = manifest().v2.load(), manifest().v2_on_request.load()
    everything = v2 | {section: v2[section] | more[section] for section in sections}
    (facts / "all" / "openapi-v2.json").write_text(json.dumps(everything))
    generator = Path(__file__).parents[2] / "tools/generate_openapi.py"
    subprocess.run([sys.executable, generator, facts, "--output", output], check=True)
    written = files("steersman.openapi") / "data/manifest.json"
    assert (output / "manifest.json").read_text() == written.read_text()
    assert {each.name for each in output.iterdir()} == {each.name for each in (Path(str(written)).parent).iterdir()}


def test_documents_are_small_in_the_package() -> None:
    folder = files("steersman.openapi") / "data"
    assert sum(len(each.read_bytes()) for each in folder.iterdir()) < 400_000


@pytest.mark.parametrize("name", ["", *manifest().v3])
def test_nothing_is_cut_from_a_server_that_serves_everything(name: str) -> None:
    stored = manifest().v3[name] if name else manifest().v2
    assert select(stored.load(), EVERYTHING) == stored.load()


def test_the_v2_document_has_what_is_served_by_default_and_the_other_one_the_rest() -> None:
    assert select(manifest().v2.load(), DEFAULT) == manifest().v2.load()
    more = manifest().v2_on_request.load()
    assert select(more, EVERYTHING) == manifest().v2_on_request.load()
    assert not more["paths"].keys() & manifest().v2.load()["paths"].keys()
    assert references(more) == defined(more)
    kinds = {each["x-kubernetes-group-version-kind"]["version"] for item in more["paths"].values()
             for each in item.values() if "x-kubernetes-group-version-kind" in each}  # fmt: skip
    assert kinds == {version for _, version in ON_REQUEST}


def test_every_built_in_resource_has_paths_in_its_document() -> None:
    for group, version, plural in EVERYTHING.resources:
        name = f"apis/{group}/{version}" if group else f"api/{version}"
        paths = manifest().v3[name].load()["paths"]
        assert any(path.endswith(f"/{plural}") or f"/{plural}/" in path for path in paths), (name, plural)


def defined(document: Tree) -> set[str]:
    """Everything a reference can be to."""
    if "definitions" in document:
        return {f"{section}/{name}" for section in ("definitions", "parameters") for name in document[section]}
    return {f"components/schemas/{name}" for name in document["components"]["schemas"]}


@pytest.mark.parametrize("name", ["", "api/v1", "apis/apps/v1"])
def test_what_is_not_served_is_cut_with_the_schemas_only_it_used(name: str) -> None:
    document = select((manifest().v3[name] if name else manifest().v2).load(), CONFIG_MAPS)
    resources = {path.split("/")[-1] for path in document["paths"] if "{" not in path}
    assert resources <= {"configmaps", "deployments", "v1", ""}
    schemas = schemas_of(document)
    assert not any(each.endswith((".Node", ".DaemonSet", ".JobSpec")) for each in schemas)
    assert references(document) == defined(document)
    core_used = "io.k8s.api.core.v1.ConfigMap" in schemas
    assert core_used == (name != "apis/apps/v1")


@pytest.mark.parametrize(
    ("path", "is_served"),
    [
        ("/api/", True),
        ("/api/v1/", True),
        ("/api/v1", True),
        ("/api/v2", False),
        ("/apis/", True),
        ("/apis/apps/", True),
        ("/apis/batch/", False),
        ("/apis/apps/v1/", True),
        ("/apis/apps/v2/", False),
        ("/api/v1/configmaps", True),
        ("/api/v1/pods", False),
        ("/api/v1/namespaces/{namespace}/configmaps/{name}", True),
        ("/api/v1/watch/namespaces/{namespace}/configmaps/{name}", True),
        ("/api/v1/namespaces/{namespace}/pods/{name}/log", False),
        ("/api/v1/namespaces/{name}", False),
        ("/api/v1/namespaces/{name}/finalize", False),
        ("/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale", True),
        ("/version/", False),
    ],
)
def test_path_is_served_with_its_resource(path: str, is_served: bool) -> None:
    assert CONFIG_MAPS.path(path) == is_served


def test_namespaces_are_a_resource_and_a_prefix() -> None:
    only = Served(frozenset({("", "v1", "namespaces")}), frozenset({"/version"}))
    assert only.path("/api/v1/namespaces/{name}/finalize")
    assert only.path("/api/v1/watch/namespaces/{name}")
    assert not only.path("/api/v1/namespaces/{namespace}/bindings")
    assert only.path("/version/")
