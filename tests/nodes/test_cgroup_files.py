"""Files of control groups about a container's resources."""

from __future__ import annotations

import pytest

from steersman.api.core.v1 import ContainerStatus, ResourceRequirements
from steersman.nodes.cgroup_files import ROOT, cgroup_files


@pytest.mark.parametrize(
    ("requests", "limits", "quota", "weight", "memory"),
    [
        ({}, {}, b"max 100000", b"1", b"max"),
        ({"cpu": "100m"}, {"memory": "64Mi"}, b"max 100000", b"17", b"67108864"),
        ({"cpu": "1"}, {"cpu": "1500m"}, b"150000 100000", b"100", b"max"),
        ({}, {"cpu": "1m"}, b"1000 100000", b"1", b"max"),
        ({"cpu": "400"}, {}, b"max 100000", b"10000", b"max"),
        ({"cpu": "what"}, {"memory": "no"}, b"max 100000", b"1", b"max"),
    ],
)
def test_limits_and_weight(
    requests: dict[str, str], limits: dict[str, str], quota: bytes, weight: bytes, memory: bytes
) -> None:
    assert cgroup_files(ResourceRequirements(requests=requests, limits=limits), None) == {
        f"{ROOT}/cpu.max": quota + b"\n",
        f"{ROOT}/cpu.weight": weight + b"\n",
        f"{ROOT}/memory.max": memory + b"\n",
    }


def test_they_are_those_that_a_resize_has_given_it() -> None:
    status = ContainerStatus(name="c", resources=ResourceRequirements(limits={"memory": "1Ki"}))
    found = cgroup_files(ResourceRequirements(limits={"memory": "2Ki"}), status)
    assert found[f"{ROOT}/memory.max"] == b"1024\n"


def test_a_container_without_limits_is_held_to_those_of_its_pod() -> None:
    whole = ResourceRequirements(limits={"cpu": "2", "memory": "1Ki"})
    found = cgroup_files(ResourceRequirements(limits={"memory": "512"}), None, whole)
    assert (found[f"{ROOT}/cpu.max"], found[f"{ROOT}/memory.max"]) == (b"200000 100000\n", b"512\n")
