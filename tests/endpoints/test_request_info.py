"""Request info of all kinds of paths (k8s.io/apiserver's own cases, and unusual ones)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.endpoints.request_info import BadRequestInfo, Target, read_request_info, request_info
from steersman.machinery.identity.action import Action
from steersman.machinery.selectors import fields

# method, target, verb, group, version, namespace, resource, subresource, name, extra parts
RESOURCES = [
    ("GET", "/api/v1/namespaces/other/pods/foo", "get", "", "v1", "other", "pods", "", "foo", ()),
    ("GET", "/api/v1/namespaces/other/pods", "list", "", "v1", "other", "pods", "", "", ()),
    ("GET", "/api/v1/namespaces/other/pods/", "list", "", "v1", "other", "pods", "", "", ()),
    ("GET", "/api/v1/pods", "list", "", "v1", "", "pods", "", "", ()),
    ("HEAD", "/api/v1/pods", "list", "", "v1", "", "pods", "", "", ()),
    ("HEAD", "/api/v1/namespaces/other/pods/foo", "get", "", "v1", "other", "pods", "", "foo", ()),
    ("POST", "/api/v1/namespaces/other/pods", "create", "", "v1", "other", "pods", "", "", ()),
    ("PUT", "/api/v1/namespaces/other/pods/foo", "update", "", "v1", "other", "pods", "", "foo", ()),
    ("PATCH", "/api/v1/namespaces/other/pods/foo", "patch", "", "v1", "other", "pods", "", "foo", ()),
    ("DELETE", "/api/v1/namespaces/other/pods/foo", "delete", "", "v1", "other", "pods", "", "foo", ()),
    ("DELETE", "/api/v1/namespaces/other/pods", "deletecollection", "", "v1", "other", "pods", "", "", ()),
    ("DELETE", "/api/v1/nodes", "deletecollection", "", "v1", "", "nodes", "", "", ()),
    ("OPTIONS", "/api/v1/nodes", "", "", "v1", "", "nodes", "", "", ()),
    ("GET", "/api/v1/pods?watch=true", "watch", "", "v1", "", "pods", "", "", ()),
    ("GET", "/api/v1/pods?watch=1", "watch", "", "v1", "", "pods", "", "", ()),
    ("GET", "/api/v1/pods?watch", "watch", "", "v1", "", "pods", "", "", ()),
    ("GET", "/api/v1/pods?watch=false", "list", "", "v1", "", "pods", "", "", ()),
    ("GET", "/api/v1/pods?watch=0", "list", "", "v1", "", "pods", "", "", ()),
    ("GET", "/api/v1/namespaces/other/pods/foo?watch=true", "get", "", "v1", "other", "pods", "", "foo", ()),
    ("GET", "/api/v1/watch/pods", "watch", "", "v1", "", "pods", "", "", ()),
    ("GET", "/api/v1/watch/namespaces/other/pods", "watch", "", "v1", "other", "pods", "", "", ()),
    ("GET", "/api/v1/watch/namespaces/other/pods/foo", "watch", "", "v1", "other", "pods", "", "foo", ()),
    ("GET", "/api/v1/watch/namespaces", "watch", "", "v1", "", "namespaces", "", "", ()),
    ("GET", "/api/v1/proxy/namespaces/other/pods/foo/a/b", "proxy", "", "v1", "other", "pods", "", "foo", ()),
    ("GET", "/api/v1/namespaces", "list", "", "v1", "", "namespaces", "", "", ()),
    ("GET", "/api/v1/namespaces/other", "get", "", "v1", "other", "namespaces", "", "other", ()),
    ("PUT", "/api/v1/namespaces/other/finalize", "update", "", "v1", "other", "namespaces", "finalize", "other", ()),
    ("GET", "/api/v1/namespaces/other/status", "get", "", "v1", "other", "namespaces", "status", "other", ()),
    ("GET", "/api/v1/namespaces/other/pods/foo/status", "get", "", "v1", "other", "pods", "status", "foo", ()),
    ("POST", "/api/v1/namespaces/other/pods/foo/exec", "create", "", "v1", "other", "pods", "exec", "foo", ()),
    (
        "GET",
        "/api/v1/namespaces/other/pods/foo/proxy/a/b",
        "get",
        "",
        "v1",
        "other",
        "pods",
        "proxy",
        "foo",
        ("a", "b"),
    ),
    ("GET", "/api/v1/nodes/n/proxy/", "get", "", "v1", "", "nodes", "proxy", "n", ()),
    ("GET", "/apis/apps/v1/deployments", "list", "apps", "v1", "", "deployments", "", "", ()),
    (
        "GET",
        "/apis/apps/v1/namespaces/other/deployments/foo",
        "get",
        "apps",
        "v1",
        "other",
        "deployments",
        "",
        "foo",
        (),
    ),
    (
        "POST",
        "/apis/apps/v1/namespaces/other/deployments/foo/scale",
        "create",
        "apps",
        "v1",
        "other",
        "deployments",
        "scale",
        "foo",
        (),
    ),
    (
        "GET",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
        "get",
        "rbac.authorization.k8s.io",
        "v1",
        "",
        "clusterroles",
        "",
        "system:node",
        (),
    ),
    (
        "GET",
        "/api/v1/namespaces/other/pods?fieldSelector=metadata.name%3Dfoo",
        "list",
        "",
        "v1",
        "other",
        "pods",
        "",
        "foo",
        (),
    ),
    (
        "GET",
        "/api/v1/pods?fieldSelector=spec.nodeName=n,metadata.name==foo&watch=1",
        "watch",
        "",
        "v1",
        "",
        "pods",
        "",
        "foo",
        (),
    ),
    ("GET", "/api/v1/pods?fieldSelector=metadata.name!=foo", "list", "", "v1", "", "pods", "", "", ()),
    ("GET", "/api/v1/pods?fieldSelector=metadata.name=..", "list", "", "v1", "", "pods", "", "", ()),
    ("GET", "/api/v1/pods?fieldSelector=metadata.name=a/b", "list", "", "v1", "", "pods", "", "", ()),
    ("DELETE", "/api/v1/nodes?fieldSelector=metadata.name=n", "deletecollection", "", "v1", "", "nodes", "", "", ()),
    ("GET", "/api/v1/watch/pods?fieldSelector=metadata.name=foo", "watch", "", "v1", "", "pods", "", "", ()),
]

OTHERS = [
    ("GET", "/", "get"),
    ("GET", "", "get"),
    ("GET", "/api", "get"),
    ("GET", "/api/v1", "get"),
    ("GET", "/api/v1/", "get"),
    ("GET", "/apis", "get"),
    ("GET", "/apis/apps", "get"),
    ("GET", "/apis/apps/v1", "get"),
    ("POST", "/healthz", "post"),
    ("GET", "/version", "get"),
    ("HEAD", "/openapi/v2", "head"),
    ("GET", "/apix/v1/pods", "get"),
    ("DELETE", "/metrics", "delete"),
]


def split(target: str) -> tuple[str, str]:
    path, _, query = target.partition("?")
    return path, query


@pytest.mark.parametrize("case", RESOURCES, ids=lambda case: f"{case[0]} {case[1]}")
def test_requests_for_resources(case: Any) -> None:
    method, target, verb, group, version, namespace, resource, subresource, name, extra = case
    info = request_info(method, *split(target))
    assert info.resource_request
    assert info.authorized_action == Action(verb, group, version, resource, subresource, namespace, name)
    assert verb == "proxy" or info.target.path == "/".join(extra)


@pytest.mark.parametrize(("method", "path", "verb"), OTHERS)
def test_requests_for_other_paths(method: str, path: str, verb: str) -> None:
    info = request_info(method, path, "")
    assert not info.resource_request
    assert (info.authorized_action, info.path) == (Action(verb), path)


@pytest.mark.parametrize("path", ["/api/v1/watch", "/api/v1/proxy", "/apis/apps/v1/watch", "/api/v1/watch/"])
def test_special_verbs_need_something_to_be_about(path: str) -> None:
    with pytest.raises(BadRequestInfo, match="unable to determine kind and namespace from url"):
        request_info("GET", path, "")


@pytest.mark.parametrize(
    ("target", "long_running"),
    [
        ("/api/v1/pods?watch=1", True),
        ("/api/v1/watch/pods", True),
        ("/api/v1/pods", False),
        ("/api/v1/namespaces/n/pods/p/log", True),
        ("/api/v1/namespaces/n/pods/p/exec", True),
        ("/api/v1/namespaces/n/pods/p/status", False),
        ("/api/v1/nodes/n/proxy/x", True),
        ("/debug/pprof/profile", True),
        ("/version", False),
    ],
)
def test_which_requests_have_no_deadline(target: str, long_running: bool) -> None:
    assert request_info("GET", *split(target)).long_running is long_running


@given(st.sampled_from(["GET", "POST", "DELETE", "BREW"]), st.text(max_size=40), st.text(max_size=40))
def test_no_path_is_too_odd(method: str, path: str, query: str) -> None:
    for each in (path, f"/api/v1/{path}", f"/apis/{path}"):
        try:
            info = read_request_info(method, each, query)
        except BadRequestInfo:
            continue
        assert info.resource_request or info.action == Action(info.action.verb)
        assert len(info.action.verb) <= len("deletecollection")


TEMPLATES = [
    ("/api/v1/pods", "/api/v1/pods", Target()),
    ("/api/v1/pods/", "/api/v1/pods", Target()),
    ("/api/v1/namespaces/other/pods", "/api/v1/namespaces/{namespace}/pods", Target("other")),
    ("/api/v1/namespaces/other/pods/a", "/api/v1/namespaces/{namespace}/pods/{name}", Target("other", "a")),
    (
        "/api/v1/namespaces/other/pods/a/status",
        "/api/v1/namespaces/{namespace}/pods/{name}/status",
        Target("other", "a", "status"),
    ),
    ("/api/v1/nodes/n/proxy/x/y/", "/api/v1/nodes/{name}/proxy/{path:*}", Target("", "n", "proxy", "x/y")),
    ("/api/v1/nodes/n/proxy//x", "/api/v1/nodes/{name}/proxy/{path:*}", Target("", "n", "proxy", "/x")),
    ("/api/v1/namespaces/other", "/api/v1/namespaces/{name}", Target("other", "other")),
    ("/api/v1/namespaces/other/finalize", "/api/v1/namespaces/{name}/finalize", Target("other", "other", "finalize")),
    ("/api/v1/namespaces/other/status/a", "/api/v1/namespaces/{namespace}/status/{name}", Target("other", "a")),
    ("/api/v1/namespaces/other/namespaces/a", "/api/v1/namespaces/{namespace}/namespaces/{name}", Target("other", "a")),
    ("/api/v1/watch/nodes", "/api/v1/watch/nodes", Target()),
    ("/api/v1/watch/namespaces/other/nodes", "/api/v1/watch/namespaces/{namespace}/nodes", Target("other")),
    ("/api/v1/watch/namespaces/other", "/api/v1/watch/namespaces/{name}", Target("other", "other")),
    (
        "/api/v1/proxy/namespaces/other/pods",
        "/api/v1/proxy/{name}/other/{path:*}",
        Target("", "namespaces", "other", "pods"),
    ),
    ("/api/v1/namespaces//pods", "/api/v1/namespaces/{namespace}/pods", Target()),
    ("/api/v1/namespaces/other%2Fpods", "/api/v1/namespaces/{namespace}/pods", Target("other")),
    ("/api/v1/namespaces/other%252Fpods", "/api/v1/namespaces/{name}", Target("other%2Fpods", "other%2Fpods")),
    (
        "/apis/apps/v1/namespaces/n/deployments/a/scale",
        "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
        Target("n", "a", "scale"),
    ),
    (
        "/apis/g/v1/watch/namespaces/n/things/a/b/c/d/e",
        "/apis/g/v1/watch/namespaces/{namespace}/things/{name}/b/{path:*}",
        Target("n", "a", "b", "c/d/e"),
    ),
    ("//api/v1/pods", "", Target()),
    ("/apis//v1/pods", "/apis//v1/pods", Target()),
    ("/api/v1//pods", "/api/v1//{name}", Target("", "pods")),
    ("/api/v1", "", Target()),
]


@pytest.mark.parametrize(("path", "template", "target"), TEMPLATES)
def test_a_path_has_one_template_and_says_what_stands_for_its_parameters(
    path: str, template: str, target: Target
) -> None:
    info = request_info("GET", path, "")
    assert (info.template, info.target) == (template, target)


def test_no_name_is_taken_from_options_that_cannot_be_read() -> None:
    for query in ("limit=x", "timeoutSeconds=x", "labelSelector=a%20b", "fieldSelector=,x"):
        assert (
            request_info("GET", "/api/v1/pods", f"{query}&fieldSelector=metadata.name=foo").authorized_action.name == ""
        )


def test_a_field_selector_is_not_read_before_somebody_asks_for_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    parse = fields.parse

    def counted(text: str) -> Any:
        read.append(text)
        return parse(text)

    monkeypatch.setattr(fields, "parse", counted)
    info = read_request_info("GET", "/api/v1/pods", "fieldSelector=metadata.name=foo")
    assert (info.action.verb, info.long_running, read) == ("list", False, [])
    assert [info.authorized_action.name, info.authorized_action.name] == ["foo", "foo"]
    assert read == ["metadata.name=foo"]


@pytest.mark.parametrize("count", [10_000, 200_000])
def test_the_parts_of_a_path_are_not_counted_out(count: int) -> None:
    info = read_request_info("GET", "/api/v1/nodes/n/proxy" + "/x" * count, "")
    assert info.target.path == "/".join("x" * count)
    assert len(info.template) < 100
