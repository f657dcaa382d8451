"""Configuration files of clusters."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration, ConfigurationError, NodeGroup
from steersman.controlplane.options import Options


def load(tmp_path: Path, text: str) -> Configuration:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    return Configuration.load(path)


def test_groups_of_nodes_are_alike_but_for_names_and_addresses(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        """
nodes:
- {name: worker, count: 2, capacity: {cpu: "8"}, labels: {zone: a}}
- name: gpu
  taints: [{key: example.com/gpu, effect: NoSchedule}]
""",
    )
    nodes = found.simulated_nodes()
    assert [each.name for each in nodes] == ["worker-0", "worker-1", "gpu-0"]
    assert len({each.address for each in nodes}) == len({str(each.pod_cidr) for each in nodes}) == 3
    worker, gpu = nodes[0].node(), nodes[2].node()
    assert (worker.status.capacity["cpu"], worker.status.capacity["pods"]) == ("8", "110")
    assert worker.metadata.labels["zone"] == "a"
    assert [each.key for each in gpu.spec.taints] == ["example.com/gpu"]


def test_without_a_file_there_is_one_node() -> None:
    assert [each.name for each in Configuration().simulated_nodes()] == ["node-0"]


def test_objects_are_found_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text("")
    assert load(tmp_path, "objects: [app.yaml]").objects == (tmp_path / "app.yaml",)


def test_a_file_leaves_the_scheduler_on_and_serving_local_off(tmp_path: Path) -> None:
    found = load(tmp_path, "nodes: [{count: 2}]")
    assert (found.schedules, found.serve_local) == (True, False)
    found = load(tmp_path, "serveLocal: true")
    assert (found.schedules, found.serve_local) == (True, True)


def test_an_unreadable_file_is_reported_briefly(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Configuration.load(tmp_path / "missing.yaml")
    assert str(refused.value) == f"{tmp_path}/missing.yaml: No such file or directory"


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("nodes: 3", "array"),
        ("nodes: [{nmae: a}]", "nmae"),
        ("nodes: [", "cluster.yaml"),
        ("objects: [missing.yaml]", "missing.yaml is not there"),
        ("unknownPrograms: explode", r"cluster.yaml: unknownPrograms: 'explode' is none of run, succeed, fail$"),
        ("nodes: []\nnodes: []", 'cluster.yaml: line 2: key "nodes" already set in map'),
    ],
)
def test_errors_in_files_are_reported(text: str, reported: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=reported):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("nodes: [{name: a}, {name: a}]", "two nodes are called a-0"),
        ("nodes: [{count: -1}]", "-1 nodes: from 0 to"),
        ("nodes: [{capacity: {cpu: lots}}]", "capacity of nodes 'node': cpu: "),
    ],
)
def test_what_is_wrong_with_nodes_names_the_file(text: str, reported: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, text).simulated_nodes()
    assert str(refused.value).startswith(f"{tmp_path}/cluster.yaml: {reported}")


def test_quantities_may_be_numbers(tmp_path: Path) -> None:
    node = load(tmp_path, "nodes: [{capacity: {cpu: 8, example.com/gpu: 1.5}}]").simulated_nodes()[0].node()
    assert (node.status.capacity["cpu"], node.status.capacity["example.com/gpu"]) == ("8", "1.5")


@pytest.mark.parametrize(
    ("group", "reported"),
    [
        (NodeGroup("Worker_1"), 'Node "Worker_1-0" is invalid: metadata.name: '),
        (NodeGroup(labels={"a b": "c"}), 'Node "node-0" is invalid: metadata.labels: '),
    ],
)
async def test_a_node_that_is_refused_ends_the_start(group: NodeGroup, reported: str, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    options = Options(data_dir=tmp_path / "data", storage="memory", listen=False)
    with pytest.raises(ConfigurationError) as refused:
        await Cluster(options, Configuration((group,), file=file)).start()
    assert str(refused.value).startswith(f"{file}: {reported}")


@pytest.mark.parametrize(
    ("groups", "reported"),
    [
        ((NodeGroup(), NodeGroup()), "two nodes are called node-0"),
        ((NodeGroup(count=40_000),), "from 0 to 32768"),
        ((NodeGroup(capacity={"cpu": "many"}),), "cpu"),
    ],
)
def test_invalid_nodes_are_reported(groups: tuple[NodeGroup, ...], reported: str) -> None:
    with pytest.raises(ConfigurationError, match=reported):
        Configuration(groups).simulated_nodes()
