"""Stages in the files of a cluster's configuration."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from steersman.authentication.user import UserInfo
from steersman.client.resources import PODS
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration, ConfigurationError
from steersman.cluster.stage_files import stages_of
from steersman.controlplane.options import Options
from tests.controllers.waiting import eventually
from tests.nodes.stages.samples import ENDS, RUNS, Plain, stage

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "annotations": {"delay": "10ms"}},
    "spec": {"containers": [{"name": "web", "image": "nginx"}]},
}


def documents(*found: Plain) -> str:
    return "\n---\n".join(json.dumps(each) for each in found)


def load(folder: Path, text: str) -> Configuration:
    (folder / "cluster.yaml").write_text(text)
    return Configuration.load(folder / "cluster.yaml")


def test_stages_are_in_the_file_itself_in_files_and_in_folders(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "stages"
    (folder / "testdata").mkdir(parents=True)
    (folder / "testdata" / "no.yaml").write_text("kind: Pod")
    (folder / "a.yaml").write_text(documents(RUNS, ENDS))
    (folder / "kustomization.yaml").write_text("{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization}")
    (tmp_path / "one.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [RUNS]}))
    own = documents({"stages": ["stages", "one.json"], "seed": 3}, stage("own", "Node", selector={}))
    configuration = load(tmp_path, own)
    assert (configuration.seed, len(configuration.documents)) == (3, 1)
    with caplog.at_level(logging.WARNING):
        stages = stages_of(configuration)
    assert stages.pods is not None
    assert stages.nodes is not None
    assert [each.name for each in stages.pods.stages] == ["runs", "ends", "runs"]
    assert [each.name for each in stages.nodes.stages] == ["own"]
    assert [each.getMessage() for each in caplog.records] == [
        f"{folder}/kustomization.yaml: a document (Kustomization) is no Stage of kwok.x-k8s.io and is passed over"
    ]


def test_a_file_of_stages_alone_is_a_configuration(tmp_path: Path) -> None:
    kwok = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": {}}
    configuration = load(tmp_path, documents(kwok, RUNS))
    assert [each.name for each in configuration.simulated_nodes()] == ["node-0"]
    assert stages_of(configuration).pods is not None


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("stages: [none.yaml]", "none.yaml is not there"),
        ("stages: [other.yaml]", "other.yaml: no Stage of kwok.x-k8s.io is there"),
        ("stages: [broken.yaml]", "broken.yaml: Stage mine: template: line 1: "),
        ("nodes: []\n---\nnodes: []", "2 documents say what the cluster is"),
        ("seed: x", "Expected `int | null`, got `str`"),
    ],
)
def test_invalid_stages_are_reported(tmp_path: Path, text: str, reported: str) -> None:
    (tmp_path / "other.yaml").write_text("kind: Other")
    (tmp_path / "broken.yaml").write_text(documents(stage("mine", selector={}, next={"statusTemplate": "{{ none }}"})))
    with pytest.raises(ConfigurationError) as refused:
        stages_of(load(tmp_path, text))
    assert reported in str(refused.value)


async def test_pods_of_a_cluster_follow_its_stages(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(json.dumps(POD))
    configuration = load(tmp_path, documents({"objects": ["pod.yaml"]}, RUNS, ENDS))
    cluster = Cluster(Options(data_dir=tmp_path / "data", storage="memory", listen=False), configuration)
    await cluster.start()
    try:
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")

        async def runs() -> bool:
            pod = await client.get(PODS, "web", "default")
            return pod.status.phase == "Running" and pod.status.conditions[0].type != "Initialized"

        await eventually(runs)
        await client.delete(PODS, "web", "default")

        async def gone() -> bool:
            return not (await client.list(PODS, "default")).items

        await eventually(gone)
        assert await cluster.settle()
    finally:
        await cluster.stop()
