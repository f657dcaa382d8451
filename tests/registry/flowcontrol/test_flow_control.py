"""FlowSchemas and PriorityLevelConfigurations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.flowcontrol import bootstrap_configuration as mandatory
from steersman.machinery.codec.serializer import to_plain
from steersman.registry.flowcontrol.flowschemas import FLOW_SCHEMAS
from steersman.registry.flowcontrol.prioritylevelconfigurations import PRIORITY_LEVEL_CONFIGURATIONS

GROUP = "flowcontrol.apiserver.k8s.io"
LEVELS = "prioritylevelconfigurations"


def level(**limited: Any) -> dict[str, Any]:
    limited = {"limitResponse": {"type": "Reject"}, **limited}
    return {"metadata": {"name": "l"}, "spec": {"type": "Limited", "limited": limited}}


async def test_what_is_mandatory_has_one_form(cluster: Callable[..., Any]) -> None:
    c = await cluster(FLOW_SCHEMAS)
    spec = to_plain(mandatory.FLOW_SCHEMAS["catch-all"])
    made = await c.create("flowschemas", {"metadata": {"name": "catch-all"}, "spec": spec}, group=GROUP)
    made["spec"]["matchingPrecedence"] = 9999
    (fault,) = await c.faults(c.update("flowschemas", made, group=GROUP))
    assert fault.startswith('spec: Invalid value: {"PriorityLevelConfiguration":{"Name":"catch-all"},')
    assert fault.endswith("spec of 'catch-all' must equal the fixed value")


async def test_a_schema_names_subjects_and_what_they_do(cluster: Callable[..., Any]) -> None:
    c = await cluster(FLOW_SCHEMAS)
    subjects = [{"kind": "User"}, {"kind": "Robot"}, {"kind": "User", "user": {"name": "u"}, "group": {"name": "g"}}]
    rule = {"subjects": subjects, "nonResourceRules": [{"verbs": ["*", "get"], "nonResourceURLs": ["/a*"]}]}
    spec = {"priorityLevelConfiguration": {"name": "l"}, "rules": [rule]}
    body = {"metadata": {"name": "f"}, "spec": spec}
    assert await c.faults(c.create("flowschemas", body, group=GROUP)) == [
        "spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'",
        'spec.rules[0].subjects[1].kind: Unsupported value: "Robot": '
        'supported values: "Group", "ServiceAccount", "User"',
        "spec.rules[0].subjects[2].group: Forbidden: group is forbidden when subject kind is not 'Group'",
        'spec.rules[0].nonResourceRules[0].verbs: Invalid value: ["*","get"]: '
        "if '*' is present, must not specify other verbs",
        'spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: "/a*": '
        "wildcard can only do suffix matching",
    ]


async def test_a_level_has_shares_and_queues_by_default(cluster: Callable[..., Any]) -> None:
    c = await cluster(PRIORITY_LEVEL_CONFIGURATIONS)
    made = await c.create(LEVELS, level(limitResponse={"type": "Queue", "queuing": {}}), group=GROUP)
    limited = made["spec"]["limited"]
    assert (limited["nominalConcurrencyShares"], limited["lendablePercent"]) == (30, 0)
    assert limited["limitResponse"]["queuing"] == {"queues": 64, "handSize": 8, "queueLengthLimit": 50}


async def test_hands_are_dealt_from_the_hash_of_a_flow(cluster: Callable[..., Any]) -> None:
    c = await cluster(PRIORITY_LEVEL_CONFIGURATIONS)
    queuing = {"queues": 1000, "handSize": 7, "queueLengthLimit": -1}
    body = level(limitResponse={"type": "Queue", "queuing": queuing}, lendablePercent=101)
    assert await c.faults(c.create(LEVELS, body, group=GROUP)) == [
        "spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive",
        "spec.limited.limitResponse.queuing.handSize: Invalid value: 7: "
        "required entropy bits of deckSize 1000 and handSize 7 should not be greater than 60",
        "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
    ]


async def test_writing_status_does_not_touch_what_is_stored_beside_it(cluster: Callable[..., Any]) -> None:
    c = await cluster(PRIORITY_LEVEL_CONFIGURATIONS)
    made = await c.create(LEVELS, level(), group=GROUP)
    made["metadata"]["labels"] = {"a": "b"}
    made["spec"]["limited"]["lendablePercent"] = 50
    made["status"] = {"conditions": [{"type": "A", "status": "True"}]}
    made = await c.update(LEVELS, made, group=GROUP, subresource="status")
    assert ("labels" in made["metadata"], made["spec"]["limited"]["lendablePercent"]) == (False, 0)
    assert made["status"]["conditions"][0]["type"] == "A"


async def test_the_rows_of_a_table_are_in_order_of_precedence(api: Any) -> None:
    schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
    for name, precedence in (("rows-z", 5), ("rows-a", 5), ("rows-m", 2)):
        spec = {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": precedence}
        made = await api.post(schemas, {"metadata": {"name": name, "labels": {"rows": ""}}, "spec": spec})
        assert made.status == 201, made.body
    path, accept = f"{schemas}?labelSelector=rows", "application/json;as=Table;v=v1;g=meta.k8s.io"
    table = (await api.get(path, accept=accept)).json()
    assert [row["cells"][0] for row in table["rows"]] == ["rows-m", "rows-a", "rows-z"]
    listed = (await api.get(path)).json()
    assert [each["metadata"]["name"] for each in listed["items"]] == ["rows-a", "rows-m", "rows-z"]
    for each in listed["items"]:
        await api.delete(f"{schemas}/{each['metadata']['name']}")
