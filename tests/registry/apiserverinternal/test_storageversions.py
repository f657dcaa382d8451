"""StorageVersions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.apiserverinternal.v1alpha1 import ServerStorageVersion, StorageVersion, StorageVersionStatus
from steersman.registry.apiserverinternal.storageversions import STORAGE_VERSIONS, storage_version_name

GROUP = "internal.apiserver.k8s.io"


def server(name: str, encoding: str, *decodable: str, served: tuple[str, ...] = ()) -> dict[str, Any]:
    found = {"apiServerID": name, "encodingVersion": encoding, "decodableVersions": list(decodable)}
    return found | ({"servedVersions": list(served)} if served else {})


async def faults_of(cluster: Callable[..., Any], status: dict[str, Any]) -> list[str]:
    c = await cluster(STORAGE_VERSIONS)
    body = {"metadata": {"name": "apps.deployments"}, "spec": {}, "status": {"commonEncodingVersion": "dropped"}}
    made = await c.create("storageversions", body, group=GROUP)
    assert made["status"] == {}
    made["status"] = status
    found: list[str] = await c.faults(c.update("storageversions", made, group=GROUP, subresource="status"))
    return found


def test_a_name_is_a_group_and_a_resource() -> None:
    assert storage_version_name("apps.deployments", False) == []
    assert storage_version_name("a.example.com.things", False) == []
    assert storage_version_name("deployments", False) == ["name must be in the form of <group>.<resource>"]
    [error] = storage_version_name("A_b.things", False)
    assert error.startswith("the group segment a lowercase RFC 1123 subdomain")
    [error] = storage_version_name("apps.1", False)
    assert error.startswith("the resource segment a DNS-1035 label")


@pytest.mark.parametrize(
    ("status", "faults"),
    [
        (
            {"commonEncodingVersion": "v1"},
            [
                'status.commonEncodingVersion: Invalid value: "v1": should be nil if servers do not agree on the same '
                "encoding version, or if there is no server reporting the supported versions yet"
            ],
        ),
        (
            {"storageVersions": [server("a", "v1", "v1")]},
            ["status.commonEncodingVersion: Invalid value: null: the common encoding version is v1"],
        ),
        (
            {"commonEncodingVersion": "v2", "storageVersions": [server("a", "v1", "v1")]},
            ['status.commonEncodingVersion: Invalid value: "v2": the actual common encoding version is v1'],
        ),
        (
            {"storageVersions": [server("a", "v1", "v2", served=("v3",)), server("a", "v2", "v2")]},
            [
                'status.storageVersions[0].decodableVersions: Invalid value: ["v2"]: '
                "decodableVersions must include encodingVersion v1",
                'status.storageVersions[0].servedVersions[0]: Invalid value: "v3": '
                "individual served version : v3 must be included in decodableVersions : [v2]",
                'status.storageVersions[1].apiServerID: Duplicate value: "a"',
            ],
        ),
        (
            {
                "conditions": [
                    {"type": "X", "status": "True"},
                    {"type": "X", "status": "a", "reason": "r", "message": "m"},
                ]
            },
            [
                "status[0].reason: Required value",
                "status[0].message: Required value",
                'status[1].type: Invalid value: "X": the type of the condition is not unique, '
                "it also appears in conditions[0]",
            ],
        ),
    ],
)
async def test_invalid_status_is_refused(cluster: Callable[..., Any], status: Any, faults: list[str]) -> None:
    assert await faults_of(cluster, status) == faults


async def test_versions_are_looked_at_in_both_parts(cluster: Callable[..., Any]) -> None:
    found = await faults_of(cluster, {"storageVersions": [server("a", "/V", "/V"), server("b", "a/b/c", "a/b/c")]})
    assert [fault[:100] for fault in found] == [
        'status.storageVersions[0].encodingVersion: Invalid value: "/V": group part: must be non-empty,versio',
        'status.storageVersions[0].decodableVersions[0]: Invalid value: "/V": group part: must be non-empty,v',
        'status.storageVersions[1].encodingVersion: Invalid value: "a/b/c": an apiVersion is a DNS-1035 label',
        'status.storageVersions[1].decodableVersions[0]: Invalid value: "a/b/c": an apiVersion is a DNS-1035 ',
    ]


def test_a_table_names_three_servers() -> None:
    servers = STORAGE_VERSIONS.columns[1].cell
    assert servers is not None
    found = [ServerStorageVersion(api_server_id=name, encoding_version="v1") for name in "abcde"]
    assert servers(StorageVersion()) == "<unset>"
    assert servers(StorageVersion(status=StorageVersionStatus(storage_versions=found[:2]))) == "a=v1,b=v1"
    shown = servers(StorageVersion(status=StorageVersionStatus(storage_versions=found)))
    assert shown == "a=v1,b=v1,c=v1 + 2 more..."
