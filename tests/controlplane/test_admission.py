"""Admission plugins on a whole server: changes, refusals, and enabling by flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


async def test_a_claim_gets_the_default_class_and_its_finalizer(api: Any, namespace: str) -> None:
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    marked = {"storageclass.kubernetes.io/is-default-class": "true"}
    made = {"metadata": {"name": namespace, "annotations": marked}, "provisioner": "example.com/p"}
    claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    assert (await api.post(classes, made)).status == 201
    claim = (await api.post(claims, {"metadata": {"name": "a"}, "spec": CLAIM})).json()
    assert (claim["spec"]["storageClassName"], claim["metadata"]["finalizers"]) == (
        namespace,
        ["kubernetes.io/pvc-protection"],
    )
    assert (await api.delete(f"{classes}/{namespace}")).status == 200
    later = (await api.post(claims, {"metadata": {"name": "b"}, "spec": CLAIM})).json()
    assert "storageClassName" not in later["spec"]


async def test_a_deleted_volume_waits_for_its_finalizer(api: Any, namespace: str) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/a"}}
    volumes = "/api/v1/persistentvolumes"
    assert (await api.post(volumes, {"metadata": {"name": namespace}, "spec": spec})).status == 201
    going = (await api.delete(f"{volumes}/{namespace}")).json()
    assert going["metadata"]["deletionTimestamp"]
    going["metadata"]["finalizers"] = []
    assert (await api.put(f"{volumes}/{namespace}", going)).status == 200
    assert (await api.get(f"{volumes}/{namespace}")).status == 404


async def test_connections_are_asked_about_and_logs_are_not(
    start_control_plane: Callable[..., Any], client_of: Callable[..., Any]
) -> None:
    api = client_of(await start_control_plane(enable_admission_plugins=("AlwaysDeny",)))
    for path in ("pods/x/exec?command=a", "pods/x/portforward", "pods/x/proxy", "services/x/proxy/a"):
        refused = await api.get(f"/api/v1/namespaces/default/{path}")
        kind = path.partition("/")[0]
        assert (refused.status, refused.json()["message"]) == (
            403,
            f'{kind} "x" is forbidden: admission control is denying all modifications',
        ), path
    assert (await api.get("/api/v1/namespaces/default/pods/x/log")).status == 404


async def test_plugins_that_are_off_by_default_can_be_enabled(
    start_control_plane: Callable[..., Any], client_of: Callable[..., Any]
) -> None:
    plane = await start_control_plane(
        enable_admission_plugins=("NamespaceAutoProvision", "DenyServiceExternalIPs"),
        disable_admission_plugins=("StorageObjectInUseProtection",),
    )
    api = client_of(plane)
    note = {"metadata": {"name": "a"}}
    assert (await api.post("/api/v1/namespaces/made/configmaps?dryRun=All", note)).status == 404
    assert (await api.post("/api/v1/namespaces/made/configmaps", note)).status == 201
    owners = (await api.get("/api/v1/namespaces/made")).json()["metadata"]["managedFields"]
    assert [each["manager"] for each in owners] == ["kube-apiserver"]
    service = {"metadata": {"name": "s"}, "spec": {"externalIPs": ["1.2.3.4"], "ports": [{"port": 80}]}}
    refused = (await api.post("/api/v1/namespaces/made/services", service)).json()
    assert refused["message"] == 'services "s" is forbidden: Use of external IPs is denied by admission control'
    claim = (await api.post("/api/v1/namespaces/made/persistentvolumeclaims", {**note, "spec": CLAIM})).json()
    assert "finalizers" not in claim["metadata"]


ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["persistentvolumeclaims"]}]


def judges(namespace: str) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Return objects that each refuse every claim of a namespace, with the paths of their collections."""
    below = f"/api/v1/namespaces/{namespace}"
    name = {"metadata": {"name": f"none-{namespace}"}}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    nobody = {"clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    webhooks = [{"name": "none.example.com", "rules": RULES, **here, **nobody}]
    policy = {"matchConstraints": {"resourceRules": RULES}, "validations": [{"expression": "false"}]}
    binding = {"policyName": f"none-{namespace}", "validationActions": ["Deny"], "matchResources": here}
    limit = {"type": "PersistentVolumeClaim", "max": {"storage": "1"}}
    return {
        "limits": [(f"{below}/limitranges", {**name, "spec": {"limits": [limit]}})],
        "a quota": [(f"{below}/resourcequotas", {**name, "spec": {"hard": {"persistentvolumeclaims": "0"}}})],
        "a validating webhook": [(f"{ADMISSION}/validatingwebhookconfigurations", {**name, "webhooks": webhooks})],
        "a mutating webhook": [(f"{ADMISSION}/mutatingwebhookconfigurations", {**name, "webhooks": webhooks})],
        "a policy": [
            (f"{ADMISSION}/validatingadmissionpolicies", {**name, "spec": policy}),
            (f"{ADMISSION}/validatingadmissionpolicybindings", {**name, "spec": binding}),
        ],
    }


@pytest.mark.parametrize("which", judges(""))
async def test_what_forbids_is_heeded_from_its_first_object_to_its_last(which: str, api: Any, namespace: str) -> None:
    claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"

    async def claimed(name: str) -> int:
        answer = await api.post(claims, {"metadata": {"name": name}, "spec": CLAIM})
        return int(answer.status)

    for number in range(2):
        assert await claimed(f"before-{number}") == 201
        made = judges(namespace)[which]
        for path, obj in made:
            assert (await api.post(path, obj)).status == 201
            if which == "a quota":  # as its controller does
                counted = {**obj, "status": {"hard": obj["spec"]["hard"], "used": {"persistentvolumeclaims": "0"}}}
                assert (await api.put(f"{path}/{obj['metadata']['name']}/status", counted)).status == 200
        assert await claimed(f"meanwhile-{number}") in (403, 422, 500)
        for path, obj in reversed(made):
            assert (await api.delete(f"{path}/{obj['metadata']['name']}")).status == 200
    assert await claimed("after") == 201
