"""Ingresses and their classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.networking.v1 import Ingress
from steersman.machinery.codec.serializer import from_plain
from steersman.registry.networking.ingressclasses import INGRESS_CLASSES
from steersman.registry.networking.ingresses import INGRESSES, hosts

GROUP = "networking.k8s.io"
SERVICE = {"service": {"name": "s", "port": {"number": 80}}}


def ingress(*paths: dict[str, Any], **spec: Any) -> dict[str, Any]:
    rules = [{"http": {"paths": [{"pathType": "Prefix", "path": "/", "backend": SERVICE, **path}]}} for path in paths]
    return {"metadata": {"name": "i"}, "spec": {"rules": rules, **spec}}


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (ingress(), "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"),
        (ingress({"path": "x"}), 'spec.rules[0].http.paths[0].path: Invalid value: "x": must be an absolute path'),
        (
            ingress({"path": "/a/.."}),
            "spec.rules[0].http.paths[0].path: Invalid value: \"/a/..\": cannot end with '/..'",
        ),
        (
            ingress({"pathType": None}),
            "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
        ),
        (
            ingress({"backend": {"service": {"name": "s"}}}),
            "spec.rules[0].http.paths[0].backend: Required value: port name or number is required",
        ),
        (
            ingress(defaultBackend={**SERVICE, "resource": {"kind": "K", "name": "n"}}),
            'spec.defaultBackend: Invalid value: "": cannot set both resource and service backends',
        ),
        (
            ingress(rules=[{"host": "192.0.2.1"}]),
            'spec.rules[0].host: Invalid value: "192.0.2.1": must be a DNS name, not an IP address',
        ),
    ],
)
async def test_an_ingress_is_refused_in_the_words_of_the_reference(
    cluster: Callable[..., Any], body: dict[str, Any], fault: str
) -> None:
    c = await cluster(INGRESSES)
    assert await c.faults(c.create("ingresses", body, group=GROUP)) == [fault]


async def test_the_annotation_of_old_is_warned_of_and_must_agree(cluster: Callable[..., Any]) -> None:
    c = await cluster(INGRESSES)
    body = ingress({})
    body["metadata"]["annotations"] = {"kubernetes.io/ingress.class": "old"}
    warnings: list[str] = []
    await c.create("ingresses", body, group=GROUP, warnings=warnings)
    assert warnings == [
        "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead"
    ]
    body["spec"]["ingressClassName"] = "new"
    assert await c.faults(c.create("ingresses", body, group=GROUP)) == [
        'annotations.kubernetes.io/ingress.class: Invalid value: "old": '
        "must match `ingressClassName` when both are specified"
    ]


async def test_a_load_balancer_has_a_name_or_an_address(cluster: Callable[..., Any]) -> None:
    c = await cluster(INGRESSES)
    body = await c.create("ingresses", ingress({}), group=GROUP)
    body["status"] = {"loadBalancer": {"ingress": [{"ip": "bad"}, {"hostname": "192.0.2.1"}]}}
    assert await c.faults(c.update("ingresses", body, group=GROUP, subresource="status")) == [
        'status.loadBalancer.ingress[0].ip: Invalid value: "bad": '
        "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        'status.loadBalancer.ingress[1].hostname: Invalid value: "192.0.2.1": must be a DNS name, not an IP address',
    ]


@pytest.mark.parametrize(
    ("names", "cell"),
    [([], "*"), (["a", ""], "a"), (["a", "b", "c"], "a,b,c"), (["a", "b", "c", "d", "e"], "a,b,c + 2 more...")],
)
def test_three_hosts_are_shown(names: list[str], cell: str) -> None:
    assert hosts(from_plain(Ingress, {"spec": {"rules": [{"host": name} for name in names]}})) == cell


async def test_parameters_of_a_class_say_where_they_are(cluster: Callable[..., Any]) -> None:
    c = await cluster(INGRESS_CLASSES)
    parameters = {"kind": "K", "name": "n"}
    body = {"metadata": {"name": "c"}, "spec": {"controller": "example.com/c", "parameters": parameters}}
    made = await c.create("ingressclasses", body, group=GROUP)
    assert made["spec"]["parameters"]["scope"] == "Cluster"
    made["spec"]["controller"] = "example.com/d"
    assert await c.faults(c.update("ingressclasses", made, group=GROUP)) == [
        'spec.controller: Invalid value: "example.com/d": field is immutable'
    ]
    body["spec"] = {"controller": "nodomain", "parameters": {**parameters, "scope": "Namespace"}}
    assert await c.faults(c.create("ingressclasses", body, group=GROUP)) == [
        'spec.controller: Invalid value: "nodomain": must be a domain-prefixed path (such as "acme.io/foo")',
        "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
    ]
