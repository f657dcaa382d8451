"""Makes the same objects on a server: every sample, its status, and some custom resources."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from typing import Any, Final

from tools.differential.case import named
from tools.differential.objects import Sample, every_sample
from tools.differential.server import Answer, Client

NAMESPACE: Final = "stored"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def fill(client: Client, *, on_request: bool) -> Iterator[str]:
    """Create all objects and yield the failures. `on_request`: also objects of versions that are off by default."""
    client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for account in ("default", "web"):
        client.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": account}})
    for number, sample in enumerate(every_sample()):
        if sample.on_request and not on_request:
            continue
        for answer in _made(client, sample, number):
            if answer.code >= 300:
                yield f"{sample.api_version} {sample.body['kind']} {number}: {answer.code} {answer.body}"
    yield from _custom(client)


def _made(client: Client, sample: Sample, number: int) -> Iterator[Answer]:
    name = f"sample-{number}"
    body = named(copy.deepcopy(sample.body), name, NAMESPACE)
    status = body.pop("status", None)
    if body["kind"] == "Service":
        _settle(body["spec"], number)
    made = client.ask("POST", named(sample.collection, name, NAMESPACE), body)
    yield made
    path = named(sample.path, name, NAMESPACE)
    if body["kind"] == "FlowSchema":
        made = _said_something_of(client, path)
    if status is not None and sample.has_status and made.code < 300:
        yield client.ask("PUT", f"{path}/status", made.body | {"status": status})


def _settle(spec: dict[str, Any], number: int) -> None:
    """Gives a Service the address and the ports that would be chosen at random."""
    if spec.get("type") == "ExternalName" or spec.get("clusterIP") == "None":
        return
    spec["clusterIP"] = f"10.0.0.{100 + number}"
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        for at, port in enumerate(spec["ports"]):
            port["nodePort"] = 30_100 + 10 * number + at
    if spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local":
        spec["healthCheckNodePort"] = 30_105 + 10 * number


def _said_something_of(client: Client, path: str) -> Answer:
    """An object once the server has written a condition."""
    for _ in range(100):
        answer = client.ask("GET", path)
        if (answer.body.get("status") or {}).get("conditions"):
            break
        time.sleep(0.05)
    return answer


def _custom(client: Client) -> Iterator[str]:
    """Two definitions, one of each scope, one with two versions; and an object of each version."""
    for scope, plural in (("Namespaced", "gadgets"), ("Cluster", "clustergadgets")):
        answer = client.ask("POST", _DEFINITIONS, _definition(scope, plural))
        where = f"namespaces/{NAMESPACE}/{plural}" if scope == "Namespaced" else plural
        for version in ("v1", "v2"):
            body = {
                "apiVersion": f"example.com/{version}",
                "kind": plural.title(),
                "metadata": {"name": f"in-{version}"},
                "spec": {"size": 1, "b": {"z": 1, "a": [1.5, "x<y"]}, "a": None},
            }
            for _ in range(100):
                answer = client.ask("POST", f"/apis/example.com/{version}/{where}", body)
                if answer.code != 404:
                    break
                time.sleep(0.05)
            if answer.code >= 300:
                yield f"{plural} {version}: {answer.code} {answer.body}"


def _definition(scope: str, plural: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"plural": plural, "kind": plural.title()},
            "versions": [
                {"name": "v1", "served": True, "storage": False, "schema": schema},
                {"name": "v2", "served": True, "storage": True, "schema": schema},
            ],
        },
    }
