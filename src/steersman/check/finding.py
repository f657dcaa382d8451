"""Findings of a check: what is wrong with a document, and where."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Level(StrEnum):
    """Gravity of a finding: the server refuses the document, or accepts it although something is wrong."""

    ERROR = "error"
    WARNING = "warning"


class Rule(StrEnum):
    """Kind of a finding. The names appear in outputs, and in `--ignore`."""

    UNREADABLE = "Unreadable"
    UNKNOWN_KIND = "UnknownKind"
    UNKNOWN_FIELD = "UnknownField"
    MALFORMED = "Malformed"
    INVALID = "Invalid"
    FORBIDDEN = "Forbidden"
    REFUSED = "Refused"
    POD_REFUSED = "PodRefused"
    DUPLICATE = "Duplicate"
    WARNING = "Warning"
    DANGLING_REFERENCE = "DanglingReference"
    LOST_FIELD = "LostField"
    NARROWED_SCHEMA = "NarrowedSchema"
    STORED_OBJECT = "StoredObject"


DESCRIPTIONS = {
    Rule.UNREADABLE: "The file is no YAML or JSON, or a document in it is no object of Kubernetes.",
    Rule.UNKNOWN_KIND: "The server serves no such kind in this version.",
    Rule.UNKNOWN_FIELD: "The kind has no such field, or a field is given twice.",
    Rule.MALFORMED: "A value is of another type than the field.",
    Rule.INVALID: "Validation refuses the object.",
    Rule.FORBIDDEN: "Admission or authorization refuses the object.",
    Rule.REFUSED: "The server refuses the object for another reason.",
    Rule.POD_REFUSED: "The object is accepted, but its pods would be refused.",
    Rule.DUPLICATE: "The object is given twice.",
    Rule.WARNING: "The server accepts the object with a warning, such as a deprecated version.",
    Rule.DANGLING_REFERENCE: "The object refers to something that is not among the documents.",
    Rule.LOST_FIELD: "A field is removed from a custom resource's schema: its stored values are lost.",
    Rule.NARROWED_SCHEMA: "A custom resource's schema allows less than before: stored objects may become invalid.",
    Rule.STORED_OBJECT: "An object that the old definition allows is refused under the new one.",
}
"""A sentence about each rule."""


class Subject(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Object of a document."""

    kind: str = ""
    name: str = ""
    namespace: str = ""
    api_version: str = ""

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name}" if self.kind else ""


class Finding(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Something wrong with a document.

    `line` counts from 1; it is that of the field if the file has it, otherwise that of its nearest parent. `field` is a
    path as the server writes it, such as `spec.containers[0].image`.
    """

    level: Level
    rule: Rule
    message: str
    file: str
    line: int
    field: str = ""
    object: Subject = Subject()


class CheckedObject(Struct, frozen=True, rename="camel"):
    """An object that was checked."""

    file: str
    line: int
    object: Subject


class Report(Struct, frozen=True, rename="camel"):
    """Result of a check: findings in the order of the files, and the checked objects with their files."""

    findings: list[Finding]
    objects: list[CheckedObject]

    def count(self, level: Level) -> int:
        """Return the number of findings of a level."""
        return sum(each.level is level for each in self.findings)
