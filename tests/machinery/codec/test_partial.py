"""Structs with a few members of a kind: they decode the same values of these as the whole object."""

from __future__ import annotations

import msgspec
import pytest

from steersman.api.apiextensions.v1 import CustomResourceDefinition
from steersman.api.core.v1 import LimitRange, Pod
from steersman.machinery.codec.partial import part_of
from steersman.machinery.codec.serializer import decode_json

POD = (
    b'{"metadata":{"name":"a","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"k":"v"}},'
    b'"spec":{"containers":[{"name":"c"}],"nodeName":"n"},"status":{"podIPs":[{"ip":"10.0.0.1"}]}}'
)


def members(kind: type) -> list[str]:
    return [each.encode_name for each in msgspec.structs.fields(kind)]


def test_it_has_the_members_on_the_paths_and_no_others() -> None:
    kind = part_of(Pod, ["metadata.name", "spec.nodeName", "status.podIPs"])
    pod = decode_json(kind, POD)
    assert (pod.metadata.name, pod.spec.node_name, [each.ip for each in pod.status.pod_ips]) == ("a", "n", ["10.0.0.1"])
    assert members(kind) == ["metadata", "spec", "status"]
    assert members(type(pod.spec)) == ["nodeName"]


def test_what_is_not_there_has_the_defaults_of_the_kind() -> None:
    pod = decode_json(part_of(Pod, ["metadata.name", "metadata.labels", "spec.nodeName", "spec.hostNetwork"]), b"{}")
    whole = decode_json(Pod, b"{}")
    assert (pod.metadata.name, pod.metadata.labels) == (whole.metadata.name, whole.metadata.labels)
    assert (pod.spec.node_name, pod.spec.host_network) == (whole.spec.node_name, whole.spec.host_network)


def test_a_path_to_no_member_keeps_what_it_has_come_to() -> None:
    assert members(type(decode_json(part_of(Pod, ["status.nothing"]), POD).status)) == members(
        type(decode_json(Pod, POD).status)
    )


def test_what_is_kept_whole_has_plain_scalars() -> None:
    body = b'{"spec":{"limits":[{"type":"Container","max":{"cpu":"500m"}}]}}'
    found = decode_json(part_of(LimitRange, ["spec.limits"]), body)
    assert found.spec.limits[0].max == {"cpu": "500m"}
    kind = type(found.spec.limits[0])
    assert next(each.type for each in msgspec.structs.fields(kind) if each.name == "max") == dict[str, str]
    assert decode_json(part_of(Pod, ["metadata.creationTimestamp"]), POD).metadata.creation_timestamp == (
        "2026-01-01T00:00:00Z"
    )


def test_a_type_that_contains_itself_is_kept_as_it_is() -> None:
    body = b'{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{"a":{"type":"x"}}}}}]}}'
    found = decode_json(part_of(CustomResourceDefinition, ["spec.versions"]), body)
    assert found.spec.versions[0].schema.open_api_v3_schema.properties["a"].type == "x"


def test_a_path_that_begins_with_no_member_is_an_error() -> None:
    with pytest.raises(ValueError, match="Pod has no members speck"):
        part_of(Pod, ["speck.nodeName"])
