"""ResourceSlices of simulated nodes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from steersman.api.core.v1 import Node
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.resource.v1 import Counter, CounterSet, Device, DeviceTaint, ResourceSlice
from steersman.machinery.selectors.labels import SelectorError
from steersman.nodes.devices.slices import DeviceSet, DeviceSets, changes

NODE = Node(metadata=ObjectMeta(name="n", uid="u", labels={"gpu": "true"}))
CARDS = DeviceSet("gpu.example.com", [Device(name="card")], count=3)


def of(*sets: DeviceSet, node: Node = NODE) -> list[ResourceSlice]:
    return DeviceSets(sets).slices_of(node)


def published(slices: list[ResourceSlice], generation: int = 1) -> list[ResourceSlice]:
    return [
        replace(each, spec=replace(each.spec, pool=replace(each.spec.pool, generation=generation))) for each in slices
    ]


def test_a_set_is_a_pool_of_the_node() -> None:
    (found,) = of(CARDS)
    assert [each.name for each in found.spec.devices or ()] == ["card-0", "card-1", "card-2"]
    assert (found.spec.driver, found.spec.node_name, found.spec.pool.name) == ("gpu.example.com", "n", "n")
    assert [each.uid for each in found.metadata.owner_references] == ["u"]


def test_a_selector_chooses_nodes() -> None:
    assert len(of(DeviceSet("d", [Device(name="x")], nodes="gpu=true"))) == 1
    assert of(DeviceSet("d", [Device(name="x")], nodes="gpu!=true")) == []
    with pytest.raises(SelectorError):
        of(DeviceSet("d", [Device(name="x")], nodes="=="))


def test_sets_of_one_driver_share_its_pool_and_others_have_their_own() -> None:
    found = of(CARDS, DeviceSet("gpu.example.com", [Device(name="old")]), DeviceSet("nic", [Device(name="eth")]))
    assert [(each.spec.driver, [one.name for one in each.spec.devices or ()]) for each in found] == [
        ("gpu.example.com", ["card-0", "card-1", "card-2", "old"]),
        ("nic", ["eth"]),
    ]


def test_many_devices_are_in_several_slices_and_counters_in_their_own() -> None:
    counters = [CounterSet(name=f"c{number}", counters={"a": Counter(value="1")}) for number in range(9)]
    found = of(replace(CARDS, count=300, shared_counters=counters))
    assert [len(each.spec.devices or ()) for each in found] == [0, 0, 128, 128, 44]
    assert [len(each.spec.shared_counters or ()) for each in found] == [8, 1, 0, 0, 0]
    assert {each.spec.pool.resource_slice_count for each in found} == {5}
    assert len({each.metadata.name for each in found}) == 5
    tainted = Device(name="card", taints=[DeviceTaint(key="k", effect="NoSchedule")])
    assert [len(each.spec.devices or ()) for each in of(DeviceSet("d", [tainted], count=100))] == [64, 36]


def test_what_is_published_is_not_written_again() -> None:
    due = changes(of(CARDS), published(of(CARDS), 4))
    assert (due.created, due.updated, due.deleted) == ([], [], [])


def test_a_change_gives_the_whole_pool_a_new_generation_and_leaves_others() -> None:
    other = DeviceSet("nic", [Device(name="eth")])
    before = published(of(replace(CARDS, count=200), other), 4)
    due = changes(of(replace(CARDS, count=100), other), before)
    assert [each.metadata.name for each in due.deleted] == ["n-gpu.example.com-1"]
    assert [(each.metadata.name, each.spec.pool.generation) for each in due.updated] == [("n-gpu.example.com-0", 5)]
    due = changes(of(replace(CARDS, count=300), other), before)
    assert [each.metadata.name for each in due.created] == ["n-gpu.example.com-2"]
    assert {each.spec.pool.generation for each in (*due.updated, *due.created)} == {5}
    assert changes([], before).deleted == before


def test_the_server_may_complete_what_it_stores() -> None:
    tainted = DeviceSet("d", [Device(name="x", taints=[DeviceTaint(key="k", effect="NoSchedule")])])
    (stored,) = published(of(tainted))
    device = (stored.spec.devices or [])[0]
    complete = replace(device, taints=[replace(device.taints[0], time_added="2026-01-01T00:00:00Z")])
    stored = replace(stored, spec=replace(stored.spec, devices=[complete]))
    due = changes(of(tainted), [stored])
    assert (due.created, due.updated, due.deleted) == ([], [], [])
    assert len(changes(of(replace(tainted, count=1)), [stored]).updated) == 1
