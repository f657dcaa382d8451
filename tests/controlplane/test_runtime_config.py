"""Resources disabled by --runtime-config are absent from paths, discovery and APIServices; stored objects stay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.controlplane.options import OptionsError
from steersman.controlplane.runtime_config import RuntimeConfig

APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


async def groups(api: Any) -> dict[str, list[str]]:
    found = json.loads((await api.get("/apis")).body)["groups"]
    return {group["name"]: [each["version"] for each in group["versions"]] for group in found}


async def test_a_version_that_is_off_is_as_if_it_was_never_there(start_control_plane: Any, client_of: Any) -> None:
    off = {"batch/v1": "false", "autoscaling/v2": "false", "apps/v1/deployments": "false"}
    api = client_of(await start_control_plane(runtime_config=off))
    found = await groups(api)
    assert "batch" not in found
    assert found["autoscaling"] == ["v1"]
    names = {each["metadata"]["name"] for each in json.loads((await api.get(APISERVICES)).body)["items"]}
    assert {"v1.apps", "v1.autoscaling"} <= names
    assert not names & {"v1.batch", "v2.autoscaling"}
    answer = await api.get("/apis/batch/v1/jobs")
    assert (answer.status, answer.body) == (404, b"404 page not found\n")
    answer = await api.get("/apis/autoscaling/v2/horizontalpodautoscalers")
    assert (answer.status, json.loads(answer.body)["reason"]) == (404, "NotFound")
    resources = json.loads((await api.get("/apis/apps/v1")).body)["resources"]
    assert "replicasets/scale" in {each["name"] for each in resources}
    assert not [each["name"] for each in resources if each["name"].startswith("deployments")]
    assert (await api.get("/apis/apps/v1/deployments")).status == 404
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
    scaler = {"metadata": {"name": "a"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}
    path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
    assert (await api.post(path, scaler)).status == 201
    documented = json.loads((await api.get("/openapi/v3")).body)["paths"]
    assert "apis/batch/v1" not in documented
    assert "apis/apps/v1" in documented


async def test_the_api_service_of_a_version_that_was_on_before_goes(start_control_plane: Any, tmp_path: Any) -> None:
    names = []
    for off in ({}, {"batch/v1": "false"}, {}):
        plane = await start_control_plane(data_dir=tmp_path, storage="sqlite", runtime_config=off)
        services = plane.objects("apiregistration.k8s.io", "apiservices").list()
        names.append({each.metadata.name for each in services})
        await plane.stop()
    assert names[0] - names[1] == {"v1.batch"}
    assert names[2] == names[0]


@pytest.mark.parametrize(
    ("pairs", "pods", "jobs", "deployments"),
    [
        ({}, True, True, True),
        ({"api/all": "true", "api/beta": "false", "api/legacy": ""}, True, True, True),
        ({"api/all": "false", "v1": "true", "apps/v1": ""}, True, False, True),
        ({"api/all": "false", "api/v1": "1"}, True, False, False),
        ({"api/ga": "false", "batch/v1": "t"}, False, True, False),
        ({"apps/v1": "false", "apps/v1/deployments": "true"}, True, True, True),
        ({"resource.k8s.io/v1beta1": "false"}, True, True, True),
        ({"v1/secrets": "false"}, False, True, True),
    ],
)
def test_what_is_nearer_counts_more(pairs: dict[str, str], pods: bool, jobs: bool, deployments: bool) -> None:
    config = RuntimeConfig(pairs)
    assert config.serves("", "v1", "pods") == pods
    assert config.serves("batch", "v1", "jobs") == jobs
    assert config.serves("apps", "v1", "deployments") == deployments


@pytest.mark.parametrize(
    ("pairs", "v1", "beta", "alpha"),
    [
        ({}, True, False, False),
        ({"api/all": "true"}, True, True, True),
        ({"api/beta": "true"}, True, True, False),
        ({"api/alpha": "true"}, True, False, True),
        ({"api/all": "true", "api/alpha": "false"}, True, True, False),
        ({"api/all": "false", "api/alpha": "true"}, False, False, True),
        ({"api/all": "true", "resource.k8s.io/v1beta2": "0"}, True, False, True),
        ({"resource.k8s.io/v1beta2": ""}, True, True, False),
        ({"resource.k8s.io/v1beta2/devicetaintrules": "true"}, True, True, False),
        ({"api/all": "true", "resource.k8s.io/v1beta2/devicetaintrules": "false"}, True, False, True),
        (
            {"storage.k8s.io/v1alpha1": "true", "apps/v1beta1": "true", "admission.k8s.io/v1": "true"},
            True,
            False,
            False,
        ),
    ],
)
def test_levels_and_versions_turn_on_what_is_off_by_default(
    pairs: dict[str, str], v1: bool, beta: bool, alpha: bool
) -> None:
    config = RuntimeConfig(pairs)
    assert config.serves("resource.k8s.io", "v1", "resourceclaims") == v1
    assert config.serves("resource.k8s.io", "v1beta2", "devicetaintrules") == beta
    assert config.serves("resource.k8s.io", "v1alpha3", "devicetaintrules") == alpha
    assert config.beyond_default == (beta or alpha)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ({"foo/v1": "true", "bar/v2": "false"}, "unknown api groups bar/v2,foo/v1"),
        ({"api/foo": "true"}, "unknown api groups api/foo"),
        ({"bar/baz/v1": "true"}, "unknown api groups bar/baz"),
        ({"foo": "true"}, "runtime-config invalid key foo"),
        ({"a/b/c/d": "true"}, "runtime-config invalid key a/b/c/d"),
        ({"storage.k8s.io/v1alpha7": "true"}, "group version storage.k8s.io/v1alpha7 that has not been registered"),
        ({"apps/v2/x": "true"}, "group version apps/v2 that has not been registered"),
        ({"api/all": "maybe"}, "invalid value api/all=maybe"),
        ({"api/ga": "1"}, "invalid value api/ga=1"),
        ({"api/all": "false"}, "invalid runtime-config with only api/all=false"),
        (
            {"apps/v1": "maybe"},
            'invalid value of apps/v1: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        ({"v1": "maybe"}, 'invalid value of /v1: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax'),
        (
            {"apps/v1/Deployments": "true"},
            "invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, "
            'not "Deployments"',
        ),
    ],
)
def test_what_cannot_be_understood_is_refused_in_upstreams_words(pairs: dict[str, str], message: str) -> None:
    with pytest.raises(OptionsError) as caught:
        RuntimeConfig(pairs)
    words, _, known = str(caught.value).partition("; known are ")
    assert words == message
    assert bool(known) == words.startswith(("unknown api groups", "group version"))
