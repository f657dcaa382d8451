"""Answers of kube-apiserver that differ from those of similar resources."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="session")

POD = {"spec": {"nodeName": "nowhere", "containers": [{"name": "c", "image": "i"}]}}


@pytest.mark.parametrize("what", ["uid", "resourceVersion"])
async def test_preconditions_of_namespaces_are_told_in_the_words_of_their_own_storage(
    api: Any, namespace: str, what: str
) -> None:
    found = (await api.get(f"/api/v1/namespaces/{namespace}")).json()["metadata"]
    answer = await api.delete(f"/api/v1/namespaces/{namespace}", {"preconditions": {what: "1"}})
    name = {"uid": "UID", "resourceVersion": "ResourceVersion"}[what]
    assert answer.status == 409
    assert answer.json()["details"] == {"name": namespace, "kind": "namespaces"}
    assert answer.json()["message"] == (
        f'Operation cannot be fulfilled on namespaces "{namespace}": Precondition failed: {name} in precondition: 1, '
        f"{name} in object meta: {found[what]}"
    )


@pytest.mark.parametrize("path", ["log", "exec?command=ls", "attach?container=c", "portforward?ports=80"])
async def test_a_node_that_does_not_exist_is_told_as_a_pod(api: Any, namespace: str, path: str) -> None:
    await api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    pods = f"/api/v1/namespaces/{namespace}/pods"
    assert (await api.post(pods, {**POD, "metadata": {"name": "p"}})).status == 201
    answer = await api.get(f"{pods}/p/{path}")
    assert (answer.status, answer.json()["message"]) == (404, 'pods "nowhere" not found')
    assert answer.json()["details"] == {"name": "nowhere", "kind": "pods"}


@pytest.mark.parametrize("kind", ["Pod", "Secret", "Node"])
async def test_a_token_bound_to_an_object_without_a_name_is_refused(api: Any, namespace: str, kind: str) -> None:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await api.post(accounts, {"metadata": {"name": "sa"}})
    answer = await api.post(f"{accounts}/sa/token", {"spec": {"boundObjectRef": {"kind": kind, "apiVersion": "v1"}}})
    assert (answer.status, answer.json()["message"]) == (400, "Name parameter required.")


async def test_what_is_taken_from_an_immutable_map_shows_as_null(api: Any, namespace: str) -> None:
    target = "/apis/storage.k8s.io/v1/storageclasses"
    body: dict[str, Any] = {"metadata": {"name": namespace}, "provisioner": "a/b", "parameters": {"a": "b"}}
    assert (await api.post(target, body)).status == 201
    del body["parameters"]
    answer = await api.put(f"{target}/{namespace}", body)
    assert answer.json()["details"]["causes"][0]["message"] == "Invalid value: null: field is immutable"
    await api.delete(f"{target}/{namespace}")


BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
@pytest.mark.parametrize(
    ("behavior", "causes"),
    [
        ('{"ScaleUp":{"SelectPolicy":"x"}}', ["spec.behavior.scaleUp.selectPolicy", "spec.behavior.scaleUp.policies"]),
        (
            '{"scaleup":{"StabilizationWindowSeconds":-1}}',
            ["spec.behavior.scaleUp.stabilizationWindowSeconds", "spec.behavior.scaleUp.policies"],
        ),
        ('{"ScaleUp":{"Tolerance":"-1"}}', ["spec.behavior.scaleUp.policies", "spec.behavior.scaleUp.tolerance"]),
        ("{", []),
        ("null", []),
        ("[" * 3000, []),
    ],
)
async def test_the_behavior_in_an_annotation_of_v1_is_validated_as_it_is(
    api: Any, namespace: str, method: str, behavior: str, causes: list[str]
) -> None:
    collection = f"/apis/autoscaling/v1/namespaces/{namespace}/horizontalpodautoscalers"
    body: dict[str, Any] = {
        "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}},
    }
    if method != "POST":
        assert (await api.post(collection, body)).status == 201
    body["metadata"]["annotations"] = {BEHAVIOR: behavior}
    target = collection if method == "POST" else f"{collection}/h"
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = await api.request(method, target, body, content_type=media)
    assert [each["field"] for each in answer.json().get("details", {}).get("causes", [])] == causes, answer.body
    assert answer.status == (422 if causes else 201 if method == "POST" else 200)


async def test_what_came_through_v1_is_stored_with_the_defaults_of_v2(api: Any, namespace: str) -> None:
    collection = f"/apis/autoscaling/v1/namespaces/{namespace}/horizontalpodautoscalers"
    policies = '{"ScaleUp":{"Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":1}]}}'
    body = {
        "metadata": {"name": "h", "annotations": {BEHAVIOR: policies}},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}},
    }
    assert (await api.post(collection, body)).status == 201
    found = (await api.get(f"{collection.replace('v1', 'v2')}/h")).json()["spec"]["behavior"]
    assert found["scaleUp"]["selectPolicy"] == "Max"
    assert found["scaleDown"]["policies"]


@pytest.mark.parametrize(
    ("high", "low", "ratio", "shown"),
    [
        ("1e999", "1", "4", "0.000000"),
        ("1e30", "1e30", "4", ""),
        ("1e18", "1", "4", ""),
        ("1e30", "1n", "4e30", ""),
        ("9" * 25, "1", "9" * 30, "1590897978359414784.000000"),
        ("4", "3", "1.34", "1.333333"),
        ("4", "3", "1.3", ""),
    ],
)
async def test_ratios_of_limit_ranges_are_of_int64_values(
    api: Any, namespace: str, high: str, low: str, ratio: str, shown: str
) -> None:
    limit = {"type": "Container", "max": {"cpu": high}, "min": {"cpu": low}, "maxLimitRequestRatio": {"cpu": ratio}}
    body = {"metadata": {"name": "l"}, "spec": {"limits": [limit]}}
    answer = await api.post(f"/api/v1/namespaces/{namespace}/limitranges?dryRun=All", body)
    assert answer.status == (422 if shown else 201), answer.body
    if shown:
        assert answer.json()["message"].endswith(f"is greater than max/min = {shown}")


async def test_a_time_that_its_zone_takes_out_of_the_calendar_is_refused(api: Any, namespace: str) -> None:
    body = {"metadata": {"name": "l"}, "spec": {"renewTime": "9999-12-31T23:59:59.000000-23:59"}}
    answer = await api.post(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", body)
    assert answer.status == 400
    assert "year outside of range [0,9999]" in answer.json()["message"]


@pytest.mark.parametrize(
    ("annotation", "text", "message"),
    [
        ("tolerations", "{}", "json: cannot unmarshal object into Go value of type []core.Toleration"),
        (
            "tolerations",
            '[{"key":7}]',
            "json: cannot unmarshal number into Go struct field Toleration.Key of type string",
        ),
        ("tolerations", "[" * 2000, "unexpected end of JSON input"),
        ("tolerations", "[" * 20000, "invalid character '[' exceeded max depth"),
        ("taints", "[1]", "json: cannot unmarshal number into Go value of type core.Taint"),
        (
            "taints",
            '[{"timeAdded":"x"}]',
            'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
        ),
        (
            "preferAvoidPods",
            '{"preferAvoidPods":["a"]}',
            "json: cannot unmarshal string into Go struct field AvoidPods.preferAvoidPods "
            "of type v1.PreferAvoidPodsEntry",
        ),
    ],
)
async def test_json_in_annotations_is_read_as_go_reads_it(
    api: Any, namespace: str, annotation: str, text: str, message: str
) -> None:
    await api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    path = f"/api/v1/namespaces/{namespace}/pods" if annotation == "tolerations" else "/api/v1/nodes"
    name = f"scheduler.alpha.kubernetes.io/{annotation}"
    body: dict[str, Any] = {"metadata": {"name": "a", "annotations": {name: text}}}
    if annotation == "tolerations":
        body["spec"] = {"containers": [{"name": "c", "image": "i"}]}
    answer = await api.post(f"{path}?dryRun=All", body)
    [cause] = answer.json()["details"]["causes"]
    assert cause["message"] == f'Invalid value: "{name}": {message}'
