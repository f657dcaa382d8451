"""The status of ValidatingAdmissionPolicies, equal to kube-controller-manager's, and written once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steersman.admission_rules import type_checking as rules
from steersman.controlplane import type_checking
from steersman.testing import Client, Environment
from tests.apiextensions.cluster import Cluster
from tools.compare_type_checking import RECORDED, comparable

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
DEPLOYMENTS = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE"]}
UNDEFINED = {
    "fieldRef": "spec.validations[0].expression",
    "warning": (
        "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'nothing'\n | object.nothing == 1\n | ......^\n"
    ),
}


@pytest.fixture(scope="module")
def server_options() -> dict[str, Any]:
    return {"controllers": ("*",)}


@pytest.fixture
def client(shared_environment: Environment) -> Client:
    return shared_environment.client()


def spec(*expressions: str, **more: Any) -> dict[str, Any]:
    validations = [{"expression": each} for each in expressions]
    return {"matchConstraints": {"resourceRules": [DEPLOYMENTS]}, "validations": validations, **more}


async def make(client: Client, name: str, spec: dict[str, Any]) -> None:
    answer = await client.post(POLICIES, {"metadata": {"name": name}, "spec": spec})
    assert answer.status == 201, answer.body


async def until(client: Client, name: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return a policy once a condition holds."""
    async with asyncio.timeout(60):
        while True:
            body: dict[str, Any] = (await client.get(f"{POLICIES}/{name}")).json()
            if holds(body):
                return body
            await asyncio.sleep(0.01)


async def checked(client: Client, name: str, generation: int = 1) -> dict[str, Any]:
    """Return a policy once this generation is checked."""
    return await until(client, name, lambda policy: policy["status"].get("observedGeneration") == generation)


def is_right(policy: dict[str, Any]) -> bool:
    """Return True if the policy was checked without warnings."""
    return bool(policy.get("spec", {}).get("validations") == [{"expression": "true"}])


async def test_it_is_what_the_controller_manager_tells(client: Client) -> None:
    recorded = json.loads(RECORDED.read_text())
    for definition in recorded["definitions"]:
        await Cluster(client).define(definition)
    for each in recorded["policies"]:
        await make(client, each["name"], each["spec"])
    for each in recorded["policies"]:
        found = await checked(client, each["name"])
        assert comparable(found["status"]) == each["status"], each["name"]


async def test_it_is_written_as_the_controller_manager_writes_it(client: Client) -> None:
    await make(client, "a", spec("object.nothing == 1"))
    found = await checked(client, "a")
    assert found["status"] == {"observedGeneration": 1, "typeChecking": {"expressionWarnings": [UNDEFINED]}}
    (owner,) = (each for each in found["metadata"]["managedFields"] if each.get("subresource"))
    del owner["time"]
    assert owner == {
        "manager": "validatingadmissionpolicy-status",
        "operation": "Apply",
        "subresource": "status",
        "apiVersion": "admissionregistration.k8s.io/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:observedGeneration": {}, "f:typeChecking": {"f:expressionWarnings": {}}}},
    }


async def test_a_policy_is_checked_again_when_its_spec_has_changed(client: Client) -> None:
    await make(client, "a", spec("object.nothing == 1"))
    await checked(client, "a")
    await client.patch(f"{POLICIES}/a", {"spec": spec("object.spec.replicas == 1")})
    found = await checked(client, "a", 2)
    assert found["status"] == {"observedGeneration": 2}  # as upstream's apply leaves it


async def test_what_another_has_written_of_this_generation_stays(client: Client) -> None:
    await make(client, "a", spec("object.nothing == 1"))
    await checked(client, "a")
    other = {"status": {"typeChecking": {"expressionWarnings": [{**UNDEFINED, "warning": "x"}]}}}
    answer = await client.patch(f"{POLICIES}/a/status", other)
    assert answer.status == 200, answer.body
    await make(client, "b", spec("true"))
    await checked(client, "b")  # they are checked in the order in which they change
    assert (await client.get(f"{POLICIES}/a")).json()["status"] == {"observedGeneration": 1, **other["status"]}


async def test_policies_that_were_there_before_are_checked_at_a_start(tmp_path: Path) -> None:
    environment = Environment(folder=tmp_path, storage="sqlite")
    async with environment:
        await make(environment.client(), "a", spec("object.nothing == 1"))
    async with Environment(folder=tmp_path, storage="sqlite", controllers=True) as environment:
        assert (await checked(environment.client(), "a"))["status"]["typeChecking"]


async def test_what_is_checked_of_a_policy_is_not_told_of_the_next_of_its_name(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first policy is deleted and created again while it is being checked."""
    check = type_checking.TypeChecker.check

    async def slow(self: Any, policy: Any) -> Any:
        found = await check(self, policy)
        if found:
            await client.delete(f"{POLICIES}/a")
            await make(client, "a", spec("true"))
        return found

    monkeypatch.setattr(type_checking.TypeChecker, "check", slow)
    await make(client, "a", spec("object.nothing == 1"))
    await until(client, "a", is_right)
    assert (await checked(client, "a"))["status"] == {"observedGeneration": 1, "typeChecking": {}}


async def test_more_warnings_than_an_object_may_hold_are_not_told(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(type_checking, "LIMIT", len(UNDEFINED["warning"]) - 1)
    await make(client, "a", spec("object.nothing == 1"))
    await make(client, "b", spec("true"))
    await checked(client, "b")
    assert not (await client.get(f"{POLICIES}/a")).json()["status"]
    assert "type checking of policy a gave up" in caplog.text
    assert rules.WarningsTooLarge().args[0] in caplog.text
