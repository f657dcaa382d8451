"""Peculiarities in the Tables and lists of some kinds."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.endpoints.table import column_definitions
from steersman.registry.columns import CREATED_AT
from steersman.rest.resource import AGE

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.mark.parametrize(
    ("plural", "annotation"),
    [
        ("daemonsets", "deprecated.daemonset.template.generation"),
        ("deployments", "deprecated.deployment.rollback.to"),
    ],
)
async def test_rows_lack_the_annotation_that_is_a_field_of_the_internal_type(
    api: Any, namespace: str, plural: str, annotation: str
) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/{plural}"
    metadata = {"name": "a", "annotations": {annotation: "3", "x": "y"}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
    assert (await api.post(path, {"metadata": metadata, "spec": spec})).status == 201
    row = (await api.get(path, accept=TABLE)).json()["rows"][0]
    assert row["object"]["metadata"]["annotations"] == {"x": "y"}
    whole = (await api.get(f"{path}?includeObject=Object", accept=TABLE)).json()["rows"][0]
    assert annotation in whole["object"]["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/api/v1/pods", "field label not supported: spec.x"),
        ("/apis/batch/v1/jobs", 'field label "spec.x" not supported for Job'),
        (
            "/apis/resource.k8s.io/v1/resourceslices",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.x",
        ),
        (
            "/api/v1/persistentvolumes",
            '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
async def test_an_unknown_field_label_is_refused_in_the_words_of_the_kind(api: Any, path: str, message: str) -> None:
    answer = await api.get(f"{path}?fieldSelector=spec.x=1")
    assert (answer.status, answer.json()["message"]) == (400, message)


async def test_a_refused_request_is_told_of_deprecation_too(api: Any) -> None:
    answer = await api.get("/api/v1/endpoints?fieldSelector=spec.x=1")
    assert answer.status == 400
    assert answer.headers.get("warning") == (
        '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'
    )


def test_created_at_is_described_as_the_age_is() -> None:
    created_at, age = column_definitions([CREATED_AT, AGE])
    assert created_at["description"].startswith("CreationTimestamp is a timestamp representing the server time")
    assert created_at["description"] == age["description"]
