"""Simulated load by expressions."""

from __future__ import annotations

import pytest

from steersman.api.core.v1 import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.machinery.selectors import labels
from steersman.machinery.values import times
from steersman.nodes.curves import Curve, Point
from steersman.nodes.load import Load, MetricRule, Objects, UsageRule
from steersman.work.offloading import offload
from tests.controllers.waiting import eventually

NOON = 1767700800.0
"""2026-01-06T12:00:00Z"""
CURVES = {"day": Curve([Point(0.0, 0.0), Point(43200.0, 4.0)])}


def pod(name: str = "web-1", **annotations: str) -> Pod:
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="rs", controller=True)
    metadata = ObjectMeta(
        name=name, namespace="shop", uid=name, labels={"app": "web"}, owner_references=[owner], annotations=annotations
    )
    return Pod(metadata=metadata, spec=PodSpec(containers=[CONTAINER]), status=PodStatus(start_time=times.now()))


CONTAINER = Container(name="c", resources=ResourceRequirements(requests={"cpu": "2"}))


def cpu(text: str, of: Objects | None = None) -> int | None:
    load = Load(CURVES, [UsageRule(of or Objects(), {"cpu": text})], seed=7)
    load.count_replicas = lambda controller: 2 if controller == "rs" else 0
    return load.used(pod(), CONTAINER, "cpu", NOON)


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("curves.day", 4.0),
        ("curves['day'] / replicas", 2.0),
        ("'250m'", 0.25),
        ("quantity('250m').add(quantity('1'))", 1.25),
        ("250m", 0.25),
        ("3", 3.0),
        ("request * 0.5", 1.0),
        ("now.getHours() == 12 ? 1.0 : 0.0", 1.0),
        ("object.metadata.labels.app == 'web' && object.metadata.namespace == 'shop' ? 1.5 : 0.0", 1.5),
        ("container == 'c' ? 1 : 2", 1.0),
        ("-1.0", -1.0),
    ],
)
def test_expressions_say_what_a_container_uses(text: str, cores: float) -> None:
    assert cpu(text) == cores * 10**9


@pytest.mark.parametrize(
    ("text", "cores"),
    [("1e300 * 1e300", None), ("1e300 * 1e5", 2**63), ("-1e300 * 1e5", -(2**63)), ("1e999", 2**63)],
)
def test_extreme_numbers_are_cut(text: str, cores: int | None) -> None:
    assert cpu(text) == (None if cores is None else cores * 10**9)
    value = Load(CURVES, [], [MetricRule("m", Objects(), text)]).external_value("shop", "m", text)
    assert value == (None if cores is None else str(cores))


def test_an_extreme_request_is_cut() -> None:
    extreme = Container(name="c", resources=ResourceRequirements(requests={"cpu": "1e999"}))
    load = Load(CURVES, [UsageRule(Objects(), {"cpu": "request"})])
    assert load.used(pod(), extreme, "cpu", NOON) == 2**63 * 10**9


@pytest.mark.parametrize("text", ["curves.night", "1 / 0", "0.0 / 0.0", "'many'", "[1, 2, 3][7]", "object.nothing"])
def test_an_expression_without_a_value_says_nothing(text: str) -> None:
    assert cpu(text) is None


@pytest.mark.parametrize("text", ["", "curves.day * 2", "true", "unknown", "[1]", "1 +", "1.0" + " + 1.0" * 500])
def test_a_configuration_with_a_wrong_expression_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        cpu(text)


def test_expensive_expressions_end() -> None:
    digits = "[1,2,3,4,5,6,7,8,9,0]"
    expensive = f"double(size({digits}.map(a, {digits}.map(b, {digits}.map(c, {digits}.map(d, a + b + c + d))))))"
    assert cpu(expensive) is None


def test_noise_differs_between_containers_and_repeats() -> None:
    assert cpu("1.0 + noise") == cpu("1.0 + noise")
    load = Load(usage=[UsageRule(Objects(), {"cpu": "1.0 + noise"})])
    assert load.used(pod("web-2"), CONTAINER, "cpu", NOON) != load.used(pod("web-3"), CONTAINER, "cpu", NOON)


@pytest.mark.parametrize(
    ("of", "is_included"),
    [
        (Objects("shop"), True),
        (Objects("other"), False),
        (Objects(selector=labels.parse("app=web")), True),
        (Objects(selector=labels.parse("app!=web")), False),
        (Objects(container="c"), True),
        (Objects(container="d"), False),
    ],
)
def test_rules_choose_containers(of: Objects, *, is_included: bool) -> None:
    assert cpu("1", of) == (10**9 if is_included else None)


async def test_annotations_may_be_expressions_and_go_before_rules() -> None:
    load = Load(CURVES, [UsageRule(Objects(), {"cpu": "1"})])
    key = "simulation.steersman.dev/cpu"

    async def used(**annotations: str) -> int | None:
        return await offload(load.used, pod(**annotations), CONTAINER, "cpu", NOON)

    async def is_evaluated() -> bool:
        return await used(**{key: "curves.day"}) == 4 * 10**9

    assert await used(**{key: "curves.day"}) is None, "the compiler is being imported"
    await eventually(is_evaluated)
    assert await used(**{key: "1", f"{key}.c": "curves.day / 2.0"}) == 2 * 10**9
    assert await used(**{key: "no expression"}) is None
    assert await used() == 10**9


def test_metrics_of_objects_and_external_ones() -> None:
    rules = [
        MetricRule("hits", Objects("shop", labels.parse("app=web")), "10.5 / replicas", "pods"),
        MetricRule("queue", Objects("shop"), "7", labels={"queue": "mail"}),
        MetricRule("queue", Objects(), "1e6 + 0.5"),
    ]
    load = Load(metrics=rules)
    load.count_replicas = lambda controller: 2
    assert load.custom("pods", "hits", pod().metadata, "") == "5250m"
    assert load.custom("pods", "hits", pod().metadata, "3.0 * 2.0") == "6"
    assert load.custom("pods", "other", pod().metadata, "") is None
    assert load.custom("nodes", "hits", pod().metadata, "") is None
    assert list(load.external("shop", "queue")) == [({"queue": "mail"}, "7"), ({}, "1000000500m")]
    assert list(load.external("other", "queue")) == [({}, "1000000500m")]
    assert list(load.external("shop", "hits")) == []
