"""Requests whose flow is asked for: by whom, about what; and what of an answer tells it."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tools.differential.case import NAME, NAMESPACE, Step
from tools.differential.server import Answer

from .configuration import ACCOUNTS, GROUPS, USERS

_SCHEMA: Final = "x-kubernetes-pf-flowschema-uid"
_LEVEL: Final = "x-kubernetes-pf-prioritylevel-uid"
_IN_NAMESPACE: Final = (
    "/api/v1/namespaces/{}/configmaps",
    "/api/v1/namespaces/{}/pods",
    "/apis/apps/v1/namespaces/{}/deployments",
    "/apis/batch/v1/namespaces/{}/jobs",
    "/apis/nope.example.com/v1/namespaces/{}/things",
    "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
)
_EVERYWHERE: Final = (
    "/api/v1/nodes",
    "/api/v1/configmaps",
    "/apis/apps/v1/deployments",
    "/api/v1/namespaces",
    "/apis/nope.example.com/v1/things",
    f"/api/v1/namespaces/{NAMESPACE}",
)
_SUBRESOURCES: Final = ("", "", "", "/status", "/scale", "/log", "/exec", "/nothing", "/proxy")
_QUERIES: Final = ("", "", "", "?watch=1&timeoutSeconds=1", "?fieldSelector=metadata.name%3Da", "?limit=1", "?watch=0")
_PATHS: Final = (
    "/healthz",
    "/healthz/ping",
    "/healthzz",
    "/version",
    "/version/",
    "/foo",
    "/foo/",
    "/foo/bar",
    "/foo/bar/x",
    "/api",
    "/apis",
    "/apis/apps",
    "/apis/apps/v1",
    "/metrics",
    "/openapi/v2",
    "/",
    "/nothing",
    "/api/v1",
    "//foo",
)
_METHODS: Final = ("GET", "GET", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")

Fields = dict[str, str | tuple[str, ...] | None]


def question(random: Random) -> Step:
    """A request by somebody who mostly has no rights: their flow is told all the same."""
    what = random.random()
    if what < 0.5:
        place = random.choice((NAMESPACE, NAMESPACE, "default", "kube-system"))
        path = random.choice(_IN_NAMESPACE).format(place)
        if random.random() < 0.5:
            path += f"/{NAME}-x{random.choice(_SUBRESOURCES)}"
        path += random.choice(_QUERIES)
    elif what < 0.75:
        path = random.choice(_EVERYWHERE) + random.choice(_QUERIES)
    else:
        path = random.choice(_PATHS)
    method = random.choice(_METHODS)
    body: Any = None
    if method in ("POST", "PUT", "PATCH"):
        body = {}
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    return Step(method, path, body, media, fields=who(random), seen=flow_alone)


def who(random: Random) -> Fields:
    """Return the user whom an administrator impersonates; rarely nobody."""
    what = random.random()
    if what < 0.1:
        return {"Authorization": None}
    if what < 0.3:
        place = random.choice((NAMESPACE, "default"))
        return {"Impersonate-User": f"system:serviceaccount:{place}:{random.choice(ACCOUNTS)}"}
    groups = tuple(group for group in GROUPS if random.random() < 0.4)
    found: Fields = {"Impersonate-User": random.choice((*USERS, *USERS, "system:node:x", "system:anonymous"))}
    if random.random() < 0.05:
        groups += (random.choice(("system:masters", "system:nodes")),)
    if groups:
        found["Impersonate-Group"] = groups
    return found


def flow_alone(answer: Answer) -> Answer:
    """The code, the flow schema and the priority level."""
    return Answer(answer.code, {"schema": answer.headers.get(_SCHEMA), "level": answer.headers.get(_LEVEL)})


def uids_alone(answer: Answer) -> Answer:
    """Return the sorted names and uids of a list of schemas or levels."""
    items = answer.body.get("items") or []
    return Answer(answer.code, [[each["metadata"]["name"], each["metadata"]["uid"]] for each in items])


def status_alone(answer: Answer) -> Answer:
    """Return the spec and status of an object."""
    if answer.code != 200:
        return answer
    return Answer(answer.code, {name: answer.body.get(name) for name in ("spec", "status")})
