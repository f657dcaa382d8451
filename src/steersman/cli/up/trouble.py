"""Problems of a cluster: pods that are pending or failed, with the reasons, and the last warnings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec

from steersman.api.meta.v1 import ObjectMeta
from steersman.client.api_resource import APIResource
from steersman.client.informer import Informers, Key, key_of

_SHOWN_PODS: Final = 5
_SHOWN_WARNINGS: Final = 5
_LONGEST: Final = 300
"""Limit of a message in characters."""
_USUAL: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons for waiting that every starting container has."""
WARNINGS: Final = "type=Warning"
"""Field selector of warning events."""
FAILED: Final = "Failed"
PENDING: Final = "Pending"


class _Reason(msgspec.Struct):
    reason: str = ""
    message: str = ""
    exit_code: int = msgspec.field(name="exitCode", default=0)


class _State(msgspec.Struct):
    waiting: _Reason | None = None
    terminated: _Reason | None = None


class _Container(msgspec.Struct):
    name: str = ""
    state: _State = msgspec.field(default_factory=_State)


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[_Condition] = []
    init: list[_Container] = msgspec.field(name="initContainerStatuses", default_factory=list)
    containers: list[_Container] = msgspec.field(name="containerStatuses", default_factory=list)


class PodPart(msgspec.Struct):
    """Members of a pod that are decoded."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: _Status = msgspec.field(default_factory=_Status)
    kind: str = ""
    api_version: str = msgspec.field(default="", name="apiVersion")


class _Involved(msgspec.Struct):
    kind: str = ""
    namespace: str = ""
    name: str = ""


class _Series(msgspec.Struct):
    last: str | None = msgspec.field(name="lastObservedTime", default=None)


class WarningPart(msgspec.Struct):
    """Members of an event that are decoded."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    reason: str = ""
    message: str = ""
    object: _Involved = msgspec.field(name="involvedObject", default_factory=_Involved)
    last_timestamp: str | None = msgspec.field(name="lastTimestamp", default=None)
    event_time: str | None = msgspec.field(name="eventTime", default=None)
    series: _Series | None = None
    kind: str = ""
    api_version: str = msgspec.field(default="", name="apiVersion")


PODS: Final = APIResource("", "v1", "pods", "Pod", PodPart)
EVENTS: Final = APIResource("", "v1", "events", "Event", WarningPart)


class Trouble:
    """Pods with problems and the last warnings of a cluster, from informers (`follow`) or single calls."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[Key, str]] = {FAILED: {}, PENDING: {}}
        self._warnings: dict[Key, tuple[str, str]] = {}
        """Time and text of each warning by event, the latest first."""

    def follow(self, informers: Informers) -> None:
        """Subscribe to the pods and warning events of informers."""
        informers.for_resource(PODS).on_change(self.pod_changed)
        informers.for_resource(EVENTS, field_selector=WARNINGS).on_change(self.warned)

    def failed(self) -> list[str]:
        """Return lines about pods that have failed or cannot run; after the first few only their number."""
        return list(_first(self._pods[FAILED]))

    def pending(self) -> list[str]:
        """Return lines about pods that are not started yet; after the first few only their number."""
        return list(_first(self._pods[PENDING]))

    def warnings(self) -> list[str]:
        """Return the last warnings, the latest first."""
        return [f"{time[11:19]} {text}" for time, text in self._warnings.values()]

    def pod_changed(self, old: PodPart | None, new: PodPart | None) -> None:
        """Update a pod; `new` is None after its deletion."""
        pod = new or old
        assert pod is not None
        kind, why = ("", "") if new is None else trouble_of(new)
        for each, found in self._pods.items():
            if each == kind:
                found[key_of(pod)] = why
            else:
                found.pop(key_of(pod), None)

    def warned(self, old: WarningPart | None, new: WarningPart | None) -> None:
        """Add a new or repeated warning event."""
        if new is None:
            return
        involved = new.object
        name = f"{involved.namespace}/{involved.name}" if involved.namespace else involved.name
        key = key_of(new)
        text = plain(f"{involved.kind} {name}: {new.reason}: {new.message}")
        self._warnings[key] = plain(_time_of(new)), text
        latest = sorted(self._warnings.items(), key=lambda each: each[1][0], reverse=True)
        self._warnings = dict(latest[:_SHOWN_WARNINGS])


def _time_of(warning: WarningPart) -> str:
    """Return the time of a warning's last occurrence, as text."""
    series = warning.series.last if warning.series is not None else None
    return max(each or "" for each in (series, warning.last_timestamp, warning.event_time))


def trouble_of(pod: PodPart) -> tuple[str, str]:
    """Return Failed or Pending and the reason for a pod with a problem; ("", "") for others."""
    status = pod.status
    waiting, ended = _worst(status)
    if status.phase == FAILED:
        own = ": ".join(filter(None, (status.reason, status.message)))
        return FAILED, plain(own or ended or "no reason given")
    if waiting:  # the phase may be Running nevertheless
        return FAILED, plain(waiting)
    if status.phase not in (PENDING, ""):
        return "", ""
    unscheduled = next(
        (each for each in status.conditions if (each.type, each.status) == ("PodScheduled", "False")), None
    )
    if unscheduled is not None:
        return PENDING, plain(": ".join(filter(None, (unscheduled.reason, unscheduled.message))))
    usual = next((each.state.waiting.reason for each in status.containers if each.state.waiting is not None), "")
    return PENDING, plain(usual or status.message or "not assigned to a node yet")


def _worst(status: _Status) -> tuple[str, str]:
    """Return the reason of the first abnormally waiting container, and of the first one that failed."""
    waiting = ended = ""
    for each in (*status.init, *status.containers):
        state = each.state
        if state.waiting is not None and state.waiting.reason not in _USUAL and not waiting:
            waiting = ": ".join(filter(None, (f"{each.name}: {state.waiting.reason}", state.waiting.message)))
        if state.terminated is not None and state.terminated.exit_code and not ended:
            ended = f"{each.name}: {state.terminated.reason or 'Error'}, exit code {state.terminated.exit_code}"
    return waiting, ended


def _first(found: dict[Key, str]) -> Iterator[str]:
    for (namespace, name), why in islice(found.items(), _SHOWN_PODS):
        yield f"{namespace}/{name}: {why}"
    if len(found) > _SHOWN_PODS:
        yield f"and {len(found) - _SHOWN_PODS} more"


def plain(text: str) -> str:
    """Return text with control characters replaced: users write reasons and messages, and could send escape codes."""
    return "".join(each if " " <= each <= "~" else "?" for each in " ".join(text[:_LONGEST].split()))
