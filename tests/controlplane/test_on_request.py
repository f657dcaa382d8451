"""Versions that --runtime-config enables, over the wire: written in one version, read in others, absent if disabled."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.endpoints.small_server import Watch

SHARED = pytest.mark.asyncio(loop_scope="session")
"""Mark for tests that use the shared server."""

RESOURCE = "/apis/resource.k8s.io"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
WARNING = '299 - "resource.k8s.io/{} ResourceClaim is deprecated in v1.{}+, unavailable in v1.{}+"'


def claim(version: str, name: str = "c", **metadata: Any) -> dict[str, Any]:
    request = {"deviceClassName": "gpus", "count": 2}
    requests = [{"name": "gpu", **(request if version == "v1beta1" else {"exactly": request})}]
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": name, **metadata},
        "spec": {"devices": {"requests": requests}},
    }


def claims(version: str, namespace: str) -> str:
    return f"{RESOURCE}/{version}/namespaces/{namespace}/resourceclaims"


async def made(api: Any, namespace: str, version: str = "v1beta1", name: str = "c") -> dict[str, Any]:
    answer = await api.post(f"{claims(version, namespace)}?fieldManager=maker", claim(version, name))
    assert answer.status == 201, answer.body
    found: dict[str, Any] = json.loads(answer.body)
    return found


@SHARED
async def test_what_is_made_in_one_version_is_read_in_the_others(api_with_everything: Any, namespace: str) -> None:
    api = api_with_everything
    first = await made(api, namespace)
    exactly = {"deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 2}
    assert first["spec"]["devices"]["requests"] == [{"name": "gpu", **exactly}]
    for version in ("v1", "v1beta2"):
        answer = await api.get(f"{claims(version, namespace)}/c")
        found = json.loads(answer.body)
        assert found["apiVersion"] == f"resource.k8s.io/{version}"
        assert found["spec"]["devices"]["requests"] == [{"name": "gpu", "exactly": exactly}]
        assert found["metadata"] == first["metadata"]
        [item] = json.loads((await api.get(claims(version, namespace))).body)["items"]
        assert item == {key: value for key, value in found.items() if key not in ("kind", "apiVersion")}


@SHARED
async def test_a_watch_of_one_version_tells_of_writes_in_another(api_with_everything: Any, namespace: str) -> None:
    api = api_with_everything
    await made(api, namespace)
    patch = {"metadata": {"labels": {"a": "b"}}}
    answer = await api.request("PATCH", f"{claims('v1', namespace)}/c", patch, **{"content-type": MERGE})
    assert answer.status == 200
    watch = Watch(await api.open("GET", f"{claims('v1beta1', namespace)}?watch=1&resourceVersion=0"))
    last = (await watch.next())["object"]
    await watch.response.aclose()
    assert last["apiVersion"] == "resource.k8s.io/v1beta1"
    assert last["metadata"]["labels"] == {"a": "b"}
    assert last["spec"]["devices"]["requests"][0]["deviceClassName"] == "gpus"


@SHARED
async def test_fields_are_owned_in_the_version_they_were_written_in(api_with_everything: Any, namespace: str) -> None:
    api = api_with_everything
    await made(api, namespace)
    applied = claim("v1beta2", labels={"x": "y"})
    del applied["spec"]
    path = f"{claims('v1beta2', namespace)}/c?fieldManager=applier"
    answer = await api.request("PATCH", path, applied, **{"content-type": APPLY})
    assert answer.status == 200, answer.body
    entries = json.loads(answer.body)["metadata"]["managedFields"]
    assert [(each["manager"], each["operation"], each["apiVersion"]) for each in entries] == [
        ("applier", "Apply", "resource.k8s.io/v1beta2"),
        ("maker", "Update", "resource.k8s.io/v1beta1"),
    ]
    assert entries[1]["fieldsV1"] == {"f:spec": {"f:devices": {"f:requests": {}}}}
    other = claim("v1", labels={"x": "z"})
    answer = await api.request(
        "PATCH", f"{claims('v1', namespace)}/c?fieldManager=other", other, **{"content-type": APPLY}
    )
    assert answer.status == 409
    causes = json.loads(answer.body)["details"]["causes"]
    assert [(each["field"], each["message"]) for each in causes] == [
        (".metadata.labels.x", 'conflict with "applier"'),
        (".spec.devices.requests", 'conflict with "maker" using resource.k8s.io/v1beta1'),
    ]


@SHARED
async def test_items_of_one_key_are_taken_in_the_version_of_the_request_only(api_with_everything: Any) -> None:
    """Upstream cannot determine ownership by managers of another version: an apply fails, another write forgets
    them.
    """
    api = api_with_everything
    path = "/apis/networking.k8s.io/{}/servicecidrs/twice"
    cidr = {"kind": "ServiceCIDR", "metadata": {"name": "twice"}, "spec": {"cidrs": ["10.99.0.0/24"]}}

    async def patched(version: str, body: dict[str, Any], manager: str, media: str) -> Any:
        target = f"{path.format(version)}?fieldManager={manager}"
        return await api.request("PATCH", target, body, **{"content-type": media})

    made = await patched("v1", cidr | {"apiVersion": "networking.k8s.io/v1"}, "maker", APPLY)
    twice = [{"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}]
    body = json.loads(made.body) | {"status": {"conditions": twice}}
    answer = await api.put(f"{path.format('v1')}/status", body)
    assert len(json.loads(answer.body)["metadata"]["managedFields"]) == 2
    answer = await patched("v1beta1", cidr | {"apiVersion": "networking.k8s.io/v1beta1"}, "other", APPLY)
    message = '.status.conditions: duplicate entries for key [type="Ready"]'
    assert (answer.status, json.loads(answer.body)["message"]) == (500, message)
    answer = await patched("v1beta1", {"metadata": {"labels": {"a": "b"}}}, "patcher", MERGE)
    assert answer.status == 200
    assert "managedFields" not in json.loads(answer.body)["metadata"]
    assert (await api.delete(path.format("v1"))).status == 200


@SHARED
async def test_errors_name_the_paths_of_the_stored_version(api_with_everything: Any, namespace: str) -> None:
    body = claim("v1beta1")
    body["spec"]["devices"]["requests"] = [{"name": "a"}, {"name": "b", "count": 1}]
    answer = await api_with_everything.post(claims("v1beta1", namespace), body)
    causes = json.loads(answer.body)["details"]["causes"]
    assert [each["field"] for each in causes] == [
        "spec.devices.requests[0]",
        "spec.devices.requests[1].exactly.deviceClassName",
        "spec.devices.requests[1].exactly.allocationMode",
    ]


@SHARED
async def test_deprecated_versions_come_with_a_warning(api_with_everything: Any, namespace: str) -> None:
    api = api_with_everything
    for version, expected in (
        ("v1", None),
        ("v1beta1", WARNING.format("v1beta1", 35, 38)),
        ("v1beta2", WARNING.format("v1beta2", 36, 39)),
    ):
        answer = await api.get(claims(version, namespace))
        assert answer.headers.get("warning") == expected
        assert (await api.get(f"{claims(version, namespace)}/none/status")).headers.get("warning") == expected
        assert (await api.put(claims(version, namespace), {})).headers.get("warning") is None  # 405
    answer = await api.get("/apis/storage.k8s.io/v1beta1/volumeattributesclasses")
    assert answer.headers["warning"] == (
        '299 - "storage.k8s.io/v1beta1 VolumeAttributesClass is deprecated in v1.34+, unavailable in v1.37+; '
        'use storage.k8s.io/v1 VolumeAttributesClass"'
    )
    assert "warning" not in (await api.get(f"{RESOURCE}/v1beta2/devicetaintrules")).headers


@SHARED
async def test_unknown_field_labels_are_refused_in_the_name_of_the_version(api_with_everything: Any) -> None:
    for version in ("v1", "v1beta2", "v1beta1"):
        answer = await api_with_everything.get(f"{RESOURCE}/{version}/resourceslices?fieldSelector=spec.x=a")
        assert answer.status == 400
        expected = f"field label not supported for resource.k8s.io/{version}, Kind=ResourceSlice: spec.x"
        assert json.loads(answer.body)["message"] == expected


@SHARED
async def test_a_policy_of_any_version_is_the_same_policy(api_with_everything: Any) -> None:
    policy: dict[str, Any] = {
        "metadata": {"name": "any-version"},
        "spec": {
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "operations": ["CREATE"],
                        "apiGroups": ["a.example.com"],
                        "apiVersions": ["v1"],
                        "resources": ["a"],
                    }
                ]
            },
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}],
        },
    }
    path = "/apis/admissionregistration.k8s.io/{}/mutatingadmissionpolicies"
    assert (await api_with_everything.post(path.format("v1alpha1"), policy)).status == 201
    try:
        for version in ("v1", "v1beta1"):
            found = json.loads((await api_with_everything.get(f"{path.format(version)}/any-version")).body)
            assert found["spec"]["mutations"] == policy["spec"]["mutations"]
        wrong = await api_with_everything.post(path.format("v1beta1"), {"metadata": {"name": "wrong"}})
        assert wrong.status == 422
    finally:
        await api_with_everything.delete(f"{path.format('v1')}/any-version")


@SHARED
async def test_a_body_of_another_version_is_refused(api_with_everything: Any, namespace: str) -> None:
    answer = await api_with_everything.post(claims("v1beta1", namespace), claim("v1"))
    assert (answer.status, json.loads(answer.body)["message"]) == (
        400,
        "the API version in the data (resource.k8s.io/v1) does not match the expected API version "
        "(resource.k8s.io/v1beta1)",
    )
    lease = {"apiVersion": "coordination.k8s.io/v1beta1", "kind": "Lease", "metadata": {"name": "x"}}
    path = f"/apis/coordination.k8s.io/v1beta1/namespaces/{namespace}/leasecandidates"
    answer = await api_with_everything.post(path, lease)
    assert json.loads(answer.body)["message"] == (
        'Lease in version "v1beta1" cannot be handled as a LeaseCandidate: converting (v1beta1.Lease) to '
        "(coordination.LeaseCandidate): unknown conversion"
    )


async def versions(api: Any) -> dict[str, list[str]]:
    found = json.loads((await api.get("/apis")).body)["groups"]
    return {group["name"]: [each["version"] for each in group["versions"]] for group in found}


async def services(api: Any) -> set[str]:
    found = json.loads((await api.get("/apis/apiregistration.k8s.io/v1/apiservices")).body)["items"]
    return {each["metadata"]["name"] for each in found}


async def test_versions_are_there_after_a_restart_that_turns_them_on_and_gone_after_the_next(
    start_control_plane: Any, client_of: Any, tmp_path: Any
) -> None:
    on = {"api/beta": "true", "resource.k8s.io/v1beta2": "false"}
    seen = []
    for config in ({}, on, {}):
        plane = await start_control_plane(data_dir=tmp_path, storage="sqlite", runtime_config=config)
        api = client_of(plane)
        documents = json.loads((await api.get("/openapi/v3")).body)["paths"]
        v2 = json.loads((await api.get("/openapi/v2")).body)
        seen.append(((await versions(api))["resource.k8s.io"], await services(api), set(documents), v2))
        if config:
            assert (await api.post(claims("v1beta1", "default"), claim("v1beta1"))).status == 201
            assert (await api.get(claims("v1beta2", "default"))).status == 404
            assert (await api.get("/apis/internal.apiserver.k8s.io/v1alpha1/storageversions")).status == 404
        await plane.stop()
    before, during, after = seen
    assert (before[0], during[0]) == (["v1"], ["v1", "v1beta1"])
    assert during[1] - before[1] == {
        f"v1beta1.{group}"
        for group in (
            "admissionregistration.k8s.io",
            "coordination.k8s.io",
            "networking.k8s.io",
            "resource.k8s.io",
            "storage.k8s.io",
        )
    }
    assert "apis/resource.k8s.io/v1beta1" in during[2] - before[2]
    assert "/apis/resource.k8s.io/v1beta1/resourceslices" in during[3]["paths"]
    assert "io.k8s.api.resource.v1beta1.BasicDevice" in during[3]["definitions"]
    assert list(during[3]["paths"]) == sorted(during[3]["paths"])
    assert after == before
    plane = await start_control_plane(data_dir=tmp_path, storage="sqlite")
    stored = json.loads((await client_of(plane).get(f"{claims('v1', 'default')}/c")).body)
    assert stored["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpus"
    # the next write forgets ownership in a disabled version
    patch = {"metadata": {"labels": {"a": "b"}}}
    path = f"{claims('v1', 'default')}/c?fieldManager=patcher"
    answer = await client_of(plane).request("PATCH", path, patch, **{"content-type": MERGE})
    managers = [each["manager"] for each in json.loads(answer.body)["metadata"]["managedFields"]]
    assert managers == ["patcher"]


async def test_a_single_resource_of_a_version_is_turned_on(start_control_plane: Any, client_of: Any) -> None:
    on = {"resource.k8s.io/v1beta2/devicetaintrules": "true", "resource.k8s.io/v1": "false"}
    api = client_of(await start_control_plane(runtime_config=on))
    assert (await versions(api))["resource.k8s.io"] == ["v1beta2"]
    names = [each["name"] for each in json.loads((await api.get(f"{RESOURCE}/v1beta2")).body)["resources"]]
    assert names == ["devicetaintrules", "devicetaintrules/status"]
    rule = {"metadata": {"name": "r"}, "spec": {"taint": {"key": "a", "effect": "None"}}}
    assert (await api.post(f"{RESOURCE}/v1beta2/devicetaintrules", rule)).status == 201
    assert (await api.get(f"{RESOURCE}/v1alpha3/devicetaintrules")).status == 404
    assert "v1beta2.resource.k8s.io" in await services(api)


def test_nothing_of_it_is_imported_by_default() -> None:
    script = (
        "import asyncio, json, sys, tempfile\n"
        "from pathlib import Path\n"
        "from steersman.controlplane.control_plane import ControlPlane\n"
        "from steersman.controlplane.options import Options\n"
        "async def main():\n"
        "    with tempfile.TemporaryDirectory() as folder:\n"
        "        plane = ControlPlane(Options(data_dir=Path(folder), storage='memory', listen=False))\n"
        "        await plane.start()\n"
        "        await plane.stop()\n"
        "asyncio.run(main())\n"
        "print(json.dumps(sorted(each for each in sys.modules if each.startswith('steersman.'))))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60)
    loaded = json.loads(done.stdout)
    assert "steersman.registry.resource.resourceclaims" in loaded
    unstable = {each for each in loaded if "alpha" in each or "beta" in each or "older_version" in each}
    assert unstable <= {"steersman.api.imagepolicy.v1alpha1"}, "what ImagePolicyWebhook asks with is no served version"
    assert "steersman.controlplane.on_request" not in loaded
