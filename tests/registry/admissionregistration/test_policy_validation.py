"""Validation of policies and bindings with upstream's error texts, and permissions for the parameters they refer to."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.testing import Client, Environment, User
from tests.admission_plugins.policy.policies import GROUP, ON_CREATE, applying, enforce, validating

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _errors(client: Client, plural: str, spec: dict[str, Any], name: str = "p") -> list[str]:
    answer = await client.post(f"{GROUP}/{plural}?dryRun=All", {"metadata": {"name": name}, "spec": spec})
    if answer.status == 201:
        return []
    return [f"{each['field']}: {each['message']}" for each in answer.json()["details"]["causes"]]


UNDECLARED = (
    "compilation failed: ERROR: <input>:1:1: undeclared reference to 'nothing' (in container '')\n | nothing\n | ^"
)


@pytest.mark.parametrize(
    ("policy", "errors"),
    [
        (validating("true"), []),
        (validating("nothing"), [f'spec.validations[0].expression: Invalid value: "nothing": {UNDECLARED}']),
        (validating("1"), ['spec.validations[0].expression: Invalid value: "1": must evaluate to bool but got int']),
        (validating(" "), ["spec.validations[0].expression: Required value: expression is not specified"]),
        (validating("authorizer.path('/').check('get').allowed()"), []),
        (
            validating({"expression": "true", "messageExpression": "authorizer"}),
            [
                'spec.validations[0].messageExpression: Invalid value: "authorizer": compilation failed: ERROR: <input>:1:1: '
                "undeclared reference to 'authorizer' (in container '')\n | authorizer\n | ^"
            ],
        ),
        (
            validating({"expression": "true", "messageExpression": " "}),
            ['spec.validations[0].messageExpression: Invalid value: " ": must be non-empty if specified'],
        ),
        (
            validating({"expression": "true", "message": "a\nb", "reason": "Odd"}),
            [
                'spec.validations[0].message: Invalid value: "a\\nb": must not contain line breaks',
                'spec.validations[0].reason: Unsupported value: "Odd": supported values: "Forbidden", "Invalid", '
                '"RequestEntityTooLarge"',
            ],
        ),
        (
            validating("variables.a > 1"),
            [
                'spec.validations[0].expression: Invalid value: "variables.a > 1": compilation failed: ERROR: <input>:1:1: '
                "undeclared reference to 'variables' (in container '')\n | variables.a > 1\n | ^"
            ],
        ),
        (validating("variables.a", variables=[{"name": "a", "expression": "1 > 0"}]), []),
        (
            validating("variables.a > 'x'", variables=[{"name": "a", "expression": "1"}]),
            [
                "spec.validations[0].expression: Invalid value: \"variables.a > 'x'\": compilation failed: ERROR: "
                "<input>:1:13: found no matching overload for '_>_' applied to '(int, string)'\n | variables.a > 'x'\n"
                " | ............^"
            ],
        ),
        (
            validating(
                "true", variables=[{"name": "in", "expression": "variables.b"}, {"name": "b", "expression": " "}]
            ),
            [
                'spec.variables[0].name: Invalid value: "in": must be a valid CEL identifier',
                'spec.variables[0].expression: Invalid value: "variables.b": compilation failed: ERROR: <input>:1:10: '
                "undefined field 'b'\n | variables.b\n | .........^",
                "spec.variables[1].expression: Required value: expression is not specified",
            ],
        ),
        (
            validating(),
            [
                "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
                "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
            ],
        ),
        (
            validating("true", auditAnnotations=[{"key": "a", "valueExpression": "1"}, {"key": "a"}]),
            [
                'spec.auditAnnotations[0].valueExpression: Invalid value: "1": must evaluate to one of [string null_type] '
                "but got int",
                "spec.auditAnnotations[1].valueExpression: Required value: valueExpression is not specified",
                'spec.auditAnnotations[1].key: Duplicate value: "a"',
            ],
        ),
        (validating("true", rules=[]), ["spec.matchConstraints.resourceRules: Required value"]),
        (
            validating("true", rules=[{**ON_CREATE, "resourceNames": ["a", "a", "b/c"]}]),
            [
                'spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: "a"',
                "spec.matchConstraints.resourceRules[0].resourceNames[2]: Invalid value: \"b/c\": may not contain '/'",
            ],
        ),
        (
            validating("true", paramKind={"apiVersion": "a/b/v1", "kind": "A.b"}, failurePolicy="Odd"),
            [
                'spec.failurePolicy: Unsupported value: "Odd": supported values: "Fail", "Ignore"',
                'spec.paramKind.apiVersion: Invalid value: "a/b/v1": unexpected GroupVersion string: a/b/v1',
                'spec.paramKind.kind: Invalid value: "A.b": may have mixed case, but should otherwise match: a DNS-1035 '
                "label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and "
                "end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
                "'[a-z]([-a-z0-9]*[a-z0-9])?')",
            ],
        ),
    ],
)
async def test_what_is_wrong_with_a_validating_policy_is_told(
    api: Client, policy: dict[str, Any], errors: list[str]
) -> None:
    assert await _errors(api, "validatingadmissionpolicies", policy["spec"]) == errors


def _mutation(**given: Any) -> dict[str, Any]:
    spec: dict[str, Any] = applying()["spec"]
    return {**spec, "mutations": [given]}


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        (applying("Object{}")["spec"], []),
        (applying()["spec"], ["spec.mutations: Required value: mutations must contain at least one item"]),
        (
            applying("object")["spec"],
            [
                'spec.mutations[0].applyConfiguration.expression: Invalid value: "object": must evaluate to Object but got '
                "dyn"
            ],
        ),
        (
            applying("type(Object{}) == Object ? Object{} : Object{}")["spec"],
            [
                "spec.mutations[0].applyConfiguration.expression: Internal error: program instantiation failed: reference to "
                "undefined type: Object"
            ],
        ),
        (
            _mutation(patchType="JSONPatch", jsonPatch={"expression": "[]"}),
            [
                'spec.mutations[0].jsonPatch.expression: Invalid value: "[]": must evaluate to list(JSONPatch) but got '
                "list(dyn)"
            ],
        ),
        (
            _mutation(patchType="JSONPatch", jsonPatch={"expression": "[JSONPatch{foo: 1}]"}),
            [
                'spec.mutations[0].jsonPatch.expression: Invalid value: "[JSONPatch{foo: 1}]": compilation failed: ERROR: '
                "<input>:1:15: expected type of field 'foo' is '' but provided type is 'int'\n | [JSONPatch{foo: 1}]\n"
                " | ..............^"
            ],
        ),
        (
            _mutation(patchType="JSONPatch", applyConfiguration={"expression": "Object{}"}),
            [
                "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
                'spec.mutations[0].applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified when '
                "patchType is JSONPatch",
            ],
        ),
        (
            _mutation(patchType="Odd"),
            [
                'spec.mutations[0].patchType: Unsupported value: "Odd": supported values: "ApplyConfiguration", '
                '"JSONPatch"'
            ],
        ),
        (
            {**applying("Object{}")["spec"], "reinvocationPolicy": "Odd"},
            ['spec.reinvocationPolicy: Unsupported value: "Odd": supported values: "IfNeeded", "Never"'],
        ),
        (
            applying("Object{}", rules=[{**ON_CREATE, "operations": ["DELETE"]}])["spec"],
            [
                'spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", '
                '"CONNECT", "CREATE", "UPDATE"'
            ],
        ),
    ],
)
async def test_what_is_wrong_with_a_mutating_policy_is_told(
    api: Client, spec: dict[str, Any], errors: list[str]
) -> None:
    assert await _errors(api, "mutatingadmissionpolicies", spec) == errors


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({"policyName": "p", "validationActions": ["Deny"]}, []),
        (
            {},
            [
                "spec.policyName: Required value",
                "spec.validationActions: Required value: at least one validation action is required",
            ],
        ),
        (
            {"policyName": "p", "validationActions": ["Deny", "Deny", "Warn", "Odd"]},
            [
                'spec.validationActions[1]: Duplicate value: "Deny"',
                'spec.validationActions[3]: Unsupported value: "Odd": supported values: "Audit", "Deny", "Warn"',
                'spec.validationActions: Invalid value: ["Deny","Deny","Warn","Odd"]: must not contain both Deny and Warn '
                "(repeating the same validation failure information in the API response and headers serves no purpose)",
            ],
        ),
        (
            {"policyName": "p", "validationActions": ["Deny"], "paramRef": {"name": "a/b", "selector": {}}},
            [
                "spec.paramRef.name: Invalid value: \"a/b\": may not contain '/'",
                "spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
                "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive",
                "spec.paramRef.parameterNotFoundAction: Required value",
            ],
        ),
        (
            {"policyName": "p", "validationActions": ["Deny"], "paramRef": {"parameterNotFoundAction": "Odd"}},
            [
                "spec.paramRef: Required value: one of name or selector must be specified",
                'spec.paramRef.parameterNotFoundAction: Unsupported value: "Odd": supported values: "Deny", "Allow"',
            ],
        ),
    ],
)
async def test_what_is_wrong_with_a_binding_is_told(api: Client, spec: dict[str, Any], errors: list[str]) -> None:
    assert await _errors(api, "validatingadmissionpolicybindings", spec) == errors


async def test_conditions_that_did_not_change_are_not_looked_at_again(api: Client) -> None:
    name = "conditions-stay"
    conditions = [{"name": "a", "expression": "object.size() > 0"}]
    await enforce(api, name, validating("true", matchConditions=conditions, failurePolicy="Ignore"))
    path = f"{GROUP}/validatingadmissionpolicies/{name}"
    changed = await api.patch(path, {"spec": {"matchConditions": [{"name": "a", "expression": "nothing"}]}})
    assert changed.status == 422
    same = await api.patch(path, {"spec": {"failurePolicy": "Fail"}})
    assert (same.status, same.json()["metadata"]["generation"]) == (200, 2)
    await api.delete(path)
    await api.delete(f"{GROUP}/validatingadmissionpolicybindings/{name}-0")


async def test_names_of_files_are_warned_of(api: Client) -> None:
    body = {"metadata": {"name": "a.static.k8s.io"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
    answer = await api.post(f"{GROUP}/validatingadmissionpolicybindings?dryRun=All", body)
    assert 'names ending with \\".static.k8s.io\\" are reserved' in answer.headers["warning"]


async def test_the_status_is_validated(api: Client) -> None:
    name = "status-of"
    await enforce(api, name, validating("true"))
    path = f"{GROUP}/validatingadmissionpolicies/{name}"
    good = {
        "status": {
            "observedGeneration": 1,
            "typeChecking": {"expressionWarnings": [{"fieldRef": "spec.validations[0].expression", "warning": "odd"}]},
        }
    }
    assert (await api.patch(f"{path}/status", good)).status == 200
    bad = {"status": {"typeChecking": {"expressionWarnings": [{"fieldRef": "", "warning": ""}]}}}
    refused = await api.patch(f"{path}/status", bad)
    assert [each["field"] for each in refused.json()["details"]["causes"]] == [
        "status.typeChecking.expressionWarnings[0].warning",
        "status.typeChecking.expressionWarnings[0].fieldRef",
    ]
    await api.delete(path)
    await api.delete(f"{GROUP}/validatingadmissionpolicybindings/{name}-0")


CONFIG = {"apiVersion": "v1", "kind": "ConfigMap"}
USER = "user &{alice alice [dev system:authenticated] map[]}"


@pytest.mark.asyncio(loop_scope="function")
async def test_who_writes_a_policy_must_be_able_to_read_its_parameters() -> None:
    async with Environment(users=(User("admin", ("system:masters",)), User("alice", ("dev",)))) as environment:
        admin, alice = environment.client(), environment.client("alice")
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        rules = [
            {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        ]
        subject = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "author"}
        await admin.post(f"{rbac}/clusterroles", {"metadata": {"name": "author"}, "rules": rules})
        binding = {"metadata": {"name": "author"}, "roleRef": role, "subjects": [subject]}
        assert (await admin.post(f"{rbac}/clusterrolebindings", binding)).status == 201

        plural = "validatingadmissionpolicies"
        assert await _errors(alice, plural, validating("true", paramKind=CONFIG)["spec"]) == []
        secret = {"apiVersion": "v1", "kind": "Secret"}
        assert await _errors(alice, plural, validating("true", paramKind=secret)["spec"]) == [
            f'spec.paramKind: Forbidden: {USER} must have "get" permission on all objects of the referenced paramKind '
            "(kind=Secret, apiVersion=v1)"
        ]

        await enforce(admin, "config", validating("true", paramKind=CONFIG))
        await enforce(admin, "odd", validating("true", paramKind={"apiVersion": "a.b/v1", "kind": "Foo"}))

        async def binding_errors(policy: str, **ref: Any) -> list[str]:
            spec = {
                "policyName": policy,
                "validationActions": ["Deny"],
                "paramRef": {"parameterNotFoundAction": "Deny", **ref},
            }
            return await _errors(alice, "validatingadmissionpolicybindings", spec)

        assert await binding_errors("config", name="a") == []
        assert await binding_errors("config", selector={}) == [
            f'spec.paramRef: Forbidden: {USER} does not have "list" permission on the object referenced by paramRef'
        ]
        assert await binding_errors("odd", name="a") == [
            "spec.paramRef: Forbidden: unable to resolve paramKind &{a.b/v1 Foo} to determine minimum required "
            f'permissions and {USER} does not have "get" permission for all groups, versions and resources'
        ]
        assert await binding_errors("none", name="a") == [
            "spec.paramRef: Forbidden: unable to get policy none to determine minimum required permissions and "
            f'{USER} does not have "get" permission for all groups, versions and resources'
        ]
