"""Token reviews as webhooks receive them."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from steersman.api.authentication.v1 import TokenReview
from steersman.authentication import webhook_tokens
from steersman.authentication.interface import AuthenticationError
from steersman.authentication.token_review import ReviewedTokens
from steersman.authentication.webhook_tokens import reviews
from steersman.webhooks.client import WebhookError


class Hook:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Any] = []

    async def post(self, body: bytes) -> bytes:
        self.asked.append(json.loads(body))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()


def tokens(hook: Hook, version: str = "v1") -> ReviewedTokens:
    return ReviewedTokens(reviews(hook.post, version), ("api",))


def answer(version: str = "v1", **status: Any) -> dict[str, Any]:
    return {"apiVersion": f"authentication.k8s.io/{version}", "kind": "TokenReview", "status": status}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_user_is_whom_the_webhook_names(version: str) -> None:
    user = {"username": "jane", "uid": "1", "groups": ["dev"], "extra": {"a": ["b"]}}
    hook = Hook(answer(version, authenticated=True, user=user))
    found = await tokens(hook, version).authenticate_token("t", ("api", "x"))
    assert found is not None
    assert (found.user.name, found.user.groups, found.audiences) == ("jane", ("dev", "system:authenticated"), ("api",))
    assert hook.asked[0]["apiVersion"] == f"authentication.k8s.io/{version}"
    assert hook.asked[0]["spec"] == {"token": "t", "audiences": ["api", "x"]}


async def test_audiences_of_the_answer_come_first() -> None:
    hook = Hook(answer(authenticated=True, user={"username": "jane"}, audiences=["x"]))
    found = await tokens(hook).authenticate_token("t", ("api", "x"))
    assert found is not None
    assert found.audiences == ("x",)
    assert await tokens(hook).authenticate_token("t", ("api",)) is None


async def test_who_is_unknown_is_nobody_and_errors_are_told() -> None:
    assert await tokens(Hook(answer())).authenticate_token("t", ("api",)) is None
    for given, text in (
        (answer(error="it has expired"), "it has expired"),
        (WebhookError("nobody there"), "nobody there"),
        (answer("v1beta1", authenticated=True), "unknown conversion"),
        ({"kind": "Pod", "apiVersion": "v9"}, "no kind"),
        (b"damaged", "json"),
    ):
        with pytest.raises(AuthenticationError, match=text):
            await tokens(Hook(given)).authenticate_token("t", ("api",))


async def test_a_large_answer_is_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    user = {"username": "jane", "groups": [f"group-{number}" for number in range(20_000)]}
    threads = []
    read = webhook_tokens.read_review

    def watched(data: bytes, version: str) -> TokenReview:
        threads.append(threading.current_thread())
        return read(data, version)

    monkeypatch.setattr(webhook_tokens, "read_review", watched)
    found = await tokens(Hook(answer(authenticated=True, user=user))).authenticate_token("t", ("api",))
    assert found is not None
    assert len(found.user.groups) == 20_001
    assert threads != [threading.main_thread()]
