"""Objects of every kind full of one list or map, or with one long text, in every way that they can be sent."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final

from .case import ANONYMOUS, Case, Message, Request, Target
from .fields import FILLS, Field, Subject, fields_of, filled, subjects
from .strings import texts_for
from .ways import CREATES, WAYS, Way

_TEXT_WAYS: Final = ("create-json", "create-yaml-flow", "create-protobuf", "apply-yaml", "strategic")
"""Ways in which a text is parsed differently."""

_METADATA_OF: Final = ("v1.Pod", "v1.Namespace")
"""Texts in metadata are read alike for all kinds."""


def matching(patterns: str) -> list[Subject]:
    """The subjects whose kind matches one of the patterns, e.g. `Pod,*.batch/v1.*`; all without any."""
    wanted = [each.strip() for each in patterns.split(",") if each.strip()]
    return [
        each
        for each in subjects()
        if not wanted or any(fnmatchcase(each.kind, one) or each.body["kind"] == one for one in wanted)
    ]


def _ways(subject: Subject) -> list[tuple[str, Way]]:
    return [(name, way) for name, way in WAYS.items() if subject.stored or name.startswith(CREATES)]


def lists(kinds: str) -> Iterator[Case]:
    """For each list and map of each kind, each way and fill."""
    for subject in matching(kinds):
        for field in fields_of(subject):
            if field.type.kind not in ("list", "map"):
                continue
            for fill in FILLS:
                for name, way in _ways(subject):
                    yield Case(
                        f"lists/{subject.kind}/{field}/{fill}/{name}", _Full(subject, field, fill, way), subject.kind
                    )


def texts(kinds: str) -> Iterator[Case]:
    """For each text, quantity, time and number of each kind: long ones of the forms that readers work at most."""
    for subject in matching(kinds):
        for field in fields_of(subject):
            if field.path[0] == "metadata" and subject.kind not in _METADATA_OF:
                continue
            for label, write in texts_for(field.type, field.path[-1]):
                for name, way in _ways(subject):
                    if name not in _TEXT_WAYS:
                        continue
                    make = _Long(subject, field, write, way)
                    yield Case(f"texts/{subject.kind}/{field}/{label}/{name}", make, subject.kind)


def unknown_users(kinds: str) -> Iterator[Case]:
    """Large bodies of those who may not send them: nothing of them is to be read."""
    for subject in matching(kinds):
        field = next(each for each in fields_of(subject) if str(each) == "metadata.ownerReferences")
        for name, way in _ways(subject):
            full = _Full(subject, field, "distinct", way)
            yield Case(f"unknown-users/{subject.kind}/{field}/{name}", _As(full, ANONYMOUS), subject.kind)


class _Full:
    """Makes an object with a list or map full of something."""

    def __init__(self, subject: Subject, field: Field, fill: str, way: Way) -> None:
        self._subject, self._field, self._fill, self._way = subject, field, fill, way

    def __call__(self, size: int, target: Target) -> Message | None:
        full = filled(self._field, self._fill, size)
        return None if full is None else self._way(self._subject, self._field, full, target)


class _Long:
    """Makes an object with a long text."""

    def __init__(self, subject: Subject, field: Field, write: object, way: Way) -> None:
        self._subject, self._field, self._write, self._way = subject, field, write, way

    def __call__(self, size: int, target: Target) -> Message | None:
        assert callable(self._write)
        return self._way(self._subject, self._field, self._write(size), target)


class _As:
    """A message sent as another user."""

    def __init__(self, make: _Full, token: str) -> None:
        self._make, self._token = make, token

    def __call__(self, size: int, target: Target) -> Message | None:
        found = self._make(size, target)
        if not isinstance(found, Request):
            return found
        return Request(found.method, found.target, found.headers, found.body, self._token)
