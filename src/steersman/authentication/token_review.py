"""Authentication of bearer tokens by another server, by TokenReviews.

Follows k8s.io/apiserver `plugin/pkg/authenticator/token/webhook`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from types import MappingProxyType

from steersman.api.authentication.v1 import TokenReview, TokenReviewSpec
from steersman.authentication.interface import AuthenticationError, TokenIdentity
from steersman.authentication.user import UserInfo, authenticated
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.status import StatusError
from steersman.webhooks.client import WebhookError

logger = logging.getLogger(__name__)

Review = Callable[[TokenReview], Awaitable[TokenReview]]
"""Function that sends a review and returns the answer. Raises StatusError, WebhookError or DecodeError."""


class ReviewedTokens:
    """Authenticator that sends a review for every token; use a CachedTokenAuthenticator in front of it.

    A token is refused if there is no answer. `implicit` are the audiences of a token whose answer names none.
    """

    def __init__(self, review: Review, implicit: tuple[str, ...] = ()) -> None:
        self._review = review
        self._implicit = implicit

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> TokenIdentity | None:
        """Authenticate a token. See TokenAuthenticator."""
        try:
            answer = await self._review(TokenReview(spec=TokenReviewSpec(token=token, audiences=list(audiences))))
        except (StatusError, WebhookError, DecodeError) as error:
            logger.error("failed to make webhook authenticator request: %s", error)
            raise AuthenticationError(str(error)) from None
        status = answer.status
        said = frozenset(status.audiences or self._implicit)
        meant = tuple(each for each in audiences if each in said)
        if audiences and not meant and (self._implicit or status.authenticated):
            return None
        if not status.authenticated:
            if status.error:
                raise AuthenticationError(status.error)
            return None
        user = status.user
        extra = MappingProxyType({key: tuple(values) for key, values in user.extra.items()})
        user_info = UserInfo(user.username, user.uid, tuple(user.groups), extra)
        return TokenIdentity(authenticated(user_info), meant)
