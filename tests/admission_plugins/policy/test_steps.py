"""Steps of policies in the trace of a request."""

from __future__ import annotations

from typing import Any

from steersman.testing import Client
from tests.admission_plugins.policy.policies import applying, create, enforce, validating


async def steps_of_creation(client: Client, code: int) -> dict[str, list[dict[str, Any]]]:
    """Create a ConfigMap; return the steps of its admission plugins by the name of the step around them."""
    await client.get("/debug/requests")
    assert (await create(client, "x")).status == code
    (found,) = (await client.get("/debug/requests?verb=create&resource=configmaps")).json()["requests"]
    steps = (await client.get(f"/debug/requests/{found['id']}")).json()["steps"]
    handler = next(each for each in steps if each["name"] == "Create")
    return {each["name"]: each.get("steps", []) for each in handler["steps"]} | {"": handler["steps"]}


async def test_each_policy_has_a_step_with_its_binding_and_verdict(own_client: Client) -> None:
    await enforce(own_client, "refuses", validating("true", "false"))
    steps = await steps_of_creation(own_client, 422)
    (policy,) = steps["admission ValidatingAdmissionPolicy"]
    assert policy["name"] == "policy refuses"
    assert policy["attributes"] == {"binding": "refuses-0", "verdict": "Deny (validation 1)"}


async def test_a_mutating_policy_has_a_step_and_its_plugin_the_paths_that_it_has_changed(own_client: Client) -> None:
    await enforce(own_client, "adds", applying("Object{data: {'x': 'y'}}"))
    steps = await steps_of_creation(own_client, 201)
    (policy,) = steps["admission MutatingAdmissionPolicy"]
    assert policy["name"] == "policy adds"
    assert policy["attributes"] == {"binding": "adds-0"}
    plugin = next(each for each in steps[""] if each["name"] == "admission MutatingAdmissionPolicy")
    assert plugin["attributes"]["changed"] == "data"
