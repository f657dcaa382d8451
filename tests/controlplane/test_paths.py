"""Paths and rights: unusual paths give no additional rights, and are treated as upstream does."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import steersman
from steersman.endpoints.installer import Level, Route
from steersman.endpoints.request_info import NAME, NAMESPACE, PATH

RBAC = "/apis/rbac.authorization.k8s.io/v1"
NOT_FOUND = "the server could not find the requested resource"


async def give(api: Any, user: str, rules: list[dict[str, list[str]]]) -> None:
    """Grant a user the rules in the namespace narrow-USER."""
    namespace = f"narrow-{user}"
    await api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    await api.post(f"{RBAC}/namespaces/{namespace}/roles", {"metadata": {"name": "r"}, "rules": rules})
    await api.post(
        f"{RBAC}/namespaces/{namespace}/rolebindings",
        {
            "metadata": {"name": "r"},
            "roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        },
    )


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def narrow(api: Any) -> AsyncIterator[Any]:
    """A user with all rights in the namespace narrow-everything, and on namespaces in narrow-namespaces."""
    await give(api, "everything", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    await give(
        api,
        "namespaces",
        [{"apiGroups": [""], "resources": ["namespaces", "namespaces/status", "namespaces/finalize"], "verbs": ["*"]}],
    )
    await api.post("/api/v1/namespaces", {"metadata": {"name": "others"}})
    await api.post("/api/v1/namespaces/narrow-everything/secrets", {"metadata": {"name": "mine"}})
    yield api


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "namespaces/FOO/namespaces/kube-system"),
        ("GET", "namespaces/FOO/namespaces"),
        ("GET", "namespaces/FOO/namespaces?watch=1&timeoutSeconds=-1"),
        ("POST", "namespaces/FOO/namespaces"),
        ("PUT", "namespaces/FOO/namespaces/others/finalize"),
        ("PUT", "namespaces/FOO/namespaces/others/status"),
        ("PATCH", "namespaces/FOO/namespaces/others"),
        ("DELETE", "namespaces/FOO/namespaces/others"),
        ("DELETE", "namespaces/FOO/namespaces"),
        ("GET", "watch/namespaces/FOO/namespaces?timeoutSeconds=-1"),
        ("GET", "watch/namespaces/FOO/namespaces/others?timeoutSeconds=-1"),
        ("GET", "watch/namespaces/FOO/nodes?timeoutSeconds=-1"),
        ("GET", "namespaces/FOO/nodes"),
        ("GET", "proxy/namespaces/FOO/secrets"),
        ("GET", "proxy/namespaces/FOO/secrets/mine"),
        ("POST", "proxy/namespaces/FOO/secrets"),
        ("DELETE", "proxy/namespaces/FOO/secrets/mine"),
        ("GET", "namespaces/FOO/watch/secrets"),
        ("GET", "namespaces/FOO/secrets/mine/status"),
        ("GET", "namespaces/FOO/secrets/mine/"),
    ],
)
@pytest.mark.parametrize("user", ["everything", "namespaces"])
async def test_a_namespace_opens_no_way_out_of_it(narrow: Any, user: str, method: str, path: str) -> None:
    path = f"/api/v1/{path.replace('FOO', f'narrow-{user}')}"
    body = {"metadata": {"name": "others"}, "spec": {"finalizers": []}} if method in ("POST", "PUT") else None
    before = (await narrow.get("/api/v1/namespaces/others")).json()
    answer = await narrow.request(method, path, body, impersonate_user=user)
    if path.endswith("/secrets/mine/") and user == "everything":
        assert answer.status == 200  # the one that is a path of its own
        return
    expected = 404 if user == "everything" or "/namespaces/narrow-namespaces/namespaces" in path else 403
    assert answer.status == expected, answer.body
    if answer.status == 404:
        assert answer.json()["message"] == NOT_FOUND
    assert (await narrow.get("/api/v1/namespaces/others")).json() == before


async def test_a_watch_of_a_cluster_is_not_below_a_namespace(narrow: Any) -> None:
    path = f"{RBAC}/watch/namespaces/narrow-everything/clusterroles?timeoutSeconds=-1"
    answer = await narrow.get(path, impersonate_user="everything")
    assert (answer.status, answer.json()["message"]) == (404, NOT_FOUND)


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/api/v1/pods/", 200, None),
        ("/api/v1/pods///", 200, None),
        ("/api/v1//pods", 404, NOT_FOUND),
        ("/api//v1/pods", 404, NOT_FOUND),
        ("//api/v1/pods", 404, "404 page not found\n"),
        ("/apis//v1/pods", 404, "404 page not found\n"),
        ("/API/v1/pods", 404, "404 page not found\n"),
        ("/api/v1/Pods", 404, NOT_FOUND),
        ("/api/v2/pods", 404, NOT_FOUND),
        ("/apis/apps/v2/deployments", 404, NOT_FOUND),
        ("/apis/none.example.com/v1/things", 404, "404 page not found\n"),
        ("/api/v1//", 200, None),
        ("/apis/apps/v1//", 200, None),
        ("/apis/apps//", 200, None),
        ("/apis/", 200, None),
        ("/apis//", 404, "404 page not found\n"),
        ("/version//", 200, None),
        ("/version/x", 404, NOT_FOUND),
        ("/openid/v1/jwks/x", 404, NOT_FOUND),
        ("/healthz/", 404, "404 page not found\n"),
        ("/openapi/v3/%61pi/v1", 200, None),
        ("/livez/pin%67", 200, None),
        ("/api/v1/namespaces//pods", 200, None),
        ("/api/v1/namespaces//pods/x", 400, "Namespace parameter required."),
        ("/api/v1/namespaces//pods/.", 400, "Namespace parameter required."),
        ("/api/v1/namespaces/default/pods//status", 400, "name must be provided"),
        ("/api/v1/namespaces/default/pods//status?fieldSelector=metadata.name=x", 400, "name must be provided"),
        ("/api/v1/namespaces/default%2Fpods", 200, None),
        ("/api/v1/namespaces/default%252Fpods", 400, "Name parameter invalid: \"default%2Fpods\": may not contain '%'"),
        ("/api/v1/namespaces/../pods", 500, 'invalid key: "/pods/.."'),
        ("/api/v1/namespaces/../pods?fieldSelector=metadata.name=a", 500, 'invalid key: "/pods/../a"'),
        ("/api/v1/watch/namespaces/../pods/a", 500, 'invalid key: "/pods/../a"'),
        ("/api/v1/namespaces/../pods?fieldSelector=metadata.name=a/b", 500, 'invalid key: "/pods/.."'),
        ("/api/v1/namespaces/%2e/pods/x", 500, 'invalid key: "/pods/./x"'),
        (
            "/api/v1/watch/namespaces/default?fieldSelector=metadata.name=other",
            400,
            "fieldSelector metadata.name doesn't match requested name",
        ),
        (
            "/api/v1/watch/namespaces/default?fieldSelector=status.phase=Active",
            400,
            "fieldSelector metadata.name doesn't match requested name",
        ),
        ("/api/v1/namespaces?fieldSelector=name=default", 400, "field label not supported: name"),
        ("/api/v1/namespaces?fieldSelector=metadata.namespace=a", 400, "field label not supported: metadata.namespace"),
        ("/api/v1/persistentvolumes?fieldSelector=metadata.namespace=a", 200, None),
        ("/api/v1/namespaces/default/pods/%zz", 400, "400 Bad Request"),
    ],
)
async def test_odd_paths_are_what_they_are_upstream(api: Any, path: str, status: int, message: str | None) -> None:
    answer = await api.get(path)
    assert answer.status == status, answer.body
    if message is not None:
        text = answer.json()["message"] if answer.body.startswith(b"{") else answer.body.decode()
        assert text == message


async def test_the_aggregator_answers_for_a_group_whatever_the_method(api: Any) -> None:
    for path in ("/apis/apps", "/apis/apps/"):
        assert (await api.delete(path)).json()["kind"] == "APIGroup"
    for path in ("/apis/apps//", "/apis/apps/v1", "/apis/apiregistration.k8s.io"):
        assert (await api.delete(path)).status == 405


async def test_nothing_can_be_made_in_a_namespace_that_is_no_name(api: Any) -> None:
    answer = (await api.post("/api/v1/namespaces/../configmaps", {"metadata": {"name": "a"}})).json()
    why = "invalid resource name \"..\": [may not be '..']"
    assert (answer["code"], answer["reason"]) == (500, "InternalError")
    assert answer["message"] == f"Internal error occurred: {why}"


async def test_nothing_is_deleted_across_namespaces(api: Any) -> None:
    path = "/api/v1/namespaces//secrets?labelSelector=across"
    assert (await api.delete(path)).json()["items"] == []
    made = {"metadata": {"name": "across", "labels": {"across": "yes"}}}
    assert (await api.post("/api/v1/namespaces/default/secrets", made)).status == 201
    answer = await api.delete(path)
    assert (answer.status, answer.json()["message"]) == (400, "Namespace parameter required.")
    assert (await api.get("/api/v1/namespaces/default/secrets/across")).status == 200


async def test_events_are_told_apart_by_group_where_they_exist_already(api: Any) -> None:
    event = {
        "metadata": {"name": "twice"},
        "reportingController": "a.b/c",
        "reportingInstance": "i",
        "action": "a",
        "reason": "r",
        "type": "Normal",
        "eventTime": "2026-01-01T00:00:00.000000Z",
    }
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    made = await api.post(path, {**event, "regarding": {"namespace": "default"}})
    assert made.status == 201, made.body
    again = await api.post(path, {**event, "regarding": {"namespace": "default"}})
    assert again.json()["message"] == 'events.events.k8s.io "twice" already exists'
    old = await api.post(
        "/api/v1/namespaces/default/events",
        {**event, "reportingComponent": "a.b/c", "involvedObject": {"namespace": "default"}},
    )
    assert old.json()["message"] == 'events "twice" already exists'


async def test_every_route_is_at_the_level_that_its_template_says(api: Any) -> None:
    routes: dict[str, Route] = api.plane.server.catalogue.routes
    assert len(routes) > 300
    for template, route in routes.items():
        literal = template.replace(f"/{NAMESPACE}", "/").replace(NAME, "").replace(PATH, "")
        assert "{" not in literal
        assert literal.removesuffix(f"/{route.subresource}").endswith(f"/{route.resource}")
        level = Level.NAMESPACE if NAMESPACE in template else Level.CLUSTER
        if NAME in template:
            level = Level.SUBRESOURCE if route.subresource else Level.OBJECT
        assert route.level is level
        assert all(method.verbs for method in route.methods.values())
        assert ("/watch/" in template) <= all(method.verbs == ("watch",) for method in route.methods.values())


_JUDGES = {
    "request_info.py",
    "installer.py",
    "metrics.py",
    "authorization.py",
    "max_in_flight.py",
    "lifetime.py",
    "reception.py",
    "instrument.py",
    "server.py",
    "journal.py",
    "configured_metrics.py",
    "answered.py",
    "audit.py",
    "priority_and_fairness.py",
    "fairness_paths.py",
    "tracing.py",
    "defined_routes.py",
    "origin.py",
    "faults.py",
    "subjects.py",
}
"""Files that may read the path-based members of a request's info: to create it, authorize, count, record or report it,
to compare it with the route, to queue the request, to let it fail, or to answer without a route.
"""


def test_only_the_judges_read_what_a_requests_info_names() -> None:
    readers = set()
    for file in Path(steersman.__file__).parent.glob("**/*.py"):
        if "info" not in (source := file.read_text()):
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Attribute) and node.attr in ("action", "judged", "target"):
                of = node.value
                if (isinstance(of, ast.Name) and of.id == "info") or (
                    isinstance(of, ast.Attribute) and of.attr == "info"
                ):
                    readers.add(file.name)
    assert readers <= _JUDGES, "handlers take them from request.action"
