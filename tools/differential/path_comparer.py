"""Plays the cases of `paths` against two servers that have the same objects, and compares answers and storages."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import groupby
from random import Random
from typing import Any, Final

from .comparison import Normaliser, differences
from .paths import HOME, KEPT_OUT, LABEL, NAME, OTHER, Request, Served, case, fixture
from .server import Answer, Client

_WORKERS: Final = 4
_PATIENCE: Final = 30.0
"""Seconds until custom resources are served."""
_CHUNK: Final = 400
"""Cases of which those that only read are asked together."""
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_RULES: Final[dict[str, Any]] = {
    "alice": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    "bob": [
        {"apiGroups": [""], "resources": ["namespaces", "namespaces/status", "namespaces/finalize"], "verbs": ["*"]}
    ],
    "carol": [{"apiGroups": [""], "resources": ["pods"], "resourceNames": [NAME], "verbs": ["get", "list", "watch"]}],
}
"""Rules of roles in one namespace."""
_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_UNWATCHED: Final = frozenset({"leases", "componentstatuses", "events", "ipaddresses"})
"""Resources that servers write in their own time, that have random names, or that are not stored."""
_OWN: Final = frozenset({("endpoints", "kubernetes"), ("endpointslices", "kubernetes"), ("services", "kubernetes")})
_SERVERS_OWN: Final = frozenset({"apiservices", "flowschemas", "prioritylevelconfigurations", "servicecidrs"})

_UNLIKE: Final = frozenset(
    {
        "Lease",
        "Event",
        "APIService",
        "EndpointSlice",
        "Endpoints",
        "IPAddress",
        "FlowSchema",
        "PriorityLevelConfiguration",
    }
)
"""Kinds of which servers make different objects by themselves."""

Key = tuple[str, str, str]
"""The path of a collection, a namespace and a name."""
State = dict[Key, tuple[str, str, bool]]
"""By object: the uid, the resourceVersion, and True if the object is being deleted."""


class Side:
    """One of the servers: its state, and how it is put back."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._local = threading.local()
        self._opened: list[Client] = []
        self.state: State = {}
        self._revision = ""

    @property
    def client(self) -> Client:
        """This thread's connection."""
        if not hasattr(self._local, "client"):
            self._local.client = self._client.another()
            self._opened.append(self._local.client)
        found: Client = self._local.client
        return found

    def close(self) -> None:
        """Closes the connections of all threads, which have ended."""
        for each in self._opened:
            each.close()

    def catalogue(self) -> list[Served]:
        """Every resource of every version that discovery tells of."""
        roots = ["/api/v1"]
        for group in self.client.ask("GET", "/apis").body["groups"]:
            roots += [f"/apis/{each['groupVersion']}" for each in group["versions"]]
        return [served for root in roots for served in self._resources(root)]

    def _resources(self, root: str) -> Iterator[Served]:
        found = self.client.ask("GET", root).body["resources"]
        for each in found:
            name = each["name"]
            if "/" not in name:
                below = [sub["name"].partition("/")[2] for sub in found if sub["name"].startswith(f"{name}/")]
                yield Served(
                    root, name, each["namespaced"], each["kind"], tuple(sorted(below)), "list" in each["verbs"]
                )

    def ask(self, request: Request) -> Answer:
        headers: dict[str, str | None] = {}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if request.user == "anonymous":
            headers["Authorization"] = None
        elif request.user != "admin":
            headers["Impersonate-User"] = request.user
        return self.client.ask(request.method, request.target, request.body, headers)

    def written(self) -> bool:
        """Return True if anything was written since the last call."""
        before = self._revision
        self._revision = self.client.ask("GET", "/api/v1/limitranges?limit=1").body["metadata"]["resourceVersion"]
        return before != self._revision

    def look(self, places: list[Served]) -> dict[Key, str]:
        """Return the changes of the objects since the last call."""
        state: State = {}
        for place in places:
            answer = self.client.ask("GET", place.path(""), headers={"Accept": _METADATA})
            for item in answer.body.get("items") or ():
                meta = item["metadata"]
                if (place.plural, meta["name"]) not in _OWN:
                    key = (place.path(""), meta.get("namespace", ""), meta["name"])
                    state[key] = (meta["uid"], meta["resourceVersion"], "deletionTimestamp" in meta)
        before, self.state = self.state, state
        changes = dict.fromkeys(before.keys() - state.keys(), "gone")
        for key, (uid, version, going) in state.items():
            old = before.get(key)
            if old is None:
                changes[key] = "made"
            elif old[0] != uid:
                changes[key] = "made again"
            elif old[1:] != (version, going):
                changes[key] = "going" if going else "changed"
        return changes

    def remove(self, path: str, namespace: bool) -> None:
        """Deletes an object for good, whatever finalizers it has."""
        self.client.ask("DELETE", path, {"gracePeriodSeconds": 0})
        media = {"Content-Type": "application/merge-patch+json"}
        self.client.ask("PATCH", path, {"metadata": {"finalizers": None}}, media)
        if namespace:
            name = path.rpartition("/")[2]
            self.client.ask("PUT", f"{path}/finalize", {"metadata": {"name": name}, "spec": {"finalizers": []}})


class PathComparer:
    """Both servers, with the same users and objects."""

    def __init__(self, a: Client, b: Client) -> None:
        self.sides = (Side(a), Side(b))
        self._pair = ThreadPoolExecutor(2)
        self._many = ThreadPoolExecutor(_WORKERS)
        self.served: list[Served] = []
        self._places: list[Served] = []
        self._made: dict[Key, tuple[str, dict[str, Any]]] = {}
        self.writes = 0

    def close(self) -> None:
        self._pair.shutdown()
        self._many.shutdown()
        for side in self.sides:
            side.close()

    def _both(self, do: Callable[[Side], Any]) -> tuple[Any, Any]:
        one, other = self._pair.map(do, self.sides)
        return one, other

    def prepare(self) -> list[str]:
        """Makes users' rights and the objects; the lines tell what one server has and the other has not."""
        self._both(lambda side: _define(side.client))
        one, other = self._both(Side.catalogue)
        self.served = [each for each in one if each in other]
        lines = [f"only a serves {each}" for each in one if each not in other]
        lines += [f"only b serves {each}" for each in other if each not in one]
        known: set[tuple[str, str]] = set()
        for each in self.served:
            identity = (each.plural, each.kind)
            if each.listed and identity not in known and each.plural not in _UNWATCHED | _SERVERS_OWN:
                self._places.append(each)
                known.add(identity)
        for side in self.sides:
            _give_rights(side.client)
        for place in self._places:
            if place.kind in KEPT_OUT:
                continue
            for namespace in (HOME, OTHER) if place.namespaced else ("",):
                self._make(place, namespace, NAME)
        self._make(next(each for each in self._places if each.kind == "Namespace"), "", HOME)
        self._make(next(each for each in self._places if each.kind == "Namespace"), "", OTHER)
        self._settle()
        return lines

    def _make(self, place: Served, namespace: str, name: str) -> None:
        body = fixture(place, name)
        answers = self._both(lambda side: side.client.ask("POST", place.path(namespace), body))
        if {each.code for each in answers} <= {201, 409}:
            self._made[place.path(""), namespace, name] = place.path(namespace), body

    def _settle(self) -> None:
        self._both(lambda side: (side.look(self._places), side.written()))

    def play(self, requests: list[Request]) -> Iterator[tuple[Request, list[str]]]:
        """Yield requests that are answered differently, with the differences. Reading requests are sent together."""
        for reads, found in groupby(sorted(requests, key=lambda each: not each.reads), key=lambda each: each.reads):
            if reads:
                asked = list(found)
                answers = self._many.map(lambda each: [side.ask(each) for side in self.sides], asked)
                for request, (one, other) in zip(asked, answers, strict=True):
                    yield request, compared(request, one, other)
                continue
            for request in found:
                yield request, self._write(request)

    def _write(self, request: Request) -> list[str]:
        one, other = self._both(lambda side: side.ask(request))
        lines = compared(request, one, other)
        if any(self._both(Side.written)):
            changes = self._both(lambda side: side.look(self._places))
            if any(changes):
                self.writes += 1
            for key in sorted(changes[0].keys() | changes[1].keys()):
                what = [each.get(key, "as it was") for each in changes]
                if what[0] != what[1]:
                    lines.append(f"{' '.join(key)}: a {what[0]}, b {what[1]}")
            if any(changes):
                self._restore(changes)
        return lines

    def _restore(self, changes: tuple[dict[Key, str], dict[Key, str]]) -> None:
        for key in changes[0].keys() | changes[1].keys():
            collection, namespace, name = key
            middle = f"/namespaces/{namespace}" if namespace else ""
            root, plural = collection.rsplit("/", 1)
            path = f"{root}{middle}/{plural}/{name}"
            known = self._made.get(key)
            if any(each.get(key) != "changed" for each in changes):
                self._both(partial(Side.remove, path=path, namespace=plural == "namespaces"))
                if known is not None:
                    self._both(partial(_make, made=known))
        self._settle()


def _make(side: Side, made: tuple[str, dict[str, Any]]) -> None:
    """Create an object again, at the path of its collection."""
    path, body = made
    side.client.ask("POST", path, body)


_DEFINED: Final = "/apis/paths.example.com/v1"
_DEFINITIONS: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    (
        "wholes",
        "Namespaced",
        {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
    ),
    ("plains", "Namespaced", {}),
    ("globals", "Cluster", {"status": {}}),
)
"""Definitions of custom resources: plural, scope, subresources."""


def _define(client: Client) -> None:
    """Makes custom resources, and waits until they are served."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    for plural, scope, subresources in _DEFINITIONS:
        version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": subresources}
        names = {"plural": plural, "kind": plural.removesuffix("s").title()}
        client.ask(
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            {
                "metadata": {"name": f"{plural}.paths.example.com"},
                "spec": {"group": "paths.example.com", "scope": scope, "names": names, "versions": [version]},
            },
        )
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        found = client.ask("GET", _DEFINED).body
        if isinstance(found, dict) and {each[0] for each in _DEFINITIONS} <= {
            each["name"] for each in found.get("resources", ())
        }:
            return
        time.sleep(0.1)
    raise RuntimeError("custom resources are not served")


def _give_rights(client: Client) -> None:
    for name in (HOME, OTHER):
        client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": LABEL}})
    for user, rules in _RULES.items():
        subjects = [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]
        role = {"metadata": {"name": f"rights-{user}"}, "rules": rules}
        binding = {
            "metadata": {"name": f"rights-{user}"},
            "subjects": subjects,
            "roleRef": {**subjects[0], "kind": "Role", "name": f"rights-{user}"},
        }
        client.ask("POST", f"{_RBAC}/namespaces/{HOME}/roles", role)
        client.ask("POST", f"{_RBAC}/namespaces/{HOME}/rolebindings", binding)
    rules = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
    ]
    client.ask("POST", f"{_RBAC}/clusterroles", {"metadata": {"name": "rights-reader"}, "rules": rules})
    client.ask(
        "POST",
        f"{_RBAC}/clusterrolebindings",
        {
            "metadata": {"name": "rights-reader"},
            "subjects": [{"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "ClusterRole", "name": "rights-reader", "apiGroup": "rbac.authorization.k8s.io"},
        },
    )


def compared(request: Request, one: Answer, other: Answer) -> list[str]:
    """The differences of two answers, but for those that are known."""
    if not one.code:
        return []  # the server that is right has closed the connection
    lines = list(differences(shown(request, one), shown(request, other)))
    if lines and any(known(request, one, other) for known in KNOWN):
        return []
    return lines


def shown(request: Request, answer: Answer) -> dict[str, Any]:
    """Return the compared parts of an answer: code and Status, and the objects of a list."""
    body = answer.body
    if isinstance(body, dict) and body.get("kind") == "Status":
        body = {key: _decoded(value) if isinstance(value, str) else value for key, value in body.items()}
        return Normaliser().answer(replace(answer, body=body, warnings=()))
    out: dict[str, Any] = {"code": answer.code}
    if answer.code >= 400 and isinstance(body, str):
        out["text"] = body
    elif isinstance(body, dict) and not request.watches:
        out["kind"] = body.get("kind")
        plural = str(body.get("kind", "")).removesuffix("List")
        if body.get("items") is not None and plural not in _UNLIKE:
            out["items"] = sorted(
                f"{each['metadata'].get('namespace', '')}/{each['metadata']['name']}" for each in body["items"]
            )
    return out


def _read_under_a_name_from_the_query(request: Request, one: Answer, other: Answer) -> bool:
    """An empty name before a subresource: upstream takes it from the field selector and reads what was to be listed."""
    return "fieldSelector" in request.target and "name must be provided" in str(other.body)


def _decoded(text: str) -> str:
    """Go quotes bytes that are no UTF-8 as such."""
    return text.replace("\\xff", "\ufffd")


KNOWN: Final = (_read_under_a_name_from_the_query,)


def run(a: Client, b: Client, options: argparse.Namespace) -> int:
    """Plays the cases; 1 if anything differs."""
    comparer = PathComparer(a, b)
    try:
        for line in comparer.prepare():
            print(line, flush=True)
        return _run(comparer, options)
    finally:
        comparer.close()


def _run(comparer: PathComparer, options: argparse.Namespace) -> int:
    began = time.monotonic()
    numbers = list(range(options.cases)) if options.case is None else [options.case]
    different = 0
    for at in range(0, len(numbers), _CHUNK):
        requests = [case(Random(f"{options.seed}/paths/{each}"), comparer.served) for each in numbers[at : at + _CHUNK]]
        for request, lines in comparer.play(requests):
            if lines:
                different += 1
                if different <= options.show:
                    print("\n".join([f"== {request}", *(f"      {line}" for line in lines[:20])]), flush=True)
    seconds = time.monotonic() - began
    print(
        f"paths: {len(numbers)} cases of seed {options.seed}, {comparer.writes} changed storage, {different} differ, "
        f"{seconds:.0f} s",
        flush=True,
    )
    return 1 if different else 0
