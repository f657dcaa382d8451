"""Points of a run at which faults can happen, named such that they hold across runs, and the faults planned there."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import msgspec

from steersman.machinery.codec.yaml import from_json
from steersman.machinery.codec.yaml_files import YAMLFileError, read_documents
from steersman.machinery.suggestions import explain_validation_error

MOST_FAULTS: Final = 100
"""Faults of one plan."""
WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
READS: Final = frozenset({"get", "list"})


class Kind(StrEnum):
    """Kind of a fault."""

    CRASH_AFTER = "crash-after"
    CONFLICT = "conflict"
    LOST = "lost"
    STALE = "stale"
    EXPIRED = "expired"
    CRASH_BEFORE = "crash-before"
    ERROR = "error"
    CLOSED = "closed"
    THROTTLED = "throttled"
    UNAVAILABLE = "unavailable"


CRASHES: Final = frozenset({Kind.CRASH_AFTER, Kind.CRASH_BEFORE})
OF_WATCHES: Final = frozenset({Kind.STALE, Kind.EXPIRED, Kind.CLOSED})
ERRORS: Final = frozenset({Kind.ERROR, Kind.THROTTLED, Kind.UNAVAILABLE})
EVENTS: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})


class Point(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Request of a client, or an event of its watch: the `nth` of its kind about an object.

    `client` is the program's name in the user agent, `resource` as in `deployments.apps/status`. Random suffixes of
    `name` are `*`. `event` is ADDED, MODIFIED or DELETED for events of watches.
    """

    client: str
    verb: str
    resource: str
    namespace: str = ""
    name: str = ""
    event: str = ""
    nth: int = 1

    def __str__(self) -> str:
        subject = "/".join(each for each in (self.namespace, self.name) if each)
        text = " ".join(each for each in (self.event or self.verb, self.resource, subject) if each)
        return text if self.nth == 1 else f"{text} ({_ordinal(self.nth)})"


class PlannedFault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fault at a point."""

    kind: Kind
    at: Point

    def __str__(self) -> str:
        return f"{self.kind} at {self.at}"


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Faults of one run."""

    faults: list[PlannedFault]

    def __str__(self) -> str:
        return " and ".join(map(str, self.faults))

    def encoded(self) -> bytes:
        """Return the plan in YAML."""
        return from_json(msgspec.json.encode(self))


def may_happen(kind: Kind, point: Point) -> bool:
    """Return True if a fault of a kind can happen to requests like that of a point."""
    if point.event or kind in OF_WATCHES:
        return point.event in EVENTS and point.verb == "watch" and kind in OF_WATCHES
    return point.verb in WRITES or (kind in ERRORS and point.verb in READS)


class InvalidPlan(ValueError):
    """A file that is no plan; the message says why."""


def read_plan(path: Path) -> Plan:
    """Return the plan in a file. Raises InvalidPlan."""
    try:
        documents = [each for each in read_documents(path) if each is not None]
    except YAMLFileError as error:
        raise InvalidPlan(str(error)) from None
    if len(documents) != 1:
        raise InvalidPlan(f"{path}: a plan is one document")
    return plan_of(documents[0], str(path))


def plan_of(plain: Any, source: str) -> Plan:
    """Return the plan in plain data. Raises InvalidPlan."""
    try:
        plan = msgspec.convert(plain, Plan)
    except msgspec.ValidationError as error:
        raise InvalidPlan(f"{source}: {explain_validation_error(error, Plan)}") from None
    if not 0 < len(plan.faults) <= MOST_FAULTS:
        raise InvalidPlan(f"{source}: faults: between 1 and {MOST_FAULTS} are needed")
    for index, each in enumerate(plan.faults):
        if each.at.nth < 1:
            raise InvalidPlan(f"{source}: faults[{index}].at.nth: {each.at.nth} is less than 1")
        if not may_happen(each.kind, each.at):
            what = f"the event {each.at.event!r}" if each.at.event else f"the verb {each.at.verb!r}"
            raise InvalidPlan(f"{source}: faults[{index}]: {each.kind} cannot happen at {what}")
    return plan


def _ordinal(number: int) -> str:
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{suffix}"
