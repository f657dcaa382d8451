"""Whose a bearer token is, as another server says when it is asked by a TokenReview.

Follows k8s.io/apiserver `plugin/pkg/authenticator/token/webhook`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import MappingProxyType

from steersman.api.authentication.v1 import TokenReview, TokenReviewSpec
from steersman.authentication.interface import AuthenticationError, TokenIdentity
from steersman.authentication.user import UserInfo
from steersman.machinery.errors.status import StatusError

Review = Callable[[TokenReview], Awaitable[TokenReview]]
"""Has a review answered. Raises StatusError if it is not, whatever the cause."""


class ReviewedTokens:
    """Asks about every token. Without an answer a token is refused; put a CachedTokenAuthenticator before it."""

    def __init__(self, review: Review) -> None:
        self._review = review

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> TokenIdentity | None:
        """See TokenAuthenticator. An answer that names no audience is for none of those asked for."""
        try:
            answer = await self._review(TokenReview(spec=TokenReviewSpec(token=token, audiences=list(audiences))))
        except StatusError as error:
            raise AuthenticationError(f"the token cannot be reviewed: {error}") from None
        status = answer.status
        if not status.authenticated:
            if status.error:
                raise AuthenticationError(status.error)
            return None
        meant = tuple(each for each in audiences if each in status.audiences)
        if audiences and not meant:
            return None
        user = status.user
        extra = MappingProxyType({key: tuple(values) for key, values in user.extra.items()})
        return TokenIdentity(UserInfo(user.username, user.uid, tuple(user.groups), extra), meant)
