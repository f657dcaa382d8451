"""Requests by users themselves, in place of access reviews."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tools.differential.case import NAME, NAMESPACE, Step

from . import rules
from .seen import bindings_aside, code_alone
from .subjects import Subject

_IN_NAMESPACE: Final = (
    "/api/v1/namespaces/{}/pods",
    "/api/v1/namespaces/{}/limitranges",
    "/apis/apps/v1/namespaces/{}/replicasets",
    "/api/v1/namespaces/{}/configmaps",
    "/apis/apps/v1/namespaces/{}/deployments",
    "/api/v1/namespaces/{}/secrets",
)
_EVERYWHERE: Final = ("/api/v1/limitranges", "/apis/apps/v1/replicasets", "/api/v1/podtemplates")
_SUBRESOURCES: Final = ("", "", "/log", "/status", "/scale", "/binding", "/nothing")
_PATHS: Final = (
    "/healthz",
    "/healthz/ping",
    "/metrics",
    "/abac",
    "/abac/a",
    "/abac/a/b",
    "/version",
    "/abacus",
    "/",
    "/api",
    "/apis",
    "/api/v1",
    "/abc",
    "/healthz/",
    "//healthz",
    "/abac//a",
    "/aXb",
)
_SELECTORS: Final = (
    "",
    "",
    "?labelSelector=app%3Da",
    "?fieldSelector=metadata.name%3Da",
    "?limit=1",
    "?watch=0",
    "?fieldSelector=spec.nodeName%3Dn",
    "?fieldSelector=a%3D%3D%3Db",
)
_VERBS: Final = ("GET", "GET", "GET", "PUT", "PATCH", "DELETE", "POST", "HEAD", "OPTIONS")


def attempt(random: Random, subject: Subject) -> Step:
    """A request by a subject, which changes nothing."""
    return random.choice((_named, _named, _listed, _listed, _of_path, _created, _emptied))(random, subject)


def by_account(random: Random, wanted: Subject) -> Step:
    """A request by the service account of the case as somebody else."""
    make = random.choice((_named, _listed, _of_path, _who, _who))
    step = make(random, wanted)
    return Step(
        step.method,
        step.path,
        step.body,
        step.content_type,
        fields={**step.fields, **wanted.headers_by_account},
        seen=step.seen,
    )


def granted(random: Random, subject: Subject, roles: list[tuple[str, str]]) -> Step:
    """Somebody makes a role or a binding; whether it gives more than they have is the question. Nothing is stored."""
    if random.random() < 0.5:
        step, _ = rules.role(random, 8)
        if random.random() < 0.1 and step.body["kind"] == "ClusterRole":
            step.body["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    else:
        step = rules.binding(random, 8, roles)
    return Step("POST", f"{step.path}?dryRun=All", step.body, fields=subject.headers, seen=bindings_aside)


def changed(random: Random, subject: Subject, role: tuple[str, str]) -> Step:
    """Somebody gives a role of the case other rules."""
    kind, name = role
    place = "" if kind == "ClusterRole" else f"namespaces/{NAMESPACE}/"
    path = f"{rules.BASE}/{place}{kind.lower()}s/{name}?dryRun=All"
    body = {"rules": [rules.rule(random, in_namespace=kind == "Role") for _ in range(random.randint(0, 2))]}
    return Step("PATCH", path, body, "application/merge-patch+json", fields=subject.headers, seen=bindings_aside)


def _named(random: Random, subject: Subject) -> Step:
    base = random.choice(_IN_NAMESPACE).format(random.choice((NAMESPACE, NAMESPACE, "default")))
    method = random.choice(_VERBS)
    path = f"{base}/{random.choice(('a', 'b', f'{NAME}-x'))}{random.choice(_SUBRESOURCES)}"
    return _step(method, path, subject, {"metadata": {"labels": {"a": "b"}}})


def _listed(random: Random, subject: Subject) -> Step:
    base = random.choice((*_IN_NAMESPACE, *_EVERYWHERE)).format(NAMESPACE)
    return _step("GET", base + random.choice(_SELECTORS), subject)


def _created(random: Random, subject: Subject) -> Step:
    body = {"metadata": {"name": f"{NAME}-x"}}
    return _step("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps?dryRun=All", subject, body)


def _emptied(random: Random, subject: Subject) -> Step:
    return _step("DELETE", f"/api/v1/namespaces/{NAMESPACE}/limitranges{random.choice(_SELECTORS)}", subject)


def _of_path(random: Random, subject: Subject) -> Step:
    return _step(random.choice(("GET", "GET", "GET", "POST", "HEAD")), random.choice(_PATHS), subject)


def _who(random: Random, subject: Subject) -> Step:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    return Step("POST", path, body, fields=subject.headers, seen=bindings_aside)


def _step(method: str, path: str, subject: Subject, body: Any = None) -> Step:
    if method in ("GET", "HEAD", "OPTIONS", "DELETE"):
        body = None
    elif body is None:
        body = {}
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    return Step(method, path, body, media, fields=subject.headers, seen=code_alone)
