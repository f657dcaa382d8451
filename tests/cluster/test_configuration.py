"""What a file says of a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.cluster.configuration import Configuration, ConfigurationError, NodeGroup


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


def test_objects_are_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text("")
    assert load(tmp_path, "objects: [app.yaml]").objects == (tmp_path / "app.yaml",)


def test_a_file_leaves_the_scheduler_on_and_serving_local_off(tmp_path: Path) -> None:
    found = load(tmp_path, "nodes: [{count: 2}]")
    assert (found.schedules, found.serve_local) == (True, False)
    found = load(tmp_path, "serveLocal: true")
    assert (found.schedules, found.serve_local) == (True, True)


def test_a_file_that_cannot_be_read_is_told_in_a_few_words(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Configuration.load(tmp_path / "missing.yaml")
    assert str(refused.value) == f"{tmp_path}/missing.yaml: No such file or directory"


@pytest.mark.parametrize(("text", "told"), [
    ("nodes: 3", "array"),
    ("nodes: [{nmae: a}]", "nmae"),
    ("nodes: [", "cluster.yaml"),
    ("objects: [missing.yaml]", "missing.yaml is not there"),
])  # fmt: skip
def test_what_is_wrong_is_told(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=told):
        load(tmp_path, text)


@pytest.mark.parametrize(("groups", "told"), [
    ((NodeGroup(), NodeGroup()), "two nodes are called node-0"),
    ((NodeGroup(count=40_000),), "from 0 to 32768"),
    ((NodeGroup(capacity={"cpu": "many"}),), "cpu"),
])  # fmt: skip
def test_nodes_that_cannot_be_are_told(groups: tuple[NodeGroup, ...], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        Configuration(groups).simulated_nodes()
