"""Tests of LimitRanger: defaults and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.admission.interface import CREATE, UPDATE, Attributes, Operation
from steersman.admission_plugins.limit_ranger import ANNOTATION, LimitRanger
from steersman.api.core.v1 import LimitRange, PersistentVolumeClaim, Pod
from steersman.authentication.user import UserInfo
from steersman.machinery.codec.serializer import from_plain, to_plain
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.rest.objects import Reading

Resources = dict[str, dict[str, str]]


class Ranges:
    """The LimitRanges of the namespace "ns"."""

    def __init__(self, *specs: list[dict[str, Any]]) -> None:
        self.specs = list(specs)
        self.version = 1
        self.reads = 0

    async def read_all(self, namespace: str, reading: Reading[Any]) -> list[Any]:
        self.reads += 1
        specs = self.specs if namespace == "ns" else []
        return [reading.make(from_plain(LimitRange, {"spec": {"limits": limits}})) for limits in specs]

    async def try_wait_until_current(self) -> bool:
        return True  # nobody else writes

    def takes_long(self, namespace: str) -> bool:
        return False

    def change_count(self) -> int:
        return self.version

    def subscribe(self, changed: Callable[[], None]) -> None:
        pass

    def is_empty(self) -> bool:
        return not self.specs


def ranger(*specs: list[dict[str, Any]]) -> LimitRanger:
    return LimitRanger(Ranges(*specs))  # type: ignore[arg-type]


def container(name: str, requests: dict[str, str], limits: dict[str, str], **more: str) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests, "limits": limits}, **more}


def pod(*containers: dict[str, Any], **spec: Any) -> Pod:
    metadata = {"name": "p", "namespace": "ns"}
    return from_plain(Pod, {"metadata": metadata, "spec": {"containers": list(containers), **spec}})


def claim(storage: str) -> PersistentVolumeClaim:
    metadata = {"name": "c", "namespace": "ns"}
    requests = {"storage": storage} if storage else {}
    return from_plain(PersistentVolumeClaim, {"metadata": metadata, "spec": {"resources": {"requests": requests}}})


def make_attributes(obj: Any, operation: Operation = CREATE, *, old: Any = None, subresource: str = "") -> Attributes:
    kind = type(obj).__name__
    resource = {"Pod": "pods"}.get(kind, "persistentvolumeclaims")
    action = Action(operation.lower(), "", "v1", resource, subresource, "ns", "p")
    return Attributes(operation, UserInfo("alice"), action, GroupVersionKind("", "v1", kind), "p", obj, old)


async def refusal(plugin: LimitRanger, attributes: Attributes) -> str:
    """Return the text of a 403 after the object's name; "" if there is none."""
    try:
        await plugin.validate(attributes)
    except StatusError as error:
        if (error.code, error.reason) != (403, "Forbidden"):
            raise
        return error.message.split(" is forbidden: ")[1]
    return ""


# Defaults


DEFAULTS = [{"type": "Container", "default": {"cpu": "500m", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}}]


async def test_containers_get_what_they_do_not_say_themselves() -> None:
    made = pod(container("a", {}, {"cpu": "1"}), container("b", {"cpu": "1m"}, {"cpu": "2m", "memory": "1Mi"}))
    made.spec.init_containers = pod(container("i", {}, {})).spec.containers or []
    await ranger(DEFAULTS).admit(make_attributes(made))
    spec = to_plain(made)["spec"]
    assert [each["resources"] for each in spec["containers"]] == [
        {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}},
        {"limits": {"cpu": "2m", "memory": "1Mi"}, "requests": {"cpu": "1m"}},
    ]
    assert spec["initContainers"][0]["resources"] == {
        "limits": {"cpu": "500m", "memory": "1Gi"},
        "requests": {"cpu": "100m"},
    }
    assert made.metadata.annotations[ANNOTATION] == (
        "LimitRanger plugin set: cpu request for container a; memory limit for container a; "
        "cpu request for init container i; cpu, memory limit for init container i"
    )


async def test_a_pod_that_says_everything_is_not_annotated() -> None:
    made = pod(container("a", {"cpu": "1"}, {"cpu": "1", "memory": "1"}))
    await ranger(DEFAULTS, [{"type": "Pod", "max": {"cpu": "1"}}]).admit(make_attributes(made))
    assert made.metadata.annotations == {}


@pytest.mark.parametrize(
    ("operation", "subresource", "looked_at"),
    [(CREATE, "", True), (UPDATE, "", False), (UPDATE, "status", False), (UPDATE, "resize", True)],
)
async def test_pods_are_looked_at_when_they_are_made_or_resized(
    operation: Operation, subresource: str, looked_at: bool
) -> None:
    plugin = ranger([{"type": "Container", "default": {"cpu": "2"}, "max": {"cpu": "1"}}])
    made = pod(container("a", {}, {}))
    attributes = make_attributes(made, operation, old=None if operation == CREATE else pod(), subresource=subresource)
    await plugin.admit(attributes)
    limits = (made.spec.containers or [])[0].resources.limits
    assert limits == ({"cpu": "2"} if looked_at else {})
    expected = "maximum cpu usage per Container is 1, but limit is 2" if looked_at else ""
    assert await refusal(plugin, attributes) == expected


async def test_what_is_being_deleted_is_let_through() -> None:
    old = claim("1Gi")
    old.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    plugin = ranger([{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}])
    assert await refusal(plugin, make_attributes(claim("2Gi"), UPDATE, old=old)) == ""
    assert await refusal(plugin, make_attributes(claim("2Gi"), UPDATE, old=claim("1Gi"))) == (
        "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"
    )


# Bounds


@pytest.mark.parametrize(
    ("limit", "requests", "limits", "message"),
    [
        ({"min": {"cpu": "1"}}, {}, {}, "minimum cpu usage per Container is 1.  No request is specified"),
        ({"min": {"cpu": "1"}}, {"cpu": "999m"}, {}, "minimum cpu usage per Container is 1, but request is 999m"),
        ({"min": {"cpu": "1"}}, {"cpu": "1"}, {"cpu": "0"}, "minimum cpu usage per Container is 1, but limit is 0"),
        ({"min": {"cpu": "1"}}, {"cpu": "1"}, {"cpu": "1"}, ""),
        ({"max": {"cpu": "1"}}, {"cpu": "1"}, {}, "maximum cpu usage per Container is 1.  No limit is specified"),
        ({"max": {"cpu": "1"}}, {}, {"cpu": "1001m"}, "maximum cpu usage per Container is 1, but limit is 1001m"),
        ({"max": {"cpu": "1"}}, {"cpu": "2"}, {"cpu": "1"}, "maximum cpu usage per Container is 1, but request is 2"),
        ({"max": {"memory": "8Ei"}}, {}, {"memory": "7Ei"}, ""),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {},
            {"cpu": "1"},
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"cpu": "1"},
            {},
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"cpu": "300m"},
            {"cpu": "1"},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.333333",
        ),
        ({"maxLimitRequestRatio": {"cpu": "2500m"}}, {"cpu": "400m"}, {"cpu": "1"}, ""),
    ],
)
async def test_bounds_of_containers(
    limit: dict[str, Any], requests: dict[str, str], limits: dict[str, str], message: str
) -> None:
    plugin = ranger([{"type": "Container", **limit}])
    assert await refusal(plugin, make_attributes(pod(container("a", requests, limits)))) == message


async def test_all_that_one_limit_range_finds_is_told_once() -> None:
    plugin = ranger(
        [{"type": "Container", "min": {"memory": "2", "cpu": "2"}}, {"type": "Pod", "max": {"cpu": "1"}}],
        [{"type": "Container", "min": {"cpu": "9"}}],
    )
    few = {"cpu": "1", "memory": "1"}
    assert await refusal(plugin, make_attributes(pod(container("a", few, few), container("b", few, few)))) == (
        "[minimum cpu usage per Container is 2, but request is 1, minimum memory usage per Container is 2, but request "
        "is 1, maximum cpu usage per Pod is 1, but limit is 2]"
    )


async def test_a_pod_is_the_sum_of_its_containers_or_its_largest_init_container() -> None:
    plugin = ranger([{"type": "Pod", "max": {"cpu": "5"}}])
    one, two, four = ({"cpu": text} for text in ("1", "2", "4"))
    sidecar = container("s", one, one, restartPolicy="Always")
    first = container("f", four, four)
    assert await refusal(plugin, make_attributes(pod(container("a", two, two), initContainers=[sidecar, first]))) == ""
    assert await refusal(
        plugin, make_attributes(pod(container("a", two, two), initContainers=[sidecar, sidecar, first]))
    ) == ("maximum cpu usage per Pod is 5, but limit is 6")


async def test_what_the_pod_as_a_whole_asks_for_counts_but_not_its_huge_pages() -> None:
    plugin = ranger([{"type": "Pod", "max": {"cpu": "1", "hugepages-2Mi": "2Mi"}}])
    whole = {"limits": {"cpu": "2", "hugepages-2Mi": "4Mi"}}
    assert await refusal(plugin, make_attributes(pod(container("a", {}, {}), resources=whole))) == (
        "[maximum cpu usage per Pod is 1, but limit is 2, maximum hugepages-2Mi usage per Pod is 2Mi.  No limit is "
        "specified]"
    )


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        (
            "",
            "[minimum storage usage per PersistentVolumeClaim is 1Gi.  No request is specified, maximum storage usage "
            "per PersistentVolumeClaim is 5Gi.  No request is specified]",
        ),
        ("1Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"),
        ("6Gi", "maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi"),
        ("5Gi", ""),
    ],
)
async def test_bounds_of_claims(storage: str, message: str) -> None:
    plugin = ranger([{"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}}])
    assert await refusal(plugin, make_attributes(claim(storage))) == message


async def test_limit_ranges_are_read_again_only_when_they_change() -> None:
    ranges = Ranges()
    plugin = LimitRanger(ranges)  # type: ignore[arg-type]
    attributes = make_attributes(pod(container("a", {}, {"cpu": "2"})))
    for _ in range(3):
        await plugin.admit(attributes)
        assert await refusal(plugin, attributes) == ""
    assert ranges.reads == 1
    ranges.specs.append([{"type": "Container", "max": {"cpu": "1"}}])
    ranges.version = 2
    assert await refusal(plugin, attributes) == "maximum cpu usage per Container is 1, but limit is 2"
    assert ranges.reads == 2
