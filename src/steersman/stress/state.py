"""End states of runs in a form that can be compared: without what differs between equal runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from steersman.storage.interface import KeyValue
from steersman.stress.masking import Masker
from steersman.stress.touch import TOUCHED
from steersman.work.patterns import late_pattern

Values = Mapping[str, KeyValue]
"""Stored values by key."""

_IGNORED_KINDS: Final = frozenset(
    {
        ("", "Event"),
        ("", "Endpoints"),
        ("", "Node"),
        ("networking.k8s.io", "IPAddress"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "VolumeAttachment"),
        ("events.k8s.io", "Event"),
        ("coordination.k8s.io", "Lease"),
        ("coordination.k8s.io", "LeaseCandidate"),
    }
)
_IGNORED_KEYS: Final = (
    "/registry/masterleases/",
    "/registry/apiregistration.k8s.io/",
    "/registry/events/",
    "/registry/leases/",
    "/registry/coordination.k8s.io/",
    "/registry/services/specs/default/kubernetes",
    "/registry/services/endpoints/default/kubernetes",
    "/registry/endpointslices/default/kubernetes",
)
LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
"""Annotation of an object by which processes elect a leader."""
_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_SLICE_CONTROLLER: Final = "endpointslice-controller.k8s.io"
_ASSIGNED: Final = frozenset(
    {
        "clusterIP",
        "clusterIPs",
        "podIP",
        "podIPs",
        "hostIP",
        "hostIPs",
        "nodePort",
        "healthCheckNodePort",
        "nodeName",
        "volumeName",
        "containerID",
    }
)
"""Members that the cluster assigns as it comes."""
_HASHES: Final = frozenset({"pod-template-hash", "controller-revision-hash"})
"""Labels that follow from a template, which is compared itself, and may have random names in it."""
_DROPPED: Final = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink", "generateName"}
)
"""Members of the metadata that say nothing about what an operator wanted."""
_KEYS_OF_ITEMS: Final = ("type", "name", "key", "uid", "ip", "containerPort")
_OWN_UID: Final = late_pattern(rb'"uid":"([^"]{1,64})"')
_LONGEST_SHOWN: Final = 200
MOST_DIFFERENCES: Final = 200
"""Differences of two states that are reported."""


class ObjectName(NamedTuple):
    """Kind, namespace and masked name of objects; several objects may have the same."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {'/'.join(each for each in (self.namespace, self.name) if each)}"


class Difference(NamedTuple):
    """Difference of an object from the runs without faults; with an empty path the object is missing or extra."""

    object: ObjectName
    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.object}: {self.path}: {self.text}" if self.path else f"{self.object}: {self.text}"


State = dict[ObjectName, list[dict[str, Any]]]
"""Normalized objects by name, those of one name in the order of their content."""


def is_ignored(key: str) -> bool:
    """Return True for a key whose value never belongs to a state."""
    return key.startswith(_IGNORED_KEYS)


def changed(before: Values, now: Values) -> dict[str, bytes | None]:
    """Return the values that differ between two moments, None for those that are gone; ignored ones are left out."""
    found: dict[str, bytes | None] = {
        key: each.value
        for key, each in now.items()
        if (old := before.get(key)) is not each and (old is None or old.value != each.value) and not is_ignored(key)
    }
    found.update((key, None) for key in before.keys() - now.keys() if not is_ignored(key))
    return found


def state_of(start: Values, now: Values, masker: Masker) -> State:
    """Return the objects that were made, changed or removed since the start."""
    differing = changed(start, now)
    decoded = {key: _decoded(value) for key, value in differing.items() if value is not None}
    removed = [_decoded(start[key].value) for key, value in differing.items() if value is None]
    owners = _uids(now)
    state: State = {}
    for obj in decoded.values():
        masker.learn((obj.get("metadata") or {}).get("generateName") or "")
    for obj in decoded.values():
        if _counts(obj):
            state.setdefault(_name_of(obj, masker), []).append(_normalized(obj, masker, owners))
    for obj in removed:
        if _counts(obj):
            state.setdefault(_name_of(obj, masker), []).append({"removed": True})
    for several in state.values():
        several.sort(key=_canonical)
    return state


def _uids(now: Values) -> frozenset[bytes]:
    """Return the UIDs of all objects: the first one in each, as its own comes before those of others."""
    found = (_OWN_UID.search(each.value) for each in now.values())
    return frozenset(each[1] for each in found if each is not None)


def _counts(obj: Mapping[str, Any]) -> bool:
    """Return True for an object that an operator may be responsible for."""
    metadata = _metadata(obj)
    if _group_kind(obj) in _IGNORED_KINDS or LEADER in (metadata.get("annotations") or {}):
        return False
    return (metadata.get("labels") or {}).get(_MANAGED_BY) != _SLICE_CONTROLLER


def _decoded(value: bytes) -> dict[str, Any]:
    plain = json.loads(value)
    assert isinstance(plain, dict)
    return plain


def _metadata(obj: Mapping[str, Any]) -> dict[str, Any]:
    return obj.get("metadata") or {}


def _group_kind(obj: Mapping[str, Any]) -> tuple[str, str]:
    return str(obj.get("apiVersion", "")).rpartition("/")[0], str(obj.get("kind", ""))


def _name_of(obj: Mapping[str, Any], masker: Masker) -> ObjectName:
    group, kind = _group_kind(obj)
    metadata = _metadata(obj)
    full = f"{kind}.{group}" if group else kind
    namespace, name = metadata.get("namespace") or "", metadata.get("name") or ""
    return ObjectName(full, masker.name(namespace), masker.name(name))


def _normalized(obj: dict[str, Any], masker: Masker, owners: frozenset[bytes]) -> dict[str, Any]:
    metadata = _metadata(obj)
    generation = metadata.get("generation")
    kept = {key: value for key, value in metadata.items() if key not in _DROPPED}
    if references := kept.get("ownerReferences"):
        kept["ownerReferences"] = [
            {**each, "uid": "<uid>" if str(each.get("uid")).encode() in owners else "<uid of no object>"}
            for each in references
        ]
    annotations = {key: value for key, value in (kept.pop("annotations", None) or {}).items() if key != TOUCHED}
    if annotations:
        kept["annotations"] = annotations
    if "deletionTimestamp" in kept:
        kept["deletionTimestamp"] = "<time>"
    body: dict[str, Any] = {key: value for key, value in obj.items() if key not in ("metadata", "apiVersion", "kind")}
    body["metadata"] = kept
    result = _plain(body, masker, generation, in_status=False)
    assert isinstance(result, dict)
    return result


def _plain(value: Any, masker: Masker, generation: Any, *, in_status: bool) -> Any:
    """Return a value with masks; lists are sorted where their order has no meaning."""
    if isinstance(value, str):
        return masker.text(value)
    if isinstance(value, dict):
        return {
            key: _member(key, each, masker, generation, in_status=in_status or key in ("status", "metadata"))
            for key, each in value.items()
        }
    if isinstance(value, list):
        items = [_plain(each, masker, generation, in_status=in_status) for each in value]
        if in_status or _is_keyed(items):
            items.sort(key=_canonical)
        return items
    return value


def _member(key: str, value: Any, masker: Masker, generation: Any, *, in_status: bool) -> Any:
    if key == "observedGeneration" and isinstance(value, int):
        return "<current>" if value == generation else "<older>"
    if key in _ASSIGNED and value and value not in ("None", ["None"]):
        return "<assigned>"
    if key.endswith(("resourceVersion", "ResourceVersion")):
        return "<version>"
    if key in _HASHES:
        return "<hash>"
    return _plain(value, masker, generation, in_status=in_status)


def _is_keyed(items: list[Any]) -> bool:
    """Return True for a list of objects with distinct keys."""
    if not items or not all(isinstance(each, dict) for each in items):
        return False
    for key in _KEYS_OF_ITEMS:
        found = [each.get(key) for each in items]
        if all(isinstance(each, str | int) for each in found) and len(set(found)) == len(found):
            return True
    return False


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def differences(expected: State, actual: State) -> list[Difference]:
    """Return the differences of a state from the expected one."""
    found: list[Difference] = []
    for name in sorted(expected.keys() | actual.keys()):
        found += _of_objects(name, expected.get(name, []), actual.get(name, []))
    return found


def _of_objects(name: ObjectName, expected: list[dict[str, Any]], actual: list[dict[str, Any]]) -> Iterator[Difference]:
    if len(expected) != len(actual):
        if not actual:
            yield Difference(name, "", "missing")
        elif not expected:
            yield Difference(name, "", "extra" if len(actual) == 1 else f"{len(actual)} extra")
        else:
            yield Difference(name, "", f"there are {len(actual)}, not {len(expected)}")
        return
    hides = name.kind == "Secret"
    for old, new in zip(expected, actual, strict=True):
        yield from (Difference(name, path, text) for path, text in _of_values("", old, new, hides=hides))


def _of_values(path: str, old: Any, new: Any, *, hides: bool) -> Iterator[tuple[str, str]]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            below = f"{path}.{key}" if path else key
            if key not in new:
                yield below, f"missing, was {_shown(old[key], below, hides=hides)}"
            elif key not in old:
                yield below, f"extra: {_shown(new[key], below, hides=hides)}"
            else:
                yield from _of_values(below, old[key], new[key], hides=hides)
        return
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _of_values(f"{path}[{index}]", one, other, hides=hides)
        return
    yield path, f"{_shown(new, path, hides=hides)}, was {_shown(old, path, hides=hides)}"


def _shown(value: Any, path: str, *, hides: bool) -> str:
    """Return a value for a message; data of Secrets are hidden."""
    if hides and path.startswith(("data", "stringData", "metadata.annotations")):
        return "<hidden>"
    text = json.dumps(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


class Expectation:
    """States of runs without faults, and the places where they differ from each other, which do not count."""

    def __init__(self, ignored: Iterable[str] = ()) -> None:
        """`ignored` are patterns (`*` for any text) of `KIND NAMESPACE/NAME: PATH` that do not count."""
        self._states: list[State] = []
        self._unstable: set[tuple[ObjectName, str]] = set()
        self._ignored = tuple(ignored)

    @property
    def unstable(self) -> list[str]:
        """Places that differ between runs without faults."""
        return sorted(f"{name}: {path}" if path else str(name) for name, path in self._unstable)

    def add(self, state: State) -> None:
        """Add the state of a run without faults."""
        if self._states:
            self._unstable.update((each.object, each.path) for each in differences(self._states[0], state))
        self._states.append(state)

    def differences(self, state: State) -> list[Difference]:
        """Return the differences that count, at most MOST_DIFFERENCES."""
        if not self._states:
            return []
        found = [each for each in differences(self._states[0], state) if self._counts(each)]
        return found[:MOST_DIFFERENCES]

    def _counts(self, difference: Difference) -> bool:
        name, path = difference.object, difference.path
        if any(each == name and _contains(outer, path) for each, outer in self._unstable):
            return False
        shown = f"{name}: {path}"
        return not any(fnmatchcase(shown, pattern) for pattern in self._ignored)


def _contains(outer: str, path: str) -> bool:
    """Return True if a path is `outer` or lies below it; all lie below the empty one."""
    return not outer or (path.startswith(outer) and path[len(outer) : len(outer) + 1] in ("", ".", "["))
