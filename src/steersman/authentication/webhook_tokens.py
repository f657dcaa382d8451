"""Bearer tokens authenticated by a webhook (`--authentication-token-webhook-config-file`), by TokenReviews."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from steersman.api.authentication.v1 import TokenReview
from steersman.authentication.token_review import Review
from steersman.machinery.codec.serializer import encode
from steersman.webhooks.reviews import check_value_count, decode_review, is_large_review
from steersman.work.offloading import offload_if

GROUP: Final = "authentication.k8s.io"
KIND: Final = "TokenReview"
VERSIONS: Final = ("v1", "v1beta1")
BACKOFF: Final = 0.5
"""Seconds before the second attempt."""
USER_AGENT: Final = "Go-http-client/1.1"
"""Upstream's user agent: its client of this webhook has no name of its own."""
_MAX_VALUES: Final = 1 << 16
_REGISTERED: Final = frozenset(
    {(f"{GROUP}/{version}", kind) for version in VERSIONS for kind in (KIND, "SelfSubjectReview")} | {("v1", "Status")}
)


def reviews(post: Callable[[bytes], Awaitable[bytes]], version: str) -> Review:
    """Return the review function of a webhook for this version of TokenReviews.

    `post` is that of a WebhookClient; large answers are decoded in worker threads.
    """

    async def review(asked: TokenReview) -> TokenReview:
        sent = TokenReview(kind=KIND, api_version=f"{GROUP}/{version}", spec=asked.spec)
        answer = await post(encode(sent) + b"\n")
        return await offload_if(is_large_review(answer), read_review, answer, version)

    return review


def read_review(answer: bytes, version: str) -> TokenReview:
    """Decode the answer of a webhook. Raises DecodeError."""
    check_value_count(answer, _MAX_VALUES)
    return decode_review(TokenReview, answer, GROUP, version, KIND, _REGISTERED)
