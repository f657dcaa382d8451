"""Check that a write acknowledged on one connection is seen on every other, on a server of several processes.

    python -m tools.acknowledged                                       two workers on SQLite
    python -m tools.acknowledged --server 'bench/serve --etcd --servers=2 --late=0.1'

Each round changes one thing that servers follow (definitions and their schemas, rights, policies of admission,
webhooks, quotas, limits, accounts, classes, APIServices, namespaces and their labels), and then asks at once, on every
other connection, for what must have changed.
"""

from __future__ import annotations

import argparse
import http.client
import json
import shlex
import signal
import ssl
import subprocess
import sys
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
TWO_WORKERS: Final = f"{sys.executable} {ROOT}/bench/serve --workers=2"
ADMIN, ALICE = "admin-token", "alice-token"
_CORE: Final = "/api/v1/namespaces/acknowledged"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1/namespaces/acknowledged"
_TIMEOUT: Final = 60.0
_MANY: Final = 2_000
"""Properties of a schema, so that it takes a while to serve what is defined."""
_names: Final = count(1)


class Connection:
    """One connection, to whichever process has got it."""

    def __init__(self, url: str, ca: str) -> None:
        parts = urllib.parse.urlsplit(url)
        tls = ssl.create_default_context(cafile=ca)
        self._http = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=tls, timeout=_TIMEOUT)

    def ask(self, method: str, path: str, body: Any = None, token: str = ADMIN) -> tuple[int, Any]:
        """Status and body. Raises OSError."""
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {token}", "Content-Type": media}
        self._http.request(method, path, None if body is None else json.dumps(body), headers)
        response = self._http.getresponse()
        data = response.read()
        try:
            return response.status, json.loads(data)
        except ValueError:
            return response.status, data

    def close(self) -> None:
        """Ends it."""
        self._http.close()

    def made(self, path: str, body: Any) -> Any:
        """The object as it was made. Raises RuntimeError."""
        code, found = self.ask("POST", path, body)
        if code != 201:
            raise RuntimeError(f"POST {path}: {code} {found}")
        return found

    def changed(self, path: str, patch: Any) -> Any:
        """The object as it was changed by a merge patch. Raises RuntimeError."""
        code, found = self.ask("PATCH", path, patch)
        if code != 200:
            raise RuntimeError(f"PATCH {path}: {code} {found}")
        return found


Ask = Callable[[Connection], bool]
"""Sends a request on a connection and returns True if the answer is right."""


def _configmap(connection: Connection, name: str = "", token: str = ADMIN, namespace: str = _CORE) -> int:
    body = {"metadata": {"name": name or f"c-{next(_names)}"}}
    return connection.ask("POST", f"{namespace}/configmaps?dryRun=All", body, token)[0]


def _pod(connection: Connection, spec: dict[str, Any] | None = None) -> Any:
    """Return a pod as it would be made, or the Status of the refusal."""
    pod = {
        "metadata": {"name": f"p-{next(_names)}"},
        "spec": {"containers": [{"name": "c", "image": "i"}], **(spec or {})},
    }
    return connection.ask("POST", f"{_CORE}/pods?dryRun=All", pod)[1]


def _definitions(writer: Connection) -> Iterator[tuple[str, Ask]]:
    plural = f"things{next(_names)}"
    name, path = f"{plural}.acknowledged.example", f"/apis/acknowledged.example/v1/namespaces/acknowledged/{plural}"
    many = {f"property{number}": {"type": "string", "pattern": f"^{number}"} for number in range(_MANY)}
    spec: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}, **many}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    names = {"plural": plural, "kind": plural.capitalize()}
    body: dict[str, Any] = {
        "metadata": {"name": name},
        "spec": {
            "group": "acknowledged.example",
            "scope": "Namespaced",
            "names": names,
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    found = writer.made(_DEFINITIONS, body)
    while not any(each["type"] == "Established" for each in found.get("status", {}).get("conditions") or ()):
        found = writer.ask("GET", f"{_DEFINITIONS}/{name}")[1]
    yield "a definition that is established", lambda each: each.ask("GET", path)[0] == 200
    spec["properties"]["a"]["maximum"] = 0
    writer.changed(f"{_DEFINITIONS}/{name}", {"spec": {"versions": body["spec"]["versions"]}})
    thing = {
        "apiVersion": "acknowledged.example/v1",
        "kind": plural.capitalize(),
        "metadata": {"name": "a"},
        "spec": {"a": 1},
    }
    yield "a schema that was tightened", lambda each: each.ask("POST", f"{path}?dryRun=All", thing)[0] == 422
    writer.ask("DELETE", f"{_DEFINITIONS}/{name}")


def _rights(writer: Connection) -> Iterator[tuple[str, Ask]]:
    name = f"r-{next(_names)}"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]
    writer.made(f"{_RBAC}/roles", {"metadata": {"name": name}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    alice = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    writer.made(f"{_RBAC}/rolebindings", {"metadata": {"name": name}, "roleRef": role, "subjects": [alice]})
    yield "a right that was given", lambda each: _configmap(each, token=ALICE) == 201
    writer.ask("DELETE", f"{_RBAC}/rolebindings/{name}")
    yield "a right that was taken away", lambda each: _configmap(each, token=ALICE) == 403


def _policies(writer: Connection) -> Iterator[tuple[str, Ask]]:
    name = f"p-{next(_names)}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    writer.made(
        f"{_ADMISSION}/validatingadmissionpolicies",
        {
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": f"object.metadata.name != '{name}'"}],
            },
        },
    )
    binding = {"policyName": name, "validationActions": ["Deny"]}
    writer.made(f"{_ADMISSION}/validatingadmissionpolicybindings", {"metadata": {"name": name}, "spec": binding})
    yield "a policy", lambda each: _configmap(each, name) == 422
    writer.ask("DELETE", f"{_ADMISSION}/validatingadmissionpolicybindings/{name}")
    yield "a policy that is gone", lambda each: _configmap(each, name) == 201
    writer.ask("DELETE", f"{_ADMISSION}/validatingadmissionpolicies/{name}")


def _hook(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a webhook that nobody answers."""
    return {
        "name": "hook.acknowledged.example",
        "admissionReviewVersions": ["v1"],
        "rules": [rule],
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "sideEffects": "None",
        "timeoutSeconds": 1,
    }


def _webhooks(writer: Connection) -> Iterator[tuple[str, Ask]]:
    name = f"w-{next(_names)}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    hook = _hook(rule)
    path = f"{_ADMISSION}/validatingwebhookconfigurations"
    writer.made(path, {"metadata": {"name": name}, "webhooks": [hook]})
    yield "a webhook", lambda each: _configmap(each) == 500
    writer.ask("DELETE", f"{path}/{name}")
    yield "a webhook that is gone", lambda each: _configmap(each) == 201


def _quotas(writer: Connection) -> Iterator[tuple[str, Ask]]:
    name = f"q-{next(_names)}"
    hard = {"count/secrets": "0"}
    found = writer.made(f"{_CORE}/resourcequotas", {"metadata": {"name": name}, "spec": {"hard": hard}})
    found["status"] = {"hard": hard, "used": hard}  # as its controller would write it
    writer.ask("PUT", f"{_CORE}/resourcequotas/{name}/status", found)
    secret = {"metadata": {"name": name}}
    yield "a quota", lambda each: each.ask("POST", f"{_CORE}/secrets?dryRun=All", secret)[0] == 403
    writer.ask("DELETE", f"{_CORE}/resourcequotas/{name}")
    yield "a quota that is gone", lambda each: each.ask("POST", f"{_CORE}/secrets?dryRun=All", secret)[0] == 201


def _mutating(writer: Connection) -> Iterator[tuple[str, Ask]]:
    name = f"m-{next(_names)}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    set_label = "Object{metadata: Object.metadata{labels: {'acknowledged': 'yes'}}}"
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": set_label}}
    writer.made(
        f"{_ADMISSION}/mutatingadmissionpolicies",
        {
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "mutations": [mutation],
                "reinvocationPolicy": "Never",
            },
        },
    )
    bindings = f"{_ADMISSION}/mutatingadmissionpolicybindings"
    writer.made(bindings, {"metadata": {"name": name}, "spec": {"policyName": name}})

    def is_labelled(each: Connection) -> bool:
        body = {"metadata": {"name": f"c-{next(_names)}"}}
        found = each.ask("POST", f"{_CORE}/configmaps?dryRun=All", body)[1]
        return bool(found["metadata"].get("labels"))

    yield "a policy that changes objects", is_labelled
    writer.ask("DELETE", f"{bindings}/{name}")
    yield "a policy that changes objects no more", lambda each: not is_labelled(each)
    writer.ask("DELETE", f"{_ADMISSION}/mutatingadmissionpolicies/{name}")
    hook = _hook(rule)
    path = f"{_ADMISSION}/mutatingwebhookconfigurations"
    writer.made(path, {"metadata": {"name": name}, "webhooks": [hook]})
    yield "a webhook that changes objects", lambda each: _configmap(each) == 500
    writer.ask("DELETE", f"{path}/{name}")
    yield "a webhook that changes objects no more", lambda each: _configmap(each) == 201


def _accounts(writer: Connection) -> Iterator[tuple[str, Ask]]:
    name = f"a-{next(_names)}"
    writer.made(f"{_CORE}/serviceaccounts", {"metadata": {"name": name}})
    token = writer.made(f"{_CORE}/serviceaccounts/{name}/token", {"spec": {}})["status"]["token"]
    yield "a token of an account", lambda each: each.ask("GET", f"{_CORE}/secrets", token=token)[0] == 403
    writer.ask("DELETE", f"{_CORE}/serviceaccounts/{name}")


def _classes(writer: Connection) -> Iterator[tuple[str, Ask]]:
    name = f"p-{next(_names)}"
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    writer.made(path, {"metadata": {"name": name}, "value": 1000})
    container = {"name": "c", "image": "i"}
    pod = {"metadata": {"name": name}, "spec": {"priorityClassName": name, "containers": [container]}}
    yield "a class of priority", lambda each: each.ask("POST", f"{_CORE}/pods?dryRun=All", pod)[0] == 201
    writer.ask("DELETE", f"{path}/{name}")
    yield "a class that is gone", lambda each: each.ask("POST", f"{_CORE}/pods?dryRun=All", pod)[0] == 403


def _default_classes(writer: Connection) -> Iterator[tuple[str, Ask]]:
    name = f"d-{next(_names)}"
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    writer.made(path, {"metadata": {"name": name}, "value": 1000, "globalDefault": True})
    yield "a default class of priority", lambda each: _pod(each)["spec"]["priority"] == 1000
    writer.ask("DELETE", f"{path}/{name}")
    yield "a default class of priority that is gone", lambda each: _pod(each)["spec"]["priority"] == 0
    path, annotation = "/apis/storage.k8s.io/v1/storageclasses", "storageclass.kubernetes.io/is-default-class"
    writer.made(path, {"metadata": {"name": name, "annotations": {annotation: "true"}}, "provisioner": "a/b"})
    resources = {"requests": {"storage": "1Gi"}}
    claim = {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}
    claims = f"{_CORE}/persistentvolumeclaims?dryRun=All"

    def class_of(each: Connection) -> str | None:
        found: str | None = each.made(claims, claim)["spec"].get("storageClassName")
        return found

    yield "a default class of storage", lambda each: class_of(each) == name
    writer.changed(f"{path}/{name}", {"metadata": {"annotations": {annotation: "false"}}})
    yield "a class of storage that is the default no more", lambda each: class_of(each) is None
    writer.ask("DELETE", f"{path}/{name}")


def _runtimes(writer: Connection) -> Iterator[tuple[str, Ask]]:
    name = f"r-{next(_names)}"
    path = "/apis/node.k8s.io/v1/runtimeclasses"
    overhead = {"podFixed": {"cpu": "10m"}}
    writer.made(path, {"metadata": {"name": name}, "handler": "h", "overhead": overhead})
    spec = {"runtimeClassName": name}
    yield "a class of runtimes", lambda each: _pod(each, spec)["spec"].get("overhead") == {"cpu": "10m"}
    writer.ask("DELETE", f"{path}/{name}")
    yield "a class of runtimes that is gone", lambda each: _pod(each, spec)["code"] == 403


def _limits(writer: Connection) -> Iterator[tuple[str, Ask]]:
    name = f"l-{next(_names)}"

    def spec(amount: str) -> dict[str, Any]:
        return {"spec": {"limits": [{"type": "Container", "default": {"cpu": amount}}]}}

    def limits(each: Connection) -> Any:
        return _pod(each)["spec"]["containers"][0]["resources"].get("limits")

    writer.made(f"{_CORE}/limitranges", {"metadata": {"name": name}, **spec("1")})
    yield "a range of limits", lambda each: limits(each) == {"cpu": "1"}
    writer.changed(f"{_CORE}/limitranges/{name}", spec("2"))
    yield "a range of limits that was changed", lambda each: limits(each) == {"cpu": "2"}
    writer.ask("DELETE", f"{_CORE}/limitranges/{name}")
    yield "a range of limits that is gone", lambda each: limits(each) is None


def _labels(writer: Connection) -> Iterator[tuple[str, Ask]]:
    def label(value: str | None) -> None:
        labels = {"pod-security.kubernetes.io/enforce": value, "acknowledged": value}
        writer.changed(_CORE, {"metadata": {"labels": labels}})

    name = f"s-{next(_names)}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    hook = {
        "name": "hook.acknowledged.example",
        "admissionReviewVersions": ["v1"],
        "rules": [rule],
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "sideEffects": "None",
        "timeoutSeconds": 1,
        "namespaceSelector": {"matchLabels": {"acknowledged": "restricted"}},
    }
    path = f"{_ADMISSION}/validatingwebhookconfigurations"
    writer.made(path, {"metadata": {"name": name}, "webhooks": [hook]})
    yield "a namespace that is not selected", lambda each: _configmap(each) == 201
    label("restricted")
    yield "a namespace that is restricted", lambda each: _pod(each).get("code") == 403
    yield "a namespace that is selected", lambda each: _configmap(each) == 500
    label(None)
    yield "a namespace that is restricted no more", lambda each: "code" not in _pod(each)
    yield "a namespace that is selected no more", lambda each: _configmap(each) == 201
    writer.ask("DELETE", f"{path}/{name}")


def _services(writer: Connection) -> Iterator[tuple[str, Ask]]:
    group = f"g{next(_names)}.acknowledged.example"
    path = "/apis/apiregistration.k8s.io/v1/apiservices"
    service = {"namespace": "acknowledged", "name": "nobody"}
    spec = {
        "group": group,
        "version": "v1",
        "service": service,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
    }
    writer.made(path, {"metadata": {"name": f"v1.{group}"}, "spec": spec})
    yield "an APIService", lambda each: each.ask("GET", f"/apis/{group}/v1/things")[0] == 503
    writer.ask("DELETE", f"{path}/v1.{group}")
    yield "an APIService that is gone", lambda each: each.ask("GET", f"/apis/{group}/v1/things")[0] == 404


def _namespaces(writer: Connection) -> Iterator[tuple[str, Ask]]:
    name = f"n-{next(_names)}"
    writer.made("/api/v1/namespaces", {"metadata": {"name": name}})
    path = f"/api/v1/namespaces/{name}"
    yield "a namespace", lambda each: _configmap(each, namespace=path) == 201
    writer.ask("DELETE", path)
    yield "a namespace that is being deleted", lambda each: _configmap(each, namespace=path) in (403, 404)


FOLLOWED: Final = (
    _definitions,
    _rights,
    _policies,
    _webhooks,
    _mutating,
    _quotas,
    _accounts,
    _classes,
    _default_classes,
    _runtimes,
    _limits,
    _labels,
    _services,
    _namespaces,
)


def play(connections: Sequence[Connection], rounds: int) -> tuple[Counter[str], Counter[str]]:
    """By thing: how often it was asked for, and how often the answer was that of before."""
    asked: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for number in range(rounds):
        writer = connections[number % len(connections)]
        others = [each for each in connections if each is not writer]
        for follow in FOLLOWED:
            for thing, is_known in follow(writer):
                for each in others:
                    asked[thing] += 1
                    missed[thing] += not is_known(each)
    return asked, missed


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if anything was answered as it was before."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default=TWO_WORKERS, metavar="CMD", help="starts the server (default: two workers)")
    parser.add_argument("--rounds", type=int, default=8, help="changes of each thing (default: 8)")
    parser.add_argument("--connections", type=int, default=6, help="connections that are asked (default: 6)")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        process = stack.enter_context(subprocess.Popen(shlex.split(options.server), stdout=subprocess.PIPE, text=True))
        stack.callback(process.send_signal, signal.SIGTERM)
        assert process.stdout is not None
        document = json.loads(process.stdout.readline())
        connections = [Connection(document["url"], document["ca"]) for _ in range(options.connections)]
        for each in connections:
            stack.callback(each.close)
        connections[0].made("/api/v1/namespaces", {"metadata": {"name": "acknowledged"}})
        asked, missed = play(connections, options.rounds)
    for thing, number in asked.items():
        print(f"{missed[thing]:>4} of {number:>4} as before: {thing}")
    return 1 if missed.total() else 0


if __name__ == "__main__":
    sys.exit(main())
