"""Tests of RuntimeClass: overhead and scheduling constraints of pods."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission.interface import Chain
from steersman.admission_plugins.runtime_class import RuntimeClass
from steersman.api.node.v1 import RuntimeClass as Class
from steersman.machinery.codec.serializer import from_plain, to_plain
from tests.admission_plugins.pods_and_namespaces import a_write, admitted, make_pod, refusal

HEAVY = from_plain(
    Class,
    {
        "metadata": {"name": "heavy"},
        "handler": "h",
        "overhead": {"podFixed": {"cpu": "100m"}},
        "scheduling": {
            "nodeSelector": {"kind": "heavy"},
            "tolerations": [{"key": "heavy", "operator": "Exists", "effect": "NoSchedule"}],
        },
    },
)
PLAIN = from_plain(Class, {"metadata": {"name": "plain"}, "handler": "h"})
PLUGIN = RuntimeClass({"heavy": HEAVY, "plain": PLAIN}.get)


async def spec_of(spec: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain((await admitted(PLUGIN, a_write(make_pod(spec)))).obj.spec)
    return plain


async def test_a_pod_gets_the_overhead_and_the_scheduling_of_its_class() -> None:
    spec = await spec_of({"runtimeClassName": "heavy", "nodeSelector": {"disk": "ssd"}})
    assert spec["overhead"] == {"cpu": "100m"}
    assert spec["nodeSelector"] == {"disk": "ssd", "kind": "heavy"}
    assert spec["tolerations"] == [{"key": "heavy", "operator": "Exists", "effect": "NoSchedule"}]


async def test_an_overhead_written_otherwise_is_the_same() -> None:
    assert (await spec_of({"runtimeClassName": "heavy", "overhead": {"cpu": "0.1"}}))["overhead"] == {"cpu": "100m"}


async def test_a_narrower_toleration_goes_into_that_of_the_class() -> None:
    narrow = {"key": "heavy", "operator": "Equal", "value": "x", "effect": "NoSchedule"}
    spec = await spec_of({"runtimeClassName": "heavy", "tolerations": [narrow]})
    assert spec["tolerations"] == [{"key": "heavy", "operator": "Exists", "effect": "NoSchedule"}]


OTHER = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
NONE = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found'),
        ({"runtimeClassName": "heavy", "overhead": {"cpu": "1"}}, OTHER),
        ({"runtimeClassName": "plain", "overhead": {"cpu": "1"}}, NONE),
        ({"overhead": {"cpu": "1"}}, NONE),
        ({"overhead": {}}, NONE),
        ({"runtimeClassName": "heavy", "overhead": {}}, OTHER),
        (
            {"runtimeClassName": "heavy", "nodeSelector": {"kind": "light"}},
            "conflict: runtimeClass.scheduling.nodeSelector[kind] = heavy; pod.spec.nodeSelector[kind] = light",
        ),
    ],
)
async def test_what_contradicts_the_class_is_refused(spec: dict[str, Any], why: Any) -> None:
    error = await refusal(PLUGIN, a_write(make_pod(spec)))
    assert (error.code, error.message) == (403, f'pods "p" is forbidden: {why}')


async def test_an_empty_name_is_an_error_as_upstream() -> None:
    error = await refusal(PLUGIN, a_write(make_pod({"runtimeClassName": ""})))
    assert (error.code, error.message) == (500, "resource name may not be empty")


async def test_subresources_and_other_resources_are_let_through() -> None:
    bad = make_pod({"overhead": {"cpu": "1"}})
    await admitted(PLUGIN, a_write(bad, subresource="binding"))
    await Chain((PLUGIN,)).admit(a_write(bad, resource="others"))
