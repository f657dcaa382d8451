"""Objects that a cluster is created with."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.authentication.user import UserInfo
from steersman.client.resources import CONFIG_MAPS
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration, ConfigurationError
from steersman.cluster.initial_objects import read_manifests
from steersman.controlplane.options import Options

pytestmark = pytest.mark.usefixtures("from_nothing")

WIDGET = """
apiVersion: example.com/v1
kind: Widget
metadata: {name: first, namespace: default}
"""
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: b}\n"


async def start(tmp_path: Path) -> Cluster:
    options = Options(data_dir=tmp_path / "data", storage="memory", listen=False)
    cluster = Cluster(options, Configuration(objects=(tmp_path / "objects",)))
    await cluster.start()
    return cluster


async def test_objects_are_there_when_it_has_started_those_of_new_kinds_too(tmp_path: Path) -> None:
    folder = tmp_path / "objects"
    folder.mkdir()
    (folder / "1.yaml").write_text(f"{DEFINITION}---\n{WIDGET}---\n{CONFIG_MAP % 'one'}")
    (folder / "2.yaml").write_text(
        "apiVersion: v1\nkind: List\nitems:\n- " + (CONFIG_MAP % "two").replace("\n", "\n  ")
    )
    (folder / "notes.txt").write_text("no object")
    cluster = await start(tmp_path)
    client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
    names = {each.metadata.name for each in (await client.list(CONFIG_MAPS, "default")).items}
    assert {"one", "two"} <= names
    assert (await client.get_plain("/apis/example.com/v1/widgets"))["items"][0]["metadata"]["name"] == "first"
    await cluster.stop()


async def test_an_object_that_is_refused_ends_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "objects"
    folder.mkdir()
    (folder / "1.yaml").write_text(CONFIG_MAP % "Bad_Name")
    with pytest.raises(ConfigurationError, match=r'1.yaml: ConfigMap Bad_Name: ConfigMap "Bad_Name" is invalid'):
        await start(tmp_path)


async def test_a_kind_that_nothing_makes_be_served_is_not_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "objects"
    folder.mkdir()
    (folder / "1.yaml").write_text("apiVersion: apps/v1\nkind: Deploymnt\nmetadata: {name: a}\n")
    reported = r"1.yaml: Deploymnt a: no such kind is served in apps/v1, did you mean Deployment\?$"
    with pytest.raises(ConfigurationError, match=reported):
        await start(tmp_path)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("a: [", "1.yaml: line 2, column 1: did not find expected node content"),
        ("- 1", "says its kind and apiVersion"),
        ("{kind: A, apiVersion: v1}", "A has no name"),
    ],
)
def test_files_that_are_no_manifests_are_reported(text: str, reported: str, tmp_path: Path) -> None:
    (tmp_path / "1.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match=reported):
        read_manifests([tmp_path])


def test_several_json_documents_and_flow_mappings_are_read_as_kubectl_reads_them(tmp_path: Path) -> None:
    one = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"}}'
    (tmp_path / "a.json").write_text(one % "a" + one % "b")
    (tmp_path / "b.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n---\n" + one % "d")
    assert [each["metadata"]["name"] for _, each in read_manifests([tmp_path])] == ["a", "b", "c", "d"]
