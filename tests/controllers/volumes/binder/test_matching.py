"""Tests of the matching of claims and volumes."""

from __future__ import annotations

import asyncio
import random

from steersman.api.core.v1 import ObjectReference, PersistentVolume, PersistentVolumeStatus
from steersman.api.meta.v1 import LabelSelector
from steersman.controllers.volumes.binder.matching import Available, unsuitable
from tests.controllers.volumes.objects import claim, volume


def ready(name: str, size: str = "1Gi", labels: dict[str, str] | None = None, **spec: object) -> PersistentVolume:
    made = volume(name, size, **spec)
    made.metadata.labels = labels or {}
    made.status = PersistentVolumeStatus(phase="Available")
    return made


def available_volumes(*volumes: PersistentVolume) -> Available:
    available = Available()
    for each in volumes:
        available.put(each)
    return available


def match_name(available: Available, size: str = "1Gi", *, delayed: bool = False, **spec: object) -> str:
    match = asyncio.run(available.match(claim("a", size, **spec), delayed=delayed))  # type: ignore[arg-type]
    return "" if match is None else match.metadata.name


def test_the_smallest_that_is_large_enough_is_taken() -> None:
    available = available_volumes(ready("small", "1Gi"), ready("large", "10Gi"), ready("middle", "3Gi"))
    assert [match_name(available, size) for size in ("500Mi", "1Gi", "2Gi", "4Gi", "11Gi")] == [
        "small",
        "small",
        "middle",
        "large",
        "",
    ]


def test_modes_class_and_labels_must_fit_and_fewer_modes_come_first() -> None:
    both = ["ReadWriteOnce", "ReadWriteMany"]
    available = available_volumes(
        ready("both", access_modes=both),
        ready("block", volume_mode="Block"),
        ready("other", storage_class_name="c"),
        ready("labelled", "5Gi", {"a": "b"}),
    )
    assert match_name(available) == "labelled"
    assert match_name(available, access_modes=["ReadWriteMany"]) == "both"
    assert match_name(available, volume_mode="Block") == "block"
    assert match_name(available, storage_class="c") == "other"
    assert match_name(available, selector=LabelSelector(match_labels={"a": "b"})) == "labelled"
    assert match_name(available, selector=LabelSelector(match_labels={"a": "c"})) == ""


def test_what_is_meant_for_a_claim_is_taken_first_and_alone_where_binding_is_delayed() -> None:
    ref = ObjectReference(namespace="default", name="a")
    available = available_volumes(ready("any"), ready("mine", "9Gi", claim_ref=ref, storage_class_name="c"))
    assert match_name(available) == "mine"
    assert match_name(available, delayed=True) == "mine"
    assert match_name(available, "10Gi") == ""
    available.discard("mine")
    assert match_name(available) == "any"
    assert match_name(available, delayed=True) == ""


async def test_volumes_that_change_are_found_as_they_are() -> None:
    random.seed(1)
    available, now = Available(), dict[str, int]()
    for _ in range(2000):
        name = f"v{random.randrange(40)}"
        if random.random() < 0.4:
            available.discard(name)
            now.pop(name, None)
        else:
            now[name] = random.randrange(1, 30)
            available.put(ready(name, f"{now[name]}Gi"))
        wanted = random.randrange(1, 30)
        fitting = sorted((size, name) for name, size in now.items() if size >= wanted)
        match = await available.match(claim("a", f"{wanted}Gi"), delayed=False)
        assert (match and match.metadata.name) == (fitting[0][1] if fitting else None)


def test_why_a_claim_cannot_have_the_volume_that_it_names() -> None:
    cases = [
        (ready("v"), claim(), ""),
        (ready("v"), claim(size="2Gi"), "requested PV is too small"),
        (ready("v", storage_class_name="c"), claim(), "storageClassName does not match"),
        (ready("v"), claim(volume_attributes_class_name="c"), "volumeAttributesClassName does not match"),
        (ready("v"), claim(volume_mode="Block"), "incompatible volumeMode"),
        (ready("v"), claim(access_modes=["ReadWriteMany"]), "incompatible accessMode"),
    ]
    assert [unsuitable(each, wants) for each, wants, _ in cases] == [why for *_, why in cases]
