"""Tests of the pod plugins that are off by default."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.admission_plugins.always_pull_images import AlwaysPullImages
from steersman.admission_plugins.extended_resource_toleration import ExtendedResourceToleration
from steersman.admission_plugins.limit_pod_hard_anti_affinity_topology import LimitPodHardAntiAffinityTopology
from steersman.admission_plugins.pod_node_selector import Annotated, PodNodeSelector
from steersman.admission_plugins.pod_toleration_restriction import (
    Annotations,
    Configuration,
    PodTolerationRestriction,
)
from steersman.api.core.v1 import Toleration
from steersman.machinery.codec.serializer import to_plain
from tests.admission_plugins.pods_and_namespaces import CONTAINER, a_write, admitted, an_update, make_pod, refusal

NEVER = CONTAINER | {"imagePullPolicy": "Never"}
IMAGE_VOLUME = {"name": "v", "image": {"reference": "r", "pullPolicy": "Never"}}


async def test_every_image_is_always_pulled() -> None:
    pod = make_pod({"containers": [NEVER], "initContainers": [NEVER | {"name": "i"}], "volumes": [IMAGE_VOLUME]})
    spec = (await admitted(AlwaysPullImages(), a_write(pod))).obj.spec
    assert [spec.containers[0].image_pull_policy, spec.init_containers[0].image_pull_policy] == ["Always", "Always"]
    assert spec.volumes[0].image.pull_policy == "Always"


async def test_an_update_without_a_new_image_is_left_alone() -> None:
    old = make_pod({"containers": [NEVER]})
    record = await admitted(AlwaysPullImages(), an_update(make_pod({"containers": [NEVER]}, labels={"a": "b"}), old))
    assert record.obj.spec.containers[0].image_pull_policy == "Never"
    new = make_pod({"containers": [NEVER | {"image": "j"}]})
    assert (await admitted(AlwaysPullImages(), an_update(new, old))).obj.spec.containers[
        0
    ].image_pull_policy == "Always"


async def test_a_policy_that_was_changed_back_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = AlwaysPullImages()
    # as if a later plugin undid it
    monkeypatch.setattr(plugin, "admit", LimitPodHardAntiAffinityTopology().admit)
    error = await refusal(plugin, a_write(make_pod({"containers": [NEVER], "volumes": [IMAGE_VOLUME]})))
    where = 'spec.{}: Unsupported value: "Never": supported values: "Always"'
    faults = [
        f'pods "p" is forbidden: {where.format(each)}'
        for each in ("containers[0].imagePullPolicy", "volumes[0].image.pullPolicy")
    ]
    assert (error.code, error.message) == (500, f"[{faults[0]}, {faults[1]}]")


async def test_required_anti_affinity_is_for_hosts_only() -> None:
    def pod(key: str) -> Any:
        terms = [{"topologyKey": key, "labelSelector": {}}]
        return make_pod({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}})

    plugin = LimitPodHardAntiAffinityTopology()
    await admitted(plugin, a_write(pod("kubernetes.io/hostname")))
    assert (await refusal(plugin, a_write(pod("zone")))).message == (
        'pods "p" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key '
        "kubernetes.io/hostname is allowed"
    )


async def test_who_asks_for_a_device_tolerates_its_taint() -> None:
    asking = CONTAINER | {"resources": {"requests": {"example.com/gpu": "1", "cpu": "1"}}}
    pod = make_pod({"containers": [asking], "initContainers": [asking | {"name": "i"}]})
    gpu = {"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    record = await admitted(ExtendedResourceToleration(), a_write(pod))
    assert to_plain(record.obj.spec)["tolerations"] == [gpu]
    record = await admitted(ExtendedResourceToleration(), a_write(record.obj))
    assert to_plain(record.obj.spec)["tolerations"] == [gpu]


def make_node_selector(text: str | None, **configured: str) -> PodNodeSelector:
    return PodNodeSelector({"ns": Annotated(text)}.get, configured)


async def selected(text: str, **selector: str) -> dict[str, str]:
    plugin = make_node_selector(text)
    found: dict[str, str] = (
        await admitted(plugin, a_write(make_pod({"nodeSelector": selector})))
    ).obj.spec.node_selector
    return found


async def test_the_selector_of_the_namespace_is_added() -> None:
    assert await selected("a=b, c = d", e="f") == {"a": "b", "c": "d", "e": "f"}
    assert await selected("", e="f") == {"e": "f"}


async def test_a_pod_that_wants_other_nodes_is_refused() -> None:
    error = await refusal(make_node_selector("a=b"), a_write(make_pod({"nodeSelector": {"a": "c"}})))
    assert (error.code, error.message) == (
        403,
        'pods "p" is forbidden: pod node label selector conflicts with its namespace node label selector',
    )


async def test_a_selector_that_cannot_be_read_is_an_error() -> None:
    error = await refusal(make_node_selector("a=b=c"), a_write(make_pod()))
    assert (error.code, error.message) == (500, "invalid selector: [a b c]")


async def test_a_namespace_without_a_selector_has_that_of_the_cluster() -> None:
    pod = make_pod({"nodeSelector": {"e": "f"}})
    everywhere = {"clusterDefaultNodeSelector": "a=b"}
    assert (await admitted(make_node_selector(None, **everywhere), a_write(pod))).obj.spec.node_selector == {
        "a": "b",
        "e": "f",
    }
    pod = make_pod()
    assert (await admitted(make_node_selector("", **everywhere), a_write(pod))).obj.spec.node_selector == {}
    error = await refusal(make_node_selector(None, **everywhere), a_write(make_pod({"nodeSelector": {"a": "c"}})))
    assert error.message.endswith("conflicts with its namespace node label selector")


async def test_pods_select_by_what_is_listed_for_their_namespace_only() -> None:
    await admitted(make_node_selector("a=b", ns="a=b,e=f"), a_write(make_pod({"nodeSelector": {"e": "f"}})))
    for selector in ({"e": "g"}, {"x": "y"}):
        error = await refusal(make_node_selector(None, ns="a=b,e=f"), a_write(make_pod({"nodeSelector": selector})))
        assert (error.code, error.message) == (
            403,
            'pods "p" is forbidden: pod node label selector labels conflict with its namespace whitelist',
        )
    await admitted(make_node_selector(None, ns="", other="a=b"), a_write(make_pod({"nodeSelector": {"x": "y"}})))


def tolerating(
    defaults: Any = None, whitelist: Any = None, configuration: Configuration | None = None
) -> PodTolerationRestriction:
    texts = [each if each is None or isinstance(each, str) else json.dumps(each) for each in (defaults, whitelist)]
    find = {"ns": Annotations(*texts)}.get
    return PodTolerationRestriction(find, configuration) if configuration else PodTolerationRestriction(find)


KEY = {"key": "k", "operator": "Exists"}


async def test_pods_tolerate_what_their_namespace_says() -> None:
    record = await admitted(tolerating([KEY]), a_write(make_pod()))
    assert to_plain(record.obj.spec)["tolerations"] == [KEY]
    record = await admitted(tolerating([KEY]), an_update(make_pod(), make_pod()))
    assert record.obj.spec.tolerations == []


async def test_who_has_asked_for_resources_may_stay_where_memory_is_short() -> None:
    asking = make_pod({"containers": [CONTAINER | {"resources": {"requests": {"cpu": "1"}}}]})
    record = await admitted(tolerating(), a_write(asking))
    pressure = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}
    assert to_plain(record.obj.spec)["tolerations"] == [pressure]


async def test_only_what_is_allowed_may_be_tolerated() -> None:
    pod = make_pod({"tolerations": [{"key": "k", "operator": "Equal", "value": "v"}]})
    await admitted(tolerating(whitelist=[KEY]), a_write(pod))
    error = await refusal(tolerating(whitelist=[{"key": "other", "operator": "Exists"}]), a_write(pod))
    assert (error.code, error.message) == (
        500,
        "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist",
    )


async def test_the_clusters_lists_hold_in_namespaces_that_have_none() -> None:
    key = Toleration(key="k", operator="Exists")
    cluster = Configuration(default=[key], whitelist=[key])
    record = await admitted(tolerating(configuration=cluster), a_write(make_pod()))
    assert to_plain(record.obj.spec)["tolerations"] == [KEY]
    record.obj.spec.tolerations[0].key = "changed"
    record = await admitted(tolerating(configuration=cluster), a_write(make_pod()))
    assert to_plain(record.obj.spec)["tolerations"] == [KEY], "what is configured is not handed out itself"
    record = await admitted(tolerating("", "null", cluster), a_write(make_pod({"tolerations": [{"key": "x"}]})))
    assert to_plain(record.obj.spec)["tolerations"] == [{"key": "x"}]
    error = await refusal(tolerating("", None, cluster), a_write(make_pod({"tolerations": [{"key": "x"}]})))
    assert (error.code, error.message) == (
        500,
        "pod tolerations (possibly merged with namespace default tolerations) conflict with its cluster whitelist",
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x", "invalid character 'x' looking for beginning of value"),
        ("{}", "json: cannot unmarshal object into Go value of type []v1.Toleration"),
        ('[{"key":1}]', "json: cannot unmarshal number into Go struct field Toleration.key of type string"),
    ],
)
async def test_an_annotation_that_cannot_be_read_is_told_in_gos_words(text: str, why: str) -> None:
    error = await refusal(tolerating(text), a_write(make_pod()))
    assert (error.code, error.message) == (500, why)
