"""Paths and users: what is judged must be what is done, and a path that matches no route upstream must match none here.

Every case is one request: a resource of the catalogue by a prefix, namespace, name and subresource, in which segments
may be written in another way, doubled, or left out; asked by one of several users, most with narrow rights. The codes
and Statuses of both servers must be alike, lists must have the same objects, and after a request that may write, both
storages must have changed in the same objects.

Requests that only read are asked many at once. After any other, each server's revision tells whether anything was
written at all, and only then is everything listed, compared, and put back as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final
from urllib.parse import quote

from .case import named
from .objects import samples

HOME: Final = "foo"
"""Namespace in which alice and bob have rights."""
OTHER: Final = "bar"
NAME: Final = "a"
LABEL: Final = {"case": "paths"}
USERS: Final = ("admin", "alice", "alice", "alice", "bob", "bob", "reader", "carol", "nobody", "anonymous")
"""Alice may do everything in a namespace, bob with namespaces in it, the reader may read all, carol reads one pod."""
_WRITING: Final = ("POST", "PUT", "PATCH", "DELETE")
READING: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})

_METHODS: Final = (
    *("GET",) * 10,
    *("POST",) * 3,
    *("PUT",) * 3,
    *("PATCH",) * 3,
    *("DELETE",) * 4,
    "HEAD",
    "OPTIONS",
    "TRACE",
    "PROPFIND",
)
_PREFIXES: Final = (
    *("",) * 9,
    *("watch/",) * 4,
    *("proxy/",) * 3,
    "watch/watch/",
    "proxy/proxy/",
    "watch/proxy/",
    "proxy/watch/",
    "redirect/",
    "Watch/",
)
_NAMESPACES: Final = (
    HOME,
    HOME,
    HOME,
    OTHER,
    "kube-system",
    "missing",
    "",
    ".",
    "..",
    "status",
    "finalize",
    "FOO",
    "watch",
    "namespaces",
    "{namespace}",
    "%7Bnamespace%7D",
)
_NAMES: Final = (
    NAME,
    NAME,
    NAME,
    "missing",
    HOME,
    OTHER,
    "kube-system",
    ".",
    "..",
    "A",
    "a:b",
    "{name}",
    "status",
    "watch",
    "a%00",
    "%25",
    "a%252Fb",
    "é",
    "*",
    "a,b",
    "https:a:80",
)
_SUBRESOURCES: Final = (
    "status",
    "status",
    "scale",
    "log",
    "exec",
    "proxy",
    "finalize",
    "binding",
    "eviction",
    "token",
    "approval",
    "Status",
    "namespaces",
    "pods",
    "a",
    "",
    "watch",
    "{path:*}",
    "*",
)
_EXTRA: Final = ("x", "status", "..", "", "proxy", "a/b", "%2e%2e")
_OTHER_PATHS: Final = (
    "/",
    "/api",
    "/apis",
    "/api/v1",
    "/apis/apps",
    "/apis/apps/v1",
    "/version",
    "/healthz",
    "/livez/ping",
    "/readyz",
    "/metrics",
    "/openapi/v3",
    "/openapi/v3/api/v1",
    "/openid/v1/jwks",
    "/.well-known/openid-configuration",
    "/logs",
    "/apis/none.example.com",
    "/apis/none.example.com/v1/things",
    "/apis/apps/v2/deployments",
    "/api/v2/pods",
    "/apis/apiextensions.k8s.io/v1",
    "/apis/apiregistration.k8s.io",
    "/index.html",
    "/nowhere",
    "/apix",
    "/API/v1/pods",
)
_QUERIES: Final = (
    *("",) * 6,
    "fieldSelector=metadata.name=a",
    "fieldSelector=metadata.name%3Dmissing",
    "watch=1",
    "watch=true",
    "watch=1&fieldSelector=metadata.name=a",
    "fieldSelector=metadata.name=a,metadata.name=b",
    "watch=0",
    "watch",
    "fieldSelector=metadata.namespace=foo",
    "fieldSelector=name=a",
    "fieldSelector=metadata.name!=a",
    "%77atch=1",
    "labelSelector=case",
    "labelSelector=a%20b&fieldSelector=metadata.name=a",
    "limit=x&fieldSelector=metadata.name=a",
    "limit=x&watch=1",
    "fieldSelector=,metadata.name=a",
    "fieldSelector=x",
    "namespace=bar",
    "name=b",
)


@dataclass(frozen=True)
class Served:
    """A resource as discovery tells of it."""

    root: str
    plural: str
    namespaced: bool
    kind: str
    subresources: tuple[str, ...]
    listed: bool

    def path(self, namespace: str, name: str = "") -> str:
        """The path of an object, or without a name of a collection; without a namespace of that of a cluster."""
        middle = f"/namespaces/{namespace}" if namespace else ""
        return f"{self.root}{middle}/{self.plural}{f'/{name}' if name else ''}"


@dataclass(frozen=True)
class Request:
    """One case: what is asked by whom."""

    method: str
    target: str
    user: str
    body: Any = None
    content_type: str = "application/json"

    def __str__(self) -> str:
        return f"{self.method} {self.target} as {self.user}"

    @property
    def reads(self) -> bool:
        return self.method in READING

    @property
    def watches(self) -> bool:
        """Return True if the request may be a watch, which a server may end before or after it sends existing objects."""
        return "watch" in self.target.lower() or "%77atch" in self.target


def case(random: Random, served: list[Served]) -> Request:
    """A request for a path of some sort."""
    method = random.choice(_METHODS)
    resource = random.choice(served)
    if random.random() < 0.25:
        resource = random.choice([each for each in served if each.plural in ("namespaces", "pods", "nodes", "secrets")])
    oddities = random.choice((0, 0, 0, 0, 1, 1, 1, 2, 3))
    path = random.choice(_OTHER_PATHS) if random.random() < 0.06 else _path(random, resource, method, oddities)
    for _ in range(random.choice((0, 0, 0, 1, 1, 2)) if oddities else 0):
        path = _rewritten(random, path)
    queries = [random.choice(_QUERIES), "timeoutSeconds=-1"]  # whatever the method, it may be a watch
    if method == "DELETE":
        queries.append(f"labelSelector={next(iter(LABEL))}")
    user = random.choice(USERS[:6] if method in _WRITING and oddities < 2 else USERS)
    query = "&".join(filter(None, queries))
    target = quote(f"{path}?{query}" if query else path, safe="/%?&=!,:;*{}@~.-_+$'()|<>[]^`\\\"")
    target = "".join(each if each not in '{}|<>^`\\"' else quote(each) for each in target)
    body, media = _body(random, method, resource, path)
    return Request(method, target, user, body, media)


def _path(random: Random, resource: Served, method: str, oddities: int) -> str:
    """A path that is as it should be but for so many oddities, which may be none."""
    odd = set(random.sample(("prefix", "scope", "nested", "namespace", "plural", "name", "below", "more"), oddities))
    parts = [resource.root, "/", random.choice(_PREFIXES) if "prefix" in odd else ""]
    if resource.namespaced != ("scope" in odd):
        parts.append(f"namespaces/{random.choice(_NAMESPACES if 'namespace' in odd else _NAMESPACES[:4])}/")
    if "nested" in odd:
        parts.append(f"namespaces/{random.choice(_NAMESPACES)}/")
    plural = resource.plural
    if "plural" in odd:
        plural = random.choice(("things", "namespaces", "pods", "nodes", "", "watch", "proxy", resource.kind.lower()))
    parts.append(plural)
    item = random.random() < (0.2 if method == "POST" else 0.85 if method in ("PUT", "PATCH") else 0.6)
    if item or odd & {"name", "below", "more"}:
        names: tuple[str, ...] = _NAMES[:3]
        if plural == "namespaces":
            names = (HOME, HOME, OTHER, "kube-system")
        parts.append(f"/{random.choice(_NAMES if 'name' in odd else names)}")
    if item and (random.random() < 0.3 or odd & {"below", "more"}):
        own = resource.subresources
        parts.append(f"/{random.choice(_SUBRESOURCES if 'below' in odd or not own else own)}")
        if "more" in odd:
            parts += [f"/{random.choice(_EXTRA)}" for _ in range(random.choice((1, 1, 2, 3)))]
    return "".join(parts)


def _rewritten(random: Random, path: str) -> str:
    """The path with one place written in another way."""
    segments = path.split("/")
    at = random.randrange(1, len(segments))
    segment = segments[at]
    kind = random.randrange(14)
    if kind < 3 and segment:  # one character or all, escaped
        spot = random.randrange(len(segment))
        escaped = f"%{ord(segment[spot]):02x}" if ord(segment[spot]) < 128 else quote(segment[spot])
        segments[at] = segment[:spot] + (escaped if kind else escaped.upper()) + segment[spot + 1 :]
    elif kind == 3:
        segments[at] = "".join(f"%25{ord(each):02x}" if ord(each) < 128 else each for each in segment)
    elif kind == 4:  # a slash that is escaped, once or twice
        segments[at - 1 : at + 1] = [random.choice(("%2F", "%2f", "%252F")).join(segments[at - 1 : at + 1])]
        if not segments[0].startswith("/") and segments[0]:
            segments.insert(0, "")
    elif kind == 5:
        segments[at] = segment.upper() if random.random() < 0.5 else segment.capitalize()
    elif kind == 6:
        segments.insert(at, random.choice((".", "..", "%2e%2e", "%2E", "x", "namespaces", "watch", "proxy", "v1")))
    elif kind == 7:
        segments.insert(at, "")
    elif kind in (8, 9):
        segments += [""] * random.choice((1, 1, 2))
    elif kind == 10:
        del segments[at]
    elif kind == 11:
        segments.insert(at, segment)
    elif kind == 12:
        segments[at] = segment + random.choice((" ", "%20", ".", "%00", ";x", "%3f", "%23", "é", "%ff", "+"))
    else:
        segments[at], segments[-1] = segments[-1], segments[at]
    return "/".join(segments) or "/"


_BODIES: Final = {(each.api_version, each.body["kind"]): each.body for each in reversed(samples())}
KEPT_OUT: Final = frozenset(
    {
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "APIService",
        "CustomResourceDefinition",
        "FlowSchema",
        "PriorityLevelConfiguration",
        "ResourceQuota",
        "LimitRange",
    }
)
"""Kinds that change what becomes of other requests: none is made."""


def _body(random: Random, method: str, resource: Served, path: str) -> tuple[Any, str]:
    if method not in _WRITING or method == "DELETE":
        return None, ""
    if method == "PATCH":
        return {"metadata": {"labels": {"patched": str(random.randrange(1000))}}}, "application/merge-patch+json"
    name = next((name for name in (*_NAMES, HOME, OTHER) if f"/{name}" in path), NAME) if method == "PUT" else "made"
    return fixture(resource, name), "application/json"


def fixture(resource: Served, name: str) -> dict[str, Any]:
    """An object of a resource that can be created."""
    version = resource.root.removeprefix("/apis/").removeprefix("/api/")
    body: dict[str, Any] = {"apiVersion": version, "kind": resource.kind}
    if resource.kind in KEPT_OUT:
        name = "NO NAME"
    else:
        body |= named(_BODIES.get((version, resource.kind), {}), name, HOME)
    return {**body, "metadata": {"name": name, "labels": LABEL}}
