"""Faults of the webhooks that authenticate tokens and authorize requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio
import yaml

from steersman.server.certificates import CertificateFiles
from steersman.testing import Environment, User
from tests.controllers.waiting import eventually
from tests.https_hook import HttpsHook, http_response

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
FAULTS = "/apis/simulation.steersman.dev/v1alpha1/faults"
JANE = User("jane")


class Reviewer(HttpsHook):
    """Webhook that knows every token, and allows everything."""

    def answered(self, target: str, body: Any) -> bytes:
        is_token = body["kind"] == "TokenReview"
        status = {"authenticated": True, "user": {"username": "jane"}} if is_token else {"allowed": True}
        return http_response(200, json.dumps({**body, "status": status}).encode(), "application/json")

    def kubeconfig(self, file: Path, ca: Path) -> str:
        """Write a kubeconfig of the webhook, and return its path."""
        cluster = {"server": f"https://127.0.0.1:{self.port}/", "certificate-authority": str(ca)}
        found = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        file.write_text(yaml.safe_dump(found))
        return str(file)


@pytest_asyncio.fixture
async def environment(tmp_path: Path, hook_files: CertificateFiles) -> AsyncIterator[Environment]:
    async with Reviewer(hook_files) as reviewer:
        kubeconfig = reviewer.kubeconfig(tmp_path / "kubeconfig", hook_files.ca)
        async with Environment(
            authorization_mode=("RBAC", "Webhook"),
            authorization_webhook_config_file=kubeconfig,
            authorization_webhook_cache_authorized_ttl=0.0,
            authorization_webhook_cache_unauthorized_ttl=0.0,
            authentication_token_webhook_config_file=kubeconfig,
            authentication_token_webhook_cache_ttl=0.0,
        ) as running:
            yield running


async def status_of_jane(environment: Environment, path: str = CONFIG_MAPS) -> int:
    """Return the status of a request that only the webhook allows."""
    return (await environment.client(JANE).get(path)).status


async def reviewed(environment: Environment, token: str) -> dict[str, Any]:
    """Return the status of a TokenReview."""
    answer = await environment.client().post(REVIEWS, {"spec": {"token": token}})
    found: dict[str, Any] = answer.json()["status"]
    return found


async def test_what_only_a_webhook_allows_fails_with_it(environment: Environment) -> None:
    assert await status_of_jane(environment) == 200
    for effect in ({"code": 503}, {"refuse": True}, {"cut": True}, {"garbage": True}, {"lose_answer": True}):
        with environment.faults.add(authorization_webhook="default", **effect) as fault:
            assert await status_of_jane(environment) == 500, effect
            assert [(each.verb, each.resource, each.name) for each in fault.last] == [
                ("call", "subjectaccessreviews", "default")
            ]
    assert await status_of_jane(environment) == 200


async def test_a_request_waits_for_a_webhook_that_hangs(environment: Environment) -> None:
    with environment.faults.add(authorization_webhook="*", hang=True) as fault:
        request = asyncio.create_task(status_of_jane(environment))

        async def hangs() -> bool:
            return fault.injected == 1

        await eventually(hangs)
        assert not request.done()
    assert await request == 200


async def test_a_review_that_is_tried_again_meets_no_fault_that_has_ended(environment: Environment) -> None:
    with environment.faults.add(authorization_webhook="*", code=500) as fault:
        request = asyncio.create_task(status_of_jane(environment))

        async def has_failed() -> bool:
            return fault.injected == 1

        await eventually(has_failed)
    assert await request == 200


async def test_requests_for_faults_are_reviewed_without_faults(environment: Environment) -> None:
    with environment.faults.add(authorization_webhook="*", code=503) as fault:
        assert await status_of_jane(environment, FAULTS) == 404, "allowed, but not served"
        assert fault.matched == 0


async def test_a_token_is_unknown_while_the_webhook_fails(environment: Environment) -> None:
    assert (await reviewed(environment, "a"))["user"]["username"] == "jane"
    with environment.faults.add(authentication_webhook="default", code=503, message="no memory", times=1) as fault:
        assert await reviewed(environment, "b") == {"user": {}, "error": "[invalid bearer token, no memory]"}
        assert [(each.verb, each.resource, each.name) for each in fault.last] == [("call", "tokenreviews", "default")]
        assert (await reviewed(environment, "b"))["authenticated"], "the failure is not kept"


async def test_kinds_of_webhooks_are_apart(environment: Environment) -> None:
    with (
        environment.faults.add(authentication_webhook="*", code=503) as tokens,
        environment.faults.add(authorization_webhook="other", webhook="*", code=503) as other,
    ):
        assert await status_of_jane(environment) == 200
        assert (tokens.matched, other.matched) == (0, 0)
