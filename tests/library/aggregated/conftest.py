"""A listening cluster in this process, and servers behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from steersman import Aggregation, Server
from steersman.server.certificates import CertificateFiles, ensure_certificates
from steersman.testing import Environment, User
from tests.aggregator.extension_server import own_address

USERS = (User("admin", ("system:masters",)), User("alice", ("dev",)), User("server"))
"""The administrator, a user without permissions, and the users of the servers behind the cluster."""

StartBehind = Callable[..., Awaitable[Server]]


@pytest.fixture(scope="session")
def proxies(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    """The authority of the certificate that the cluster presents to servers behind it (`admin`)."""
    return ensure_certificates(tmp_path_factory.mktemp("proxies"))


@pytest_asyncio.fixture
async def cluster(keys_folder: Path, proxies: CertificateFiles) -> AsyncIterator[Environment]:
    """A cluster with aggregation, configured like kube-apiserver with these flags."""
    environment = Environment(
        users=USERS,
        folder=keys_folder,
        listen=True,
        requestheader_client_ca_file=str(proxies.ca),
        requestheader_username_headers=("X-Remote-User",),
        requestheader_group_headers=("X-Remote-Group",),
        requestheader_extra_headers_prefix=("X-Remote-Extra-",),
        proxy_client_cert_file=str(proxies.admin),
        proxy_client_key_file=str(proxies.admin_key),
        enable_aggregator_routing=True,
    )
    async with environment:
        client = environment.client()
        role = {
            "metadata": {"name": "namespaces"},
            "rules": [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]}],
        }
        assert (await client.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)).status == 201
        for name, namespace, kind in (
            ("system:auth-delegator", "", "ClusterRole"),
            ("namespaces", "", "ClusterRole"),
            ("extension-apiserver-authentication-reader", "/namespaces/kube-system", "Role"),
        ):
            body = {
                "metadata": {"name": f"behind-{name}"},
                "subjects": [{"kind": "User", "name": "server", "apiGroup": "rbac.authorization.k8s.io"}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            }
            plural = "rolebindings" if namespace else "clusterrolebindings"
            answer = await client.post(f"/apis/rbac.authorization.k8s.io/v1{namespace}/{plural}", body)
            assert answer.status == 201, answer.body
        yield environment


@pytest_asyncio.fixture
async def start_behind(cluster: Environment, tmp_path: Path) -> AsyncIterator[StartBehind]:
    """`await start_behind(Flunder)` starts a server behind the cluster, on a free port; it stops after the test.

    A server that registers itself has the administrator's permissions.
    """
    started: list[Server] = []

    async def start(*resources: type[Any], **options: Any) -> Server:
        kubeconfig = cluster.kubeconfig("admin" if options.get("register") else "server")
        aggregation = Aggregation(service="things", address=own_address(), kubeconfig=kubeconfig, **options)
        server = Server(*resources, data_dir=tmp_path, storage="memory", secure_port=0, aggregation=aggregation)
        await server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        await server.stop()
