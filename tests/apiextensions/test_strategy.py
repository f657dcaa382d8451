"""Validation of custom resources in the version of the request."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.apiextensions.cluster import GROUP, Cluster, definition, version

TEXT = {"type": "string"}


def schema(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


OLD = version("v1", schema(("a",), a=TEXT, d={**TEXT, "default": "one"}, e={**TEXT, "default": "one"}), storage=False)
NEW = version("v2", schema(b=TEXT, d={**TEXT, "default": "two"}, f={**TEXT, "default": "two"}))


async def test_what_only_the_version_of_the_request_knows_is_judged_and_not_stored(cluster: Cluster) -> None:
    await cluster.define(definition(OLD, NEW))
    refused = await cluster.create({"metadata": {"name": "x"}})
    assert refused.json()["details"]["causes"][0]["field"] == "a"
    made = (await cluster.create({"metadata": {"name": "x"}, "a": "text"})).json()
    assert {name: made.get(name) for name in "abdef"} == {"a": None, "b": None, "d": "one", "e": None, "f": None}
    [entry] = made["metadata"]["managedFields"]
    assert (entry["apiVersion"], sorted(entry["fieldsV1"])) == (f"{GROUP}/v1", ["f:a", "f:d", "f:e"])
    read = (await cluster.client.get(f"{cluster.path('v2')}/x")).json()
    assert {name: read.get(name) for name in "abdef"} == {"a": None, "b": None, "d": "one", "e": None, "f": "two"}


async def test_an_update_is_judged_in_its_version_too(cluster: Cluster) -> None:
    await cluster.define(definition(OLD, NEW))
    made = (await cluster.create({"metadata": {"name": "x"}, "b": "text"}, "v2")).json()
    changed = {**made, "apiVersion": f"{GROUP}/v1", "a": "text"}
    del changed["b"], changed["f"]
    answer = await cluster.client.put(f"{cluster.path('v1')}/x", changed)
    assert answer.status == 200, answer.body
    assert answer.json()["metadata"]["generation"] == 2
    del changed["a"], changed["metadata"]["resourceVersion"]
    changed["metadata"]["resourceVersion"] = answer.json()["metadata"]["resourceVersion"]
    assert (await cluster.client.put(f"{cluster.path('v1')}/x", changed)).status == 422


async def test_rules_that_take_long_are_evaluated_beside_the_loop(cluster: Cluster) -> None:
    rule = {"rule": "self.l.all(x, self.l.all(y, x + y < 100000))", "message": "too much"}
    limited = {"type": "array", "maxItems": 300, "items": {"type": "integer"}}
    spec = {"type": "object", "properties": {"l": limited}, "x-kubernetes-validations": [rule]}
    await cluster.define(definition(version("v1", schema(spec=spec))))
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.ensure_future(count_turns())
    made = await cluster.create({"metadata": {"name": "x"}, "spec": {"l": [1] * 300}})
    assert made.status == 201, made.body
    assert turns > 50
    refused = await cluster.create({"metadata": {"name": "y"}, "spec": {"l": [99_999] * 300}})
    counting.cancel()
    assert (
        refused.json()["details"]["causes"]
        == [{"reason": "FieldValueInvalid", "message": 'Invalid value: "object": too much', "field": "spec"}]
        or "too much" in refused.json()["message"]
    )


async def test_a_status_is_written_apart(cluster: Cluster) -> None:
    state = {"type": "object", "properties": {"phase": TEXT}}
    with_status = version("v1", schema(spec=TEXT, status=state), subresources={"status": {}})
    await cluster.define(definition(with_status))
    made = (await cluster.create({"metadata": {"name": "x"}, "spec": "a", "status": {"phase": "b"}})).json()
    assert "status" not in made
    changed = {**made, "spec": "other", "status": {"phase": "c"}}
    changed["metadata"] = {**made["metadata"], "labels": {"a": "b"}}
    answer = (await cluster.client.put(f"{cluster.path()}/x/status", changed)).json()
    assert (answer["spec"], answer["status"], answer["metadata"]["generation"]) == ("a", {"phase": "c"}, 1)
    assert "labels" not in answer["metadata"]


async def test_names_of_finalizers_are_warned_of(cluster: Cluster) -> None:
    await cluster.define(definition())
    answer = await cluster.create({"metadata": {"name": "x", "finalizers": ["plain", "a.b", "example.com/good"]}})
    assert answer.headers.joined("warning").count("prefer a domain-qualified finalizer name") == 2
