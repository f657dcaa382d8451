"""Routing of requests for custom resources by verb, name and subresource."""

from __future__ import annotations

import pytest

from steersman.testing import Environment
from tests.apiextensions.cluster import GROUP, Cluster, definition, version

NO = f'is not supported on resources of kind "foos.{GROUP}"'
URL = "the name of the object (b) does not match the name on the URL (x)"


@pytest.fixture
def cluster(shared_environment: Environment) -> Cluster:
    """Return helpers on the server that the tests of this file share."""
    return Cluster(shared_environment.client())


@pytest.mark.parametrize(
    ("method", "below", "status", "message"),
    [
        ("HEAD", "", 200, None),
        ("HEAD", "/a", 200, None),
        ("HEAD", "/a/status", 200, None),
        ("HEAD", "/none", 404, None),
        ("HEAD", "?watch=1&timeoutSeconds=1", 200, None),
        ("GET", "/a/status/x/y", 200, None),
        ("GET", "/a/other", 404, f'foos.{GROUP} "a" not found'),
        ("GET", "//status", 405, f"list {NO}"),
        ("POST", "/b", 201, None),
        ("POST", "/x", 400, URL),
        ("POST", "/a/status", 405, f"create {NO}"),
        ("PUT", "", 400, "name must be provided"),
        ("PUT", "/a/scale", 404, f'foos.{GROUP} "a" not found'),
        ("PATCH", "", 400, "name must be provided"),
        ("PATCH", "/a/status/x", 200, None),
        ("DELETE", "/a/status/x", 405, f"delete {NO}"),
        ("OPTIONS", "/a", 405, NO),
        ("FOO", "/a/other/x", 404, f'foos.{GROUP} "a" not found'),
    ],
)
async def test_the_verb_says_what_is_done(
    cluster: Cluster, method: str, below: str, status: int, message: str | None
) -> None:
    await cluster.define(definition(version("v1", subresources={"status": {}})))
    foo = {"apiVersion": f"{GROUP}/v1", "kind": "Foo", "metadata": {"name": "a"}}
    await cluster.client.post(cluster.path(), foo)
    body = None if method not in ("POST", "PUT", "PATCH") else {**foo, "metadata": {"name": "b"}}
    media = "application/json"
    if method == "PATCH":
        body, media = {"metadata": {"labels": {"a": "b"}}}, "application/merge-patch+json"
    answer = await cluster.client.request(method, f"{cluster.path()}{below}", body, content_type=media)
    assert answer.status == status, answer.body
    if message is not None:
        assert message in answer.json()["message"]
    if method == "HEAD":
        assert not answer.body


async def test_the_media_type_of_a_patch_is_looked_at_before_its_name(cluster: Cluster) -> None:
    await cluster.define(definition(version("v1")))
    answer = await cluster.client.request("PATCH", cluster.path(), {}, content_type="application/json")
    accepted = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    assert (answer.status, answer.json()["message"]) == (
        415,
        f"the body of the request was in an unknown format - accepted media types include: {accepted}",
    )
    applied = await cluster.client.request("PATCH", cluster.path(), {}, content_type="application/apply-patch+yaml")
    assert (applied.status, applied.json()["message"]) == (400, "name must be provided")


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
async def test_any_method_watches_below_the_old_path_of_watches(cluster: Cluster, method: str) -> None:
    await cluster.define(definition(version("v1")))
    path = f"{cluster.path().replace('/namespaces/', '/watch/namespaces/')}?timeoutSeconds=-1"
    answer = await cluster.client.request(method, path)
    assert (answer.status, answer.body) == (200, b"")
    proxied = await cluster.client.request(method, path.replace("/watch/", "/proxy/"))
    assert proxied.status == 405


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", f"/apis/{GROUP}/v1/foos", 200),
        ("DELETE", f"/apis/{GROUP}/v1/foos", 404),
        ("GET", f"/apis/{GROUP}/v1/foos/a", 404),
        ("HEAD", f"/apis/{GROUP}/v1", 200),
        ("POST", f"/apis/{GROUP}/v1", 200),
        ("HEAD", f"/apis/{GROUP}/v1/bars", 404),
    ],
)
async def test_across_namespaces_one_can_only_read(cluster: Cluster, method: str, path: str, status: int) -> None:
    await cluster.define(definition(version("v1")))
    assert (await cluster.client.request(method, path)).status == status


async def test_a_right_to_create_one_name_makes_no_other(cluster: Cluster) -> None:
    await cluster.define(definition(version("v1")))
    rbac, api = "/apis/rbac.authorization.k8s.io/v1", cluster.client
    rule = {"apiGroups": [GROUP], "resources": ["foos"], "resourceNames": ["x"], "verbs": ["create"]}
    await api.post(f"{rbac}/clusterroles", {"metadata": {"name": "maker"}, "rules": [rule]})
    await api.post(
        f"{rbac}/clusterrolebindings",
        {
            "metadata": {"name": "maker"},
            "roleRef": {"kind": "ClusterRole", "name": "maker", "apiGroup": rbac[6:-3]},
            "subjects": [{"kind": "User", "name": "eve", "apiGroup": rbac[6:-3]}],
        },
    )
    codes = []
    for below, name in (("/x", "b"), ("", "x"), ("/x", "x")):
        foo = {"apiVersion": f"{GROUP}/v1", "kind": "Foo", "metadata": {"name": name}}
        codes.append((await api.request("POST", f"{cluster.path()}{below}", foo, impersonate_user="eve")).status)
    assert codes == [400, 403, 201]
