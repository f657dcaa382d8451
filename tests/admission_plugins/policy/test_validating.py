"""Tests of validating policies: variables, refusals, and messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.admission.interface import Attributes
from steersman.cel.regular import compile_pattern
from steersman.testing import Client
from tests.admission_plugins.policy.policies import (
    CONFIG_MAPS,
    GROUP,
    ON_CREATE,
    config_map,
    create,
    enforce,
    validating,
)


async def test_a_policy_counts_as_soon_as_it_is_bound_and_until_it_is_gone(client: Client) -> None:
    assert (await create(client, "a")).status == 201
    await enforce(client, "none", validating("false"))
    refused = await create(client, "b")
    assert refused.status == 422
    message = "ValidatingAdmissionPolicy 'none' with binding 'none-0' denied request: failed expression: false"
    assert refused.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": "Invalid",
        "code": 422,
        "message": f'configmaps "b" is forbidden: {message}',
        "details": {"name": "b", "kind": "configmaps", "causes": [{"message": message}]},
    }
    await client.delete(f"{GROUP}/validatingadmissionpolicybindings/none-0")
    assert (await create(client, "b")).status == 201


@pytest.mark.parametrize(
    ("validation", "code", "reason", "message"),
    [
        ({"expression": "false", "message": " said "}, 422, "Invalid", "said"),
        ({"expression": "false", "message": "said", "reason": "Forbidden"}, 403, "Forbidden", "said"),
        ({"expression": "false", "reason": "RequestEntityTooLarge"}, 413, "RequestEntityTooLarge", "failed expression"),
        (
            {"expression": "false", "message": "m", "messageExpression": "'for ' + object.metadata.name"},
            422,
            "Invalid",
            "for x",
        ),
        ({"expression": "false", "message": "m", "messageExpression": "object.none"}, 422, "Invalid", "m"),
        ({"expression": "false", "message": "m", "messageExpression": r"'a\nb'"}, 422, "Invalid", "m"),
        (
            {"expression": "object.none == 1"},
            422,
            "Invalid",
            "expression 'object.none == 1' resulted in error: no such key: none",
        ),
    ],
)
async def test_a_validation_says_why_it_refuses(
    client: Client, validation: dict[str, Any], code: int, reason: str, message: str
) -> None:
    dynamic = validation.get("messageExpression") == "object.none"
    if dynamic:
        validation = {**validation, "messageExpression": "string(object.none)"}
    await enforce(client, "p", validating(validation))
    refused = await create(client, "x")
    assert (refused.status, refused.json()["reason"]) == (code, reason)
    assert f"denied request: {message}" in refused.json()["message"]


async def test_expressions_may_have_regular_expressions(client: Client) -> None:
    await enforce(client, "p", validating("object.metadata.name.matches('^only-this-test-[a-z]+$')"))
    assert (await create(client, "only-this-test-a")).status == 201
    assert (await create(client, "x")).status == 422


async def test_failures_are_let_through_where_the_policy_says_so(client: Client) -> None:
    await enforce(client, "p", validating("object.none == 1", failurePolicy="Ignore"))
    assert (await create(client, "x")).status == 201


async def test_actions_are_those_of_the_binding(client: Client) -> None:
    await enforce(client, "p", validating({"expression": "false", "message": "no"}), {"validationActions": ["Warn"]})
    answer = await create(client, "x")
    assert answer.status == 201
    assert answer.headers["warning"] == (
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p-0': no\""
    )


async def test_an_audit_is_told_of_failures_and_annotations(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, str] = {}
    annotate = Attributes.annotate

    def watched(self: Attributes, key: str, value: str) -> None:
        annotate(self, key, value)
        told.update(self.annotations or {})

    monkeypatch.setattr(Attributes, "annotate", watched)
    annotations = [
        {"key": "name", "valueExpression": "' ' + object.metadata.name"},
        {"key": "nothing", "valueExpression": "null"},
        {"key": "empty", "valueExpression": "'  '"},
    ]
    policy = validating({"expression": "false", "message": "no"}, auditAnnotations=annotations)
    await enforce(client, "p", policy, {"validationActions": ["Audit"]})
    assert (await create(client, "x")).status == 201
    failure = told.pop("validation.policy.admission.k8s.io/validation_failure")
    assert json.loads(failure) == [
        {"message": "no", "policy": "p", "binding": "p-0", "expressionIndex": 0, "validationActions": ["Audit"]}
    ]
    assert told == {"p/name": "x"}


async def test_annotations_without_a_value_refuse(client: Client) -> None:
    annotations = [{"key": "a", "valueExpression": "string(object.none)"}]
    await enforce(client, "p", validating("true", auditAnnotations=annotations), {"validationActions": ["Warn"]})
    refused = await create(client, "x")
    assert refused.status == 422
    assert "expression 'string(object.none)' resulted in error: no such key: none" in refused.json()["message"]


async def test_match_conditions_leave_requests_out(client: Client) -> None:
    conditions = [{"name": "big", "expression": "object.data.size() > 1"}]
    await enforce(client, "p", validating("false", matchConditions=conditions))
    assert (await create(client, "x", {"a": "b"})).status == 201
    assert (await create(client, "y", {"a": "b", "c": "d"})).status == 422


async def test_match_conditions_that_fail_refuse(client: Client) -> None:
    await enforce(client, "p", validating("true", matchConditions=[{"name": "a", "expression": "object.none == 1"}]))
    refused = await create(client, "x")
    assert "expression 'object.none == 1' resulted in error: no such key: none" in refused.json()["message"]


async def test_variables_are_seen_by_those_after_them(client: Client) -> None:
    variables = [
        {"name": "size", "expression": "object.data.size()"},
        {"name": "double", "expression": "variables.size * 2"},
        {"name": "never", "expression": "object.none"},
    ]
    policy = validating(
        {"expression": "variables.double < 4", "messageExpression": "string(variables.double)"}, variables=variables
    )
    await enforce(client, "p", policy)
    assert (await create(client, "x", {"a": "b"})).status == 201
    assert (await create(client, "y", {"a": "b", "c": "d"})).json()["message"].endswith("denied request: 4")


@pytest.mark.parametrize(
    "expression",
    [
        "request.userInfo.username == 'admin' && request.operation == 'CREATE' && request.name == 'x'",
        "request.kind.kind == 'ConfigMap' && request.requestResource.resource == 'configmaps' && !request.dryRun",
        "namespaceObject.metadata.name == 'default' && namespaceObject.status.phase == 'Active'",
        "!has(namespaceObject.metadata.annotations) && !has(dyn(namespaceObject).kind)",
        "oldObject == null && object.kind == 'ConfigMap' && object.apiVersion == 'v1'",
        "authorizer.requestResource.check('create').allowed()",
        "!authorizer.serviceAccount('default', 'robot').group('').resource('pods').check('list').allowed()",
        "request.options.kind == 'CreateOptions'",
    ],
)
async def test_expressions_see_the_request(client: Client, expression: str) -> None:
    await enforce(client, "p", validating(expression))
    answer = await create(client, "x")
    assert answer.status == 201, answer.body


async def test_deletions_have_the_old_object_alone(client: Client) -> None:
    rule = {**ON_CREATE, "operations": ["DELETE"]}
    await enforce(client, "p", validating("object == null && oldObject.data.keep != 'yes'", rules=[rule]))
    await create(client, "x", {"keep": "yes"})
    await create(client, "y", {"keep": "no"})
    assert (await client.delete(f"{CONFIG_MAPS}/x")).status == 422
    assert (await client.delete(f"{CONFIG_MAPS}/y")).status == 200


async def test_rules_may_name_objects_and_exclude(client: Client) -> None:
    match = {
        "resourceRules": [{**ON_CREATE, "resourceNames": ["a", "b"]}],
        "excludeResourceRules": [{**ON_CREATE, "resourceNames": ["b"]}],
    }
    await enforce(client, "p", validating("false", matchConstraints=match))
    assert [(await create(client, name)).status for name in "abc"] == [422, 201, 201]


async def test_bindings_narrow_what_a_policy_is_about(client: Client) -> None:
    await enforce(
        client,
        "p",
        validating("false"),
        {"matchResources": {"objectSelector": {"matchLabels": {"strict": "yes"}}}},
        {"matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}},
    )
    assert (await create(client, "x")).status == 201
    assert (await create(client, "y", labels={"strict": "yes"})).status == 422
    await client.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    answer = await client.post("/api/v1/namespaces/other/configmaps", config_map("z"))
    assert "with binding 'p-1'" in answer.json()["message"]


async def test_an_object_is_seen_in_the_version_that_the_policy_names(client: Client) -> None:
    rule = {"operations": ["*"], "apiGroups": ["autoscaling"], "apiVersions": ["v1"], "resources": ["*"]}
    expression = "object.apiVersion == 'autoscaling/v1' && object.spec.targetCPUUtilizationPercentage == 50"
    await enforce(client, "p", validating(expression, rules=[rule]))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    statuses = []
    for percentage in (50, 60):
        metric["resource"]["target"]["averageUtilization"] = percentage  # type: ignore[index]
        spec = {"scaleTargetRef": target, "maxReplicas": 3, "metrics": [metric]}
        statuses.append((await client.post(path, {"metadata": {"name": f"x{percentage}"}, "spec": spec})).status)
    assert statuses == [201, 422]


async def test_policies_and_reviews_are_exempt(client: Client) -> None:
    rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    await enforce(client, "p", validating("false", rules=[rule]))
    assert (await create(client, "x")).status == 422
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    assert (await client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)).status == 201
    assert (await client.delete(f"{GROUP}/validatingadmissionpolicies/p")).status == 200
    assert (await create(client, "x")).status == 201


async def test_what_costs_much_is_evaluated_in_the_lane_to_its_limit(client: Client) -> None:
    numbers = "[0,1,2,3,4,5,6,7,8,9]"
    loops = "true"
    for variable in "abcd":
        loops = f"{numbers}.all({variable}, {loops})"
    await enforce(client, "p", validating(loops))
    assert (await create(client, "x")).status == 201
    for variable in "ef":
        loops = f"{numbers}.all({variable}, {loops})"
    await enforce(client, "q", validating(loops))
    assert "actual cost limit exceeded" in (await create(client, "y")).json()["message"]


async def test_what_became_of_validations_is_counted(own_client: Client) -> None:
    await enforce(own_client, "p", validating("true", "false"))
    await create(own_client, "x")
    metrics = (await own_client.get("/metrics")).body.decode()
    assert (
        'apiserver_validating_admission_policy_check_total{enforcement_action="deny",error_type="invalid_error",'
        'policy="p",policy_binding="p-0"} 1' in metrics
    )


async def test_regular_expressions_judge_the_first_request_too(client: Client) -> None:
    compile_pattern.cache_clear()
    condition = {"name": "some", "expression": "object.metadata.name.matches('^[abc]$')"}
    labelled = "has(object.metadata.labels) && object.metadata.labels.all(k, v, v.matches('^[a-z]+' + '$'))"
    await enforce(client, "p", validating(labelled, matchConditions=[condition]))
    assert (await create(client, "a")).status == 422
    assert (await create(client, "b", labels={"color": "blue"})).status == 201
    assert (await create(client, "c", labels={"color": "7"})).status == 422
    assert (await create(client, "d")).status == 201


async def test_a_pattern_is_compiled_beside_the_loop(client: Client) -> None:
    await enforce(client, "p", validating({"expression": "object.data.text.matches(object.data.pattern)"}))
    assert (await create(client, "a", {"text": "xyyz", "pattern": "^xy+z$"})).status == 201
    assert (await create(client, "b", {"text": "xyyz", "pattern": "^x$"})).status == 422
    refused = await create(client, "c", {"text": "xyyz", "pattern": "("})
    assert (refused.status, "missing closing )" in refused.json()["message"]) == (422, True)


@pytest.mark.parametrize(
    ("metadata", "seen"), [({"name": "fresh"}, "fresh in fresh"), ({"generateName": "fresh-"}, "fresh- in none")]
)
async def test_a_new_namespace_is_in_the_namespace_that_it_is(
    client: Client, metadata: dict[str, str], seen: str
) -> None:
    name = "object.metadata.?generateName.orValue(object.metadata.name)"
    told = {"expression": "false", "messageExpression": f"{name} + ' in ' + request.?namespace.orValue('none')"}
    await enforce(client, "p", validating(told, rules=[{**ON_CREATE, "resources": ["namespaces"]}]))
    refused = await client.post("/api/v1/namespaces", {"metadata": metadata})
    assert f"denied request: {seen}" in refused.json()["message"]
