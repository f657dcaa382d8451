"""TokenReviews and SelfSubjectReviews."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.authentication.v1 import SelfSubjectReview, TokenReview, TokenReviewSpec
from steersman.authentication.interface import AuthenticationError, TokenIdentity
from steersman.authentication.user import UserInfo
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action
from steersman.registry.authentication import selfsubjectreviews, tokenreviews
from steersman.rest.context import Context


def context(user: UserInfo) -> Context:
    return Context(user, Action("create", "authentication.k8s.io", "v1", "tokenreviews"))


def authenticate(token: str, audiences: tuple[str, ...]) -> TokenIdentity | None:
    if token == "stale":
        raise AuthenticationError("token has expired")
    return TokenIdentity(UserInfo("ann", groups=("g",)), audiences) if token == "good" else None


async def review(cluster: Callable[..., Any], token: str) -> TokenReview:
    services = replace((await cluster()).services, authenticate_token=authenticate)
    return await tokenreviews.create(services, context(UserInfo("u")), TokenReview(spec=TokenReviewSpec(token=token)))


async def test_a_good_token_is_somebodys(cluster: Callable[..., Any]) -> None:
    status = (await review(cluster, "good")).status
    assert (status.authenticated, status.user.username, status.user.groups) == (True, "ann", ["g"])
    assert status.audiences == ["https://api.example.com"]


@pytest.mark.parametrize(
    ("token", "error"), [("stale", "[invalid bearer token, token has expired]"), ("odd", "invalid bearer token")]
)
async def test_a_bad_token_is_nobodys(cluster: Callable[..., Any], token: str, error: str) -> None:
    status = (await review(cluster, token)).status
    assert (status.authenticated, status.error) == (False, error)


async def test_there_must_be_a_token(cluster: Callable[..., Any]) -> None:
    with pytest.raises(StatusError, match="token is required for TokenReview in authentication"):
        await review(cluster, "")


async def test_the_sender_learns_who_they_are(cluster: Callable[..., Any]) -> None:
    services = (await cluster()).services
    answer = await selfsubjectreviews.create(services, context(UserInfo("ann", groups=("g",))), SelfSubjectReview())
    assert (answer.status.user_info.username, answer.status.user_info.groups) == ("ann", ["g"])
    assert answer.metadata.creation_timestamp is not None
