"""TokenReviews: the identity of a bearer token."""

from __future__ import annotations

from typing import Final

from steersman.api.authentication.v1 import TokenReview
from steersman.authentication.aggregate import aggregate
from steersman.authentication.interface import AuthenticationError, TokenIdentity
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.status import bad_request
from steersman.machinery.validation.object_meta import name_is_path_segment
from steersman.registry.authentication.userinfo import user_info
from steersman.registry.services import Services
from steersman.rest.context import Context
from steersman.rest.resource import Resource

INVALID: Final = "invalid bearer token"


async def create(services: Services, ctx: Context, review: TokenReview) -> TokenReview:
    """Authenticate the token as for a request, and return the review with its status.

    Raises StatusError (400) without a token.
    """
    if ctx.action.namespace:
        raise bad_request(f"namespace is not allowed on this type: {ctx.action.namespace}")
    if not review.spec.token:
        raise bad_request("token is required for TokenReview in authentication")
    # The kind is cluster-scoped, so a namespace in the metadata is ignored.
    review.metadata.namespace = ""
    audiences = tuple(review.spec.audiences) or services.api_audiences
    identity, error = await _identity(services, review.spec.token, audiences)
    status = review.status
    status.authenticated = identity is not None
    if identity is None:
        status.error = error
        return review
    status.user = user_info(identity.user)
    status.audiences = list(identity.audiences)
    return review


async def _identity(services: Services, token: str, audiences: tuple[str, ...]) -> tuple[TokenIdentity | None, str]:
    """Return the identity of the token, or None and an error text."""
    try:
        identity = services.authenticate_token(token, audiences)
        if identity is not None and not isinstance(identity, TokenIdentity):
            identity = await identity
    except AuthenticationError as error:
        # Upstream tries two bearer token authenticators, of which the first accepts only its own tokens.
        return None, aggregate((INVALID, str(error)))
    return identity, INVALID


TOKEN_REVIEWS = Resource(
    kind=built_in(TokenReview),
    plural="tokenreviews",
    namespaced=False,
    verbs=("create",),
    name_validator=name_is_path_segment,
    answerer=create,
)
