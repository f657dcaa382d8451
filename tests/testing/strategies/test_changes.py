"""Changes of plans obey transition rules: the server accepts them, and they are still changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from steersman.machinery.codec.yaml import json_as_yaml
from steersman.testing import ThreadedEnvironment
from steersman.testing.definitions import establish
from steersman.testing.strategies import Plan, custom_resources, plans
from steersman.testing.strategies.plans import Apply, Delete
from tests.testing.strategies.widgets import WIDGETS, definition

pytestmark = pytest.mark.slow

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["class", "phase", "size"],
    "properties": {
        "class": {
            "type": "string",
            "enum": ["fast", "cheap", "large"],
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "class is immutable"}],
        },
        "size": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100,
            "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "may not shrink"}],
        },
        "phase": {"type": "string", "enum": ["New", "Open", "Closed"]},
        "zones": {
            "type": "array",
            "maxItems": 8,
            "items": {"type": "string", "maxLength": 8},
            "x-kubernetes-validations": [{"rule": "oldSelf.all(zone, zone in self)", "message": "zones stay"}],
        },
        "limits": {
            "type": "object",
            "additionalProperties": {"type": "integer"},
            "maxProperties": 4,
            "x-kubernetes-validations": [
                {"rule": "oldSelf.all(name, name in self && self[name] == oldSelf[name])", "message": "limits stay"}
            ],
        },
        "owner": {"type": "string", "maxLength": 10},
        "note": {"type": "string", "maxLength": 10},
    },
    "x-kubernetes-validations": [
        {"rule": "oldSelf.phase != 'Closed' || self.phase == 'Closed'", "message": "closed for good"},
        {"rule": "!has(oldSelf.owner) || has(self.owner)", "message": "owner may not be removed"},
        {"rule": "!has(self.owner) || !has(self.note) || self.owner != self.note"},
    ],
}
APPLY = {"Content-Type": "application/apply-patch+yaml"}


class Counted:
    """Carries out plans on a server, and counts the answers to changes."""

    def __init__(self, environment: ThreadedEnvironment) -> None:
        self._environment = environment
        self.changes = self.accepted = self.unchanged = 0
        self.refusals: list[str] = []

    def carry_out(self, plan: Plan) -> None:
        """Apply and delete the objects of a plan."""
        there: dict[str, dict[str, Any]] = {}
        with self._environment.client() as client:
            for step in plan:
                if isinstance(step, Delete):
                    client.request("DELETE", f"{WIDGETS}/{step.name}")
                    del there[step.name]
                elif isinstance(step, Apply):
                    path = f"{WIDGETS}/{step.name}?fieldManager=test&force=true"
                    status, answer = client.request("PATCH", path, json_as_yaml(step.object), APPLY)
                    assert step.name in there or status == 201, answer
                    if step.name in there:
                        self.changes += 1
                        self.accepted += status == 200
                        self.unchanged += step.object == there[step.name]
                    if status >= 300:
                        self.refusals.append(f"{there.get(step.name)}\n{step.object}\n{answer.decode()}")
                    else:
                        there[step.name] = step.object
            for name in there:
                client.request("DELETE", f"{WIDGETS}/{name}")


def counted(definitions: list[dict[str, Any]], examples: int) -> Counted:
    """Carry out plans whose changes obey the rules of `definitions`."""
    widgets = definition(SCHEMA)
    with ThreadedEnvironment() as environment:
        with environment.client() as client:
            establish(client, [widgets])
        counts = Counted(environment)

        @settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(plans(custom_resources(widgets), steps=6, faults=(), definitions=definitions))
        def carry_out(plan: Plan) -> None:
            counts.carry_out(plan)

        carry_out()
    return counts


def test_changes_obey_transition_rules() -> None:
    counts = counted([definition(SCHEMA)], 150)
    assert not counts.refusals, counts.refusals[0]
    assert counts.changes > 40
    assert 3 * counts.unchanged < 2 * counts.changes, f"{counts.unchanged} of {counts.changes}"


def test_without_definitions_most_changes_are_refused() -> None:
    counts = counted([], 60)
    assert counts.accepted < counts.changes / 2
    assert "is immutable" in "".join(counts.refusals)
