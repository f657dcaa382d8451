"""Default classes, and how objects name theirs."""

from __future__ import annotations

import pytest

from steersman.api.core.v1 import PersistentVolumeClaim
from steersman.api.storage.v1 import StorageClass
from steersman.machinery.built_in.classes import (
    DEFAULT_STORAGE_CLASS,
    STORAGE_CLASS,
    DefaultClass,
    is_default,
    storage_class_of,
)
from steersman.machinery.codec.serializer import from_plain

NEW, BETA = DEFAULT_STORAGE_CLASS


def storage_class(name: str, created: str, annotation: str = NEW, value: str = "true") -> StorageClass:
    metadata = {"name": name, "creationTimestamp": created, "annotations": {annotation: value}}
    return from_plain(StorageClass, {"metadata": metadata, "provisioner": "p"})


EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([], None),
        ([storage_class("a", EARLY, value="TRUE"), storage_class("b", EARLY, "other")], None),
        ([storage_class("a", EARLY), storage_class("b", LATE, BETA)], "b"),
        ([storage_class("b", LATE), storage_class("a", LATE), storage_class("c", EARLY)], "a"),
    ],
)
def test_of_several_defaults_the_newest_counts(classes: list[StorageClass], expected: str | None) -> None:
    assert DefaultClass(DEFAULT_STORAGE_CLASS, lambda: classes, lambda: 1).name() == expected


def test_classes_are_looked_at_again_only_after_a_change() -> None:
    looked, revision = 0, 1

    def every() -> list[StorageClass]:
        nonlocal looked
        looked += 1
        return [storage_class(f"c{looked}", EARLY)]

    default = DefaultClass(DEFAULT_STORAGE_CLASS, every, lambda: revision)
    assert [default.name(), default.name()] == ["c1", "c1"]
    revision = 2
    assert (default.name(), looked) == ("c2", 2)


def test_either_annotation_marks_a_default() -> None:
    assert is_default(storage_class("a", EARLY, BETA), DEFAULT_STORAGE_CLASS)
    assert not is_default(storage_class("a", EARLY, value="false"), DEFAULT_STORAGE_CLASS)


@pytest.mark.parametrize(
    ("annotations", "name", "expected"),
    [({}, None, ""), ({}, "a", "a"), ({STORAGE_CLASS: "old"}, "a", "old"), ({STORAGE_CLASS: ""}, "a", "")],
)
def test_the_annotation_goes_before_the_field(annotations: dict[str, str], name: str | None, expected: str) -> None:
    claim = PersistentVolumeClaim()
    claim.metadata.annotations = annotations
    claim.spec.storage_class_name = name
    assert storage_class_of(claim) == expected
