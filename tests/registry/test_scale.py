"""Validation of the Scale of workloads, with kube-apiserver's answers."""

from __future__ import annotations

from typing import Any

import pytest

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
APPLY = "application/apply-patch+yaml"
NO_LABEL = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.fixture
async def path(api: Any, namespace: str) -> str:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
    assert (await api.post(path, {"metadata": {"name": "d"}, "spec": spec})).status == 201
    return f"{path}/d/scale"


def scale(replicas: int, **metadata: Any) -> dict[str, Any]:
    spec = {"replicas": replicas}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "d", **metadata}, "spec": spec}


async def test_metadata_of_a_scale_are_judged_though_nothing_of_them_is_stored(api: Any, path: str) -> None:
    answer = await api.put(path, scale(-1, labels={"not a key!": "x"}))
    assert (answer.status, answer.json()["message"]) == (
        422,
        (
            f'Scale.autoscaling "d" is invalid: [metadata.labels: Invalid value: "not a key!": {NO_LABEL}, '
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0]"
        ),
    )
    patched = await api.patch(path, {"metadata": {"annotations": {"&": "x"}}})
    assert patched.json()["details"]["causes"][0]["field"] == "metadata.annotations"
    applied = await api.request(
        "PATCH", f"{path}?fieldManager=m&force=true", scale(4, finalizers=["x y"]), content_type=APPLY
    )
    fields = [each["field"] for each in applied.json()["details"]["causes"]]
    assert (applied.status, fields) == (422, ["metadata.finalizers", "metadata.finalizers[0]"])
    kept = await api.put(path, scale(2, labels={"a": "b"}))
    assert (kept.status, "labels" in kept.json()["metadata"]) == (200, False)


async def test_a_wrong_scale_of_an_old_version_is_told_that_it_is_wrong(api: Any, path: str) -> None:
    answer = await api.put(path, scale(-1, resourceVersion="1"))
    assert (answer.status, answer.json()["reason"]) == (422, "Invalid")
    answer = await api.put(path, scale(1, resourceVersion="1"))
    assert (answer.status, answer.json()["reason"]) == (409, "Conflict")
