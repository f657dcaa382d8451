"""Parsing of discovery documents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.aggregator.remote_discovery import BadDocument, is_aggregated, read_groups, read_list

WANTED = frozenset({("a.example.com", "v1")})


def listed(*resources: dict[str, Any]) -> bytes:
    return json.dumps(
        {"resources": [{"kind": "K", "verbs": [], "singularName": "", **each} for each in resources]}
    ).encode()


def test_only_what_is_wanted_is_read() -> None:
    groups = [
        {
            "metadata": {"name": name, "creationTimestamp": "2020-01-01T00:00:00Z"},
            "versions": [
                {"version": "v1", "resources": [{"resource": "r", "subresources": [{"subresource": "s"}]}]},
                {"version": "v2"},
            ],
        }
        for name in ("a.example.com", "b.example.com")
    ]
    data = json.dumps({"items": groups}).encode()
    found, digest = read_groups(data, WANTED, b"")
    assert found is not None
    assert found.keys() == WANTED
    (resource,) = found["a.example.com", "v1"].resources
    assert resource.response_kind is not None
    assert resource.subresources[0].response_kind is not None
    assert read_groups(data, WANTED, digest) == (None, digest)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"items": 1}', b'{"items": [1]}', b'"\xff"', b'{"items": [' + b"[" * 50_000]
)
def test_garbage_is_no_document(data: bytes) -> None:
    with pytest.raises(BadDocument):
        read_groups(data, WANTED, b"")


def test_subresources_stand_below_their_resources() -> None:
    found = read_list(
        listed(
            {"name": "a/one"},
            {"name": "b", "namespaced": True},
            {"name": "b/one", "namespaced": True},
            {"name": "a/two"},
        ),
        "v1",
    )
    told = [(each.resource, each.scope, [sub.subresource for sub in each.subresources]) for each in found.resources]
    assert told == [("b", "Namespaced", ["one"]), ("a", "Cluster", ["one", "two"])]


def test_a_subresource_of_another_scope_is_told_of() -> None:
    with pytest.raises(BadDocument, match="scope do not match"):
        read_list(listed({"name": "a"}, {"name": "a/one", "namespaced": True}), "v1")


@pytest.mark.slow
def test_a_hundred_thousand_subresources_are_read() -> None:
    data = listed({"name": "a"}, *({"name": f"a/s{number}"} for number in range(100_000)))
    (resource,) = read_list(data, "v1").resources
    assert len(resource.subresources) == 100_000


@pytest.mark.parametrize(
    ("content_type", "is_it"),
    [
        ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", True),
        ("application/json; as=APIGroupDiscoveryList; v=v2beta1; g=apidiscovery.k8s.io; charset=utf-8", True),
        ("application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList", False),
        ("text/plain;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", False),
        ("application/json", False),
        ("", False),
    ],
)
def test_which_answers_are_discovery(content_type: str, *, is_it: bool) -> None:
    assert is_aggregated(content_type) is is_it
