"""Short forms of policies, bindings and objects for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steersman.testing import Client
from steersman.testing.client import Answer
from tests.apiextensions.cluster import Cluster, definition, version

GROUP = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ON_CREATE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {}}


def _rules(rules: Sequence[Any] | None) -> dict[str, Any]:
    return {"matchConstraints": {"resourceRules": [ON_CREATE] if rules is None else rules}}


def validating(*validations: Any, rules: Sequence[Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return the spec of a ValidatingAdmissionPolicy; a validation is an expression or a whole validation."""
    whole = [{"expression": each} if isinstance(each, str) else each for each in validations]
    return {"kind": "validating", "spec": {"validations": whole, **_rules(rules), **spec}}


def applying(*expressions: str, rules: Sequence[Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return the spec of a MutatingAdmissionPolicy with apply configurations."""
    made = [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": each}} for each in expressions]
    return {"kind": "mutating", "spec": {"mutations": made, "reinvocationPolicy": "Never", **_rules(rules), **spec}}


def patching(*expressions: str, rules: Sequence[Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return the spec of a MutatingAdmissionPolicy with JSON patches."""
    made = [{"patchType": "JSONPatch", "jsonPatch": {"expression": each}} for each in expressions]
    return {"kind": "mutating", "spec": {"mutations": made, "reinvocationPolicy": "Never", **_rules(rules), **spec}}


async def enforce(client: Client, name: str, policy: dict[str, Any], *bindings: dict[str, Any]) -> None:
    """Create a policy, and bindings with these specs, or one binding without limits."""
    kind = policy["kind"]
    made = await client.post(f"{GROUP}/{kind}admissionpolicies", {"metadata": {"name": name}, "spec": policy["spec"]})
    assert made.status == 201, made.body
    for number, binding in enumerate(bindings or ({},)):
        spec = {"policyName": name, **({"validationActions": ["Deny"]} if kind == "validating" else {}), **binding}
        body = {"metadata": {"name": f"{name}-{number}"}, "spec": spec}
        bound = await client.post(f"{GROUP}/{kind}admissionpolicybindings", body)
        assert bound.status == 201, bound.body


async def define(client: Client, plural: str, kind: str, **properties: Any) -> str:
    """Define a namespaced kind of example.com/v1. Return the path of its objects in `default` once it is served."""
    cluster = Cluster(client)
    await cluster.define(
        definition(version("v1", {"type": "object", "properties": properties}), plural=plural, kind=kind)
    )
    await cluster.answers("/apis/example.com/v1", 200)
    return cluster.path(plural=plural)


async def create(client: Client, name: str, data: dict[str, str] | None = None, **metadata: Any) -> Answer:
    """Create a ConfigMap and return the response."""
    return await client.post(CONFIG_MAPS, config_map(name, data, **metadata))
