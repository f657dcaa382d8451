"""Who may do what, as another server says when it is asked by a SubjectAccessReview.

Follows k8s.io/apiserver `plugin/pkg/authorizer/webhook`, with the bounds of DelegatingAuthorizationOptions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Final

from steersman.api.authorization.v1 import (
    NonResourceAttributes,
    ResourceAttributes,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
    SubjectAccessReviewStatus,
)
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, Verdict
from steersman.machinery.codec.serializer import encode
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times

ALLOW_SECONDS: Final = 10.0
DENY_SECONDS: Final = 10.0
MAX_VERDICTS: Final = 8192
MAX_LENGTH: Final = 10_000
"""Characters of what a client says it wants to do; of what is longer the verdict is not kept."""

Review = Callable[[SubjectAccessReview], Awaitable[SubjectAccessReview]]
"""Has a review answered. Raises StatusError if it is not, whatever the cause."""


class AccessReviewAuthorizer:
    """Asks about every action, and keeps the verdicts for some seconds. Without an answer nothing is allowed."""

    def __init__(
        self, review: Review, *, allow_seconds: float = ALLOW_SECONDS, deny_seconds: float = DENY_SECONDS,
        size: int = MAX_VERDICTS, clock: Callable[[], float] = times.monotonic,
    ) -> None:  # fmt: skip
        self._review = review
        self._allow_seconds = allow_seconds
        self._deny_seconds = deny_seconds
        self._size = size
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[Verdict, float]] = OrderedDict()

    def authorize(self, attributes: Attributes) -> Verdict | Awaitable[Verdict]:
        spec = review_spec(attributes)
        key = blake2b(encode(spec), digest_size=32).digest()
        known = self._known.get(key)
        if known is not None:
            if known[1] > self._clock():
                self._known.move_to_end(key)
                return known[0]
            del self._known[key]
        return self._asked(spec, key, keep=_length(attributes) < MAX_LENGTH)

    async def _asked(self, spec: SubjectAccessReviewSpec, key: bytes, *, keep: bool) -> Verdict:
        try:
            answer = await self._review(SubjectAccessReview(spec=spec))
        except StatusError as error:
            return Verdict(Decision.NO_OPINION, error=str(error))
        verdict = _verdict(answer.status)
        if keep and not verdict.error:
            self._known[key] = verdict, self._clock() + (self._allow_seconds if verdict.allowed else self._deny_seconds)
            self._known.move_to_end(key)
            if len(self._known) > self._size:
                self._known.popitem(last=False)
        return verdict


def review_spec(attributes: Attributes) -> SubjectAccessReviewSpec:
    """What is asked about an action."""
    user, action = attributes.user, attributes.action
    spec = SubjectAccessReviewSpec(
        user=user.name, uid=user.uid, groups=list(user.groups),
        extra={key: list(values) for key, values in user.extra.items()},
    )  # fmt: skip
    if attributes.path is not None:
        spec.non_resource_attributes = NonResourceAttributes(path=attributes.path, verb=action.verb)
    else:
        spec.resource_attributes = ResourceAttributes(
            namespace=action.namespace, verb=action.verb, group=action.group, version=action.version,
            resource=action.resource, subresource=action.subresource, name=action.name,
        )  # fmt: skip
    return spec


def _verdict(status: SubjectAccessReviewStatus) -> Verdict:
    if status.allowed and status.denied:
        return Verdict(Decision.DENY, error="webhook subject access review returned both allow and deny response")
    if status.denied:
        return Verdict(Decision.DENY, status.reason)
    return Verdict(Decision.ALLOW if status.allowed else Decision.NO_OPINION, status.reason)


def _length(attributes: Attributes) -> int:
    action = attributes.action
    texts = (
        action.namespace, action.verb, action.group, action.version, action.resource, action.subresource, action.name,
        attributes.path or "",
    )  # fmt: skip
    return sum(map(len, texts))
