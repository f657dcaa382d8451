"""Completion of a dump's objects, so that a cluster of them goes on as it was: nothing is collected or made again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from steersman.cluster.opening.addresses import missing_addresses
from steersman.cluster.opening.items import ContainerState, Ended, Item, Key, made
from steersman.cluster.opening.node_objects import complete_nodes
from steersman.dumps.errors import DumpError
from steersman.dumps.importing import METRICS
from steersman.dumps.reading import DumpObject
from steersman.machinery.errors.field import quote
from steersman.machinery.validation.formats import is_path_segment_name
from steersman.machinery.values import times
from steersman.net.ascii import is_digits
from steersman.nodes.behaviour import PREFIX

_NO_NAMESPACES: Final = frozenset({"", "default", "kube-system", "kube-public", "kube-node-lease"})
"""Namespaces that every cluster makes."""
_CRASHES: Final = "CrashLoopBackOff"
_NOT_PULLED: Final = frozenset({"ImagePullBackOff", "ErrImagePull"})
_OVER: Final = frozenset({"Succeeded", "Failed"})
_MOST_NAME: Final = 1024
"""Characters of a name. Few kinds have names of more than 253, such as roles."""
_MOST_NAMESPACE: Final = 63
_MOST_TEXT: Final = 1024
"""Characters of an error's text in an annotation."""


@dataclass(slots=True)
class Completed:
    """Objects to store, and notes for the user on what the dump lacks."""

    items: list[Item]
    notes: list[str] = field(default_factory=list)

    def of_kind(self, group: str, kind: str) -> Iterator[Item]:
        """Yield the items of a kind."""
        return (each for each in self.items if each.kind == kind and each.group == group)


def complete(objects: Iterable[DumpObject], namespaced: Mapping[tuple[str, str], bool]) -> Completed:
    """Return the objects of a dump once each, with all that a running cluster needs.

    `namespaced` has the scope of each kind that can be stored. Raises DumpError.
    """
    done = Completed([])
    done.items = list(_unique(objects, namespaced, done.notes))
    _drop_api_services(done)
    _add_namespaces(done)
    _add_nodes(done)
    if ("networking.k8s.io", "IPAddress") in namespaced and (missing := missing_addresses(done.items)):
        done.items += missing
        done.notes.append(f"IPAddresses that the dump lacks were made for its Services: {len(missing)}")
    _forget_missing_owners(done, namespaced)
    for each in done.of_kind("", "Node"):
        _create(each)
    done.items += complete_nodes(done.items, namespaced)
    for each in done.of_kind("", "Pod"):
        _keep_failing(each)
    for each in done.items:
        _create(each)
    return done


def _unique(
    objects: Iterable[DumpObject], namespaced: Mapping[tuple[str, str], bool], notes: list[str]
) -> Iterable[Item]:
    """Return the newest state of each object whose kind can be stored. Adds notes on the other kinds."""
    found: dict[Key, Item] = {}
    unknown: dict[str, int] = {}
    for each in objects:
        scope = namespaced.get((each.api_version.rpartition("/")[0], each.kind))
        if scope is None:
            name = f"{each.kind} ({each.api_version})"
            unknown[name] = unknown.get(name, 0) + 1
            continue
        if not each.name:
            raise DumpError(f"an object of kind {each.kind} has no name")
        name, namespace = each.name[: _MOST_NAME + 1], each.namespace[: _MOST_NAMESPACE + 1]
        is_long = len(name) > _MOST_NAME or len(namespace) > _MOST_NAMESPACE
        if is_long or is_path_segment_name(name) or is_path_segment_name(namespace):
            raise DumpError(f"{each.kind} {quote(name)} in namespace {quote(namespace)}: not a name")
        item = Item(each._replace(namespace=(each.namespace or "default") if scope else ""))
        if scope and not each.namespace:
            item.change(lambda plain: plain["metadata"].update(namespace="default"))
        known = found.get(item.key)
        if known is None or _number(item.revision) >= _number(known.revision):
            found[item.key] = item
    notes += [f"{count} of {name}: nothing defines this kind" for name, count in sorted(unknown.items())]
    return found.values()


def _number(revision: str) -> int:
    return int(revision) if is_digits(revision) and len(revision) < 20 else 0


def _drop_api_services(done: Completed) -> None:
    """Leave out APIServices that the cluster makes itself, and those in whose place it serves metrics."""
    kept = []
    for each in done.items:
        if each.kind == "APIService" and each.group == "apiregistration.k8s.io":
            spec = each.parts.spec
            if spec.service is None or spec.group in METRICS:
                continue
        kept.append(each)
    done.items = kept


def _add_namespaces(done: Completed) -> None:
    known = {each.name for each in done.of_kind("", "Namespace")} | _NO_NAMESPACES
    for name in sorted({each.namespace for each in done.items} - known):
        labels = {"kubernetes.io/metadata.name": name}
        members: dict[str, Any] = {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
        done.items.append(made("v1", "Namespace", name, labels, **members))


def _add_nodes(done: Completed) -> None:
    """Add the nodes of pods that the dump lacks: without its node a pod would be collected."""
    known = {each.name for each in done.of_kind("", "Node")}
    needed = {each.parts.spec.node_name or "" for each in done.of_kind("", "Pod")} - known - {""}
    done.items += [made("v1", "Node", name, {}) for name in sorted(needed)]
    if needed:
        done.notes.append(f"nodes that the dump lacks were made up for their pods: {len(needed)}")


def _forget_missing_owners(done: Completed, namespaced: Mapping[tuple[str, str], bool]) -> None:
    """Remove references to owners that are not in the dump: the garbage collector would delete their objects."""
    uids = {each.uid for each in done.items if each.uid}
    missing: dict[str, int] = {}
    for each in done.items:
        lost = {
            one.uid
            for one in each.owners
            if one.uid not in uids and (one.api_version.rpartition("/")[0], one.kind) in namespaced
        }
        if not lost:
            continue
        for kind in {one.kind for one in each.owners if one.uid in lost}:
            missing[kind] = missing.get(kind, 0) + 1

        def forget(plain: dict[str, Any], lost: set[str] = lost) -> None:
            metadata = plain["metadata"]
            metadata["ownerReferences"] = [one for one in metadata["ownerReferences"] if one.get("uid") not in lost]

        each.change(forget)
    done.notes += [
        f"{count} objects stay without their owner, a {kind} that is not in the dump"
        for kind, count in sorted(missing.items())
    ]


def _create(item: Item) -> None:
    """Give an object what the server sets when it is created, unless it has that."""
    if item.uid and item.created:
        return
    item.uid, item.created = item.uid or str(uuid4()), True

    def created(plain: dict[str, Any]) -> None:
        metadata = plain["metadata"]
        metadata["uid"] = item.uid
        metadata["creationTimestamp"] = metadata.get("creationTimestamp") or times.now()

    item.change(created)


def _keep_failing(item: Item) -> None:
    """Have the containers of a pod that crash, cannot be pulled or are not ready go on so."""
    parts = item.parts
    if parts.status.phase in _OVER:
        return
    probed = {each.name for each in parts.spec.containers or () if each.readiness_probe is not None}
    wanted: dict[str, str] = {}
    for each in (*(parts.status.init_container_statuses or ()), *(parts.status.container_statuses or ())):
        wanted |= {f"{PREFIX}{name}.{each.name}": value for name, value in _failure(each, probed)}
    if not wanted:
        return

    def annotate(plain: dict[str, Any]) -> None:
        annotations = plain["metadata"].get("annotations") or {}
        plain["metadata"]["annotations"] = {**_kept(wanted, annotations), **annotations}

    item.change(annotate)


def _kept(wanted: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the wanted annotations without those that the pod has for all of its containers."""
    return {name: value for name, value in wanted.items() if name.rpartition(".")[0] not in annotations}


def _failure(status: ContainerState, probed: set[str]) -> Iterator[tuple[str, str]]:
    """Yield names and values of annotations by which a container fails as it did."""
    waiting, last = status.state.waiting, status.last_state.terminated or status.state.terminated
    if waiting is not None and waiting.reason in _NOT_PULLED:
        yield "pull-error", ((waiting.message or "").rpartition("ErrImagePull: ")[2] or "true")[:_MOST_TEXT]
    elif waiting is not None and waiting.reason == _CRASHES and last is not None:
        seconds = _seconds(last)
        if last.reason == "OOMKilled":
            yield "oom-after", f"{seconds}s"
        else:
            yield "run-for", f"{seconds}s"
            yield "exit-code", str(last.exit_code % 1000)
    elif status.state.running is not None and not status.ready and status.name in probed:
        yield "fails-readiness", "true"


def _seconds(ended: Ended) -> int:
    """Return the time in seconds for which a container ran."""
    try:
        return max(times.unix(ended.finished_at or "") - times.unix(ended.started_at or ""), 0)
    except times.TimeError:
        return 0
