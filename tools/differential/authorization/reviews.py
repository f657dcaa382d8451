"""Questions to the authorizers: what a user may do, in every kind of access review."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, Final

from tools.differential.case import NAMESPACE, Step

from .seen import bindings_aside, defaults_aside, rules_in_order
from .subjects import Subject

_BASE: Final = "/apis/authorization.k8s.io/v1"
_VERBS: Final = (
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "impersonate",
    "bind",
    "escalate",
    "use",
    "approve",
    "*",
    "",
    "GET",
    "impersonate:user-info",
    "proxy",
)
_RESOURCES: Final = (
    ("", "pods"),
    ("", "pods"),
    ("", "configmaps"),
    ("", "secrets"),
    ("apps", "deployments"),
    ("", "nodes"),
    ("example.com", "widgets"),
    ("", "users"),
    ("authentication.k8s.io", "userextras"),
    ("*", "*"),
    ("", "*"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("", ""),
    ("", "serviceaccounts"),
    ("apps", "pods"),
)
_SUBRESOURCES: Final = ("", "", "", "log", "status", "scale", "exec", "token", "*", "binding")
_NAMES: Final = ("", "", "a", "b", "@NAME@-x", "*")
_NAMESPACES: Final = (NAMESPACE, NAMESPACE, NAMESPACE, "default", "", "elsewhere", "*")
_PATHS: Final = (
    "/healthz",
    "/healthz/ping",
    "/metrics",
    "/abac",
    "/abac/a",
    "/abac/a/b",
    "/abacus",
    "/version",
    "/",
    "",
    "*",
    "/api/v1",
    "/apis",
    "healthz",
    "/healthz/",
    "/a/../b",
)
_FIELD_KEYS: Final = ("metadata.name", "spec.nodeName", "status.phase", "", "a b")
_LABEL_KEYS: Final = ("app", "example.com/a", "", "a b", "-a")
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "=", "", "in")
_VALUES: Final = ("a", "b", "@NAME@-n0", "Running", "", "a b", "x" * 64)
_RAW: Final = (
    "a=b",
    "metadata.name=a",
    "spec.nodeName=@NAME@-n0",
    "a in (b, c)",
    "a!=b,c",
    "!a",
    "a=b=c",
    "((",
    "",
    "a in",
    ",",
    "a>1",
    "spec.nodeName!=x",
    "metadata.name=a,metadata.name=b",
    "a\\=b=c",
)


def review(random: Random, subject: Subject, *, is_exact: bool) -> Step:
    """A review of what a subject may do. Without `is_exact` a verdict may name any binding that gives the right."""
    make = random.choice((_of_subject, _of_subject, _of_subject, _local, _of_self, _of_self, _rules, _who))
    step = make(random, subject)
    if step.path.endswith("rulesreviews"):
        return replace(step, seen=rules_in_order)
    return replace(step, seen=defaults_aside if is_exact else bindings_aside)


def _of_subject(random: Random, subject: Subject) -> Step:
    spec = {**subject.as_review(random), **_question(random)}
    return Step("POST", f"{_BASE}/subjectaccessreviews", _review("SubjectAccessReview", spec, random))


def _local(random: Random, subject: Subject) -> Step:
    spec = {**subject.as_review(random), **_question(random)}
    if "resourceAttributes" in spec and random.random() < 0.8:
        spec["resourceAttributes"]["namespace"] = NAMESPACE
    path = f"{_BASE}/namespaces/{NAMESPACE}/localsubjectaccessreviews"
    return Step("POST", path, _review("LocalSubjectAccessReview", spec, random))


def _of_self(random: Random, subject: Subject) -> Step:
    body = _review("SelfSubjectAccessReview", _question(random), random)
    return Step("POST", f"{_BASE}/selfsubjectaccessreviews", body, fields=subject.headers)


def _rules(random: Random, subject: Subject) -> Step:
    body = _review("SelfSubjectRulesReview", {"namespace": random.choice(_NAMESPACES)}, random)
    return Step("POST", f"{_BASE}/selfsubjectrulesreviews", body, fields=subject.headers)


def _who(random: Random, subject: Subject) -> Step:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    return Step("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body, fields=subject.headers)


def _review(kind: str, spec: dict[str, Any], random: Random) -> dict[str, Any]:
    body: dict[str, Any] = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    if random.random() < 0.03:
        body["metadata"] = random.choice(({"name": "a"}, {"labels": {"a": "b"}}, {"namespace": NAMESPACE}))
    return body


def _question(random: Random) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if random.random() < 0.85:
        spec["resourceAttributes"] = _resource(random)
    if random.random() < 0.15 or (not spec and random.random() < 0.9):
        spec["nonResourceAttributes"] = {"path": random.choice(_PATHS), "verb": random.choice(_VERBS[:9]).lower()}
    return spec


def _resource(random: Random) -> dict[str, Any]:
    group, resource = random.choice(_RESOURCES)
    found: dict[str, Any] = {
        "verb": random.choice(_VERBS[: random.choice((4, 9, len(_VERBS)))]),
        "group": group,
        "resource": resource,
        "namespace": random.choice(_NAMESPACES),
    }
    if random.random() < 0.4:
        found["name"] = random.choice(_NAMES)
    if random.random() < 0.4:
        found["subresource"] = random.choice(_SUBRESOURCES)
    if random.random() < 0.2:
        found["version"] = random.choice(("v1", "*", "v9"))
    if random.random() < 0.25:
        found["fieldSelector"] = selector(random, _FIELD_KEYS)
    if random.random() < 0.25:
        found["labelSelector"] = selector(random, _LABEL_KEYS)
    return found


def selector(random: Random, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the selector of a list, as requirements or as text; some selectors are invalid."""
    found: dict[str, Any] = {}
    if random.random() < 0.4:
        found["rawSelector"] = random.choice(_RAW)
    if random.random() < 0.1 or (not found and random.random() < 0.95):
        found["requirements"] = [_requirement(random, keys) for _ in range(random.choice((1, 1, 2)))]
    return found


def _requirement(random: Random, keys: tuple[str, ...]) -> dict[str, Any]:
    usual = random.random() < 0.7
    key = random.choice(keys[:2] if usual else keys)
    operator = random.choice(_OPERATORS[:2] if usual else _OPERATORS)
    count = random.choice((1, 1, 2)) if usual else random.choice((0, 1, 2))
    return {
        "key": key,
        "operator": operator,
        "values": [random.choice(_VALUES[:4] if usual else _VALUES) for _ in range(count)],
    }
