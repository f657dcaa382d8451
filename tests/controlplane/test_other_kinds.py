"""Bodies of another kind: the error names the internal type, as upstream's does."""

from __future__ import annotations

import json
from typing import Any

import pytest

POD = {"kind": "Pod", "apiVersion": "v1"}

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(
    ("path", "kind", "internal"),
    [
        ("/api/v1/namespaces/default/configmaps", "ConfigMap", "core.ConfigMap"),
        ("/apis/events.k8s.io/v1/namespaces/default/events", "Event", "core.Event"),
        (
            "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            "autoscaling.HorizontalPodAutoscaler",
        ),
        ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", "Ingress", "networking.Ingress"),
        ("/api/v1/namespaces/default/serviceaccounts/a/token", "TokenRequest", "authentication.TokenRequest"),
    ],
)
async def test_a_body_of_another_kind_is_refused(api: Any, path: str, kind: str, internal: str) -> None:
    answer = await api.post(path, POD)
    assert answer.status == 400
    assert json.loads(answer.body)["message"] == (
        f'Pod in version "v1" cannot be handled as a {kind}: converting (v1.Pod) to ({internal}): unknown conversion'
    )


async def test_a_scale_of_another_kind_is_refused(api: Any, namespace: str) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    assert (await api.post(path, {"metadata": {"name": "d"}, "spec": spec})).status == 201
    answer = await api.put(f"{path}/d/scale", {"kind": "Deployment", "apiVersion": "apps/v1"})
    assert json.loads(answer.body)["message"] == (
        'Deployment in version "v1" cannot be handled as a Scale: converting (v1.Deployment) to (autoscaling.Scale): '
        "unknown conversion"
    )


async def test_classes_of_the_system_are_not_deleted(api: Any) -> None:
    target = "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical"
    answer = await api.delete(target)
    assert answer.status == 403
    assert answer.json()["message"] == (
        'priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden: '
        "this is a system priority class and cannot be deleted"
    )
    assert (await api.get(target)).status == 200


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/vnd.kubernetes.protobuf,application/json", 200),
        ("application/json;as=Table", 200),
        ("*/*", 200),
        ("application/vnd.kubernetes.protobuf", 406),
        ("application/*", 406),
    ],
)
async def test_the_version_is_json_for_all_who_take_that_too(api: Any, accept: str, status: int) -> None:
    answer = await api.get("/version", accept=accept)
    assert answer.status == status
    assert status == 406 or answer.json()["major"] == "1"


async def test_the_version_is_indented_for_everybody_and_ends_with_its_brace(api: Any) -> None:
    text = (await api.get("/version?pretty=0")).body
    assert text.startswith(b'{\n  "major": "1",\n  "minor": "36",')
    assert text.endswith(b'"\n}')


PATCHES = ("application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml")


def revision(data: str) -> bytes:
    return (
        '{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"r"},"revision":1,"data":' + data + "}"
    ).encode()


@pytest.mark.parametrize("media", PATCHES)
@pytest.mark.parametrize(
    ("data", "kept"),
    [
        ('{"spec":{"template":{"$patch":"replace","spec":null}}}', True),
        ('{"a":"x \\u0026\\u0026 y"}', True),
        ('{"a": 1}', False),
    ],
)
async def test_a_patch_keeps_the_data_of_a_revision_if_it_was_written_as_go_does(
    api: Any, namespace: str, media: str, data: str, kept: bool
) -> None:
    target = f"/apis/apps/v1/namespaces/{namespace}/controllerrevisions"
    assert (await api.post(target, revision(data), content_type="application/json")).status == 201
    labels = {"metadata": {"labels": {"a": "b"}}}
    body = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, **labels}
    sent = json.dumps(body if "apply" in media else labels).encode()
    answer = await api.request("PATCH", f"{target}/r?fieldManager=m", sent, content_type=media)
    assert answer.status == (200 if kept else 422), answer.json()
    if not kept:
        assert answer.json()["details"]["causes"][0]["field"] == "data"


@pytest.mark.parametrize(("data", "status"), [('{"a": 1}', 200), ('{"a":1}', 422), ('{"a": 2}', 422)])
async def test_the_data_of_a_revision_is_put_as_it_was_sent(api: Any, namespace: str, data: str, status: int) -> None:
    target = f"/apis/apps/v1/namespaces/{namespace}/controllerrevisions"
    assert (await api.post(target, revision('{"a": 1}'), content_type="application/json")).status == 201
    answer = await api.request("PUT", f"{target}/r", revision(data), content_type="application/json")
    assert answer.status == status


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {}),
        ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {}),
        ("/api/v1/namespaces/default/events", {"involvedObject": {"namespace": "default"}}),
        (
            "/apis/apiregistration.k8s.io/v1/apiservices",
            {"spec": {"group": "e.x", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}},
        ),
    ],
)
async def test_these_kinds_take_finalizers_without_a_domain(api: Any, path: str, body: Any) -> None:
    name = "v1.e.x" if "apiservices" in path else "with-finalizer"
    made = await api.post(f"{path}?dryRun=All", {"metadata": {"name": name, "finalizers": ["foo"]}, **body})
    assert made.status == 201, made.body
    assert made.json()["metadata"]["finalizers"] == ["foo"]
