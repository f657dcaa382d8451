"""Tests of the check for writes to nodes that are gone."""

from __future__ import annotations

from typing import Any

import pytest

from tools.node_churn import late_writes


def event(
    second: int, verb: str, name: str, *, resource: str = "nodes", code: int = 200, sub: str = ""
) -> dict[str, Any]:
    """Return an event of an audit log: a request that takes a second."""
    reference = {"resource": resource, "name": name, "subresource": sub}
    if resource == "leases":
        reference["namespace"] = "kube-node-lease"
    return {
        "verb": verb,
        "objectRef": reference,
        "user": {"username": "kubelet"},
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": f"2026-01-01T00:00:{second:02}.000000Z",
        "stageTimestamp": f"2026-01-01T00:00:{second + 1:02}.000000Z",
    }


CREATED = event(1, "create", "a", code=201)
DELETED = event(5, "delete", "a")


@pytest.mark.parametrize(
    "late",
    [
        event(7, "patch", "a", code=404, sub="status"),
        event(7, "patch", "a", resource="leases"),
        event(7, "create", "a", resource="leases", code=201),
    ],
)
def test_a_write_after_the_deletion_of_its_node_counts(late: dict[str, Any]) -> None:
    (found,) = late_writes([late, CREATED, DELETED])
    assert (found.node, found.resource, found.seconds) == ("a", late["objectRef"]["resource"], 1.0)


@pytest.mark.parametrize(
    "events",
    [
        [event(4, "patch", "a", sub="status"), event(5, "patch", "a", code=404, sub="status")],  # in flight
        [event(7, "create", "a", code=201), event(8, "patch", "a", sub="status")],  # the node was made again
        [event(7, "delete", "a", resource="leases")],  # by the garbage collector
        [event(7, "patch", "b", sub="status")],
    ],
)
def test_other_writes_do_not_count(events: list[dict[str, Any]]) -> None:
    assert list(late_writes([CREATED, DELETED, *events])) == []
