"""Authorization webhook client: SubjectAccessReviews of v1 or v1beta1 (k8s.io/apiserver
`plugin/pkg/authorizer/webhook`).
"""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TYPE_CHECKING, Final

import msgspec

from steersman.api.authorization.v1 import (
    NonResourceAttributes,
    ResourceAttributes,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
)
from steersman.api.scalars import Wire
from steersman.authorization.access_review import NoAnswer
from steersman.authorization.metrics import WebhookMetrics
from steersman.machinery.codec.serializer import encode
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.status import StatusError
from steersman.machinery.limited_log import LimitedLog
from steersman.webhooks.client import Through, WebhookClient, WebhookError
from steersman.webhooks.reviews import check_value_count, decode_review, is_large_review
from steersman.work.offloading import offload_if

if TYPE_CHECKING:  # the expression compiler takes long to import
    from steersman.authorization.match_conditions import Match, MatchConditions

log: Final = LimitedLog(logging.getLogger(__name__))

USER_AGENT: Final = "Go-http-client/1.1"
"""User agent of upstream, which sets no other here."""
BACKOFF: Final = 0.5
"""Seconds before the second attempt."""

_GROUP: Final = "authorization.k8s.io"
_KIND: Final = "SubjectAccessReview"
_V1BETA1: Final = "v1beta1"
_REGISTERED: Final = frozenset(
    {(f"{_GROUP}/{version}", _KIND) for version in ("v1", _V1BETA1)} | {("v1", "Status"), ("v1", "Pod")}
)
_MAX_VALUES: Final = 1_000
"""Limit of values in an answer, of which three are used."""
_TYPE: Final = "Webhook"


class _SpecV1beta1(Wire):
    """Spec of v1beta1, in which `groups` is called `group`."""

    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None
    user: str = ""
    group: list[str] = []
    extra: dict[str, list[str]] = {}
    uid: str = ""


class _Status(msgspec.Struct):
    allowed: bool = False


class _ReviewV1beta1(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    spec: _SpecV1beta1
    metadata: dict[str, str] = {}
    status: _Status = msgspec.field(default_factory=_Status)


WayOfReview = Callable[[SubjectAccessReviewSpec], Through | None]
"""Function that returns the way of a review to the webhook, None for the usual one."""


class WebhookReviews:
    """Sends reviews to one webhook and counts the results.

    `fails_open` is True if other authorizers decide when the webhook does not answer. `way` chooses another way of
    single reviews.
    """

    def __init__(
        self,
        client: WebhookClient,
        version: str,
        name: str,
        metrics: WebhookMetrics,
        *,
        fails_open: bool,
        way: WayOfReview | None = None,
    ) -> None:
        self._client = client
        self._version = version
        self._name = name
        self._metrics = metrics
        self._fails_open = fails_open
        self._way = way

    async def __call__(self, review: SubjectAccessReview) -> SubjectAccessReview:
        """Return the review with its status. Raises NoAnswer and StatusError."""
        through = None if self._way is None else self._way(review.spec)
        try:
            return await self._read(await self._client.post(self._body(review.spec), self._attempt, through=through))
        except (StatusError, WebhookError, DecodeError) as error:
            log.warning(self._name, "Failed to make webhook authorizer request: %s", error)
            if self._fails_open:
                self._metrics.failed_open.inc((self._name, _result_of(error)))
            if isinstance(error, StatusError):
                raise
            raise NoAnswer(str(error)) from None

    async def _attempt(self, send: Callable[[], Awaitable[bytes]]) -> bytes:
        """Measure one attempt, which fails too if its answer cannot be decoded."""
        began, result = perf_counter(), "success"
        try:
            data = await send()
            await self._read(data)
            return data
        except (StatusError, WebhookError, DecodeError, CancelledError) as error:
            result = _result_of(error)
            raise
        finally:
            labels = (self._name, result)
            self._metrics.evaluations.inc(labels)
            self._metrics.durations.observe(perf_counter() - began, labels)

    def _body(self, spec: SubjectAccessReviewSpec) -> bytes:
        version = f"{_GROUP}/{self._version}"
        if self._version != _V1BETA1:
            return encode(SubjectAccessReview(kind=_KIND, api_version=version, spec=spec)) + b"\n"
        older = _SpecV1beta1(
            resource_attributes=spec.resource_attributes,
            non_resource_attributes=spec.non_resource_attributes,
            user=spec.user,
            group=spec.groups,
            extra=spec.extra,
            uid=spec.uid,
        )
        return msgspec.json.encode(_ReviewV1beta1(_KIND, version, older)) + b"\n"

    async def _read(self, data: bytes) -> SubjectAccessReview:
        """Decode an answer; a large one in a worker thread. Raises DecodeError."""
        return await offload_if(is_large_review(data), self._decode, data)

    def _decode(self, data: bytes) -> SubjectAccessReview:
        check_value_count(data, _MAX_VALUES)
        return decode_review(SubjectAccessReview, data, _GROUP, self._version, _KIND, _REGISTERED)


def _result_of(error: BaseException) -> str:
    """Return the result label of a failed attempt."""
    if isinstance(error, CancelledError):
        return "canceled"
    if isinstance(error, StatusError):
        return "timeout" if error.reason == "Timeout" or error.code == 504 else "error"
    return "timeout" if isinstance(error, WebhookError) and error.timed_out else "error"


def counted_match(
    conditions: MatchConditions, name: str, metrics: WebhookMetrics
) -> Callable[[SubjectAccessReviewSpec], Awaitable[Match]]:
    """Return the `match` function of conditions with metrics."""
    labels = (_TYPE, name)

    async def match(spec: SubjectAccessReviewSpec) -> Match:
        began = perf_counter()
        found = await conditions.match(spec)
        metrics.condition_durations.observe(perf_counter() - began, labels)
        if found.has_failed:
            metrics.condition_errors.inc(labels)
        if not found.matches and not found.error:
            metrics.exclusions.inc(labels)
        return found

    return match
