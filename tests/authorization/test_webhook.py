"""Authorization webhooks: reviews to a real HTTPS server, and verdicts from its answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from steersman.authentication.user import UserInfo
from steersman.authorization.access_review import AccessReviewAuthorizer
from steersman.authorization.attributes import Attributes, read_selectors
from steersman.authorization.interface import Decision, Verdict, decide
from steersman.authorization.match_conditions import MatchConditions
from steersman.authorization.metrics import WebhookMetrics
from steersman.authorization.webhook import WebhookReviews, counted_match
from steersman.machinery.identity.action import Action
from steersman.machinery.metrics import Registry
from steersman.server.certificates import CertificateFiles
from steersman.webhooks.client import WebhookClient
from steersman.webhooks.kubeconfig import load_kubeconfig
from tests.https_hook import HttpsHook, http_response

ALICE = UserInfo("alice", "1", ("dev",), {"scope": ("a",)})
LIST = Attributes(ALICE, Action("list", "", "v1", "pods", "", "x"))


class Hook(HttpsHook):
    """Answers every review with `status`, or with the result of `answer`."""

    def __init__(self, files: CertificateFiles) -> None:
        super().__init__(files)
        self.status: dict[str, Any] = {"allowed": True}
        self.answer: Callable[[Any], bytes] | None = None
        self.asked_of: list[Any] = []

    def answered(self, target: str, body: Any) -> bytes:
        self.asked_of.append(body)
        if self.answer is not None:
            return self.answer(body)
        return http_response(200, json.dumps({**body, "status": self.status}).encode(), "application/json")


@pytest_asyncio.fixture
async def hook(hook_files: CertificateFiles) -> AsyncIterator[Hook]:
    async with Hook(hook_files) as started:
        yield started


class Asked:
    """An authorizer that asks the hook, and its metrics."""

    def __init__(self, hook: Hook, hook_files: CertificateFiles, folder: Any, **options: Any) -> None:
        cluster = {"server": f"https://127.0.0.1:{hook.port}/judge", "certificate-authority": str(hook_files.ca)}
        config = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        file = folder / "kubeconfig"
        file.write_text(json.dumps(config))
        self.metrics = WebhookMetrics(Registry())
        self.client = WebhookClient(load_kubeconfig(file), 0.001, timeout=options.pop("timeout", 5.0))
        on_error = options.get("on_error", Decision.NO_OPINION)
        conditions = options.pop("conditions", ())
        if conditions:
            options["match"] = counted_match(MatchConditions(conditions), "w", self.metrics)
        reviews = WebhookReviews(
            self.client, options.pop("version", "v1"), "w", self.metrics, fails_open=on_error is Decision.NO_OPINION
        )
        self.authorizer = AccessReviewAuthorizer(reviews, **options)

    async def judge(self, attributes: Attributes = LIST) -> Verdict:
        return await decide(self.authorizer, attributes)

    def close(self) -> None:
        self.client.close()


@pytest.fixture
def asking(hook: Hook, hook_files: CertificateFiles, tmp_path: Path) -> Iterator[Any]:
    made = []

    def make(**options: Any) -> Asked:
        made.append(Asked(hook, hook_files, tmp_path, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


async def test_a_review_says_who_wants_what(hook: Hook, asking: Any) -> None:
    limits = read_selectors("a=n,b!=c", "c in (d,e),!f")
    assert (await asking().judge(Attributes(ALICE, LIST.action, limits=limits))).allowed
    assert "timeout=5s" in hook.heads[0]
    assert hook.asked_of[0]["spec"] == {
        "user": "alice",
        "uid": "1",
        "groups": ["dev"],
        "extra": {"scope": ["a"]},
        "resourceAttributes": {
            "verb": "list",
            "version": "v1",
            "resource": "pods",
            "namespace": "x",
            "fieldSelector": {
                "requirements": [
                    {"key": "a", "operator": "In", "values": ["n"]},
                    {"key": "b", "operator": "NotIn", "values": ["c"]},
                ]
            },
            "labelSelector": {
                "requirements": [
                    {"key": "c", "operator": "In", "values": ["d", "e"]},
                    {"key": "f", "operator": "DoesNotExist"},
                ]
            },
        },
    }


async def test_the_older_version_has_another_name_for_groups(hook: Hook, asking: Any) -> None:
    assert (await asking(version="v1beta1").judge()).allowed
    review = hook.asked_of[0]
    assert review["apiVersion"] == "authorization.k8s.io/v1beta1"
    assert review["spec"]["group"] == ["dev"]
    assert "groups" not in review["spec"]


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        ({"allowed": True, "reason": "yes"}, Verdict(Decision.ALLOW, "yes")),
        ({"allowed": False, "reason": "hm"}, Verdict(Decision.NO_OPINION, "hm")),
        ({"allowed": False, "denied": True, "reason": "no"}, Verdict(Decision.DENY, "no")),
    ],
)
async def test_a_verdict_is_kept(hook: Hook, asking: Any, status: dict[str, Any], verdict: Verdict) -> None:
    hook.status = status
    asked = asking()
    assert await asked.judge() == verdict
    assert await asked.judge() == verdict
    assert len(hook.asked_of) == 1
    assert asked.metrics.evaluations.value(("w", "success")) == 1


async def test_nothing_is_kept_where_that_is_not_wanted(hook: Hook, asking: Any) -> None:
    asked = asking(allow_seconds=0.0)
    await asked.judge()
    await asked.judge()
    assert len(hook.asked_of) == 2


@pytest.mark.parametrize("on_error", [Decision.NO_OPINION, Decision.DENY])
async def test_without_an_answer_nothing_is_allowed(hook: Hook, asking: Any, on_error: Any) -> None:
    hook.answer = lambda body: http_response(403, b"x", "application/json")
    asked = asking(on_error=on_error)
    assert await asked.judge() == Verdict(on_error, error="unknown")
    assert asked.metrics.evaluations.value(("w", "error")) == 1
    assert asked.metrics.failed_open.value(("w", "error")) == (on_error is Decision.NO_OPINION)


async def test_what_failed_in_passing_is_tried_again(hook: Hook, asking: Any) -> None:
    answers = [http_response(500, b"x", "text/plain")] * 4
    hook.answer = lambda body: (
        answers.pop()
        if answers
        else http_response(200, json.dumps({**body, "status": {"allowed": True}}).encode(), "application/json")
    )
    asked = asking()
    assert (await asked.judge()).allowed
    assert asked.metrics.evaluations.value(("w", "error")) == 4
    assert asked.metrics.evaluations.value(("w", "success")) == 1


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"not json", "couldn't get version/kind"),
        (b'{"kind":"Pod","apiVersion":"v1"}', "converting (v1.Pod) to (v1.SubjectAccessReview): unknown conversion"),
        (
            b'{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1","status":{"allowed":true}}',
            "converting (v1beta1.SubjectAccessReview) to (v1.SubjectAccessReview): unknown conversion",
        ),
        (b'{"status":{"reason":"' + b'","' * 2000 + b'"}}', "the answer has more than 1000 values"),
    ],
)
async def test_answers_that_are_none(hook: Hook, asking: Any, body: bytes, why: str) -> None:
    hook.answer = lambda asked: http_response(200, body, "application/json")
    verdict = await asking().judge()
    assert verdict.decision is Decision.NO_OPINION
    assert why in verdict.error


async def test_a_webhook_that_does_not_answer_in_time(hook: Hook, asking: Any) -> None:
    import asyncio

    hook.held = asyncio.Event()
    asked = asking(timeout=0.05)
    verdict = await asked.judge()
    assert "Client.Timeout exceeded" in verdict.error
    assert asked.metrics.evaluations.value(("w", "timeout")) == 1
    assert asked.metrics.failed_open.value(("w", "timeout")) == 1
    hook.held.set()


async def test_a_webhook_that_is_not_meant_is_not_asked(hook: Hook, asking: Any) -> None:
    asked = asking(conditions=["request.user == 'bob'"])
    assert await asked.judge() == Verdict(Decision.NO_OPINION)
    assert hook.asked_of == []
    assert asked.metrics.exclusions.value(("Webhook", "w")) == 1


async def test_conditions_without_a_value_refuse_where_failures_do(hook: Hook, asking: Any) -> None:
    asked = asking(conditions=["request.nonResourceAttributes.path == '/'"], on_error=Decision.DENY)
    verdict = await asked.judge()
    assert verdict.decision is Decision.DENY
    assert "no such key: nonResourceAttributes" in verdict.error
    assert hook.asked_of == []
    assert asked.metrics.condition_errors.value(("Webhook", "w")) == 1
