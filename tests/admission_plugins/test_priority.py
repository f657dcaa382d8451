"""Tests of Priority: priorities of pods, and the single default class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.admission.interface import CREATE, UPDATE, Attributes, Chain, Operation
from steersman.admission_plugins.priority import Priority
from steersman.api.core.v1 import Pod
from steersman.api.scheduling.v1 import PriorityClass
from steersman.machinery.codec.serializer import from_plain
from steersman.registry.core.pods.pods import PODS
from steersman.registry.scheduling.priorityclasses import PRIORITY_CLASSES
from tests.admission_plugins.writes import refusal, write_of


def make_attributes(obj: Any, operation: Operation = CREATE, **more: Any) -> Attributes:
    return write_of(PODS if isinstance(obj, Pod) else PRIORITY_CLASSES, obj, operation, **more)


def pod(**spec: Any) -> Pod:
    return from_plain(Pod, {"metadata": {"name": "p", "namespace": "ns"}, "spec": spec})


def priority_class(name: str, value: int, *, default: bool = False, policy: str | None = None) -> PriorityClass:
    body = {"metadata": {"name": name}, "value": value, "globalDefault": default}
    return from_plain(PriorityClass, {**body, "preemptionPolicy": policy} if policy else body)


def plugin(*classes: PriorityClass) -> Priority:
    return Priority({each.metadata.name: each for each in classes}.get, lambda: classes, lambda changed: None)


HIGH = priority_class("high", 1000, policy="Never")


async def test_the_default_class_is_looked_up_again_only_after_a_change() -> None:
    classes, looked = [priority_class("usual", 5, default=True)], 0
    followers: list[Callable[[], None]] = []

    def every() -> list[PriorityClass]:
        nonlocal looked
        looked += 1
        return classes

    priority = Priority(lambda name: None, every, followers.append)
    for _ in range(3):
        await priority.admit(make_attributes(pod()))
    assert looked == 1
    classes = [priority_class("other", 7, default=True)]
    for changed in followers:
        changed()
    made = pod()
    await priority.admit(make_attributes(made))
    assert (made.spec.priority, looked) == (7, 2)


@pytest.mark.parametrize(
    ("spec", "classes", "expected"),
    [
        ({}, (HIGH,), (0, "PreemptLowerPriority", "")),
        ({"priorityClassName": "high"}, (HIGH,), (1000, "Never", "high")),
        ({}, (HIGH, priority_class("usual", 5, default=True)), (5, "PreemptLowerPriority", "usual")),
        (
            {},
            (priority_class("b", 9, default=True), priority_class("a", 5, default=True)),
            (5, "PreemptLowerPriority", "a"),
        ),
        ({"priority": 1000, "priorityClassName": "high"}, (HIGH,), (1000, "Never", "high")),
    ],
)
async def test_a_pods_priority_is_that_of_its_class(spec: Any, classes: Any, expected: Any) -> None:
    made = pod(**spec)
    await plugin(*classes).admit(make_attributes(made))
    assert (made.spec.priority, made.spec.preemption_policy, made.spec.priority_class_name) == expected


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
        ({"priority": 5}, "the integer value of priority (5) must not be provided in pod spec"),
        (
            {"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"},
            "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec",
        ),
    ],
)
async def test_a_pod_that_contradicts_its_class_is_refused(spec: Any, text: str) -> None:
    assert text in await refusal(plugin(HIGH).admit(make_attributes(pod(**spec))))


async def test_an_update_keeps_the_priority() -> None:
    new = pod()
    await plugin().admit(make_attributes(new, UPDATE, old=pod(priority=7, preemptionPolicy="Never")))
    assert (new.spec.priority, new.spec.preemption_policy) == (7, "Never")


async def test_subresources_of_pods_are_let_alone() -> None:
    new = pod()
    await Chain((plugin(HIGH),)).admit(make_attributes(new, subresource="status"))
    assert new.spec.priority is None


async def test_only_one_class_is_the_default() -> None:
    usual, other = priority_class("usual", 5, default=True), priority_class("other", 6, default=True)
    text = "PriorityClass usual is already marked as default. Only one default can exist"
    assert text in await refusal(plugin(usual).validate(make_attributes(other)))
    await plugin(usual).validate(make_attributes(usual, UPDATE))
    await plugin(usual).validate(make_attributes(HIGH))
