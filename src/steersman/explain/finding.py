"""Explanations: findings about an object, each with its evidence and with suggestions; also their JSON form."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct

from steersman.api.core.v1 import Event
from steersman.client.api_resource import APIResource
from steersman.machinery.go.strings import to_lower
from steersman.machinery.values.times import unix


class Severity(StrEnum):
    """Severity of a finding; the members are ordered, the worst first."""

    ERROR = "error"
    """The object does not do its work, or a write is refused."""
    WARNING = "warning"
    """The object works in part, or will fail under a condition that the finding names."""
    UNKNOWN = "unknown"
    """A question that cannot be answered, since objects could not be read."""
    NOTE = "note"
    """A fact that explains the state and is no fault."""


RANKS: Final = {severity: rank for rank, severity in enumerate(Severity)}
"""Rank of each severity, 0 for the worst."""


class _Wire(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of the types that are part of an explanation's JSON."""


class Reference(_Wire, frozen=True):
    """An object: its API version, kind, namespace ("" for a cluster-scoped object) and name."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        """Return `kind/name`, as kubectl prints objects."""
        return f"{to_lower(self.kind)}/{self.name}" if self.name else to_lower(self.kind)


class Evidence(_Wire, frozen=True):
    """A fact that a finding rests on: the value of an object's field, or an event about the object."""

    object: Reference
    field: str = ""
    """Path of the field, in kubectl's JSONPath without braces: `.status.phase`."""
    value: Any = None
    """Value of the field in JSON; null if the object has no such field."""
    event: str = ""
    """Reason of the event."""
    message: str = ""
    """Message of the event."""
    count: int = 0
    """Occurrences of the event."""
    last_seen: str = ""
    """Time of the event's last occurrence."""


class Suggestion(_Wire, frozen=True):
    """A change that resolves a finding: a sentence, and what does it, if something does."""

    text: str
    command: str = ""
    """Command line for a shell."""
    patch: Any = None
    """Merge patch of the finding's object."""
    manifest: str = ""
    """Objects to create, as YAML."""
    verified: bool = False
    """True if the effect of the change has been computed with the cluster's own rules."""


class Finding(_Wire, frozen=True):
    """A cause of an object's state, with its evidence."""

    severity: Severity
    reason: str
    """Name of the kind of finding in CamelCase, for programs."""
    message: str
    """One sentence without a full stop."""
    evidence: tuple[Evidence, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    because: tuple[Finding, ...] = ()
    """Findings about other objects that cause this finding."""
    details: Any = None
    """Further data for programs and tables, in a form that the reason determines."""


class Explanation(_Wire, frozen=True, tag_field="kind", tag="Explanation"):
    """Findings about one object, the worst first."""

    subject: Reference
    summary: str
    """State of the object in one line."""
    findings: tuple[Finding, ...] = ()

    @property
    def worst(self) -> Severity:
        """Severity of the worst finding, NOTE if there is none."""
        return min((each.severity for each in self.findings), key=RANKS.__getitem__, default=Severity.NOTE)


def error(reason: str, message: str, *evidence: Evidence, **more: Any) -> Finding:
    """Return a finding of severity ERROR; `more` are further fields, such as `suggestions` and `because`."""
    return Finding(Severity.ERROR, reason, message, evidence, **more)


def warning(reason: str, message: str, *evidence: Evidence, **more: Any) -> Finding:
    """Return a finding of severity WARNING; see `error`."""
    return Finding(Severity.WARNING, reason, message, evidence, **more)


def note(reason: str, message: str, *evidence: Evidence, **more: Any) -> Finding:
    """Return a finding of severity NOTE; see `error`."""
    return Finding(Severity.NOTE, reason, message, evidence, **more)


def explanation(subject: Reference, summary: str, findings: Iterable[Finding]) -> Explanation:
    """Return an explanation with its findings in order: by severity, and as they were found."""
    return Explanation(subject, summary, tuple(sorted(findings, key=lambda each: RANKS[each.severity])))


def reference(resource: APIResource[Any], obj: Any) -> Reference:
    """Return the reference of an object, which is a Struct or plain data."""
    if isinstance(obj, dict):
        metadata = obj.get("metadata") or {}
        return Reference(
            resource.api_version, resource.kind, str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
        )
    return Reference(resource.api_version, resource.kind, obj.metadata.namespace, obj.metadata.name)


def at_field(subject: Reference, field: str, value: Any) -> Evidence:
    """Return evidence from a field; `value` may contain Structs of the API."""
    return Evidence(subject, field, msgspec.to_builtins(value))


def condition_path(of_type: str) -> str:
    """Return the path of a condition in an object's status."""
    return f'.status.conditions[?(@.type=="{of_type}")]'


def at_condition(subject: Reference, condition: Any) -> Evidence:
    """Return evidence from a condition: `status: reason: message`."""
    parts = (condition.status, condition.reason, condition.message)
    return Evidence(subject, condition_path(condition.type), ": ".join(filter(None, parts)))


def at_event(event: Event) -> Evidence:
    """Return evidence from an event."""
    place = event.involved_object
    return Evidence(
        Reference(place.api_version, place.kind, place.namespace, place.name),
        event=event.reason,
        message=event.message,
        count=occurrences(event),
        last_seen=last_seen(event),
    )


def occurrences(event: Event) -> int:
    """Return the number of times that an event has occurred."""
    return max(event.count, event.series.count if event.series is not None else 0, 1)


def last_seen(event: Event) -> str:
    """Return the time of an event's last occurrence, "" if the event has no time."""
    series = event.series.last_observed_time if event.series is not None else None
    moments = [each for each in (series, event.last_timestamp, event.event_time, event.first_timestamp) if each]
    return max(moments, key=_order, default=event.metadata.creation_timestamp or "")


def _order(moment: str) -> int:
    try:
        return unix(moment)
    except ValueError:
        return 0


def encoded(found: Struct) -> str:
    """Return the JSON of an explanation or overview, indented and in ASCII, so that no text controls a terminal."""
    return json.dumps(msgspec.to_builtins(found), indent=2)
