"""Tests of policies' parameters: by name and by selector, namespaced and cluster-scoped, of any kind."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission_plugins.policy import params
from steersman.testing import Client
from steersman.work.yielding import TimeSlice
from tests.admission_plugins.policy.policies import CONFIG_MAPS, GROUP, config_map, create, define, enforce, validating

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap"}
AT_MOST = {
    "expression": "object.data.size() <= int(params.data.most)",
    "messageExpression": "string(params.metadata.name)",
}


def limits(**given: Any) -> dict[str, Any]:
    return {"paramRef": {"parameterNotFoundAction": "Deny", **given}}


async def test_a_parameter_is_found_by_its_name_and_followed(client: Client) -> None:
    await create(client, "limits", {"most": "1"})
    await enforce(client, "p", validating(AT_MOST, paramKind=CONFIG), limits(name="limits", namespace="default"))
    assert (await create(client, "x", {"a": "", "b": ""})).status == 422
    patch = {"data": {"most": "2"}}
    changed = await client.patch(f"{CONFIG_MAPS}/limits", patch)
    assert changed.status == 200
    assert (await create(client, "x", {"a": "", "b": ""})).status == 201


async def test_all_that_a_selector_finds_count(client: Client) -> None:
    for name, most in (("one", "1"), ("two", "2")):
        await create(client, name, {"most": most}, labels={"limit": "yes"})
    selector = {"matchLabels": {"limit": "yes"}}
    await enforce(client, "p", validating(AT_MOST, paramKind=CONFIG), limits(selector=selector))
    assert (await create(client, "x", {"a": "", "b": ""})).json()["message"].endswith("denied request: one")
    assert (await create(client, "x", {"a": ""})).status == 201


@pytest.mark.parametrize(("action", "status"), [("Deny", 422), ("Allow", 201)])
async def test_parameters_that_are_not_there_refuse_or_do_not(client: Client, action: str, status: int) -> None:
    binding = limits(name="none", namespace="default", parameterNotFoundAction=action)
    await enforce(client, "p", validating(AT_MOST, paramKind=CONFIG), binding)
    answer = await create(client, "x", {"a": ""})
    assert answer.status == status
    if status == 422:
        assert answer.json()["message"].endswith(
            "ValidatingAdmissionPolicy 'p' with binding 'p-0' denied request: failed to configure binding: no params "
            "found for policy binding with `Deny` parameterNotFoundAction"
        )


async def test_a_binding_without_a_reference_has_null_for_a_parameter(client: Client) -> None:
    await enforce(client, "p", validating("params == null", paramKind=CONFIG))
    assert (await create(client, "x")).status == 201


async def test_objects_of_the_cluster_need_a_namespace_for_parameters(client: Client) -> None:
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["namespaces", "nodes"]}
    await enforce(client, "p", validating(AT_MOST, rules=[rule], paramKind=CONFIG), limits(name="x"))
    answer = await client.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    assert "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources" in str(
        answer.json()
    )


async def test_kinds_of_the_cluster_have_no_namespace(client: Client) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace"}
    expression = "params.kind == 'Namespace' && params.apiVersion == 'v1' && params.metadata.name == 'default'"
    await enforce(client, "p", validating(expression, paramKind=namespace), limits(name="default"))
    assert (await create(client, "x")).status == 201
    await enforce(client, "q", validating("true", paramKind=namespace), limits(name="default", namespace="default"))
    refused = await create(client, "y")
    assert "paramRef.namespace must not be provided for a cluster-scoped `paramKind`" in refused.json()["message"]


async def test_a_kind_that_is_not_served_refuses_until_it_is(client: Client) -> None:
    kind = {"apiVersion": "example.com/v1", "kind": "Limit"}
    await enforce(client, "p", validating("params.most > 1", paramKind=kind), limits(name="a", namespace="default"))
    refused = await create(client, "x")
    assert refused.json()["message"].endswith(
        "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced "
        "by paramKind: 'example.com/v1, Kind=Limit'"
    )
    path = await define(client, "limits", "Limit", most={"type": "integer"})
    limit = {"apiVersion": "example.com/v1", "kind": "Limit", "metadata": {"name": "a"}, "most": 2}
    assert (await client.post(path, limit)).status == 201
    assert (await create(client, "x")).status == 201


async def test_a_parameter_is_of_the_version_that_the_policy_names(client: Client) -> None:
    scaler = {
        "metadata": {"name": "s"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}, "maxReplicas": 3},
    }
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    assert (await client.post(path, scaler)).status == 201
    kind = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler"}
    policy = validating("params.apiVersion == 'autoscaling/v1' && params.spec.maxReplicas == 3", paramKind=kind)
    await enforce(client, "p", policy, limits(name="s", namespace="default"))
    answer = await create(client, "x")
    assert answer.status == 201, answer.body


async def test_large_parameters_are_read_beside_the_loop(client: Client) -> None:
    large = config_map("large", {f"k{number}": "v" for number in range(3_000)})
    assert (await client.post(CONFIG_MAPS, large)).status == 201
    policy = validating("params.data.size() == 3000", paramKind=CONFIG)
    await enforce(client, "p", policy, limits(name="large", namespace="default"))
    assert (await create(client, "x")).status == 201
    assert (await client.get(f"{GROUP}/validatingadmissionpolicies/p")).status == 200


@pytest.fixture
def expected_decodings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Limit the cache to a number of bytes, and return the expected number of decoded parameters."""
    bytes_kept, decodings = request.param
    monkeypatch.setattr(params, "MAX_CACHED_BYTES", bytes_kept)
    return int(decodings)


@pytest.mark.parametrize("expected_decodings", [(1 << 20, 2), (400, 4)], indirect=True)
async def test_parameters_are_kept_as_far_as_their_bytes_go(
    expected_decodings: int, own_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two parameters have some 250 bytes of JSON each. The last one is always cached."""
    decoded: list[bytes] = []
    make = params.decode_object

    def counted(served: Any, body: bytes) -> Any:
        decoded.append(body)
        return make(served, body)

    monkeypatch.setattr(params, "decode_object", counted)
    for name in ("one", "two"):
        await create(own_client, name, {"most": "2"}, labels={"limit": "yes"})
    await enforce(
        own_client, "p", validating(AT_MOST, paramKind=CONFIG), limits(selector={"matchLabels": {"limit": "yes"}})
    )
    for name in ("x", "y"):
        assert (await create(own_client, name, {"a": ""})).status == 201
    assert len(decoded) == expected_decodings


async def test_others_have_the_loop_while_many_parameters_are_gone_through(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        await create(client, f"limit-{number:02}", {"most": str(number)}, labels={"limit": "yes"})
    selector = {"matchLabels": {"limit": "yes"}}
    await enforce(client, "p", validating(AT_MOST, paramKind=CONFIG), limits(selector=selector))
    await create(client, "x")
    given = 0

    async def pause_if_over(self: TimeSlice) -> None:
        nonlocal given
        given += 1

    monkeypatch.setattr(TimeSlice, "pause_if_over", pause_if_over)
    assert (await create(client, "y", {"a": ""})).status == 422  # one of them allows none
    assert given >= 60
