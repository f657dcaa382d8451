"""Selection of the pods that a rolling update of a DaemonSet replaces next (pkg/controller/daemon/update.go)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field

from steersman.api.apps.v1 import DaemonSet
from steersman.api.core.v1 import Pod
from steersman.controllers.daemon_set.nodes import is_updated
from steersman.controllers.workloads.int_or_percent import scaled
from steersman.machinery.built_in.pod_state import is_available


class Change(Struct):
    """Nodes that get a pod, and pods to delete."""

    nodes: list[str] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)


def surge_of(daemon_set: DaemonSet, nodes: int) -> int:
    """Return the number of nodes that may have both an old and a new pod."""
    rolling = daemon_set.spec.update_strategy.rolling_update
    if daemon_set.spec.update_strategy.type != "RollingUpdate" or rolling is None:
        return 0
    return scaled(rolling.max_surge, nodes, round_up=True)


def _unavailable_of(daemon_set: DaemonSet, nodes: int) -> int:
    """Return the number of nodes that may be without an available pod."""
    rolling = daemon_set.spec.update_strategy.rolling_update
    return scaled(rolling.max_unavailable, nodes, round_up=True) if rolling else 0


def next_change(
    daemon_set: DaemonSet, on_nodes: Mapping[str, Sequence[Pod]], suitable: set[str], hash_: str, now: int
) -> Change:
    """Return the next changes; `on_nodes` are the pods by node, `suitable` the nodes that should have a pod."""
    surge, unavailable = surge_of(daemon_set, len(suitable)), _unavailable_of(daemon_set, len(suitable))
    if suitable and not surge and not unavailable:
        unavailable = 1
    everywhere = {**dict.fromkeys(sorted(suitable), ()), **on_nodes}

    def serves(pod: Pod) -> bool:
        return is_available(pod, daemon_set.spec.min_ready_seconds, now)

    on_each = [(name, _new_and_old(daemon_set, pods, hash_)) for name, pods in everywhere.items()]
    if surge == 0:
        return _replaced((change for _, change in on_each), unavailable, serves)
    return _surged(on_each, suitable, surge, serves)


Found = tuple[Pod | None, Pod | None] | None
"""New and old pod of a node; None if there are several of either."""


def _new_and_old(daemon_set: DaemonSet, pods: Sequence[Pod], hash_: str) -> Found:
    new = old = None
    for pod in pods:
        if pod.metadata.deletion_timestamp:
            continue
        if is_updated(pod, daemon_set, hash_):
            if new is not None:
                return None
            new = pod
        else:
            if old is not None:
                return None
            old = pod
    return new, old


def _replaced(everywhere: Iterable[Found], unavailable: int, serves: Callable[[Pod], bool]) -> Change:
    """Return the old pods to delete: all unavailable ones, and others as long as few nodes are unavailable."""
    missing = 0
    change, candidates = Change(), []
    for pods_on_nodes in everywhere:
        if pods_on_nodes is None or (pods_on_nodes[0] is None) == (pods_on_nodes[1] is None):
            missing += 1
            continue
        new, old = pods_on_nodes
        if new is not None:
            missing += not serves(new)
        elif old is not None and not serves(old):
            change.pods.append(old)
            missing += 1
        elif old is not None:
            candidates.append(old)
    change.pods += candidates[: max(unavailable - missing, 0)]
    return change


def _surged(
    everywhere: Sequence[tuple[str, Found]], suitable: set[str], surge: int, serves: Callable[[Pod], bool]
) -> Change:
    """Return nodes that get a new pod beside the old one, and old pods whose new pod is available."""
    change = Change()
    surging = serving = 0
    candidates: list[str] = []
    unwanted: list[Pod] = []
    for name, pods_on_nodes in everywhere:
        if pods_on_nodes is None:
            surging += 1
            continue
        new, old = pods_on_nodes
        one = old or new
        serving += one is not None and serves(one)
        if old is None:
            continue
        if new is not None:
            if serves(new):
                change.pods.append(old)
            else:
                surging += 1
        elif name not in suitable:
            (unwanted if serves(old) else change.pods).append(old)
        else:
            (candidates if serves(old) else change.nodes).append(name)
    change.pods += unwanted[: max(serving - len(suitable), 0)]
    change.nodes += candidates[: max(surge - surging, 0)]
    return change
