"""Roles and bindings of a case, most of them valid."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tools.differential.case import NAME, NAMESPACE, Step
from tools.differential.kinds import few

BASE: Final = "/apis/rbac.authorization.k8s.io/v1"
API: Final = "rbac.authorization.k8s.io"
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
    "*",
)
_GROUPS: Final = ("", "", "", "apps", "rbac.authorization.k8s.io", "authentication.k8s.io", "example.com", "*")
_RESOURCES: Final = (
    "pods",
    "configmaps",
    "secrets",
    "deployments",
    "nodes",
    "widgets",
    "pods/log",
    "pods/*",
    "*/scale",
    "*",
    "users",
    "groups",
    "serviceaccounts",
    "userextras/scopes",
    "uids",
    "roles",
    "clusterroles",
    "serviceaccounts/token",
    "limitranges",
    "replicasets",
)
_NAMES: Final = ("a", "b", f"{NAME}-x", f"{NAME}-u0", f"{NAME}-g0", f"{NAME}-r0", "*", "")
_URLS: Final = ("/healthz", "/healthz/*", "/metrics", "*", "/abac/*", "/version", "/api*", "/*", "/a*b", "healthz")
_IMPERSONATION: Final = tuple(
    {"apiGroups": ["authentication.k8s.io"], "resources": [resource], "verbs": [f"impersonate:{mode}"]}
    for mode, resource in (
        ("user-info", "users"),
        ("user-info", "groups"),
        ("user-info", "uids"),
        ("user-info", "userextras/scopes"),
        ("serviceaccount", "serviceaccounts"),
        ("arbitrary-node", "nodes"),
        ("associated-node", "nodes"),
    )
)
_ON: Final = ("user-info", "serviceaccount", "arbitrary-node")
_LEGACY: Final = (
    {"apiGroups": [""], "resources": ["users", "groups", "serviceaccounts"], "verbs": ["impersonate"]},
    {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": [f"{NAME}-u0"]},
    {"apiGroups": [""], "resources": ["groups"], "verbs": ["impersonate"], "resourceNames": [f"{NAME}-g0"]},
    {"apiGroups": ["authentication.k8s.io"], "resources": ["uids", "userextras/scopes"], "verbs": ["impersonate"]},
    {"apiGroups": ["authentication.k8s.io"], "resources": ["userextras/*", "*"], "verbs": ["impersonate", "*"]},
)

Fields = dict[str, Any]


def rule(random: Random, *, in_namespace: bool) -> Fields:
    """One rule of a role."""
    if random.random() < (0.03 if in_namespace else 0.2):
        return {
            "verbs": few(random, ["get", "post", "*", "head"], 2) or ["get"],
            "nonResourceURLs": few(random, [*_URLS]),
        }
    found: Fields = {
        "verbs": few(random, [*_VERBS]) or ["get"],
        "apiGroups": few(random, [*_GROUPS], 2) or [""],
        "resources": few(random, [*_RESOURCES]) or ["pods"],
    }
    if random.random() < 0.25:
        found["resourceNames"] = few(random, [*_NAMES], 2)
    if random.random() < 0.03:
        del found[random.choice(sorted(found))]
    return found


def impersonation_rule(random: Random) -> Fields:
    """A rule about acting as others."""
    if random.random() < 0.4:
        return dict(random.choice(_LEGACY))
    if random.random() < 0.6:
        found = dict(random.choice(_IMPERSONATION))
        if random.random() < 0.3:
            found["resourceNames"] = [random.choice((f"{NAME}-u0", f"{NAME}-g0", "a", f"{NAME}-n0", f"{NAME}-s0"))]
        return found
    verbs = [f"impersonate-on:{mode}:{verb}" for mode in few(random, [*_ON]) for verb in few(random, [*_VERBS[:5]])]
    resource = random.choice(("pods", "configmaps", "limitranges", "*"))
    return {"apiGroups": [random.choice(("", "*"))], "resources": [resource], "verbs": verbs or ["get"]}


def role_ref(random: Random, roles: list[tuple[str, str]], *, in_namespace: bool) -> Fields:
    """One of the roles, seldom one that there is not."""
    fitting = [each for each in roles if in_namespace or each[0] == "ClusterRole"]
    kind, name = random.choice(fitting) if fitting else ("ClusterRole", f"{NAME}-none")
    if random.random() < 0.06:
        name = f"{NAME}-{random.choice(('none', 'nothing'))}"
    elif random.random() < 0.05:
        kind, name = "ClusterRole", random.choice(("view", "edit", "system:basic-user", "system:discovery"))
    return {"apiGroup": API, "kind": kind, "name": name}


def subject(random: Random) -> Fields:
    """Return a random subject of a binding."""
    kind = random.choice(("User", "User", "Group", "ServiceAccount"))
    if kind == "ServiceAccount":
        found: Fields = {"kind": kind, "name": f"{NAME}-s0"}
        if random.random() < 0.95:
            found["namespace"] = random.choice((NAMESPACE, NAMESPACE, "default"))
        return found
    name = f"{NAME}-u{random.randint(0, 2)}" if kind == "User" else f"{NAME}-g{random.randint(0, 1)}"
    return {"kind": kind, "name": name} | ({} if random.random() < 0.3 else {"apiGroup": API})


def role(random: Random, number: int, *, rules: list[Fields] | None = None) -> tuple[Step, tuple[str, str]]:
    """The making of a role, and its kind and name."""
    in_namespace = random.random() < 0.45
    name = f"{NAME}-r{number}"
    kind, path = _kind_of("Role", in_namespace=in_namespace)
    made = [rule(random, in_namespace=in_namespace) for _ in range(random.randint(0, 3))] if rules is None else rules
    body: Fields = {"apiVersion": f"{API}/v1", "kind": kind, "metadata": {"name": name}, "rules": made}
    return Step("POST", path, body), (kind, name)


def labelled(random: Random, number: int, labels: Fields) -> Step:
    """A ClusterRole with labels, and rules that are all valid."""
    made = [
        {
            "apiGroups": [random.choice(_GROUPS)],
            "resources": [random.choice(_RESOURCES)],
            "verbs": [random.choice(_VERBS)],
        }
        for _ in range(random.randint(1, 2))
    ]
    metadata = {"name": f"{NAME}-r{number}", "labels": labels}
    return Step(
        "POST",
        f"{BASE}/clusterroles",
        {"apiVersion": f"{API}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": made},
    )


def aggregated(number: int, labels: Fields) -> tuple[Step, tuple[str, str]]:
    """A ClusterRole of those with the labels, and its kind and name."""
    name = f"{NAME}-r{number}"
    body = {
        "apiVersion": f"{API}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": labels}]},
    }
    return Step("POST", f"{BASE}/clusterroles", body), ("ClusterRole", name)


def binding(random: Random, number: int, roles: list[tuple[str, str]], subjects: list[Fields] | None = None) -> Step:
    """The making of a binding."""
    in_namespace = random.random() < 0.55
    kind, path = _kind_of("RoleBinding", in_namespace=in_namespace)
    body = {
        "apiVersion": f"{API}/v1",
        "kind": kind,
        "metadata": {"name": f"{NAME}-b{number}"},
        "roleRef": role_ref(random, roles, in_namespace=in_namespace),
        "subjects": [subject(random) for _ in range(random.randint(1, 3))] if subjects is None else subjects,
    }
    return Step("POST", path, body)


def _kind_of(what: str, *, in_namespace: bool) -> tuple[str, str]:
    if in_namespace:
        return what, f"{BASE}/namespaces/{NAMESPACE}/{what.lower()}s"
    return f"Cluster{what}", f"{BASE}/cluster{what.lower()}s"
