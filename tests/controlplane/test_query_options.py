"""Delete options in queries."""

from __future__ import annotations

from typing import Any

import pytest

ZERO = "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (f"uid={ZERO}", f"the UID in the precondition ({ZERO}) does not match the UID in record"),
        (f"uid={ZERO}&uid=UID", f"the UID in the precondition ({ZERO}) does not match the UID in record"),
        ("uid=UID&resourceVersion=1", "the ResourceVersion in the precondition (1) does not match"),
        ("resourceVersion=0", "the ResourceVersion in the precondition (0) does not match"),
    ],
)
@pytest.mark.parametrize("collection", [False, True])
async def test_preconditions_of_the_query_spare_what_they_are_not_about(
    api: Any, namespace: str, query: str, message: str, collection: bool
) -> None:
    config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
    made = (await api.post(config_maps, {"metadata": {"name": "precious"}})).json()
    query = query.replace("UID", made["metadata"]["uid"]) if "uid=UID" in query else query
    path = config_maps if collection else f"{config_maps}/precious"
    answer = await api.delete(f"{path}?{query}{'&resourceVersionMatch=NotOlderThan' if 'Version=1' in query else ''}")
    assert (answer.status, answer.json()["reason"]) == (409, "Conflict")
    assert message in answer.json()["message"]
    assert (await api.get(f"{config_maps}/precious")).status == 200


async def test_preconditions_that_are_met_do_not_hold_a_delete_up(api: Any, namespace: str) -> None:
    config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
    for path in (f"{config_maps}/a", config_maps):
        metadata = (await api.post(config_maps, {"metadata": {"name": "a"}})).json()["metadata"]
        query = f"uid={metadata['uid']}&resourceVersion={metadata['resourceVersion']}"
        assert (await api.delete(f"{path}?{query}")).status == 200
        assert (await api.get(f"{config_maps}/a")).status == 404


async def test_a_collection_of_an_older_version_is_what_there_was_then(api: Any, namespace: str) -> None:
    config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
    before = (await api.get(config_maps)).json()["metadata"]["resourceVersion"]
    await api.post(config_maps, {"metadata": {"name": "a"}})
    answer = await api.delete(f"{config_maps}?resourceVersion={before}")
    assert (answer.status, answer.json()["items"]) == (200, [])
    assert (await api.get(f"{config_maps}/a")).status == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("DELETE", "configmaps/a?gracePeriodSeconds=", 400),
        ("DELETE", "configmaps?limit=", 400),
        ("DELETE", "configmaps?propagationPolicy=", 422),
        ("DELETE", "configmaps?watch=1&sendInitialEvents=0", 422),
        ("GET", "configmaps?timeoutSeconds=", 400),
        ("GET", "configmaps?fieldSelector=data%3Dx&resourceVersionMatch=Exact", 422),
        ("GET", "pods/a/log?dryRun=All", 404),
    ],
)
async def test_options_are_refused_as_upstream_refuses_them(
    api: Any, namespace: str, method: str, path: str, status: int
) -> None:
    await api.post(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "a"}})
    answer = await api.request(method, f"/api/v1/namespaces/{namespace}/{path}")
    assert answer.status == status, answer.body
    assert (await api.get(f"/api/v1/namespaces/{namespace}/configmaps/a")).status == 200
