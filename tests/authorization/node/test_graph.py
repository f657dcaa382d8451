"""The graph of the Node authorizer agrees with following references from object to object."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from steersman.authorization.node.graph import Graph
from steersman.authorization.node.references import CLAIM, CONFIG_MAP, SECRET, PodReferences, VolumeReferences

NODES, NAMES, NAMESPACES = ("n1", "n2"), ("a", "b", "c"), ("x", "y")


class Naive:
    """The objects themselves, searched at every query."""

    def __init__(self) -> None:
        self.pods: dict[tuple[str, str], PodReferences] = {}
        self.volumes: dict[str, VolumeReferences] = {}

    def names(self, node: str, kind: str, namespace: str, name: str) -> bool:
        for (of, _), pod in self.pods.items():
            if pod.node == node and of == namespace and (kind, name) in pod.references:
                return True
        return kind == SECRET and any(
            (namespace, name) in volume.secrets and self.uses_volume(node, each)
            for each, volume in self.volumes.items()
        )

    def uses_volume(self, node: str, name: str) -> bool:
        volume = self.volumes.get(name)
        return volume is not None and volume.claim is not None and self.names(node, CLAIM, *volume.claim)

    def runs(self, node: str, namespace: str, name: str) -> bool:
        pod = self.pods.get((namespace, name))
        return pod is not None and pod.node == node


REFERENCES = st.tuples(st.sampled_from((SECRET, CONFIG_MAP, CLAIM)), st.sampled_from(NAMES))
PLACES = st.tuples(st.sampled_from(NAMESPACES), st.sampled_from(NAMES))
PODS = st.builds(PodReferences, st.sampled_from(("", *NODES)), st.lists(REFERENCES, unique=True, max_size=4).map(tuple))
VOLUMES = st.builds(VolumeReferences, st.none() | PLACES, st.lists(PLACES, unique=True, max_size=3).map(tuple))


class PodChange(NamedTuple):
    """The new references of a pod."""

    key: tuple[str, str]
    references: PodReferences | None


class VolumeChange(NamedTuple):
    """The new references of a volume."""

    key: str
    references: VolumeReferences | None


Change = PodChange | VolumeChange
CHANGES = st.lists(
    st.builds(PodChange, PLACES, st.none() | PODS)
    | st.builds(VolumeChange, st.sampled_from(NAMES), st.none() | VOLUMES),
    max_size=30,
)


def put(graph: Graph, change: Change) -> None:
    if isinstance(change, PodChange):
        graph.put_pod(*change.key, change.references)
    else:
        graph.put_volume(*change)


@given(CHANGES)
def test_every_answer_is_that_of_looking_through_everything(changes: list[Change]) -> None:
    graph, naive = Graph(), Naive()
    for change in changes:
        put(graph, change)
        if isinstance(change, PodChange):
            naive.pods.pop(change.key, None)
            if change.references is not None and change.references.node:
                naive.pods[change.key] = change.references
        else:
            naive.volumes.pop(change.key, None)
            if change.references is not None:
                naive.volumes[change.key] = change.references
    for node in NODES:
        for name in NAMES:
            assert graph.uses_volume(node, name) == naive.uses_volume(node, name)
            for namespace in NAMESPACES:
                assert graph.runs(node, namespace, name) == naive.runs(node, namespace, name)
                for kind in (SECRET, CONFIG_MAP, CLAIM):
                    assert graph.names(node, kind, namespace, name) == naive.names(node, kind, namespace, name)


@given(CHANGES)
def test_nothing_is_left_of_what_has_gone(changes: list[Change]) -> None:
    graph = Graph()
    for change in changes:
        put(graph, change)
    for namespace in NAMESPACES:
        for name in NAMES:
            graph.put_pod(namespace, name, None)
    for name in NAMES:
        graph.put_volume(name, None)
    left = {name: value for name, value in vars(graph).items() if value and name != "_shared"}
    assert left == {}


def test_what_is_attached_and_which_devices_there_are() -> None:
    graph = Graph()
    graph.put_attachment("va", "n1")
    graph.put_slice("s", "n2")
    assert graph.is_attached("n1", "va")
    assert not graph.is_attached("n2", "va")
    assert graph.has_slice("n2", "s")
    graph.put_attachment("va", "")
    graph.put_slice("s", "")
    assert not graph.is_attached("n1", "va")
    assert not graph.has_slice("n2", "s")
