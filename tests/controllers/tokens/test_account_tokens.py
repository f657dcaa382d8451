"""Tests of service account tokens in secrets."""

from __future__ import annotations

import base64
import json
from typing import Any

from steersman.api.core.v1 import ObjectReference, Secret, ServiceAccount
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.errors import is_not_found
from steersman.client.resources import SECRETS, SERVICE_ACCOUNTS
from steersman.controllers.tokens.account_tokens import ServiceAccountTokenController
from steersman.machinery.built_in.token_secrets import ACCOUNT_NAME, ACCOUNT_UID, SECRET_TYPE
from steersman.machinery.errors.status import StatusError
from tests.controllers.waiting import Run, eventually

Claims = dict[str, Any]


def fake_sign(claims: Claims) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode()


async def start(run: Run) -> Client:
    return await run(ServiceAccountTokenController, sign_token=fake_sign, root_ca="PEM")


async def make_account(client: Client, name: str, *secrets: str) -> ServiceAccount:
    references = [ObjectReference(name=each) for each in secrets]
    account = ServiceAccount(metadata=ObjectMeta(name=name, namespace="default"), secrets=references)
    return await client.create(SERVICE_ACCOUNTS, account)


async def make_secret(client: Client, name: str, account: str, **annotations: str) -> None:
    metadata = ObjectMeta(name=name, namespace="default", annotations={ACCOUNT_NAME: account, **annotations})
    await client.create(SECRETS, Secret(metadata=metadata, type=SECRET_TYPE))


async def wait_for_token(client: Client, name: str) -> Secret:
    async def look() -> Secret | None:
        secret = await client.get(SECRETS, name, "default")
        return secret if {"token", "ca.crt", "namespace"} <= secret.data.keys() else None

    return await eventually(look)


async def wait_until_deleted(client: Client, name: str) -> None:
    async def look() -> bool:
        try:
            await client.get(SECRETS, name, "default")
        except StatusError as error:
            return is_not_found(error)
        return False

    await eventually(look)


async def test_a_secret_is_given_a_token_of_its_account(run: Run) -> None:
    client = await start(run)
    account = await make_account(client, "a")
    await make_secret(client, "t", "a")
    secret = await wait_for_token(client, "t")
    assert (secret.data["ca.crt"], secret.data["namespace"]) == (b"PEM", b"default")
    assert secret.metadata.annotations == {ACCOUNT_NAME: "a", ACCOUNT_UID: account.metadata.uid}
    assert json.loads(base64.urlsafe_b64decode(secret.data["token"])) == {
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:default:a",
        "kubernetes.io/serviceaccount/namespace": "default",
        "kubernetes.io/serviceaccount/secret.name": "t",
        "kubernetes.io/serviceaccount/service-account.name": "a",
        "kubernetes.io/serviceaccount/service-account.uid": account.metadata.uid,
    }
    await client.patch(SECRETS, "t", "default", {"data": {"ca.crt": base64.b64encode(b"forged").decode()}})

    async def mended() -> bool:
        return (await client.get(SECRETS, "t", "default")).data["ca.crt"] == b"PEM"

    await eventually(mended)


async def test_tokens_go_with_their_account_and_references_with_their_secret(run: Run) -> None:
    client = await start(run)
    await make_account(client, "a", "t", "u", "other")
    for name in ("t", "u"):
        await make_secret(client, name, "a")
        await wait_for_token(client, name)
    await client.delete(SECRETS, "t", "default")

    async def left() -> bool:
        found = (await client.get(SERVICE_ACCOUNTS, "a", "default")).secrets
        return [each.name for each in found] == ["u", "other"]

    await eventually(left)
    await client.delete(SERVICE_ACCOUNTS, "a", "default")
    await wait_until_deleted(client, "u")


async def test_tokens_of_nobody_are_deleted(run: Run) -> None:
    client = await start(run)
    await make_account(client, "a")
    await make_secret(client, "another", "a", **{ACCOUNT_UID: "0"})
    await make_secret(client, "nobody", "b")
    await wait_until_deleted(client, "another")
    await wait_until_deleted(client, "nobody")


def test_it_does_not_run_without_a_key() -> None:
    from steersman.controllers.controller import Settings

    assert not ServiceAccountTokenController.can_run(Settings())
    assert ServiceAccountTokenController.can_run(Settings(sign_token=fake_sign))
