"""Annotations that upstream converts to fields of its internal types: invalid ones fail decoding."""

from __future__ import annotations

import json
from typing import Any

import pytest

WORKLOAD = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
}
DAEMON_SETS = ("daemonsets", "DaemonSet", "deprecated.daemonset.template.generation")
DEPLOYMENTS = ("deployments", "Deployment", "deprecated.deployment.rollback.to")


def body(kind: str, annotation: str, value: str) -> dict[str, Any]:
    metadata = {"name": "w", "annotations": {annotation: value}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": WORKLOAD}


@pytest.mark.parametrize(("plural", "kind", "annotation"), [DAEMON_SETS, DEPLOYMENTS])
async def test_a_number_that_is_none_is_refused_as_each_way_of_writing_does(
    api: Any, namespace: str, plural: str, kind: str, annotation: str
) -> None:
    target = f"/apis/apps/v1/namespaces/{namespace}/{plural}"
    why = 'strconv.ParseInt: parsing "soon": invalid syntax'
    if kind == "Deployment":
        why = f"failed to parse annotation[{annotation}]=soon as int64: {why}"
    bad = body(kind, annotation, "soon")
    undecodable = f'{kind} in version "v1" cannot be handled as a {kind}: {why}'
    answer = await api.post(target, bad)
    assert (answer.status, answer.json()["message"]) == (400, undecodable)
    assert (await api.post(target, body(kind, annotation, "+7"))).status == 201
    answer = await api.put(f"{target}/w", bad)
    assert (answer.status, answer.json()["message"]) == (400, undecodable)
    change = json.dumps({"metadata": bad["metadata"]}).encode()
    answer = await api.request("PATCH", f"{target}/w", change, content_type="application/merge-patch+json")
    assert answer.status == 422
    assert answer.json()["message"].startswith(' "" is invalid: patch: Invalid value: "{')
    assert answer.json()["message"].endswith(f": {why}")
    answer = await api.request("PATCH", f"{target}/w", change, content_type="application/strategic-merge-patch+json")
    assert (answer.status, answer.json()["message"]) == (500, why)
    answer = await api.request(
        "PATCH",
        f"{target}/w?fieldManager=m&force=true",
        json.dumps(bad).encode(),
        content_type="application/apply-patch+yaml",
    )
    message = f"failed to convert to unversioned (/w; apps/v1, Kind={kind}): {why}"
    assert (answer.status, answer.json()["message"]) == (500, message)


@pytest.mark.parametrize(("plural", "kind", "annotation"), [DAEMON_SETS, DEPLOYMENTS])
async def test_a_number_is_kept_in_its_one_form(
    api: Any, namespace: str, plural: str, kind: str, annotation: str
) -> None:
    answer = await api.post(f"/apis/apps/v1/namespaces/{namespace}/{plural}", body(kind, annotation, "+07"))
    assert answer.json()["metadata"]["annotations"] == {annotation: "7"}
