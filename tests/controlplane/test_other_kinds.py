"""What a body of another kind is told: upstream names the internal type that it cannot become."""

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
        ("/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", "HorizontalPodAutoscaler",
         "autoscaling.HorizontalPodAutoscaler"),
        ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", "Ingress", "networking.Ingress"),
        ("/api/v1/namespaces/default/serviceaccounts/a/token", "TokenRequest", "authentication.TokenRequest"),
    ],
)  # fmt: skip
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
