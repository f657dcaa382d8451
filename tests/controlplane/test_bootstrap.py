"""Initial objects of a cluster: created once, kept over restarts, and completed if something is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from steersman.api.meta.v1 import DeleteOptions
from steersman.controlplane.addresses import service_node_ports
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.group_versions import GROUP_VERSIONS
from steersman.controlplane.options import Options, OptionsError
from steersman.machinery.codec.serializer import to_plain
from steersman.rest.capabilities import ListOptions
from steersman.rest.context import loopback
from steersman.store.storage_errors import StorageNotReady
from steersman.testing import Client
from steersman.testing.users import ADMIN
from tests.cached_objects import cached

pytestmark = pytest.mark.usefixtures("from_nothing")

RBAC = "rbac.authorization.k8s.io"
REGISTRATION = "apiregistration.k8s.io"
BOOTSTRAPPED = (
    ("", "namespaces"),
    ("", "services"),
    ("", "configmaps"),
    (RBAC, "clusterroles"),
    (RBAC, "clusterrolebindings"),
    (RBAC, "roles"),
    (RBAC, "rolebindings"),
    ("scheduling.k8s.io", "priorityclasses"),
    (REGISTRATION, "apiservices"),
    ("networking.k8s.io", "servicecidrs"),
    ("networking.k8s.io", "ipaddresses"),
    ("", "endpoints"),
    ("discovery.k8s.io", "endpointslices"),
)

Run = Callable[..., Awaitable[ControlPlane]]


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    """Yield `run()`, which restarts the server on the same folder."""
    running: list[ControlPlane] = []

    async def start(**options: Any) -> ControlPlane:
        while running:
            await running.pop().stop()
        defaults = {"data_dir": tmp_path, "listen": False, "advertise_address": "192.0.2.10"}
        plane = ControlPlane(Options(**{**defaults, **options}))
        running.append(plane)
        await plane.start()
        return plane

    yield start
    for plane in running:
        await plane.stop()


def everything(plane: ControlPlane) -> dict[tuple[str, ...], Any]:
    """Return every object that a server creates by itself."""
    found: dict[tuple[str, ...], Any] = {}
    for group, plural in BOOTSTRAPPED:
        for obj in plane.objects(group, plural).list():
            found[group, plural, obj.metadata.namespace, obj.metadata.name] = to_plain(obj)
    return found


def names(plane: ControlPlane, group: str, plural: str) -> set[str]:
    return {obj.metadata.name for obj in plane.objects(group, plural).list()}


async def change(plane: ControlPlane, group: str, plural: str, name: str, edit: Any, namespace: str = "") -> None:
    def apply(old: Any) -> Any:
        edit(old)
        return old

    await plane.objects(group, plural).update(loopback(namespace, name), name, apply)


async def test_a_fresh_server_has_what_every_cluster_has(run: Run) -> None:
    plane = await run(storage="memory")
    assert names(plane, "", "namespaces") == {"default", "kube-system", "kube-public", "kube-node-lease"}
    assert names(plane, "scheduling.k8s.io", "priorityclasses") == {"system-node-critical", "system-cluster-critical"}
    assert {"cluster-admin", "admin", "edit", "view", "system:node"} <= names(plane, RBAC, "clusterroles")
    service = await cached(plane, "", "services", "default", "kubernetes")
    assert (service.spec.cluster_ip, service.spec.type) == ("10.0.0.1", "ClusterIP")
    assert [(port.name, port.port, port.target_port) for port in service.spec.ports] == [("https", 443, 6443)]
    assert names(plane, "networking.k8s.io", "ipaddresses") == {"10.0.0.1"}
    [subset] = (await cached(plane, "", "endpoints", "default", "kubernetes")).subsets
    assert [address.ip for address in subset.addresses] == ["192.0.2.10"]
    [cidr] = plane.objects("networking.k8s.io", "servicecidrs").list()
    assert (cidr.spec.cidrs, cidr.status.conditions[0].status) == (["10.0.0.0/24"], "True")


async def test_every_group_version_has_an_available_api_service(run: Run) -> None:
    plane = await run(storage="memory")
    services = {obj.metadata.name: obj for obj in plane.objects(REGISTRATION, "apiservices").list()}
    stable = [each for each in GROUP_VERSIONS if "alpha" not in each.version and "beta" not in each.version]
    expected = {f"{each.version}.{each.group}" for each in stable if each.group != REGISTRATION}
    assert set(services) == expected
    assert all(obj.status.conditions[0].type == "Available" for obj in services.values())
    assert all(
        obj.metadata.labels == {"kube-aggregator.kubernetes.io/automanaged": "onstart"} for obj in services.values()
    )


async def test_a_restart_changes_nothing(run: Run) -> None:
    before = everything(await run())
    after = everything(await run())
    for group, plural in (("", "endpoints"), ("discovery.k8s.io", "endpointslices")):  # which led nowhere in between
        key = (group, plural, "default", "kubernetes")
        assert after[key].get("subsets") == before[key].get("subsets")
        assert after.pop(key).get("endpoints") == before.pop(key).get("endpoints")
    assert after == before
    assert all(obj["metadata"]["uid"] for obj in after.values())


async def test_a_restart_writes_nothing_but_what_tells_of_the_server(run: Run) -> None:
    plane = await run()
    assert plane.storage is not None
    before = plane.storage.revision
    plane = await run()
    assert plane.storage is not None
    assert plane.storage.revision == before + 8, "two leases, endpoints and their slice went and came"


async def test_what_is_missing_is_made_again(run: Run) -> None:
    plane = await run()
    before = everything(plane)
    for group, plural, namespace, name in (
        (RBAC, "clusterroles", "", "view"),
        (RBAC, "rolebindings", "kube-system", "system:controller:token-cleaner"),
        (REGISTRATION, "apiservices", "", "v1.apps"),
        ("", "configmaps", "kube-system", "extension-apiserver-authentication"),
        ("", "services", "default", "kubernetes"),
    ):
        options = DeleteOptions(grace_period_seconds=0)
        await plane.objects(group, plural).delete(loopback(namespace, name), name, options)
    classes = plane.store("scheduling.k8s.io", "priorityclasses")
    await classes.delete_collection(loopback(), DeleteOptions(), ListOptions())
    after = everything(await run())
    assert set(after) == set(before)
    assert (
        after["", "services", "default", "kubernetes"]["spec"]
        == before["", "services", "default", "kubernetes"]["spec"]
    )
    changed = {key for key in before if after[key]["metadata"]["uid"] != before[key]["metadata"]["uid"]}
    assert ("", "namespaces", "", "default") not in changed
    assert (RBAC, "clusterroles", "", "view") in changed


async def test_roles_are_completed_and_keep_what_was_added(run: Run) -> None:
    plane = await run()
    whole = await cached(plane, RBAC, "clusterroles", "", "system:node")

    def cut(role: Any) -> None:
        role.rules = role.rules[:1]
        role.rules[0].verbs.append("dance")

    await change(plane, RBAC, "clusterroles", "system:node", cut)
    plane = await run()
    role = await cached(plane, RBAC, "clusterroles", "", "system:node")
    assert role.metadata.uid == whole.metadata.uid
    assert len(role.rules) >= len(whole.rules)
    assert "dance" in role.rules[0].verbs


async def test_roles_marked_to_be_left_alone_are(run: Run) -> None:
    plane = await run()

    def take(role: Any) -> None:
        role.metadata.annotations["rbac.authorization.kubernetes.io/autoupdate"] = "false"
        role.rules = role.rules[:1]

    await change(plane, RBAC, "clusterroles", "system:node", take)
    plane = await run()
    assert len((await cached(plane, RBAC, "clusterroles", "", "system:node")).rules) == 1


async def test_the_service_follows_the_servers_port(run: Run) -> None:
    first = await cached(await run(), "", "services", "default", "kubernetes")
    plane = await run(secure_port=7443, advertise_address="192.0.2.11")
    second = await cached(plane, "", "services", "default", "kubernetes")
    assert second.metadata.uid == first.metadata.uid
    assert [port.target_port for port in second.spec.ports] == [7443]
    [subset] = (await cached(plane, "", "endpoints", "default", "kubernetes")).subsets
    assert [address.ip for address in subset.addresses] == ["192.0.2.11"]
    [endpoint] = (await cached(plane, "discovery.k8s.io", "endpointslices", "default", "kubernetes")).endpoints
    assert endpoint.addresses == ["192.0.2.11"]


async def test_what_users_made_is_there_after_a_restart(run: Run) -> None:
    from steersman.api.core.v1 import ConfigMap
    from steersman.api.meta.v1 import ObjectMeta

    plane = await run()
    obj = ConfigMap(metadata=ObjectMeta(name="mine", namespace="default"), data={"k": "v"})
    made = to_plain(await plane.objects("", "configmaps").create(loopback("default"), obj))
    plane = await run()
    assert to_plain(await cached(plane, "", "configmaps", "default", "mine")) == made


@pytest.mark.parametrize("kind", ["system", "user"])
async def test_namespaces_of_the_system_are_kept(
    start_control_plane: Callable[..., Awaitable[ControlPlane]], client_of: Callable[..., Client], kind: str
) -> None:
    api = client_of(await start_control_plane())
    await api.post("/api/v1/namespaces", {"metadata": {"name": "mine"}})
    answer = await api.delete(f"/api/v1/namespaces/{'default' if kind == 'system' else 'mine'}")
    assert answer.status == (403 if kind == "system" else 200)


@pytest.mark.parametrize(
    ("text", "ports"),
    [("7", range(7, 8)), ("7+3", range(7, 11)), ("7-9", range(7, 10)), (" 7-65535 ", range(7, 65536))],
)
def test_ports_of_nodes_are_a_range_a_port_or_a_port_and_how_many_more(text: str, ports: range) -> None:
    assert service_node_ports(Options(data_dir=Path("/nowhere"), service_node_port_range=text)) == ports


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"service_cluster_ip_range": "10.0.0.0/240"}, "--service-cluster-ip-range"),
        ({"service_cluster_ip_range": "10.0.0.0/30"}, "must be at least 8 IP addresses"),
        ({"service_cluster_ip_range": "10.0.0.0/24,fd00::1/128"}, "must be at least 8 IP addresses"),
        ({"service_node_port_range": "5-"}, "--service-node-port-range"),
        ({"service_node_port_range": "30-20"}, "--service-node-port-range"),
        ({"service_node_port_range": "1+2-3"}, "--service-node-port-range"),
        ({"service_node_port_range": "65535+1"}, "--service-node-port-range"),
        ({"service_node_port_range": "1-" + "9" * 5000}, "--service-node-port-range"),
        ({"token_auth_file": __file__}, "--token-auth-file"),
        ({"tls_min_version": "SSLv3"}, 'unknown tls version "SSLv3"'),
    ],
)
async def test_options_that_cannot_be_read_are_told_and_leave_nothing_running(
    tmp_path: Path, options: dict[str, Any], text: str
) -> None:
    plane = ControlPlane(Options(data_dir=tmp_path, storage="memory", listen=False, **options))
    with pytest.raises(OptionsError, match=text):
        await plane.start()
    assert plane.storage is None
    assert plane.server is None


@pytest.mark.parametrize(
    ("issuers", "status"),
    [
        (("https://a", "/etc/apiserver.crt"), 200),
        (("http://a", "https://b"), 404),
        (("/etc/apiserver.crt",), 404),
        (("http://[",), 404),
    ],
)
async def test_openid_discovery_is_served_for_a_first_issuer_with_https(
    run: Run, issuers: tuple[str, ...], status: int
) -> None:
    plane = await run(storage="memory", service_account_issuer=issuers)
    client = Client(plane, {}, ADMIN)
    for path in ("/.well-known/openid-configuration", "/openid/v1/jwks"):
        assert (await client.get(path, accept="*/*")).status == status


async def test_a_stopped_server_refuses_to_be_asked(run: Run) -> None:
    plane = await run(storage="memory")
    objects = plane.objects("", "configmaps")
    await plane.stop()
    with pytest.raises(StorageNotReady):
        await objects.get_cached("default", "a")


async def test_what_a_server_makes_is_its_own(run: Run) -> None:
    plane = await run()
    owners = {
        key: {(entry["manager"], entry["operation"]) for entry in obj["metadata"].get("managedFields", ())}
        for key, obj in everything(plane).items()
    }
    applied = ("networking.k8s.io", "servicecidrs", "", "kubernetes")
    assert owners.pop(applied) == {("kube-apiserver", "Update"), ("kubernetes-service-cidr-controller", "Apply")}
    assert {each for found in owners.values() for each in found} == {("kube-apiserver", "Update")}
    assert [key for key, found in owners.items() if not found] == []
