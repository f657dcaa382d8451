"""Policies, bindings and what they are about, as tests write them."""

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
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {}}


def _rules(rules: Sequence[Any] | None) -> dict[str, Any]:
    return {"matchConstraints": {"resourceRules": [ON_CREATE] if rules is None else rules}}


def validating(*validations: Any, rules: Sequence[Any] | None = None, **spec: Any) -> dict[str, Any]:
    """The spec of a ValidatingAdmissionPolicy; a validation is an expression, or all of one."""
    whole = [{"expression": each} if isinstance(each, str) else each for each in validations]
    return {"kind": "validating", "spec": {"validations": whole, **_rules(rules), **spec}}


def applying(*expressions: str, rules: Sequence[Any] | None = None, **spec: Any) -> dict[str, Any]:
    """The spec of a MutatingAdmissionPolicy with apply configurations."""
    made = [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": each}} for each in expressions]
    return {"kind": "mutating", "spec": {"mutations": made, "reinvocationPolicy": "Never", **_rules(rules), **spec}}


def patching(*expressions: str, rules: Sequence[Any] | None = None, **spec: Any) -> dict[str, Any]:
    """The same with JSON patches."""
    made = [{"patchType": "JSONPatch", "jsonPatch": {"expression": each}} for each in expressions]
    return {"kind": "mutating", "spec": {"mutations": made, "reinvocationPolicy": "Never", **_rules(rules), **spec}}


async def enforce(client: Client, name: str, policy: dict[str, Any], *bindings: dict[str, Any]) -> None:
    """Makes a policy, and bindings of these specs, or one that binds it everywhere."""
    kind = policy["kind"]
    made = await client.post(f"{GROUP}/{kind}admissionpolicies", {"metadata": {"name": name}, "spec": policy["spec"]})
    assert made.status == 201, made.body
    for number, binding in enumerate(bindings or ({},)):
        spec = {"policyName": name, **({"validationActions": ["Deny"]} if kind == "validating" else {}), **binding}
        body = {"metadata": {"name": f"{name}-{number}"}, "spec": spec}
        bound = await client.post(f"{GROUP}/{kind}admissionpolicybindings", body)
        assert bound.status == 201, bound.body


async def define(client: Client, plural: str, kind: str, **properties: Any) -> str:
    """Defines a kind of example.com/v1 in namespaces; the path of its objects in `default`, once it is discovered."""
    cluster = Cluster(client)
    await cluster.define(
        definition(version("v1", {"type": "object", "properties": properties}), plural=plural, kind=kind)
    )
    await cluster.answers("/apis/example.com/v1", 200)
    return cluster.path(plural=plural)


async def create(client: Client, name: str, data: dict[str, str] | None = None, **metadata: Any) -> Answer:
    """Makes a ConfigMap."""
    return await client.post(CONFIG_MAPS, config_map(name, data, **metadata))
