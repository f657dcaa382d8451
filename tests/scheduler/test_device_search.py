"""The search for devices: the first combination in the order of devices, within a budget for all nodes together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.core.v1 import Node
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.resource.v1 import DeviceClass, ResourceClaim, ResourceSlice
from steersman.client.client import Client
from steersman.client.informer import Informers
from steersman.machinery.codec.serializer import from_plain
from steersman.scheduler.devices.allocator import MOST_STEPS, Allocator, Steps
from steersman.scheduler.devices.selectors import SelectionFailed, Selections
from steersman.scheduler.devices.store import DeviceStore
from tests.example_counts import examples

Plain = dict[str, Any]
DRIVER = "gpu.example.com"


def store_of(devices: Mapping[str, Sequence[Plain]], counters: int = 0) -> DeviceStore:
    """Return a store with a pool of devices for each node, and a counter of `counters` in each pool."""
    store = DeviceStore(Informers(cast("Client", None)))
    store.classes.put(DeviceClass(metadata=ObjectMeta(name="gpu")))
    for node, some in devices.items():
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec: Plain = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": list(some)}
        if counters:
            spec["sharedCounters"] = [{"name": "all", "counters": {"memory": {"value": str(counters)}}}]
        store.slices.put(from_plain(ResourceSlice, {"metadata": {"name": f"of-{node}"}, "spec": spec}))
    return store


def device(name: str, board: str = "", memory: int = 0) -> Plain:
    found: Plain = {"name": name, "attributes": {"board": {"string": board}} if board else {}}
    if memory:
        found["consumesCounters"] = [{"counterSet": "all", "counters": {"memory": {"value": str(memory)}}}]
    return found


def claim(*counts: int, match: str = "", distinct: str = "") -> ResourceClaim:
    requests = [
        {"name": f"r{number}", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}}
        for number, count in enumerate(counts)
    ]
    constraints = [
        {name: f"{DRIVER}/{attribute}"}
        for name, attribute in (("matchAttribute", match), ("distinctAttribute", distinct))
        if attribute
    ]
    spec = {"devices": {"requests": requests, "constraints": constraints}}
    return from_plain(ResourceClaim, {"metadata": {"name": "c", "namespace": "d"}, "spec": spec})


def search(store: DeviceStore, node: str, wanted: ResourceClaim, steps: Steps | None = None) -> list[str] | None:
    """Return the names of the devices that a claim gets on a node."""
    of_node = Node(metadata=ObjectMeta(name=node))
    found = Allocator(store, of_node, [wanted], Selections(), Steps() if steps is None else steps).allocate()
    return None if found is None else [each.device for each in found[0].devices.results]


class Case:
    """Devices and a claim, drawn at random."""

    def __init__(self, boards: list[str], memory: list[int], counts: list[int], kind: str, limit: int) -> None:
        self.devices = [
            device(f"d{number}", board, size) for number, (board, size) in enumerate(zip(boards, memory, strict=True))
        ]
        self.memory, self.boards, self.counts, self.kind, self.limit = memory, boards, counts, kind, limit

    @property
    def claim(self) -> ResourceClaim:
        return claim(*self.counts, **({self.kind: "board"} if self.kind else {}))

    def first(self) -> list[str] | None:
        """Return the first sequence of devices that meets the claim, of all sequences in their order."""
        for some in permutations(range(len(self.devices)), sum(self.counts)):
            boards = [self.boards[each] for each in some]
            is_good = {
                "match": all(boards) and len(set(boards)) == 1,
                "distinct": all(boards) and len(set(boards)) == len(boards),
                "": True,
            }[self.kind]
            if is_good and sum(self.memory[each] for each in some) <= self.limit:
                return [f"d{each}" for each in some]
        return None


@st.composite
def cases(draw: st.DrawFn) -> Case:
    size = draw(st.integers(1, 6))
    boards = draw(st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=size, max_size=size))
    memory = draw(st.lists(st.integers(1, 4), min_size=size, max_size=size))
    counts = draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
    return Case(boards, memory, counts, draw(st.sampled_from(["", "match", "distinct"])), draw(st.integers(1, 12)))


@settings(max_examples=examples(200))
@given(cases())
def test_the_first_combination_is_the_first_of_all_sequences(case: Case) -> None:
    store = store_of({"n": case.devices}, case.limit)
    assert search(store, "n", case.claim) == case.first()


@pytest.mark.parametrize(
    ("devices", "wanted", "most"),
    [
        ([device(f"d{each}") for each in range(30)], claim(31), 2_000),
        ([device(f"d{each}", str(each % 2)) for each in range(32)], claim(17, match="board"), 10_000),
    ],
    ids=["too few devices", "too few on a board"],
)
def test_an_impossible_claim_is_found_out_with_few_steps(
    devices: list[Plain], wanted: ResourceClaim, most: int
) -> None:
    """There are 10 to the power of 9 combinations of 17 devices out of 32."""
    steps = Steps()
    assert search(store_of({"n": devices}), "n", wanted, steps) is None
    assert MOST_STEPS - steps.left <= most


def hard() -> Iterator[Plain]:
    """Yield devices of which no two are alike in pairs of equal boards, so that only trying tells."""
    for number in range(24):
        yield device(f"d{number}", str(number), 3)


def test_all_nodes_of_an_attempt_share_one_budget() -> None:
    """The steps do not grow with the number of nodes, and a node that fits at the first try is still found."""
    impossible = claim(4, 4, 4)  # 36 units of the counter, where there are 35
    nodes = {f"hard-{number}": list(hard()) for number in range(50)}
    store = store_of({**nodes, "easy": [device(f"e{number}", str(number), 1) for number in range(12)]}, 35)
    steps = Steps()
    for name in nodes:
        with pytest.raises(SelectionFailed, match="too many combinations of devices"):
            search(store, name, impossible, steps)
    assert steps.left == 0
    assert search(store, "easy", claim(4, 4, 4), Steps(24)) == [f"e{number}" for number in range(12)]


def test_pools_of_other_nodes_are_not_looked_at() -> None:
    store = store_of({f"n{number}": [device("d")] for number in range(20)})
    shared = {"driver": DRIVER, "pool": {"name": "net", "generation": 1, "resourceSliceCount": 1}, "allNodes": True}
    slices = {"metadata": {"name": "net"}, "spec": {**shared, "devices": [device("e")]}}
    store.slices.put(from_plain(ResourceSlice, slices))
    node = Node(metadata=ObjectMeta(name="n7"))
    assert [each.name for each in store.pools(node)] == ["n7", "net"]
    for known in list(store.slices):
        store.slices.remove(known)
    assert not store.pools(node)
