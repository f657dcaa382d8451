"""Tokens in Secrets, and certificates, that users get from a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest_asyncio
from cryptography import x509

from steersman.api.authentication.v1 import TokenReview, TokenReviewSpec, TokenReviewStatus
from steersman.api.core.v1 import Secret, ServiceAccount
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.client.client import Client
from steersman.client.resources import (
    CERTIFICATE_SIGNING_REQUESTS,
    NODES,
    SECRETS,
    SERVICE_ACCOUNTS,
    TOKEN_REVIEWS,
)
from steersman.cluster.cluster import Cluster
from steersman.controllers.certificates.requests import KUBE_APISERVER_CLIENT
from steersman.controlplane.options import Options
from steersman.machinery.built_in.token_secrets import ACCOUNT_NAME, LAST_USED, SECRET_TYPE
from steersman.machinery.values import times
from tests.controllers.certificates.asked import pem, request
from tests.controllers.waiting import eventually


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    cluster = Cluster(Options(data_dir=tmp_path, storage="memory", listen=False))
    await cluster.start()
    try:
        yield cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
    finally:
        await cluster.stop()


async def review(client: Client, token: str) -> TokenReviewStatus:
    return (await client.create(TOKEN_REVIEWS, TokenReview(spec=TokenReviewSpec(token=token)))).status


async def test_a_token_in_a_secret_is_recognised_while_the_secret_is_there(client: Client) -> None:
    await client.create(SERVICE_ACCOUNTS, ServiceAccount(metadata=ObjectMeta(name="robot", namespace="default")))
    for name in ("t", "gone"):
        metadata = ObjectMeta(name=name, namespace="default", annotations={ACCOUNT_NAME: "robot"})
        await client.create(SECRETS, Secret(metadata=metadata, type=SECRET_TYPE))

    async def token(name: str) -> str:
        return (await client.get(SECRETS, name, "default")).data.get("token", b"").decode()

    status = await review(client, await eventually(partial(token, "t")))
    assert (status.authenticated, status.user.username) == (True, "system:serviceaccount:default:robot")

    async def used() -> str | None:
        return (await client.get(SECRETS, "t", "default")).metadata.labels.get(LAST_USED)

    assert await eventually(used) == times.today()
    gone = await eventually(partial(token, "gone"))
    await client.delete(SECRETS, "gone", "default")
    assert not (await review(client, gone)).authenticated


async def test_certificates_are_signed_by_the_clusters_authority(client: Client, tmp_path: Path) -> None:
    asked = request("a", pem(("CN", "alice"), ("O", "dev")), KUBE_APISERVER_CLIENT, ["client auth"])
    await client.create(CERTIFICATE_SIGNING_REQUESTS, asked)
    condition = {"type": "Approved", "status": "True", "reason": "ByHand"}
    change = {"status": {"conditions": [condition]}}
    await client.patch(CERTIFICATE_SIGNING_REQUESTS, "a", "", change, subresource="approval")

    async def certificate() -> bytes | None:
        return (await client.get(CERTIFICATE_SIGNING_REQUESTS, "a")).status.certificate

    found = x509.load_pem_x509_certificate(await eventually(certificate) or b"")
    found.verify_directly_issued_by(x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes()))


async def test_nodes_have_an_annotation_how_long_they_may_cache_objects(client: Client) -> None:
    async def reported() -> str | None:
        return (await client.get(NODES, "node-0")).metadata.annotations.get("node.alpha.kubernetes.io/ttl")

    assert await eventually(reported) == "0"
