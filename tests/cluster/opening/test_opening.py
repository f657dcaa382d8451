"""Clusters that begin with a dump: all is as it was, and stays so."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from steersman.api.core.v1 import Container, Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.resources import (
    CSI_NODES,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    SERVICES,
)
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration, ConfigurationError
from steersman.cluster.opening.completing import complete
from steersman.cluster.opening.opening import prepare
from steersman.controlplane.options import Options
from steersman.dumps.errors import DumpError
from steersman.dumps.reading import Dump, read_dump, read_objects
from steersman.endpoints.request import Request
from tests.cluster.opening import real_objects as real
from tests.cluster.opening.clusters import imported, opened
from tests.controllers.waiting import eventually

MEMBER = Path(__file__).parents[2] / "storage" / "etcd" / "member.db.gz"
IP_ADDRESSES: APIResource[dict[str, Any]] = APIResource(
    "networking.k8s.io", "v1", "ipaddresses", "IPAddress", dict, namespaced=False
)
GADGETS: APIResource[dict[str, Any]] = APIResource("example.com", "v1", "gadgets", "Gadget", dict)


async def test_pods_run_on_where_they_were_with_their_ages_and_restarts(tmp_path: Path) -> None:
    objects = [real.node(), real.replica_set(), real.pod("web-1", ownerReferences=[real.owner("ReplicaSet", "web")])]
    async with opened(real.written(tmp_path, *objects, real.service()), tmp_path / "data") as client:
        pods = (await client.list(PODS)).items
        assert [(each.metadata.name, each.metadata.uid) for each in pods] == [("web-1", "u-default-web-1")]
        (status,) = pods[0].status.container_statuses
        assert (pods[0].spec.node_name, pods[0].status.pod_ip) == (real.NODE, "10.244.3.9")
        assert (status.container_id, status.restart_count, status.ready) == ("containerd://web-1", 3, True)
        assert pods[0].metadata.creation_timestamp == real.BEGUN
        await eventually(lambda: _endpoints(client))
        assert await _endpoints(client) == ["10.244.3.9"]
        about_pods = [each for each in (await client.list(EVENTS)).items if each.involved_object.kind == "Pod"]
        assert not about_pods  # nothing was started, probed or killed
        assert (await client.get(SERVICES, "kubernetes", "default")).spec.cluster_ip.startswith("10.0.0.")


async def _endpoints(client: Client) -> list[str]:
    slices = (await client.list(ENDPOINT_SLICES, "default", label_selector="kubernetes.io/service-name=web")).items
    return [
        address
        for each in slices
        for one in each.endpoints or ()
        if one.conditions.ready
        for address in one.addresses or ()
    ]


async def test_nodes_keep_their_addresses_and_facts(tmp_path: Path) -> None:
    dump = real.written(tmp_path, real.node(), real.node("lost", "10.0.0.8", ready=False), real.pod("a"))
    async with opened(dump, tmp_path / "data") as client:
        found = {each.metadata.name: each for each in (await client.list(NODES)).items}
        assert set(found) == {real.NODE, "lost"}
        node = found[real.NODE]
        internal = [each.address for each in node.status.addresses if each.type == "InternalIP"]
        assert internal == [real.ADDRESS]
        assert (node.status.node_info.os_image, node.status.node_info.kubelet_version) == ("Bottlerocket", "v1.34.2")
        assert node.status.allocatable["cpu"] == "15800m"
        ready = {
            name: next(one.status for one in each.status.conditions if one.type == "Ready")
            for name, each in found.items()
        }
        assert ready == {real.NODE: "True", "lost": "Unknown"}
        assert found["lost"].metadata.annotations["simulation.steersman.dev/unreachable"] == "true"


@pytest.mark.slow
async def test_pods_without_their_owner_or_node_in_the_dump_stay(tmp_path: Path) -> None:
    lonely = real.pod("db-0", ownerReferences=[real.owner("StatefulSet", "db")])
    async with opened(real.written(tmp_path, lonely), tmp_path / "data") as client:
        (found,) = (await client.list(PODS)).items
        assert not found.metadata.owner_references
        assert [each.metadata.name for each in (await client.list(NODES)).items] == [real.NODE]


@pytest.mark.slow
async def test_failing_pods_go_on_failing(tmp_path: Path) -> None:
    ended = {"exitCode": 4, "startedAt": "2026-11-20T08:00:00Z", "finishedAt": "2026-11-20T08:00:07Z"}
    crash = {"ready": False, "started": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    message = 'Back-off pulling image "app": ErrImagePull: no such image'
    unpulled = {"ready": False, "state": {"waiting": {"reason": "ImagePullBackOff", "message": message}}}
    pods = [
        real.pod("crash", status={**crash, "lastState": {"terminated": ended}}),
        real.pod("unpulled", status={**unpulled, "lastState": {}}),
        real.pod("unready", status={"ready": False}),
    ]
    async with opened(real.written(tmp_path, real.node(), *pods), tmp_path / "data") as client:
        said = {each.metadata.name: each.metadata.annotations for each in (await client.list(PODS)).items}
        prefix = "simulation.steersman.dev"
        assert said["crash"] == {f"{prefix}/exit-code.main": "4", f"{prefix}/run-for.main": "7s"}
        assert said["unpulled"] == {f"{prefix}/pull-error.main": "no such image"}
        unready = await client.get(PODS, "unready", "default")
        assert not unready.status.container_statuses[0].ready


@pytest.mark.slow
async def test_custom_resources_and_namespaces_of_objects_are_there(tmp_path: Path) -> None:
    elsewhere = real.gadget()
    elsewhere["metadata"] = real.metadata("h", "team")
    dump = real.written(tmp_path, real.gadget(), elsewhere, real.definition())
    async with opened(dump, tmp_path / "data") as client:
        found = {each["metadata"]["namespace"]: each for each in (await client.list(GADGETS)).items}
        assert found["default"]["size"] == 3
        assert found["team"]["metadata"]["uid"] == "u-team-h"
        assert (await client.get(NAMESPACES, "team")).status.phase == "Active"


async def test_an_opened_cluster_is_imported_opened_and_imported_equal(tmp_path: Path) -> None:
    objects = [
        real.node(),
        real.replica_set(),
        real.pod("web-1", ownerReferences=[real.owner("ReplicaSet", "web")]),
        real.service(),
        real.definition(),
        real.gadget(),
    ]
    async with opened(real.written(tmp_path, *objects), tmp_path / "data") as client:
        await eventually(lambda: _endpoints(client))
        await eventually(lambda: client.find(CSI_NODES, real.NODE))
        first = await imported(client, tmp_path)
    async with opened(first, tmp_path / "again") as client:
        second = await imported(client, tmp_path)
    assert _comparable(first) == _comparable(second)


_OF_SERVERS = ("kubernetes", "kube-root-ca.crt", "extension-apiserver-authentication")
"""Objects with the address and certificates of a server."""


def _comparable(file: Path) -> dict[Any, Any]:
    """Return objects without what each server and each heartbeat changes."""
    found = {}
    for each in json.loads(file.read_text())["items"]:
        metadata = each["metadata"]
        if each["kind"] in ("Event", "Lease", "APIService") or metadata["name"] in _OF_SERVERS:
            continue
        metadata.pop("resourceVersion")
        if each["kind"] == "Node":
            metadata.pop("managedFields", None)
            for condition in each["status"]["conditions"]:
                condition.pop("lastHeartbeatTime")
        found[each["kind"], metadata.get("namespace"), metadata["name"]] = each
    return found


async def test_services_of_a_dump_without_ip_addresses_have_theirs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    services = [real.service(), real.service()]
    for number, each in enumerate(services):
        each["metadata"]["name"], ip = f"web-{number}", f"10.0.0.{20 + number}"
        each["spec"] |= {"clusterIP": ip, "clusterIPs": [ip]}
    async with opened(real.written(tmp_path, *services), tmp_path / "data") as client:
        found = {
            each["metadata"]["name"]: each["spec"]["parentRef"] for each in (await client.list(IP_ADDRESSES)).items
        }
        assert found["10.0.0.21"] == {"resource": "services", "namespace": "default", "name": "web-1"}
        assert {each.spec.cluster_ip for each in (await client.list(SERVICES)).items} <= found.keys()
        assert not [each for each in (await client.list(EVENTS)).items if each.involved_object.kind == "Service"]
    assert "were made for its Services: 2" in caplog.text
    assert "is not allocated" not in caplog.text


@pytest.mark.slow
async def test_a_later_start_has_the_nodes_of_the_dump_and_no_others(tmp_path: Path) -> None:
    dump, folder = real.written(tmp_path, real.node(), real.pod("a"), real.service()), tmp_path / "data"
    async with opened(dump, folder):
        pass
    cluster = Cluster(Options(data_dir=folder, listen=False, unsafe_no_fsync=True), Configuration(()))
    await cluster.start()
    try:
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
        (found,) = (await client.list(NODES)).items
        assert found.metadata.name == real.NODE
        spec = PodSpec(containers=[Container(name="c", image="nginx")])
        await client.create(PODS, Pod(metadata=ObjectMeta(name="new", namespace="default"), spec=spec))

        async def runs() -> bool:
            return (await client.get(PODS, "new", "default")).status.phase == "Running"

        await eventually(runs)
    finally:
        await cluster.stop()
    with pytest.raises(ConfigurationError, match="has the objects of a cluster already"):
        async with opened(dump, folder):
            pass


async def test_an_interrupted_opening_is_not_taken_for_a_cluster(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "opened.json").write_text('{"complete":false}')
    with pytest.raises(ConfigurationError, match="was interrupted"):
        Cluster(Options(data_dir=folder, listen=False), Configuration(()))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"metadata": {"name": "../secrets/x", "namespace": "default"}}, "not a name"),
        ({"metadata": {"name": "a", "namespace": "a/b"}}, "not a name"),
        ({"metadata": {"namespace": "default"}}, "has no name"),
        ({"metadata": {"name": "a", "uid": 3}}, "Pod default/a: Expected `str"),
        (
            {"metadata": {"name": "bad", "namespace": "default", "annotations": [3]}},
            "Pod default/bad: Expected `object",
        ),
        ({"status": {"containerStatuses": 3}}, "Pod default/bad: Expected `array"),
        ({"metadata": {"name": "a" * 1025, "namespace": "default"}}, "not a name"),
        ({"metadata": {"name": "a", "namespace": "a" * 64}}, "not a name"),
        ({"metadata": {"name": "a"}, "spec": {"priority": 10**400}}, "Pod default/a: the number is too large"),
    ],
)
def test_bad_objects_are_named(change: dict[str, Any], problem: str) -> None:
    objects = read_objects(json.dumps({**real.pod("bad"), **change}).encode(), "test")
    with pytest.raises(DumpError, match=problem):
        complete(objects, {("", "Pod"): True})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"spec": {"template": {"spec": 3}}}, "ReplicaSet default/web"),
        ({"spec": {"template": {"metadata": {"annotations": {"a": "b" * (3 << 20)}}}}}, "an object may have 3145728"),
    ],
)
async def test_an_object_that_cannot_be_stored_is_named(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    dump = real.written(tmp_path, {**real.replica_set(), **change})
    with pytest.raises(ConfigurationError, match=problem):
        async with opened(dump, tmp_path / "data"):
            pass
    async with opened(real.written(tmp_path, real.replica_set()), tmp_path / "data") as client:
        assert await client.get(REPLICA_SETS, "web", "default")


@pytest.mark.slow
async def test_a_snapshot_of_etcd_is_opened(tmp_path: Path) -> None:
    dump = tmp_path / "snapshot.db"
    dump.write_bytes(gzip.decompress(MEMBER.read_bytes()))
    async with opened(dump, tmp_path / "data") as client:
        assert (await client.get(PODS, "p", "team")).spec.node_name == "real-node"

        async def replicas() -> bool:
            return (await client.get(DEPLOYMENTS, "web", "team")).status.ready_replicas == 2

        await eventually(replicas)
    with pytest.raises(DumpError, match="only `steersman up --from` opens"):
        read_dump(dump)


async def test_nodes_get_the_objects_that_kubelets_and_controllers_would_make(tmp_path: Path) -> None:
    dump = read_dump(real.written(tmp_path, real.node(), real.node("lost", "10.0.0.8", ready=False)))
    stored = {("", "Node"): False, ("coordination.k8s.io", "Lease"): True, ("storage.k8s.io", "CSINode"): False}
    found = {(each.kind, each.name): each.plain() for each in complete(dump.objects, stored).items}
    assert set(found) == {("Node", real.NODE), ("Node", "lost"), ("CSINode", real.NODE), ("CSINode", "lost")} | {
        ("Lease", real.NODE)  # a node that does not answer has none
    }
    uid = found["Node", real.NODE]["metadata"]["uid"]
    for kind in ("Lease", "CSINode"):
        (owner,) = found[kind, real.NODE]["metadata"]["ownerReferences"]
        assert owner == {"apiVersion": "v1", "kind": "Node", "name": real.NODE, "uid": uid}


async def test_no_request_is_needed_for_metadata_leases_and_volume_drivers_of_nodes(tmp_path: Path) -> None:
    node = real.node()
    node["metadata"]["labels"]["kubernetes.io/os"] = "linux"
    asked: list[tuple[str, str, str]] = []

    def observe(request: Request, code: int, seconds: float) -> None:
        asked.append((request.action.verb, request.action.resource, request.action.subresource))

    options = Options(data_dir=tmp_path / "data", listen=False, unsafe_no_fsync=True)
    cluster = Cluster(options, Configuration((), dump=real.written(tmp_path, node)), observe=observe)
    await cluster.start()
    try:
        assert await cluster.settle(20)
        assert ("list", "nodes", "") in asked or ("watch", "nodes", "") in asked
        for unneeded in (("patch", "nodes", ""), ("create", "leases", ""), ("create", "csinodes", "")):
            assert unneeded not in asked
    finally:
        await cluster.stop()


def test_a_folder_is_no_new_cluster_after_a_kill_while_its_dump_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: Path) -> Dump:
        shutil.copytree(tmp_path / "data", tmp_path / "killed")  # as it is while the dump is read
        return read_dump(path)

    monkeypatch.setattr("steersman.dumps.reading.read_dump", read)
    prepare(Options(data_dir=tmp_path / "data"), Configuration((), dump=real.written(tmp_path, real.node())))
    killed = Options(data_dir=tmp_path / "killed")
    with pytest.raises(ConfigurationError, match="was interrupted"):
        prepare(killed, Configuration(()))
    shutil.rmtree(tmp_path / "data")
    shutil.rmtree(tmp_path / "killed")
    (broken := tmp_path / "broken.json").write_text("{}")
    with pytest.raises(ConfigurationError, match="no objects"):
        prepare(Options(data_dir=tmp_path / "data"), Configuration((), dump=broken))
    assert not any((tmp_path / "data").iterdir())
