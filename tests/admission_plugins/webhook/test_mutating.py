"""Tests of mutating webhooks: order, objects in requests, and reinvocation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.testing import Client
from tests.admission_plugins.webhook.admission_hook import MUTATING, VALIDATING, AdmissionHook, add, configure, patch
from tests.apiextensions.cluster import GROUP, Cluster, definition, version

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
AUTOSCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def create_object(client: Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post(path, body)
    assert answer.status == 201, answer.body
    found: dict[str, Any] = answer.json()
    return found


async def test_each_sees_what_the_ones_before_have_made(client: Client, hook: AdmissionHook) -> None:
    hook.answers |= {"/a": patch(add("/data/a", "1")), "/b": patch(add("/data/b", "2"))}
    await configure(client, MUTATING, hook.webhook("/b", "configmaps"), name="later")
    await configure(client, MUTATING, hook.webhook("/a", "configmaps"), name="first")
    await configure(client, VALIDATING, hook.webhook("/judge", "configmaps"))
    assert (await create_object(client, CONFIG_MAPS, config_map("x", own="0")))["data"] == {
        "own": "0",
        "a": "1",
        "b": "2",
    }
    assert hook.paths == ["/a", "/b", "/judge"]
    assert [request["object"]["data"] for _, request in hook.asked_of] == [
        {"own": "0"},
        {"own": "0", "a": "1"},
        {"own": "0", "a": "1", "b": "2"},
    ]


async def test_one_that_wants_to_be_is_asked_again_when_the_object_was_changed_after_it(
    client: Client, hook: AdmissionHook
) -> None:
    again = {"reinvocationPolicy": "IfNeeded"}
    hook.answers["/c"] = patch(add("/data/c", "3"))
    await configure(
        client,
        MUTATING,
        hook.webhook("/a", "configmaps", **again),
        hook.webhook("/b", "configmaps"),
        hook.webhook("/c", "configmaps", **again),
    )
    await create_object(client, CONFIG_MAPS, config_map("x", own="0"))
    assert hook.paths == ["/a", "/b", "/c", "/a"]


@pytest.mark.parametrize(
    ("sent", "asked"),
    [({"data": {"own": "0"}}, ["/a", "/b"]), ({"metadata": {"labels": {"x": "y"}}}, ["/a", "/b", "/a"])],
)
async def test_nobody_is_asked_again_when_nothing_was_changed(
    client: Client, hook: AdmissionHook, sent: dict[str, Any], asked: list[str]
) -> None:
    """A patch without effect counts as a change if the request changes the ownership of fields: upstream compares the
    times of managedFields, which lose their nanoseconds.
    """
    await create_object(client, CONFIG_MAPS, config_map("x", own="0"))
    again = {"reinvocationPolicy": "IfNeeded"}
    hook.answers["/b"] = patch(add("/data/own", "0"))
    await configure(
        client, MUTATING, hook.webhook("/a", "configmaps", **again), hook.webhook("/b", "configmaps", **again)
    )
    assert (await client.patch(f"{CONFIG_MAPS}/x", sent)).status == 200
    assert hook.paths == asked


async def test_built_in_plugins_see_what_webhooks_made(client: Client, hook: AdmissionHook) -> None:
    """A toleration that a webhook removes is added again, because all plugins run in the second round."""
    hook.answers["/out"] = patch({"op": "remove", "path": "/spec/tolerations/0"})
    await configure(client, MUTATING, hook.webhook("/out", "pods"))
    pod = {
        "metadata": {"name": "p"},
        "spec": {
            "automountServiceAccountToken": False,
            "serviceAccountName": "",
            "containers": [{"name": "c", "image": "i"}],
        },
    }
    await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    made = await create_object(client, "/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", **pod})
    assert len(made["spec"]["tolerations"]) == 2


@pytest.mark.parametrize(("asked", "wanted"), [("v1", "v2"), ("v2", "v1")])
async def test_an_object_is_shown_and_patched_in_the_version_that_was_matched(
    client: Client, hook: AdmissionHook, asked: str, wanted: str
) -> None:
    field = {"v1": "/spec/targetCPUUtilizationPercentage", "v2": "/spec/metrics/0/resource/target/averageUtilization"}
    hook.answers["/cpu"] = patch({"op": "replace", "path": field[wanted], "value": 33})
    webhook = hook.webhook("/cpu", "horizontalpodautoscalers")
    webhook["rules"][0] |= {"apiGroups": ["autoscaling"], "apiVersions": [wanted]}
    await configure(client, MUTATING, webhook)
    target = {"type": "Utilization", "averageUtilization": 80}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    specs: dict[str, dict[str, Any]] = {"v1": {"targetCPUUtilizationPercentage": 80}, "v2": {"metrics": [metric]}}
    spec = specs[asked]
    body = {
        "apiVersion": f"autoscaling/{asked}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Foo", "name": "d", "apiVersion": "a/v1"}, **spec},
    }
    await create_object(client, AUTOSCALERS.format(asked), body)
    (request,) = hook.of("/cpu")
    assert request["object"]["apiVersion"] == f"autoscaling/{wanted}"
    assert request["kind"]["version"] == request["resource"]["version"] == wanted
    assert request["requestKind"]["version"] == request["requestResource"]["version"] == asked
    stored = (await client.get(f"{AUTOSCALERS.format('v1')}/h")).json()
    assert stored["spec"]["targetCPUUtilizationPercentage"] == 33


async def test_custom_resources_are_pruned_and_defaulted_after_a_patch(client: Client, hook: AdmissionHook) -> None:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string", "default": "usual"}},
            }
        },
    }
    await Cluster(client).define(definition(version("v1", schema)))
    hook.answers["/p"] = patch(add("/spec", {"a": "x", "unknown": 1}))
    await configure(client, MUTATING, hook.webhook("/p", "foos"))
    path = f"/apis/{GROUP}/v1/namespaces/default/foos"
    made = await create_object(client, path, {"apiVersion": f"{GROUP}/v1", "kind": "Foo", "metadata": {"name": "f"}})
    assert made["spec"] == {"a": "x", "b": "usual"}


async def test_owners_that_cannot_be_read_are_taken_back(client: Client, hook: AdmissionHook) -> None:
    hook.answers["/o"] = patch(add("/metadata/managedFields/0/operation", "Nonsense"))
    await configure(client, MUTATING, hook.webhook("/o", "configmaps"))
    answer = await client.post(f"{CONFIG_MAPS}?fieldManager=me", config_map("x", own="0"))
    assert answer.status == 201, answer.body
    assert answer.json()["metadata"]["managedFields"][0]["operation"] == "Update"
    assert answer.headers["warning"].startswith(
        '299 - ".metadata.managedFields was in an invalid state after admission; '
    )


async def test_a_patch_that_does_not_fit_ends_the_request(client: Client, hook: AdmissionHook) -> None:
    hook.answers["/p"] = patch({"op": "remove", "path": "/nothing"})
    await configure(client, MUTATING, hook.webhook("/p", "configmaps", failurePolicy="Ignore"))
    answer = await client.post(CONFIG_MAPS, config_map("x"))
    assert (answer.status, answer.json()["reason"]) == (500, "InternalError")
    assert (await client.get(f"{CONFIG_MAPS}/x")).status == 404


async def test_an_object_of_another_version_is_not_converted_between_two_webhooks(
    client: Client, hook: AdmissionHook
) -> None:
    """The target of an autoscaler of v1 is added only by a conversion."""
    target = {"kind": "Foo", "name": "d", "apiVersion": "a/v1"}
    spec = {"maxReplicas": 3, "scaleTargetRef": target}
    hook.answers["/a"] = patch({"op": "replace", "path": "/spec", "value": spec})
    await configure(client, MUTATING, *(hook.webhook(f"/{each}", "horizontalpodautoscalers") for each in "ab"))
    body = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": spec}
    made = await create_object(client, AUTOSCALERS.format("v1"), body)
    seen = [hook.of(path)[0]["object"]["spec"].get("targetCPUUtilizationPercentage") for path in ("/a", "/b")]
    assert (seen, made["spec"]["targetCPUUtilizationPercentage"]) == ([80, None], 80)
    assert hook.of("/b")[0]["object"]["spec"]["minReplicas"] == 1


RETYPE = patch({"op": "replace", "path": "/kind", "value": "Secret"})


@pytest.mark.parametrize(
    ("data", "later", "message"),
    [
        ({"a": "1"}, None, "Internal error occurred: illegal base64 data at input byte 0"),
        ({}, None, "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        (
            {},
            {"op": "test", "path": "/kind", "value": "Secret"},
            "converting (v1.Secret) to (core.ConfigMap): unknown conversion",
        ),
        (
            {},
            {"op": "test", "path": "/kind", "value": "ConfigMap"},
            "Internal error occurred: testing value /kind failed: test failed",
        ),
    ],
)
async def test_an_object_that_becomes_one_of_another_kind_is_shown_to_others_and_not_stored(
    client: Client, hook: AdmissionHook, data: dict[str, str], later: dict[str, Any] | None, message: str
) -> None:
    hook.answers |= {"/a": RETYPE, "/b": patch(*([] if later is None else [later]))}
    await configure(client, MUTATING, hook.webhook("/a", "configmaps"), hook.webhook("/b", "configmaps"))
    answer = await client.post(CONFIG_MAPS, config_map("x", **data))
    assert (answer.status, answer.json()["message"]) == (500, message)
    if later is not None:
        shown = hook.of("/b")[0]["object"]
        assert (shown["kind"], shown["type"]) == ("Secret", "Opaque")


async def test_an_object_that_becomes_one_of_its_kind_again_is_stored(client: Client, hook: AdmissionHook) -> None:
    hook.answers |= {"/a": RETYPE, "/b": patch({"op": "replace", "path": "/kind", "value": "ConfigMap"})}
    await configure(client, MUTATING, hook.webhook("/a", "configmaps"), hook.webhook("/b", "configmaps"))
    assert (await create_object(client, CONFIG_MAPS, config_map("x")))["metadata"]["name"] == "x"


async def test_what_an_apply_makes_is_found_by_the_name_that_was_applied_even_if_a_webhook_renames_it(
    client: Client, hook: AdmissionHook
) -> None:
    """A renamed object can only be deleted, also in kube-apiserver."""
    hook.answers["/r"] = patch({"op": "replace", "path": "/metadata/name", "value": "renamed"})
    await configure(client, MUTATING, hook.webhook("/r", "configmaps"))
    for name in ("a", "b"):
        answer = await client.request(
            "PATCH",
            f"{CONFIG_MAPS}/{name}?fieldManager=m",
            config_map(name),
            content_type="application/apply-patch+yaml",
        )
        assert (answer.status, answer.json()["metadata"]["name"]) == (201, "renamed")
        assert (await client.get(f"{CONFIG_MAPS}/{name}")).json()["metadata"]["name"] == "renamed"
    assert len(hook.paths) == 2
    assert (await client.get(f"{CONFIG_MAPS}/renamed")).status == 404
    del hook.answers["/r"]
    answer = await client.put(f"{CONFIG_MAPS}/a", config_map("a"))
    assert (answer.status, answer.json()["reason"]) == (422, "Invalid")
    deleted = await client.delete(f"{CONFIG_MAPS}/a")
    assert (deleted.status, deleted.json()["details"]["name"]) == (200, "renamed")


async def test_what_is_deleted_cannot_be_patched(client: Client, hook: AdmissionHook) -> None:
    await create_object(client, CONFIG_MAPS, config_map("x"))
    hook.answers["/p"] = patch(add("/data", {}))
    await configure(client, MUTATING, hook.webhook("/p", "configmaps"))
    answer = await client.delete(f"{CONFIG_MAPS}/x")
    assert answer.status == 500
    assert "attempted to modify the object, which is not supported for this operation" in answer.json()["message"]
    assert hook.of("/p")[0]["oldObject"]["metadata"]["name"] == "x"


async def test_a_connection_is_made_as_webhooks_want_it(client: Client, hook: AdmissionHook) -> None:
    """The webhook changes the command, and validating webhooks get the changed one."""
    hook.answers |= {
        "/other": patch(add("/command", ["ls"])),
        "/judge": lambda request: {"allowed": False, "status": {"message": json.dumps(request["object"]["command"])}},
    }
    await configure(client, MUTATING, hook.webhook("/other", "pods/exec"))
    await configure(client, VALIDATING, hook.webhook("/judge", "pods/exec"))
    answer = await client.get("/api/v1/namespaces/default/pods/p/exec?command=rm&command=-rf&stdout=true")
    assert answer.status == 400
    assert answer.json()["message"].endswith('denied the request: ["ls"]')


@pytest.mark.parametrize(("wanted", "made", "owner"), [(0, 2, None), (3, 2, "scale"), (2, 1, "scale"), (1, 2, "")])
async def test_who_owns_replicas_is_what_the_request_made_of_a_scale(
    client: Client, hook: AdmissionHook, wanted: int, made: int, owner: str | None
) -> None:
    """A Scale omits zero replicas, so that nobody owns them. An unchanged value keeps its owner. A webhook's patch
    changes neither.
    """
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await create_object(client, path, {"metadata": {"name": "d"}, "spec": spec})
    hook.answers["/a"] = patch(add("/spec/replicas", made))
    await configure(client, MUTATING, hook.webhook("/a", "deployments/scale"))
    assert (await client.patch(f"{path}/d/scale?fieldManager=me", {"spec": {"replicas": wanted}})).status == 200
    found = (await client.get(f"{path}/d")).json()
    owners = [each for each in found["metadata"]["managedFields"] if "f:replicas" in each["fieldsV1"]["f:spec"]]
    assert found["spec"]["replicas"] == made
    assert [each.get("subresource", "") for each in owners] == ([] if owner is None else [owner])


@pytest.mark.parametrize(("wanted", "asked"), [(0, ["/a", "/b"]), (3, ["/a", "/b", "/a"])])
async def test_what_has_no_owners_does_not_change_by_a_patch_without_effect(
    client: Client, hook: AdmissionHook, wanted: int, asked: list[str]
) -> None:
    """Nobody owns zero replicas in a Scale, so that no time of an owner loses its nanoseconds."""
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await create_object(client, path, {"metadata": {"name": "d"}, "spec": spec})
    again = {"reinvocationPolicy": "IfNeeded"}
    hook.answers["/b"] = patch(add("/unknown", 1))
    await configure(
        client,
        MUTATING,
        hook.webhook("/a", "deployments/scale", **again),
        hook.webhook("/b", "deployments/scale", **again),
    )
    assert (await client.patch(f"{path}/d/scale", {"spec": {"replicas": wanted}})).status == 200
    assert hook.paths == asked


async def test_a_small_patch_may_make_a_large_object(client: Client, hook: AdmissionHook) -> None:
    copies = [{"op": "copy", "from": "/data/long", "path": f"/data/{number}"} for number in range(200)]
    hook.answers["/a"] = patch(add("/data/long", "x" * 1000), *copies)
    await configure(client, MUTATING, hook.webhook("/a", "configmaps"))
    assert len((await create_object(client, CONFIG_MAPS, config_map("x", own="0")))["data"]) == 202
