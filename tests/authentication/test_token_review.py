"""Tokens reviewed by another server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from steersman.api.authentication.v1 import TokenReview, TokenReviewStatus, UserInfo
from steersman.authentication.interface import AuthenticationError, TokenIdentity
from steersman.authentication.token_cache import CachedTokenAuthenticator
from steersman.authentication.token_review import ReviewedTokens
from steersman.machinery.errors.status import service_unavailable
from tests.counted_work import Text, grows_too_fast

ALICE = UserInfo(username="alice", uid="1", groups=["dev"], extra={"scope": ["a", "b"]})


class Reviews:
    """Answers with a fixed status, and counts calls."""

    def __init__(self, status: TokenReviewStatus | None) -> None:
        self.status = status
        self.asked: list[TokenReview] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def __call__(self, review: TokenReview) -> TokenReview:
        self.asked.append(review)
        await self.go_on.wait()
        if self.status is None:
            raise service_unavailable("nobody there")
        return TokenReview(status=self.status)


async def test_whose_a_token_is_is_what_the_review_says() -> None:
    reviews = Reviews(TokenReviewStatus(authenticated=True, user=ALICE))
    identity = await ReviewedTokens(reviews).authenticate_token("t", ())
    assert identity is not None
    user = identity.user
    assert (user.name, user.uid, user.groups, dict(user.extra)) == (
        "alice",
        "1",
        ("dev", "system:authenticated"),
        {"scope": ("a", "b")},
    )
    assert [each.spec.token for each in reviews.asked] == ["t"]


@pytest.mark.parametrize(("answered", "known"), [(["a", "x"], ("a",)), (["x"], None), ([], None)])
async def test_a_token_counts_for_the_audiences_that_the_answer_names(
    answered: list[str], known: tuple[str, ...] | None
) -> None:
    reviews = Reviews(TokenReviewStatus(authenticated=True, user=ALICE, audiences=answered))
    identity = await ReviewedTokens(reviews).authenticate_token("t", ("a", "b"))
    assert (identity and identity.audiences) == known
    assert reviews.asked[0].spec.audiences == ["a", "b"]


async def test_a_token_that_is_not_good_or_cannot_be_reviewed_is_nobodys() -> None:
    assert await ReviewedTokens(Reviews(TokenReviewStatus())).authenticate_token("t", ()) is None
    with pytest.raises(AuthenticationError, match="it has expired"):
        await ReviewedTokens(Reviews(TokenReviewStatus(error="it has expired"))).authenticate_token("t", ())
    with pytest.raises(AuthenticationError, match="nobody there"):
        await ReviewedTokens(Reviews(None)).authenticate_token("t", ())


async def test_who_asks_meanwhile_waits_for_the_same_answer_and_who_leaves_does_not_end_it() -> None:
    reviews = Reviews(TokenReviewStatus(authenticated=True, user=ALICE))
    reviews.go_on.clear()
    cached = CachedTokenAuthenticator(ReviewedTokens(reviews))
    leaving, staying = (asyncio.ensure_future(_known(cached)) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    reviews.go_on.set()
    identity = await staying
    assert identity is not None
    assert len(reviews.asked) == 1
    assert cached.authenticate_token("t", ()) is identity


async def test_that_nobody_has_a_token_is_remembered_and_a_failure_is_not() -> None:
    reviews, now = Reviews(TokenReviewStatus()), [100.0]
    cached = CachedTokenAuthenticator(ReviewedTokens(reviews), unknown_seconds=10.0, clock=lambda: now[0])
    for later, asked in ((0.0, 1), (9.9, 1), (0.2, 2)):
        now[0] += later
        assert await _known(cached) is None
        assert len(reviews.asked) == asked
    now[0] += 20
    reviews.status = None
    for _ in range(2):
        with pytest.raises(AuthenticationError):
            await _known(cached)
    assert len(reviews.asked) == 4


async def _known(cached: CachedTokenAuthenticator) -> TokenIdentity | None:
    answer = cached.authenticate_token("t", ())
    return answer if answer is None or isinstance(answer, TokenIdentity) else await answer


async def test_many_audiences_on_both_sides_are_compared_in_no_time() -> None:
    def compared(size: int) -> Callable[[], object]:
        asked = tuple(Text(f"asked-{number}") for number in range(size))
        said: list[str] = [Text(f"said-{number}") for number in range(size)]
        tokens = ReviewedTokens(Reviews(TokenReviewStatus(authenticated=True, user=ALICE, audiences=said)))

        def ask() -> None:
            with contextlib.suppress(StopIteration):
                tokens.authenticate_token("t", asked).send(None)

        return ask

    assert not grows_too_fast(compared)
