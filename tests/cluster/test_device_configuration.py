"""Devices in the configuration file of a cluster that the server would refuse, or that are too many."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steersman.cluster.configuration import Configuration, ConfigurationError

Plain = dict[str, Any]


def group(*names: str, **more: Any) -> Plain:
    return {"driver": "gpu.example.com", "devices": [{"name": each} for each in names], **more}


def load(folder: Path, *sets: Plain) -> Configuration:
    file = folder / "cluster.yaml"
    file.write_text(json.dumps({"devices": sets}))
    return Configuration.load(file)


COUNTERS: Plain = {"sharedCounters": [{"name": "s", "counters": {"memory": {"value": "1"}}}]}


@pytest.mark.parametrize(
    ("sets", "fault"),
    [
        ([group("a", count=-1)], r"devices\[0\]\.count"),
        ([group("a", count=1025)], r"devices\[0\]\.count"),
        ([group("a", count=2**63)], r"devices\[0\]\.count"),
        ([group("a", driver="")], r"devices\[0\]\.driver"),
        (
            [{"driver": "d", "devices": [{"name": "a", "attributes": {"x": {"int": 2**63}}}]}],
            r"attributes\[\.\.\.\]\.int",
        ),
        ([{"driver": "d", "devices": [{"name": "a", "attributes": {"x": {"version": "1." * 9999}}}]}], "version"),
        ([group(*(f"a{number}" for number in range(5)), count=1024)], "5120 on a node: at most 4096"),
        ([group() for _ in range(4097)], "4097 on a node: at most 4096"),
        ([group("a"), group("b", "a")], r"devices\[1\]: a is there twice"),
        ([group("a", nodes="gpu=true"), group("a")], r"devices\[1\]: a is there twice"),
        ([group("a"), group("a", nodes="gpu=true")], r"devices\[1\]: a is there twice"),
        ([group("a", count=2), group("a-1")], r"devices\[1\]: a-1 is there twice"),
        ([group("a", **COUNTERS), group("b", **COUNTERS)], r"devices\[1\]: s is there twice"),
    ],
)
def test_devices_with_a_fault_end_the_start(tmp_path: Path, sets: list[Plain], fault: str) -> None:
    with pytest.raises(ConfigurationError, match=fault) as caught:
        load(tmp_path, *sets)
    assert len(str(caught.value)) < 1000


def test_names_may_repeat_on_other_nodes_and_of_other_drivers(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        group("a", nodes="zone=a"),
        group("a", nodes="zone=b"),
        group("a", driver="nic.example.com"),
        group("b"),
    )
    assert found.devices.drivers == {"gpu.example.com", "nic.example.com"}
