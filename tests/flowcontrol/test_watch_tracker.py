"""Counting of watches."""

from __future__ import annotations

from steersman.flowcontrol.watch_tracker import WatchTracker
from steersman.machinery.identity.action import Action


def _watch(namespace: str = "", name: str = "", resource: str = "configmaps") -> Action:
    return Action("watch", "", "v1", resource, "", namespace, name)


def _write(namespace: str = "", name: str = "", resource: str = "configmaps") -> Action:
    return Action("update", "", "v1", resource, "", namespace, name)


def test_a_write_interests_watches_of_all_of_its_namespace_and_of_it() -> None:
    watches = WatchTracker()
    ends = [watches.register(each, "") for each in (_watch(), _watch("a"), _watch("b"), _watch("a", "x"))]
    assert watches.interested(_write("a", "x")) == 3
    assert watches.interested(_write("a", "y")) == 2
    assert watches.interested(_write("b", "x")) == 2
    assert watches.interested(_write("c")) == 1
    assert watches.interested(_write("a", "x", "secrets")) == 0
    for end in ends:
        end()
    assert watches.interested(_write("a", "x")) == 0


def test_watches_of_the_pods_of_one_node_do_not_count() -> None:
    watches = WatchTracker()
    watches.register(_watch(resource="pods"), "spec.nodeName=n1")
    watches.register(_watch(resource="pods"), "status.phase=Running")
    watches.register(_watch(resource="pods"), "spec.nodeName=")
    assert watches.interested(_write("a", "x", "pods")) == 2
