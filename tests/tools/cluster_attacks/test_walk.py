"""Tests of extreme writes by a user with the role `edit` in a namespace."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.testing import Environment
from tools.cluster_attacks.fields import Attempt, Field, Schemas, attempts, fields, get, put
from tools.cluster_attacks.samples import SAMPLES, resource_of, sample
from tools.cluster_attacks.walk import walk

_EDIT = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:aggregate-to-edit"
_WITHOUT_OBJECTS = {"bindings", "localsubjectaccessreviews"}
DOCUMENT: dict[str, Any] = {
    "components": {
        "schemas": {
            "a.Kind": {
                "x-kubernetes-group-version-kind": [{"group": "a", "version": "v1", "kind": "Kind"}],
                "properties": {
                    "kind": {"type": "string"},
                    "metadata": {
                        "properties": {
                            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                            "uid": {"type": "string"},
                        }
                    },
                    "spec": {"allOf": [{"$ref": "#/components/schemas/a.Spec"}]},
                },
            },
            "a.Spec": {
                "properties": {
                    "replicas": {"type": "integer"},
                    "names": {"type": "array", "items": {"type": "string"}},
                    "policy": {"type": "string", "enum": ["A", "B"]},
                    "ports": {
                        "type": "array",
                        "items": {"properties": {"port": {"type": "integer"}, "name": {"type": "string"}}},
                    },
                }
            },
        }
    }
}


def test_fields_are_those_of_the_schema_as_deep_as_the_sample() -> None:
    schemas = Schemas(DOCUMENT)
    obj = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}
    assert list(fields(schemas, schemas.of_kind("a", "v1", "Kind"), obj)) == [
        Field(("metadata", "labels"), "map"),
        Field(("spec", "replicas"), "integer"),
        Field(("spec", "names"), "list"),
        Field(("spec", "ports"), "list"),
        Field(("spec", "ports", 0, "port"), "integer"),
        Field(("spec", "ports", 0, "name"), "text"),
    ]


def made(attempt: Attempt, path: tuple[str | int, ...], number: int = 0) -> Any:
    return get(attempt.variants[number](), path)


def test_integers_have_the_largest_and_the_smallest_value_first() -> None:
    obj, path = {"spec": {"replicas": 1}}, ("spec", "replicas")
    largest, smallest = attempts(obj, Field(path, "integer"), lambda _: True)
    assert (made(largest, path), made(largest, path, 1), made(smallest, path)) == (2**63 - 1, 2**31 - 1, -(2**63))
    assert obj == {"spec": {"replicas": 1}}


def test_texts_have_each_grammar_that_is_taken_and_keep_what_is_valid_around_it() -> None:
    obj, path = {"spec": {"schedule": "0 * * * *"}}, ("spec", "schedule")

    def takes(changed: Any) -> bool:
        return len(changed["spec"]["schedule"].split()) == 5

    found = {attempt.name: made(attempt, path, -1) for attempt in attempts(obj, Field(path, "text"), takes)}
    assert any(each.startswith("0-59,0-59,") and each.endswith("0 * * * *") for each in found.values())
    assert all(takes(put(obj, path, each)) for each in found.values())


def test_items_of_lists_are_distinct_and_as_many_as_a_body_may_have() -> None:
    obj, path = {"spec": {"ports": [{"name": "a", "port": 80}]}}, ("spec", "ports")
    (attempt,) = attempts(
        obj,
        Field(path, "list"),
        lambda changed: len({each["name"] for each in changed["spec"]["ports"]}) == len(changed["spec"]["ports"]),
    )
    items = made(attempt, path)
    assert len(items) > 20_000
    assert len({each["name"] for each in items}) == len(items)


async def test_there_is_a_valid_sample_of_each_kind_that_an_editor_may_make() -> None:
    async with Environment() as environment:
        client = environment.client()
        made = await client.post("/api/v1/namespaces", {"metadata": {"name": "attacker"}})
        assert made.status == 201
        rules = (await client.get(_EDIT)).json()["rules"]
        may = {
            (group, resource)
            for rule in rules
            if "create" in rule["verbs"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            if "/" not in resource
        }
        served = {}
        for group in (await client.get("/apis")).json()["groups"]:
            prefix = f"/apis/{group['preferredVersion']['groupVersion']}"
            for each in (await client.get(prefix)).json()["resources"]:
                served[group["name"], each["name"]] = prefix
        for each in (await client.get("/api/v1")).json()["resources"]:
            served["", each["name"]] = "/api/v1"
        wanted = {(group, resource) for group, resource in may if (group, resource) in served} - {
            ("authorization.k8s.io", "localsubjectaccessreviews"),
            ("", "bindings"),
        }
        assert {resource for _, resource in wanted} <= {resource_of(name) for name in SAMPLES}
        for name in SAMPLES:
            for (group, resource), prefix in served.items():
                if resource == resource_of(name) and (group, resource) in wanted:
                    path = f"{prefix}/namespaces/attacker/{resource}?dryRun=All"
                    answered = await client.post(path, sample(name))
                    assert answered.status == 201, (name, answered.body)


@pytest.mark.slow
def test_nothing_that_an_editor_writes_is_felt_by_others() -> None:
    broken = walk(selection=True, seconds=240, held=0.25, memory=128, told=print)
    assert broken == []
