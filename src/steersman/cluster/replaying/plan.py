"""Plan of a replay: the actions of users in a recording, each at its time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple

from steersman.cluster.replaying.wishes import Plain, difference, is_of_user, wish
from steersman.dumps.errors import DumpError
from steersman.dumps.recordings import Change, key_of
from steersman.machinery.errors.field import quote
from steersman.machinery.values import times
from steersman.nodes.behaviour import PREFIX

Key = tuple[str, str, str, str]
"""Group, kind, namespace and name of an object."""

_SCALED: Final = "HorizontalPodAutoscaler"
_MALFORMED: Final = (AttributeError, KeyError, TypeError, ValueError)
"""Errors of reading an object whose members are of other types than the API has."""


class Action(NamedTuple):
    """Action of a user at a time in seconds since 1970."""

    time: float
    verb: Literal["create", "patch", "delete"]
    api_version: str
    key: Key
    body: Plain
    """New object, merge patch, or for a deletion the patch that removes finalizers, if there are any."""


class Ends(NamedTuple):
    """Ends of the containers of a pod: seconds and exit code by container."""

    by_container: dict[str, tuple[int, int]]

    def annotations(self) -> dict[str, str]:
        """Return annotations by which simulated containers end so."""
        found = {}
        for name, (seconds, code) in self.by_container.items():
            found[f"{PREFIX}run-for.{name}"] = f"{seconds}s"
            found[f"{PREFIX}exit-code.{name}"] = str(code)
        return found


def ends_of(changes: Iterable[Change]) -> dict[str, Ends]:
    """Return how pods ended, by their uid, and by that of the Job that they belong to. Raises DumpError."""
    found: dict[str, Ends] = {}
    for each in changes:
        if each.object["kind"] == "Pod":
            try:
                _put_ends(each.object, found)
            except _MALFORMED:
                raise _malformed(each) from None
    return found


def _malformed(change: Change) -> DumpError:
    obj = change.object
    return DumpError(f"{obj['kind']} {quote(obj['metadata']['name'])} at {change.time:.3f} is malformed")


def _put_ends(pod: Plain, found: dict[str, Ends]) -> None:
    ends = Ends(dict(_ends(pod)))
    if not ends.by_container:
        return
    metadata = pod["metadata"]
    owners = [one for one in metadata.get("ownerReferences") or () if one.get("controller")]
    if not owners:
        found[metadata.get("uid", "")] = ends
    elif owners[0].get("kind") == "Job":
        found.setdefault(owners[0].get("uid", ""), ends)


def _ends(pod: Plain) -> Iterator[tuple[str, tuple[int, int]]]:
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        ended = (status.get("state") or {}).get("terminated")
        if not ended:
            continue
        try:
            seconds = max(times.unix(ended.get("finishedAt") or "") - times.unix(ended.get("startedAt") or ""), 0)
        except times.TimeError:
            seconds = 0
        yield status.get("name", ""), (seconds, int(ended.get("exitCode") or 0))


class Planner:
    """Turns changes into actions."""

    def __init__(self, ends: dict[str, Ends]) -> None:
        self._ends = ends
        self._wishes: dict[Key, Plain] = {}
        self._finalizers: set[Key] = set()
        self._scaled: dict[Key, tuple[str, str, str]] = {}
        """Targets of autoscalers: namespace, kind and name."""

    def actions(self, change: Change) -> list[Action]:
        """Return the actions that a change consists of, none if a controller or a server has made it.

        Raises DumpError.
        """
        try:
            return list(self._actions(change))
        except _MALFORMED:
            raise _malformed(change) from None

    def _actions(self, change: Change) -> Iterator[Action]:
        obj, key = change.object, key_of(change.object)
        self._note_autoscaler(change, key)
        if not is_of_user(obj):
            return
        api_version = obj["apiVersion"]
        if obj["metadata"].get("finalizers"):
            self._finalizers.add(key)
        if change.type == "DELETED" or obj["metadata"].get("deletionTimestamp"):
            if self._wishes.pop(key, None) is not None:
                removes = key in self._finalizers
                self._finalizers.discard(key)
                body: Plain = {"metadata": {"finalizers": None}} if removes else {}
                yield Action(change.time, "delete", api_version, key, body)
            return
        wished, before = wish(obj), self._wishes.get(key)
        self._wishes[key] = wished
        if change.type == "PRESENT":
            return
        if before is None:
            yield Action(change.time, "create", api_version, key, self._with_ends(wished, obj))
            return
        patch = difference(before, wished)
        for name in ("apiVersion", "kind", "status"):
            patch.pop(name, None)
        if (key[2], key[1], key[3]) in self._scaled.values() and isinstance(patch.get("spec"), dict):
            patch["spec"].pop("replicas", None)
            patch = {name: value for name, value in patch.items() if name != "spec" or value}
        if key[1] == "Pod":
            patch.pop("spec", None)
        if patch:
            yield Action(change.time, "patch", api_version, key, patch)

    def _with_ends(self, wished: Plain, obj: Plain) -> Plain:
        """Return an object whose containers end as the recorded ones."""
        ends = self._ends.get(obj["metadata"].get("uid", ""))
        if ends is None:
            return wished
        if obj["kind"] == "Pod":
            return {**wished, "metadata": _annotated(wished["metadata"], ends)}
        template = wished["spec"]["template"]
        annotated = {**template, "metadata": _annotated(template.get("metadata") or {}, ends)}
        return {**wished, "spec": {**wished["spec"], "template": annotated}}

    def _note_autoscaler(self, change: Change, key: Key) -> None:
        """Remember what an autoscaler scales: it does so in the replay, too."""
        if change.object["kind"] != _SCALED:
            return
        if change.type == "DELETED":
            self._scaled.pop(key, None)
            return
        target: Any = (change.object.get("spec") or {}).get("scaleTargetRef") or {}
        self._scaled[key] = (key[2], target.get("kind", ""), target.get("name", ""))


def _annotated(metadata: Plain, ends: Ends) -> Plain:
    return {**metadata, "annotations": {**ends.annotations(), **(metadata.get("annotations") or {})}}
