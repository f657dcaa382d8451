"""Tests of bootstrap tokens: expiry, and signatures."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from steersman.api.core.v1 import ConfigMap, Secret
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.resources import CONFIG_MAPS, SECRETS
from steersman.controllers.tokens.bootstrap_signer import BootstrapSigner, detached_signature
from steersman.controllers.tokens.bootstrap_tokens import signing_token
from steersman.controllers.tokens.token_cleaner import TokenCleaner
from steersman.machinery.built_in.bootstrap_tokens import SECRET_TYPE, seconds_left
from steersman.machinery.values import times
from tests.controllers.waiting import Run, eventually

NOW = float(times.unix("2026-01-01T00:00:00Z"))


def token(name: str = "abcdef", **data: str) -> Secret:
    given = {"token-id": name, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"}
    given |= {key.replace("_", "-"): text for key, text in data.items()}
    metadata = ObjectMeta(name=f"bootstrap-token-{name}", namespace="kube-system")
    return Secret(metadata=metadata, type=SECRET_TYPE, data={key: text.encode() for key, text in given.items() if text})


@pytest.mark.parametrize(
    ("expiration", "left"),
    [
        ("", None),
        ("2026-01-01T00:01:00Z", 60.0),
        ("2026-01-01T01:01:00+01:00", 60.0),
        ("2025-12-31T00:00:00Z", 0.0),
        ("tomorrow", 0.0),
    ],
)
def test_until_when_a_token_is_good(expiration: str, left: float | None) -> None:
    assert seconds_left(token(expiration=expiration).data, NOW) == left


def test_which_tokens_sign() -> None:
    assert signing_token(token(), NOW) == ("abcdef", "0123456789abcdef")
    for data in (
        {"token_id": "other6"},
        {"token_secret": ""},
        {"usage_bootstrap_signing": "false"},
        {"expiration": "tomorrow"},
    ):
        assert signing_token(token(**data), NOW) is None
    assert signing_token(token("ABCDEF"), NOW) is None


def test_a_signature_is_a_jws_without_its_content() -> None:
    header, content, signature = detached_signature("what is told", "abcdef", "secret").split(".")
    assert (content, base64.urlsafe_b64decode(header + "==")) == ("", b'{"alg":"HS256","kid":"abcdef"}')
    is_signed = f"{header}.{base64.urlsafe_b64encode(b'what is told').decode().rstrip('=')}"
    expected = hmac.digest(b"secret", is_signed.encode(), hashlib.sha256)
    assert base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4)) == expected


async def cluster_info(client: Client) -> dict[str, str]:
    return (await client.get(CONFIG_MAPS, "cluster-info", "kube-public")).data


async def test_the_clusters_information_is_signed_by_each_token(run: Run) -> None:
    client = await run(BootstrapSigner, TokenCleaner)
    data = {"kubeconfig": "here", "jws-kubeconfig-gone": "x", "more": "y"}
    metadata = ObjectMeta(name="cluster-info", namespace="kube-public")
    await client.create(CONFIG_MAPS, ConfigMap(metadata=metadata, data=data))
    await client.create(SECRETS, token())
    await client.create(SECRETS, token("expire", expiration="2020-01-01T00:00:00Z"))

    async def is_signed() -> bool:
        signature = detached_signature("here", "abcdef", "0123456789abcdef")
        return await cluster_info(client) == {"kubeconfig": "here", "more": "y", "jws-kubeconfig-abcdef": signature}

    await eventually(is_signed)

    async def cleaned() -> bool:
        found = (await client.list(SECRETS, "kube-system", field_selector=f"type={SECRET_TYPE}")).items
        return [each.metadata.name for each in found] == ["bootstrap-token-abcdef"]

    await eventually(cleaned)
    await client.delete(SECRETS, "bootstrap-token-abcdef", "kube-system")

    async def unsigned() -> bool:
        return await cluster_info(client) == {"kubeconfig": "here", "more": "y"}

    await eventually(unsigned)
