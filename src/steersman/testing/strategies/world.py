"""The objects of a server as an operator left them: read, compared and removed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from steersman.machinery.codec.serializer import decode_plain, encode_in_order
from steersman.testing.threaded_environment import ThreadedEnvironment
from steersman.work.patterns import late_pattern

_OF_THE_SERVER: Final = frozenset(
    {"Event", "Lease", "Endpoints", "EndpointSlice", "Pod", "ReplicaSet", "ControllerRevision", "ServiceAccount"}
)
"""Kinds that the cluster itself makes, or that depend on the moment."""
_METADATA: Final = ("name", "namespace", "labels", "annotations", "finalizers")
_OWN_ANNOTATIONS: Final = ("kopf.zalando.org/", "kubectl.kubernetes.io/last-applied-configuration")
_MOMENT: Final = late_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[0-9.]*(?:Z|[+-][0-9:]{5,6})")
_BY_CHANCE: Final = ("uid", "resourceVersion", "observedGeneration", "generation")


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored object, and the revision of its last write."""

    body: dict[str, Any]
    revision: int

    @property
    def title(self) -> str:
        """Kind, namespace and name, for messages."""
        metadata = self.body["metadata"]
        return f"{self.body['kind']} {metadata.get('namespace', '')}{'/' if metadata.get('namespace') else ''}{metadata['name']}"

    @property
    def uid(self) -> str:
        """UID of the object."""
        return str(self.body["metadata"].get("uid", ""))

    @property
    def owners(self) -> set[str]:
        """UIDs of the owners."""
        return {str(each.get("uid")) for each in self.body["metadata"].get("ownerReferences") or ()}


World = dict[str, Stored]
"""Objects by their keys in storage."""


def read_world(environment: ThreadedEnvironment) -> World:
    """Return all objects but those of the server itself. Raises TypeError unless they are in memory."""
    found: World = {}
    for key, entry in environment.snapshot().values.items():
        if not entry.value.startswith(b"{"):
            continue
        body = decode_plain(entry.value)
        if isinstance(body, dict) and body.get("kind") not in _OF_THE_SERVER and "metadata" in body:
            found[key] = Stored(body, entry.mod_revision)
    return found


def left_behind(before: World, after: World) -> World:
    """Return the objects that are new."""
    return {key: each for key, each in after.items() if key not in before}


def comparable(world: World, ignored: tuple[str, ...]) -> list[bytes]:
    """Return objects in a form that is equal for equal outcomes: without UIDs, times and counters, sorted.

    `ignored` are fields left out, such as `status.attempts`.
    """
    uids = {each.uid for each in world.values()}
    return sorted(encode_in_order(_cleaned(each.body, ignored, uids)) for each in world.values())


def _cleaned(body: Mapping[str, Any], ignored: tuple[str, ...], uids: set[str]) -> dict[str, Any]:
    metadata = body["metadata"]
    kept = {name: metadata[name] for name in _METADATA if metadata.get(name)}
    if metadata.get("generateName"):
        kept["name"] = metadata["generateName"]
    annotations = {
        name: value
        for name, value in (kept.pop("annotations", None) or {}).items()
        if not name.startswith(_OWN_ANNOTATIONS)
    }
    if annotations:
        kept["annotations"] = annotations
    found = {**body, "metadata": kept}
    for path in ignored:
        _drop(found, path.split("."))
    cleaned: dict[str, Any] = _without_chance(found, uids)
    return cleaned


def _drop(value: Any, path: list[str]) -> None:
    for name in path[:-1]:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, dict):
        value.pop(path[-1], None)


def _without_chance(value: Any, uids: set[str]) -> Any:
    """Return a value with sorted members, without UIDs, counters of generations, and moments."""
    if isinstance(value, dict):
        return {name: _without_chance(value[name], uids) for name in sorted(value) if name not in _BY_CHANCE}
    if isinstance(value, list):
        return [_without_chance(each, uids) for each in value]
    if isinstance(value, str):
        return "" if value in uids else _MOMENT.sub("", value)
    return value


def differences(first: list[bytes], second: list[bytes]) -> Iterator[str]:
    """Yield lines that tell what only one of two outcomes has."""
    for mark, some, others in (("-", first, second), ("+", second, first)):
        for each in some:
            if each not in others:
                yield f"{mark} {each.decode()[:600]}"
