"""Tests of the graph of owners."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.client.resources import CONFIG_MAPS
from steersman.controllers.garbage_collector.garbage_collector import GarbageCollector
from steersman.controllers.garbage_collector.graph import Graph, Node

_Step = tuple[str, list[tuple[str, bool | None]] | None]
_UIDS = ["a", "b", "c", "d"]
_REFERENCE = st.tuples(st.sampled_from(_UIDS), st.sampled_from([True, False, None]))
_STEP = st.tuples(st.sampled_from(_UIDS), st.none() | st.lists(_REFERENCE, max_size=4, unique_by=lambda each: each[0]))


def _blocks_deletion(owner: Node, dependent: Node) -> bool:
    return any(each.uid == owner.uid and each.block_owner_deletion for each in dependent.owners)


@given(st.lists(_STEP, max_size=20))
def test_dependents_that_block_are_those_whose_references_say_so(
    steps: list[tuple[str, list[tuple[str, bool]] | None]],
) -> None:
    graph = Graph(lambda _: None, lambda _: None, lambda *_: None)
    for uid, references in steps:
        if references is None:
            graph.remove(uid)
            continue
        owners = [
            OwnerReference(api_version="v1", kind="ConfigMap", name=owner, uid=owner, block_owner_deletion=blocks)
            for owner, blocks in references
        ]
        graph.put(CONFIG_MAPS.metadata_only, ObjectMeta(uid=uid, name=uid, namespace="n", owner_references=owners))
        for each in filter(None, map(graph.get, _UIDS)):
            expected = {uid for uid, dependent in each.dependents.items() if _blocks_deletion(each, dependent)}
            assert each.blocking.keys() == expected


async def test_an_owner_that_has_gone_needs_no_work() -> None:
    graph = Graph(lambda _: None, lambda _: None, lambda *_: None)
    graph.put(CONFIG_MAPS.metadata_only, ObjectMeta(uid="a", name="a", namespace="n"))
    of_a = OwnerReference(api_version="v1", kind="ConfigMap", name="a", uid="a", block_owner_deletion=True)
    graph.put(CONFIG_MAPS.metadata_only, ObjectMeta(uid="b", name="b", namespace="n", owner_references=[of_a]))
    graph.remove("a")
    collector = object.__new__(GarbageCollector)  # without a client, so that it asks no server
    collector.graph = graph
    for what in ("orphan", "delete"):
        await collector.sync((what, "a"))
    kept = graph.get("a")
    assert kept is not None
    assert kept.dependents.keys() == {"b"}
