"""Tests that a running server behaves as the documents say."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.docs.markdown_documents import ROOT, Document, plain

PATCHES = ("strategic-merge-patch+json", "apply-patch+yaml", "apply-patch+cbor", "json-patch+json", "merge-patch+json")


def told(compatibility: Document, heading: str, text: str) -> bool:
    """Return True if the row that names `text` says yes."""
    states = [row[1] for row in compatibility.table(heading) if text in plain(row[0])]
    assert len(states) == 1, text
    return states[0].startswith("yes")


async def test_post_start_hooks_are_those_of_the_table(api: Any, documents: dict[str, Document]) -> None:
    answer = await api.get("/readyz?verbose")
    hooks = set(re.findall(r"poststarthook/(\S+) ok", answer.body.decode()))
    rows = documents["compatibility-server"].table("Hooks of the start")
    assert hooks == {name for row in rows for name in plain(row[0]).split(", ")}


async def test_health_checks_of_each_path_are_those_of_the_table(api: Any, documents: dict[str, Document]) -> None:
    for paths, named in documents["compatibility-server"].table("Health checks"):
        for path in plain(paths).split(", "):
            text = (await api.get(f"{path}?verbose")).body.decode()
            checks = [name for name in re.findall(r"^\[\+](\S+) ok", text, re.MULTILINE) if "/" not in name]
            assert checks == re.findall(r"`([a-z-]+)`", named), path


async def test_metrics_are_those_that_the_page_was_made_with(api: Any) -> None:
    text = (await api.get("/metrics")).body.decode() + (await api.get("/metrics/slis")).body.decode()
    served = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    assert (ROOT / "tests" / "docs" / "metrics.txt").read_text().split() == sorted(served)


@pytest.mark.parametrize(
    "path", ["/openapi/v2", "/openapi/v3", "/version", "/statusz", "/flagz", "/logs", "/openid/v1/jwks"]
)
async def test_paths_are_served_or_not_as_told(api: Any, compatibility: Document, path: str) -> None:
    answer = await api.get(path, accept="*/*")
    assert (answer.status == 200) == told(compatibility, "Discovery, OpenAPI, other paths", path)


@pytest.mark.parametrize("media", PATCHES)
async def test_patches_are_taken_or_refused_as_told(api: Any, compatibility: Document, media: str) -> None:
    media = f"application/{media}"
    target = "/api/v1/namespaces/default/configmaps/documented?fieldManager=test&dryRun=All"
    answer = await api.request("PATCH", target, b"{}", content_type=media)
    assert (answer.status != 415) == told(compatibility, "Verbs and options", media)


@pytest.mark.parametrize(
    "media", ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor"]
)
async def test_content_types_are_answered_as_told(api: Any, compatibility: Document, media: str) -> None:
    row = next(row for row in compatibility.table("Content types") if plain(row[0]) == media)
    answer = await api.get("/api/v1/namespaces/default", accept=media)
    assert (answer.status == 200) == row[2].startswith("yes")
    body = await api.post("/api/v1/namespaces/default/configmaps?dryRun=All", b"{}", content_type=media)
    assert (body.status != 415) == row[1].startswith("yes")


async def test_field_ownership_is_tracked_or_not_as_told(api: Any, compatibility: Document) -> None:
    target = "/api/v1/namespaces/default/configmaps?dryRun=All&fieldManager=test"
    answer = await api.post(target, {"metadata": {"name": "documented"}, "data": {"a": "b"}})
    tracked = "managedFields" in answer.json()["metadata"]
    assert tracked == told(compatibility, "Verbs and options", "metadata.managedFields")


async def test_impersonation_works_as_told(api: Any, compatibility: Document) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review, impersonate_user="alice")
    assert told(compatibility, "Authentication", "impersonation")
    assert answer.json()["status"]["userInfo"]["username"] == "alice"


async def test_service_account_tokens_are_accepted_or_not_as_told(
    api: Any, namespace: str, compatibility: Document
) -> None:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert (await api.post(accounts, {"metadata": {"name": "robot"}})).status == 201
    token = (await api.post(f"{accounts}/robot/token", {"spec": {}})).json()["status"]["token"]
    answer = await api.get("/version", authorization=f"Bearer {token}")
    assert (answer.status == 200) == told(compatibility, "Authentication", "service account tokens")


async def test_roles_that_are_gathered_by_label_are_empty_as_told(api: Any, compatibility: Document) -> None:
    answer = await api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/view")
    told_empty = "On a fresh server the three are empty." in compatibility.section("Verbs and options")
    assert (not answer.json()["rules"]) == told_empty


async def test_the_objects_of_the_tour_can_be_created(api: Any, documents: dict[str, Document]) -> None:
    (demo,) = [block for block in documents["tour"].blocks("yaml") if "kind: Deployment" in block]
    paths = {
        "Namespace": "/api/v1/namespaces",
        "Deployment": "/apis/apps/v1/namespaces/demo/deployments",
        "Service": "/api/v1/namespaces/demo/services",
    }
    for body in yaml.safe_load_all(demo):
        answer = await api.post(f"{paths[body['kind']]}?fieldValidation=Strict", body)
        assert answer.status == 201, answer.body
    account = {"metadata": {"name": "default"}}  # which a controller makes where there is one
    assert (await api.post("/api/v1/namespaces/demo/serviceaccounts", account)).status == 201
    refused = {"metadata": {"name": "Bad_Name"}, "spec": {"containers": []}}
    answer = await api.post("/api/v1/namespaces/demo/pods", refused)
    causes = [cause["field"] for cause in answer.json()["details"]["causes"]]
    assert causes == ["metadata.name", "spec.containers"]
    assert all(f"* {field}: " in documents["tour"].text for field in causes)
