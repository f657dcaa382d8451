"""Tests of ImagePolicyWebhook: reviews, caching of verdicts, and failures of the webhook."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.admission_plugins.image_policy_webhook import ImagePolicyWebhook, Settings
from steersman.machinery.errors.status import StatusError, generic_server_response
from steersman.webhooks.client import WebhookError
from tests.admission_plugins.pods_and_namespaces import CONTAINER, a_write, admitted, an_update, make_pod, refusal

HEAD = {"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview"}


class FakeWebhook:
    """A webhook that returns `answer`, or raises it if it is an exception."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Any] = []
        self.now = 100.0

    def clock(self) -> float:
        return self.now

    async def post(self, body: bytes) -> bytes:
        self.asked.append(json.loads(body))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()

    def plugin(self, **settings: Any) -> ImagePolicyWebhook:
        return ImagePolicyWebhook(self.post, Settings(**settings), self.clock)


def review_response(allowed: bool, **more: Any) -> dict[str, Any]:
    return HEAD | {"status": {"allowed": allowed, **more}}


async def test_images_and_annotations_are_shown_to_the_judge() -> None:
    judge = FakeWebhook(review_response(True))
    spec = {
        "initContainers": [{"name": "i", "image": "first"}],
        "ephemeralContainers": [{"name": "e", "image": "late"}],
    }
    pod = make_pod(spec, annotations={"x.image-policy.k8s.io/a": "b", "other": "c"})
    await admitted(judge.plugin(), a_write(pod))
    shown = {"containers": [{"image": "i"}, {"image": "first"}], "annotations": {"x.image-policy.k8s.io/a": "b"}}
    assert judge.asked == [HEAD | {"metadata": {}, "spec": shown | {"namespace": "ns"}, "status": {"allowed": False}}]
    await admitted(judge.plugin(), an_update(pod, pod, subresource="ephemeralcontainers"))
    assert judge.asked[1]["spec"]["containers"] == [{"image": "late"}]
    await admitted(judge.plugin(), an_update(pod, pod, subresource="status"))
    assert len(judge.asked) == 2


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (review_response(False), "one or more images rejected by webhook backend"),
        (review_response(False, reason="because"), "image policy webhook backend denied one or more images: because"),
        (HEAD, "one or more images rejected by webhook backend"),
        (
            {"apiVersion": "v1", "kind": "Status"},
            "converting (v1.Status) to (v1alpha1.ImageReview): unknown conversion",
        ),
        (
            {"apiVersion": "x.y/v1", "kind": "Foo"},
            'no kind "Foo" is registered for version "x.y/v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
        (
            HEAD | {"status": {"allowed": 3}},
            "json: cannot unmarshal number into Go struct field ImageReviewStatus.status.allowed of type bool",
        ),
        (WebhookError('Post "https://h": EOF'), 'Post "https://h": EOF'),
        (generic_server_response(404), "the server could not find the requested resource"),
    ],
)
async def test_a_pod_is_refused_unless_it_is_allowed(answer: Any, why: str) -> None:
    error = await refusal(FakeWebhook(answer).plugin(), a_write(make_pod()))
    assert (error.code, error.message) == (403, f'pods "p" is forbidden: {why}')


async def test_a_webhook_that_forbids_is_passed_on() -> None:
    error = await refusal(FakeWebhook(StatusError(500, "Forbidden", "told")).plugin(), a_write(make_pod()))
    assert (error.code, error.message) == (500, "told")


async def test_an_answer_that_does_not_say_what_it_is_is_a_review() -> None:
    await admitted(FakeWebhook({"status": {"allowed": True}}).plugin(), a_write(make_pod()))


async def test_pods_nobody_can_judge_may_be_let_in() -> None:
    judge = FakeWebhook(WebhookError("down"))
    await admitted(judge.plugin(default_allow=True), a_write(make_pod()))
    judge.answer = review_response(False)
    assert (await refusal(judge.plugin(default_allow=True), a_write(make_pod()))).code == 403


async def test_answers_are_good_for_their_time() -> None:
    judge = FakeWebhook(review_response(True))
    plugin = judge.plugin(allow_ttl=10.0, deny_ttl=2.0)
    await admitted(plugin, a_write(make_pod()))
    judge.answer = review_response(False)
    judge.now += 9.9
    await admitted(plugin, a_write(make_pod()))
    judge.now += 0.1
    await refusal(plugin, a_write(make_pod()))
    judge.answer = review_response(True)
    judge.now += 1.9
    await refusal(plugin, a_write(make_pod()))
    await admitted(plugin, a_write(make_pod({"containers": [CONTAINER | {"image": "another"}]})))
    judge.now += 0.1
    await admitted(plugin, a_write(make_pod()))
    assert len(judge.asked) == 4
