"""Authorization by another server."""

from __future__ import annotations

import pytest

from steersman.api.authorization.v1 import SubjectAccessReview, SubjectAccessReviewStatus
from steersman.authentication.user import UserInfo
from steersman.authorization.access_review import MAX_LENGTH, AccessReviewAuthorizer
from steersman.authorization.always_allow_paths import AlwaysAllowPathsAuthorizer
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, decide
from steersman.machinery.errors.status import service_unavailable
from steersman.machinery.identity.action import Action

ALICE = UserInfo("alice", "1", ("dev",), {"scope": ("a",)})
GET = Attributes(ALICE, Action("get", "e.x", "v1", "ships", "status", "default", "a"))


class Reviews:
    """Answers with a fixed status, and records reviews."""

    def __init__(self, status: SubjectAccessReviewStatus | None) -> None:
        self.status = status
        self.asked: list[SubjectAccessReview] = []

    async def __call__(self, review: SubjectAccessReview) -> SubjectAccessReview:
        self.asked.append(review)
        if self.status is None:
            raise service_unavailable("nobody there")
        return SubjectAccessReview(status=self.status)


async def test_all_of_the_action_and_the_user_is_asked_about() -> None:
    reviews = Reviews(SubjectAccessReviewStatus(allowed=True))
    assert (await decide(AccessReviewAuthorizer(reviews), GET)).allowed
    spec = reviews.asked[0].spec
    assert (spec.user, spec.uid, spec.groups, spec.extra) == ("alice", "1", ["dev"], {"scope": ["a"]})
    asked = spec.resource_attributes
    assert asked is not None
    assert spec.non_resource_attributes is None
    assert (asked.verb, asked.group, asked.version, asked.resource, asked.subresource, asked.namespace, asked.name) == (
        "get",
        "e.x",
        "v1",
        "ships",
        "status",
        "default",
        "a",
    )


async def test_a_path_is_asked_about_as_a_path() -> None:
    reviews = Reviews(SubjectAccessReviewStatus(allowed=False, reason="no"))
    verdict = await decide(AccessReviewAuthorizer(reviews), Attributes(ALICE, Action("get"), path="/metrics"))
    assert (verdict.decision, verdict.reason) == (Decision.NO_OPINION, "no")
    asked = reviews.asked[0].spec.non_resource_attributes
    assert asked is not None
    assert (asked.path, asked.verb) == ("/metrics", "get")


@pytest.mark.parametrize(
    ("status", "decision", "has_error"),
    [
        (SubjectAccessReviewStatus(denied=True), Decision.DENY, False),
        (SubjectAccessReviewStatus(allowed=True, denied=True), Decision.DENY, True),
        (None, Decision.NO_OPINION, True),
    ],
)
async def test_what_is_not_allowed_clearly_is_not_allowed(
    status: SubjectAccessReviewStatus | None, decision: Decision, has_error: bool
) -> None:
    verdict = await decide(AccessReviewAuthorizer(Reviews(status)), GET)
    assert (verdict.decision, bool(verdict.error)) == (decision, has_error)


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_verdict_is_kept_for_ten_seconds_and_a_failure_is_not(allowed: bool) -> None:
    reviews, now = Reviews(SubjectAccessReviewStatus(allowed=allowed)), [100.0]
    authorizer = AccessReviewAuthorizer(reviews, clock=lambda: now[0])
    for later, asked in ((0.0, 1), (9.9, 1), (0.2, 2)):
        now[0] += later
        assert (await decide(authorizer, GET)).allowed is allowed
        assert len(reviews.asked) == asked
    now[0] += 20
    reviews.status = None
    for asked in (3, 4):
        assert (await decide(authorizer, GET)).error
        assert len(reviews.asked) == asked


async def test_verdicts_are_each_users_own_and_bounded() -> None:
    reviews = Reviews(SubjectAccessReviewStatus(allowed=True))
    authorizer = AccessReviewAuthorizer(reviews, size=2)
    for name in ("a", "b", "c", "a"):
        await decide(authorizer, Attributes(UserInfo(name), GET.action))
    assert [each.spec.user for each in reviews.asked] == ["a", "b", "c", "a"]


async def test_what_is_very_long_is_asked_about_each_time() -> None:
    reviews = Reviews(SubjectAccessReviewStatus(allowed=True))
    authorizer = AccessReviewAuthorizer(reviews)
    for _ in range(2):
        await decide(authorizer, Attributes(ALICE, Action("get"), path="/" + "a" * MAX_LENGTH))
    assert len(reviews.asked) == 2


def test_some_paths_are_everybodys_exactly_as_they_are() -> None:
    authorizer = AlwaysAllowPathsAuthorizer(["/healthz"])
    judged = {
        path: authorizer.authorize(Attributes(ALICE, Action("get"), path=path)).allowed
        for path in ("/healthz", "/healthz/ping", "/health", "/")
    }
    assert judged == {"/healthz": True, "/healthz/ping": False, "/health": False, "/": False}
    assert not authorizer.authorize(GET).allowed
