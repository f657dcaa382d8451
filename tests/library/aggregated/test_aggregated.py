"""Servers of declared classes behind a cluster."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import steersman
from steersman import Aggregation, ClusterError, Request, Server, resource, version_of
from steersman.net.in_process import InProcessClient
from steersman.server.certificates import CertificateFiles
from steersman.testing import Answer, Client, Environment
from tests.aggregator.extension_server import until, until_reason

SHIPS = "/apis/e.x/v1/namespaces/default/ships"
CONFIG = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
MERGE = "application/merge-patch+json"


StartBehind = Callable[..., Awaitable[Server]]


class ShipSpec(msgspec.Struct):
    captain: str = ""


@resource("e.x/v1")
class Ship(msgspec.Struct):
    spec: ShipSpec


class OldShipSpec(msgspec.Struct):
    master: str = ""


@version_of(Ship, "v1alpha1")
class OldShip(msgspec.Struct):
    spec: OldShipSpec

    def convert_to(self) -> Ship:
        return Ship(ShipSpec(self.spec.master))

    @classmethod
    def convert_from(cls, hub: Ship) -> OldShip:
        return cls(OldShipSpec(hub.spec.captain))


@resource("who.x/v1")
class Visit(msgspec.Struct):
    """A resource that records the user who created it."""

    user: str = ""
    groups: list[str] = []

    @steersman.prepare
    def sign(self, request: Request[Visit]) -> None:
        self.user, self.groups = request.user.name, list(request.user.groups)


VISITS = "/apis/who.x/v1/namespaces/default/visits"


def ship(name: str) -> dict[str, Any]:
    return {"apiVersion": "e.x/v1", "kind": "Ship", "metadata": {"name": name}, "spec": {"captain": "ahab"}}


def visit(name: str) -> dict[str, Any]:
    return {"apiVersion": "who.x/v1", "kind": "Visit", "metadata": {"name": name}}


async def send(server: Server, method: str, target: str, body: Any = None, **headers: str) -> Answer:
    """Send a request directly to the server, without a certificate."""
    fields = [("accept", "application/json"), *((name.replace("_", "-"), each) for name, each in headers.items())]
    data = b"" if body is None else json.dumps(body).encode()
    if data:
        fields.append(("content-type", "application/json"))
    response = await InProcessClient(server.handler).request(method, target, fields, data)
    return Answer(response.status, response.headers, await response.read())


async def allow(client: Client, user: str, group: str, verbs: list[str]) -> None:
    role = {
        "metadata": {"name": f"{user}-{group}"},
        "rules": [{"apiGroups": [group], "resources": ["*"], "verbs": verbs}],
    }
    binding = {
        "metadata": {"name": f"{user}-{group}"},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"{user}-{group}"},
    }
    for plural, body in (("clusterroles", role), ("clusterrolebindings", binding)):
        answer = await client.post(f"/apis/rbac.authorization.k8s.io/v1/{plural}", body)
        assert answer.status == 201, answer.body


async def test_the_cluster_serves_it_once_it_has_registered(cluster: Environment, start_behind: StartBehind) -> None:
    await start_behind(Ship, register=True)
    client = cluster.client()
    for name in ("v1.e.x", "v1alpha1.e.x"):
        await until_reason(client, "Passed", name)
    made = await client.post(SHIPS, ship("a"))
    assert made.status == 201, made.body
    old = await client.get("/apis/e.x/v1alpha1/namespaces/default/ships/a")
    assert old.json()["spec"] == {"master": "ahab"}
    groups = (await client.get("/apis")).json()["groups"]
    assert [each["version"] for group in groups if group["name"] == "e.x" for each in group["versions"]] == [
        "v1",
        "v1alpha1",
    ]


async def test_users_are_those_that_the_cluster_names_and_have_their_rights_there(
    cluster: Environment, start_behind: StartBehind
) -> None:
    await start_behind(Visit, register=True)
    client = cluster.client()
    await until_reason(client, "Passed", "v1.who.x")
    refused = await client.as_user("alice").post(VISITS, visit("a"))
    assert (refused.status, refused.json()["message"]) == (
        403,
        'visits.who.x is forbidden: User "alice" cannot create resource "visits" in API group "who.x" '
        'in the namespace "default"',
    )
    await allow(client, "alice", "who.x", ["get", "create"])
    made = (await client.as_user("alice").post(VISITS, visit("b"))).json()
    assert (made["user"], made["groups"]) == ("alice", ["dev", "system:authenticated"])


async def test_a_token_is_reviewed_by_the_cluster(cluster: Environment, start_behind: StartBehind) -> None:
    server = await start_behind(Visit)
    await allow(cluster.client(), "alice", "who.x", ["create"])
    made = await send(server, "POST", VISITS, visit("a"), authorization=f"Bearer {cluster.token('alice')}")
    assert (made.status, made.json()["user"]) == (201, "alice")
    wrong = await send(server, "GET", VISITS, authorization="Bearer nobody's")
    assert wrong.status == 401


async def test_headers_count_for_nothing_without_the_certificate_of_a_proxy(start_behind: StartBehind) -> None:
    server = await start_behind(Visit)
    answer = await send(server, "GET", VISITS, x_remote_user="admin", x_remote_group="system:masters")
    assert answer.status == 403
    assert 'User "system:anonymous" cannot list' in answer.json()["message"]


def over_tls(server: Server, ca: Path, cert: Path, key: Path, **headers: str) -> tuple[int, Any]:
    context = ssl.create_default_context(cafile=str(ca))
    context.load_cert_chain(cert, key)
    host, _, port = server.url.removeprefix("https://").partition(":")
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=20)
    fields = {"Content-Type": "application/json", **{name.replace("_", "-"): each for name, each in headers.items()}}
    connection.request("POST", f"{VISITS}?dryRun=All", json.dumps(visit("a")), fields)
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return answer.status, body


async def test_certificates_count_by_whom_the_cluster_trusts(
    start_behind: StartBehind, keys_folder: Path, proxies: CertificateFiles, tmp_path: Path
) -> None:
    server = await start_behind(Visit)
    own, clients = CertificateFiles(tmp_path), CertificateFiles(keys_folder)

    async def send_over_tls(files: CertificateFiles, **headers: str) -> tuple[int, Any]:
        return await asyncio.to_thread(over_tls, server, own.ca, files.admin, files.admin_key, **headers)

    status, made = await send_over_tls(clients)
    assert (status, made["user"]) == (201, "kubernetes-admin")
    status, made = await send_over_tls(proxies, X_Remote_User="jane", X_Remote_Group="system:masters")
    assert (status, made["user"]) == (201, "jane")
    assert (await send_over_tls(clients, X_Remote_User="jane"))[1]["user"] == "kubernetes-admin"
    assert [(await send_over_tls(each))[0] for each in (own, proxies)] == [401, 401]


async def test_health_is_told_to_everybody(start_behind: StartBehind) -> None:
    server = await start_behind(Visit)
    assert [(await send(server, "GET", path)).status for path in ("/healthz", "/livez", "/readyz", "/metrics")] == [
        200,
        200,
        200,
        403,
    ]


async def test_it_serves_nothing_but_its_own(start_behind: StartBehind, cluster: Environment) -> None:
    server = await start_behind(Visit)
    admin = f"Bearer {cluster.token('admin')}"
    groups = (await send(server, "GET", "/apis", authorization=admin)).json()["groups"]
    assert [each["name"] for each in groups] == ["who.x"]
    assert (await send(server, "GET", "/api/v1/namespaces", authorization=admin)).status == 404


async def test_namespaces_are_those_of_the_cluster(cluster: Environment, start_behind: StartBehind) -> None:
    server, client = await start_behind(Visit), cluster.client()
    admin = f"Bearer {cluster.token('admin')}"
    missing = await send(server, "POST", "/apis/who.x/v1/namespaces/pond/visits", visit("a"), authorization=admin)
    assert (missing.status, missing.json()["message"]) == (404, 'namespaces "pond" not found')
    assert (await client.post("/api/v1/namespaces", {"metadata": {"name": "pond"}})).status == 201
    made = await send(server, "POST", "/apis/who.x/v1/namespaces/pond/visits", visit("a"), authorization=admin)
    assert made.status == 201, made.body
    await client.delete("/api/v1/namespaces/pond")

    async def is_refused() -> bool:
        answer = await send(
            server, "POST", "/apis/who.x/v1/namespaces/pond/visits?dryRun=All", visit("b"), authorization=admin
        )
        return answer.status == 403 and "because it is being terminated" in answer.json()["message"]

    await until(is_refused)


async def test_who_is_trusted_follows_the_cluster(cluster: Environment, start_behind: StartBehind) -> None:
    await start_behind(Visit, register=True)
    client = cluster.client()
    await until_reason(client, "Passed", "v1.who.x")
    assert (await client.get(VISITS)).status == 200
    changed = {"data": {"requestheader-allowed-names": '["another proxy"]'}}
    assert (await client.request("PATCH", CONFIG, changed, content_type=MERGE)).status == 200

    async def is_refused() -> bool:
        return (await client.get(VISITS)).status == 401

    await until(is_refused)


async def test_without_the_cluster_nobody_is_let_in(cluster: Environment, start_behind: StartBehind) -> None:
    server = await start_behind(Visit)
    await cluster.stop()
    token = await send(server, "GET", VISITS, authorization=f"Bearer {cluster.token('admin')}")
    anonymous = await send(server, "GET", VISITS)
    assert (token.status, anonymous.status) == (401, 500)
    assert (await send(server, "GET", "/readyz")).status == 200


async def test_it_does_not_start_without_the_cluster(cluster: Environment, tmp_path: Path) -> None:
    aggregation = Aggregation(service="things", kubeconfig=cluster.kubeconfig("server"))
    await cluster.stop()
    server = Server(Visit, data_dir=tmp_path, storage="memory", secure_port=0, aggregation=aggregation)
    with pytest.raises(ClusterError, match="unable to get configmap/extension-apiserver-authentication"):
        await server.start()


async def test_it_does_not_start_without_the_rights_it_needs(cluster: Environment, tmp_path: Path) -> None:
    aggregation = Aggregation(service="things", kubeconfig=cluster.kubeconfig("alice"))
    server = Server(Visit, data_dir=tmp_path, storage="memory", secure_port=0, aggregation=aggregation)
    with pytest.raises(ClusterError, match="kubectl create rolebinding -n kube-system"):
        await server.start()


def test_users_of_its_own_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="authenticates and authorizes users through"):
        Server(Visit, data_dir=tmp_path, token_auth_file="tokens.csv", aggregation=Aggregation(service="things"))


def test_its_manifests_are_an_api_service_for_each_version(tmp_path: Path) -> None:
    server = Server(Ship, data_dir=tmp_path, aggregation=Aggregation(service="ships", namespace="sea", port=8443))
    first, second = server.manifests()
    assert [each["metadata"]["name"] for each in (first, second)] == ["v1.e.x", "v1alpha1.e.x"]
    assert first["spec"]["service"] == {"name": "ships", "namespace": "sea", "port": 8443}
    assert server.manifests()[0]["spec"]["caBundle"] == first["spec"]["caBundle"]
    with pytest.raises(RuntimeError, match="is not aggregated"):
        Server(Ship, data_dir=tmp_path).manifests()
