"""The built-in admission plugins, each by itself."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission.interface import CREATE, DELETE, UPDATE, Attributes, Operation
from steersman.admission_plugins.default_toleration_seconds import DefaultTolerationSeconds
from steersman.admission_plugins.namespace_lifecycle import NamespaceLifecycle
from steersman.admission_plugins.priority import Priority
from steersman.api.core.v1 import ConfigMap, Namespace, Pod
from steersman.api.scheduling.v1 import PriorityClass
from steersman.authentication.user import UserInfo
from steersman.machinery.codec.serializer import from_plain, to_plain
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupVersionKind

RESOURCES = {"Pod": "pods", "ConfigMap": "configmaps", "Namespace": "namespaces"}


def about(obj: Any, operation: Operation = CREATE, **more: Any) -> Attributes:
    """A write of `obj`, named by its metadata."""
    kind = type(obj).__name__
    group = "scheduling.k8s.io" if kind == "PriorityClass" else ""
    given = {"namespace": obj.metadata.namespace, "subresource": "", "name": obj.metadata.name, "obj": obj, **more}
    action = Action(
        operation.lower(), group, "v1", RESOURCES.get(kind, "priorityclasses"), given.pop("subresource"),
        given.pop("namespace"), given["name"],
    )  # fmt: skip
    return Attributes(operation, UserInfo("alice"), action, GroupVersionKind(group, "v1", kind), **given)


def pod(**spec: Any) -> Pod:
    return from_plain(Pod, {"metadata": {"name": "p", "namespace": "ns"}, "spec": spec})


async def message(work: Any) -> str:
    """What a refusal says."""
    with pytest.raises(StatusError) as caught:
        await work
    assert caught.value.code in (403, 404)
    return caught.value.message


# NamespaceLifecycle


PHASES = {"ns": "Active", "going": "Terminating", "default": "Active"}
LIFECYCLE = NamespaceLifecycle(PHASES.get)


def note(namespace: str) -> ConfigMap:
    return from_plain(ConfigMap, {"metadata": {"name": "a", "namespace": namespace}})


def namespace(name: str) -> Namespace:
    return from_plain(Namespace, {"metadata": {"name": name}})


async def test_things_are_made_in_namespaces_that_are_there() -> None:
    await LIFECYCLE.admit(about(note("ns")))
    for operation in (CREATE, UPDATE):
        assert await message(LIFECYCLE.admit(about(note("none"), operation))) == 'namespaces "none" not found'


async def test_nothing_new_is_made_in_a_namespace_that_is_going() -> None:
    with pytest.raises(StatusError) as caught:
        await LIFECYCLE.admit(about(note("going")))
    assert caught.value.message == (
        'configmaps "a" is forbidden: unable to create new content in namespace going because it is being terminated'
    )
    assert [(cause.reason, cause.field) for cause in caught.value.causes] == [
        ("NamespaceTerminating", "metadata.namespace")
    ]
    for operation in (UPDATE, DELETE):
        await LIFECYCLE.admit(about(note("going"), operation))


async def test_what_is_in_no_namespace_is_let_through() -> None:
    await LIFECYCLE.admit(about(note("")))
    await LIFECYCLE.admit(about(namespace("new"), namespace="new"))


@pytest.mark.parametrize(
    ("name", "kept"), [("default", True), ("kube-system", True), ("kube-public", True), ("ns", False)]
)
async def test_the_systems_own_namespaces_are_kept(name: str, kept: bool) -> None:
    work = LIFECYCLE.admit(about(namespace(name), DELETE, namespace=name))
    if kept:
        assert await message(work) == f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    else:
        await work


# Priority


def priority_class(name: str, value: int, *, default: bool = False, policy: str | None = None) -> PriorityClass:
    body = {"metadata": {"name": name}, "value": value, "globalDefault": default}
    return from_plain(PriorityClass, {**body, "preemptionPolicy": policy} if policy else body)


def plugin(*classes: PriorityClass) -> Priority:
    return Priority({each.metadata.name: each for each in classes}.get, lambda: classes, lambda: 1)


HIGH = priority_class("high", 1000, policy="Never")


async def test_the_default_class_is_looked_up_again_only_after_a_change() -> None:
    classes, looked, revision = [priority_class("usual", 5, default=True)], 0, 1

    def every() -> list[PriorityClass]:
        nonlocal looked
        looked += 1
        return classes

    priority = Priority(lambda name: None, every, lambda: revision)
    for _ in range(3):
        await priority.admit(about(pod()))
    assert looked == 1
    classes, revision = [priority_class("other", 7, default=True)], 2
    made = pod()
    await priority.admit(about(made))
    assert (made.spec.priority, looked) == (7, 2)


@pytest.mark.parametrize(
    ("spec", "classes", "expected"),
    [
        ({}, (HIGH,), (0, "PreemptLowerPriority", "")),
        ({"priorityClassName": "high"}, (HIGH,), (1000, "Never", "high")),
        ({}, (HIGH, priority_class("usual", 5, default=True)), (5, "PreemptLowerPriority", "usual")),
        ({}, (priority_class("b", 9, default=True), priority_class("a", 5, default=True)),
         (5, "PreemptLowerPriority", "a")),
        ({"priority": 1000, "priorityClassName": "high"}, (HIGH,), (1000, "Never", "high")),
    ],
)  # fmt: skip
async def test_a_pods_priority_is_that_of_its_class(spec: Any, classes: Any, expected: Any) -> None:
    made = pod(**spec)
    await plugin(*classes).admit(about(made))
    assert (made.spec.priority, made.spec.preemption_policy, made.spec.priority_class_name) == expected


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
        ({"priority": 5}, "the integer value of priority (5) must not be provided in pod spec"),
        ({"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"},
         "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec"),
    ],
)  # fmt: skip
async def test_a_pod_that_contradicts_its_class_is_refused(spec: Any, text: str) -> None:
    assert text in await message(plugin(HIGH).admit(about(pod(**spec))))


async def test_an_update_keeps_the_priority() -> None:
    new = pod()
    await plugin().admit(about(new, UPDATE, old=pod(priority=7, preemptionPolicy="Never")))
    assert (new.spec.priority, new.spec.preemption_policy) == (7, "Never")


async def test_subresources_of_pods_are_let_alone() -> None:
    new = pod()
    await plugin(HIGH).admit(about(new, subresource="status"))
    assert new.spec.priority is None


async def test_only_one_class_is_the_default() -> None:
    usual, other = priority_class("usual", 5, default=True), priority_class("other", 6, default=True)
    text = "PriorityClass usual is already marked as default. Only one default can exist"
    assert text in await message(plugin(usual).validate(about(other)))
    await plugin(usual).validate(about(usual, UPDATE))
    await plugin(usual).validate(about(HIGH))


# DefaultTolerationSeconds


NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


@pytest.mark.parametrize(
    ("tolerations", "added"),
    [
        ([], {NOT_READY: 300, UNREACHABLE: 60}),
        ([{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"}], {UNREACHABLE: 60}),
        ([{"key": NOT_READY, "operator": "Exists", "effect": "NoSchedule"}], {NOT_READY: 300, UNREACHABLE: 60}),
        ([{"operator": "Exists"}], {}),
    ],
)
async def test_pods_put_up_with_failing_nodes_for_a_while(tolerations: Any, added: dict[str, int]) -> None:
    made = pod(tolerations=tolerations)
    await DefaultTolerationSeconds(300, 60).admit(about(made))
    found = [to_plain(each) for each in made.spec.tolerations[len(tolerations) :]]
    assert found == [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        for key, seconds in added.items()
    ]
