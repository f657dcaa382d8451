"""Service accounts, and the tokens signed for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.authentication.v1 import TokenRequest
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.errors.status import StatusError
from steersman.registry.core.nodes import NODES
from steersman.registry.core.pods.pods import PODS
from steersman.registry.core.secrets import SECRETS
from steersman.registry.core.serviceaccounts import SERVICE_ACCOUNTS
from steersman.registry.core.token_requests import create_token
from steersman.registry.services import EXTENDED_SECONDS


async def request_token(c: Any, **spec: Any) -> Any:
    ctx = c.context(c.stores["", "serviceaccounts"], "ns", "sa")
    return await create_token(c.services, ctx, "sa", from_plain(TokenRequest, {"spec": spec}))


async def started(cluster: Callable[..., Any]) -> Any:
    c = await cluster(SERVICE_ACCOUNTS, SECRETS, PODS, NODES)
    await c.create("serviceaccounts", {"metadata": {"name": "sa"}})
    return c


async def pod(c: Any, name: str, account: str) -> dict[str, Any]:
    spec = {
        "serviceAccountName": account,
        "nodeName": "gone",
        "containers": [{"name": "c", "image": "i"}],
    }
    made: dict[str, Any] = await c.create("pods", {"metadata": {"name": name}, "spec": spec})
    return made


async def test_secrets_keep_only_their_names(cluster: Callable[..., Any]) -> None:
    c = await cluster(SERVICE_ACCOUNTS)
    secrets = [{"name": "a", "namespace": "other", "uid": "u"}]
    made = await c.create("serviceaccounts", {"metadata": {"name": "sa"}, "secrets": secrets})
    assert made["secrets"] == [{"name": "a"}]


async def test_plain_token(cluster: Callable[..., Any]) -> None:
    c = await started(cluster)
    answer = await request_token(c)
    (claims,) = c.signed
    account = await c.get("serviceaccounts", "sa")
    assert answer.status.token == "signed"
    assert claims["exp"] - claims["iat"] == answer.spec.expiration_seconds == 3600
    assert claims["aud"] == answer.spec.audiences == ["https://api.example.com"]
    assert (claims["iss"], claims["sub"]) == ("https://issuer.example.com", "system:serviceaccount:ns:sa")
    assert claims["kubernetes.io"] == {
        "namespace": "ns",
        "serviceaccount": {"name": "sa", "uid": account["metadata"]["uid"]},
    }


async def test_bound_token_names_pod_and_node(cluster: Callable[..., Any]) -> None:
    c = await started(cluster)
    made = await pod(c, "p", "sa")
    ref = {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": made["metadata"]["uid"]}
    await request_token(c, boundObjectRef=ref, expirationSeconds=3607)
    (claims,) = c.signed
    private = claims["kubernetes.io"]
    assert private["pod"] == {"name": "p", "uid": made["metadata"]["uid"]}
    assert private["node"] == {"name": "gone"}
    assert private["warnafter"] == claims["iat"] + 3607
    assert claims["exp"] == claims["iat"] + EXTENDED_SECONDS


@pytest.mark.parametrize(
    ("spec", "code", "text"),
    [
        ({"expirationSeconds": 60}, 422, "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": (1 << 32) + 1}, 422, "may not specify a duration larger than 2^32 seconds"),
        ({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "none"}}, 404, '"none" not found'),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}, 400, "different serviceaccount name"),
        ({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "x"}}, 409, "the UID in record"),
        ({"boundObjectRef": {"kind": "Job", "apiVersion": "batch/v1", "name": "j"}}, 400, "of type batch/v1, Kind=Job"),
    ],
)
async def test_token_is_refused(cluster: Callable[..., Any], spec: dict[str, Any], code: int, text: str) -> None:
    c = await started(cluster)
    await pod(c, "p", "other")
    await c.create("secrets", {"metadata": {"name": "s"}})
    with pytest.raises(StatusError) as caught:
        await request_token(c, **spec)
    assert (caught.value.code, text in caught.value.message) == (code, True)
    assert c.signed == []
