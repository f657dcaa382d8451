"""Authorizer that asks another server by SubjectAccessReviews.

Follows k8s.io/apiserver `plugin/pkg/authorizer/webhook`, with the limits of DelegatingAuthorizationOptions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Final, Protocol

from steersman.api.authorization.v1 import (
    FieldSelectorAttributes,
    LabelSelectorAttributes,
    NonResourceAttributes,
    ResourceAttributes,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
    SubjectAccessReviewStatus,
)
from steersman.api.meta.v1 import FieldSelectorRequirement, LabelSelectorRequirement
from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, ResolvedRules, Verdict
from steersman.machinery.codec.serializer import encode
from steersman.machinery.errors.status import StatusError
from steersman.machinery.selectors import fields, labels
from steersman.machinery.values import times
from steersman.work.bounded_cache import BoundedCache

ALLOW_SECONDS: Final = 10.0
DENY_SECONDS: Final = 10.0
MAX_VERDICTS: Final = 8192
MAX_LENGTH: Final = 10_000
"""Limit of an action's length in characters (namespace, verb, name and so on) up to which its verdict is cached."""

_EQUALITIES: Final = {fields.EQUALS: "In", fields.NOT_EQUALS: "NotIn"}
_OPERATORS: Final = {
    labels.IN: "In",
    labels.EQUALS: "In",
    labels.DOUBLE_EQUALS: "In",
    labels.NOT_IN: "NotIn",
    labels.NOT_EQUALS: "NotIn",
    labels.EXISTS: "Exists",
    labels.DOES_NOT_EXIST: "DoesNotExist",
}
"""Selector operators in reviews. Other requirements are left out, which only makes the question broader."""

_NO_OPINION: Final = Verdict(Decision.NO_OPINION)
_UNKNOWN_RULES: Final = ResolvedRules(incomplete=True, error="webhook authorizer does not support user rule resolution")

Review = Callable[[SubjectAccessReview], Awaitable[SubjectAccessReview]]
"""Sends a review and returns it with its status. Raises StatusError or NoAnswer."""


class NoAnswer(Exception):
    """There is no answer, or no valid one; the text is the reason."""


class MatchResult(Protocol):
    """Result of match conditions: True in `matches` if the review is to be sent; `error` if they could not be
    evaluated.
    """

    @property
    def matches(self) -> bool:
        """Return True if the review is to be sent."""
        ...

    @property
    def error(self) -> str:
        """Return why the conditions could not be evaluated, "" if they were."""
        ...


Match = Callable[[SubjectAccessReviewSpec], Awaitable[MatchResult]]


class AccessReviewAuthorizer:
    """Authorizer that sends a review for every action that `match` accepts, and caches the verdicts for some seconds.

    If there is no answer, the decision is `on_error` with an error, and nothing is allowed.
    """

    def __init__(
        self,
        review: Review,
        *,
        allow_seconds: float = ALLOW_SECONDS,
        deny_seconds: float = DENY_SECONDS,
        size: int = MAX_VERDICTS,
        clock: Callable[[], float] = times.monotonic,
        on_error: Decision = Decision.NO_OPINION,
        match: Match | None = None,
    ) -> None:
        self._review = review
        self._on_error = on_error
        self._match = match
        self._allow_seconds = allow_seconds
        self._deny_seconds = deny_seconds
        self._clock = clock
        self._known: BoundedCache[bytes, tuple[Verdict, float]] = BoundedCache(size)

    def authorize(self, attributes: Attributes) -> Verdict | Awaitable[Verdict]:
        """Return the verdict of the review's answer, or no opinion if the match conditions exclude the request.

        Returns an awaitable unless the verdict is cached and there are no match conditions.
        """
        spec = review_spec(attributes)
        if self._match is not None:
            return self._decide_if_matching(self._match, spec, attributes)
        return self._decide(spec, attributes)

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        """Return no rules, as a webhook cannot list them."""
        return _UNKNOWN_RULES

    async def _decide_if_matching(self, match: Match, spec: SubjectAccessReviewSpec, attributes: Attributes) -> Verdict:
        matched = await match(spec)
        if matched.error:
            return Verdict(self._on_error, error=matched.error)
        if not matched.matches:
            return _NO_OPINION
        verdict = self._decide(spec, attributes)
        return verdict if isinstance(verdict, Verdict) else await verdict

    def _decide(self, spec: SubjectAccessReviewSpec, attributes: Attributes) -> Verdict | Awaitable[Verdict]:
        key = blake2b(encode(spec), digest_size=32).digest()
        known = self._known[key]
        if known is not None and known[1] > self._clock():
            return known[0]
        return self._send_review(spec, key, keep=_length(attributes) < MAX_LENGTH)

    async def _send_review(self, spec: SubjectAccessReviewSpec, key: bytes, *, keep: bool) -> Verdict:
        try:
            answer = await self._review(SubjectAccessReview(spec=spec))
        except (StatusError, NoAnswer) as error:
            return Verdict(self._on_error, error=str(error))
        verdict = _verdict(answer.status)
        if keep and not verdict.error:
            seconds = self._allow_seconds if verdict.allowed else self._deny_seconds
            self._known.keep(key, (verdict, self._clock() + seconds))
        return verdict


def review_spec(attributes: Attributes) -> SubjectAccessReviewSpec:
    """Return the spec of a SubjectAccessReview about an action."""
    user, action = attributes.user, attributes.action
    spec = SubjectAccessReviewSpec(
        user=user.name,
        uid=user.uid,
        groups=list(user.groups),
        extra={key: list(values) for key, values in user.extra.items()},
    )
    if attributes.path is not None:
        spec.non_resource_attributes = NonResourceAttributes(path=attributes.path, verb=action.verb)
    else:
        spec.resource_attributes = ResourceAttributes(
            namespace=action.namespace,
            verb=action.verb,
            group=action.group,
            version=action.version,
            resource=action.resource,
            subresource=action.subresource,
            name=action.name,
        )
        _add_selectors(spec.resource_attributes, attributes)
    return spec


def _add_selectors(asked: ResourceAttributes, attributes: Attributes) -> None:
    selectors = attributes.selectors
    by_fields = [
        FieldSelectorRequirement(key=each.field, operator=operator, values=[each.value])
        for each in selectors.fields
        if (operator := _EQUALITIES.get(each.operator))
    ]
    by_labels = [
        LabelSelectorRequirement(key=each.key, operator=operator, values=list(each.values))
        for each in selectors.labels
        if (operator := _OPERATORS.get(each.operator))
    ]
    if by_fields:
        asked.field_selector = FieldSelectorAttributes(requirements=by_fields)
    if by_labels:
        asked.label_selector = LabelSelectorAttributes(requirements=by_labels)


def _verdict(status: SubjectAccessReviewStatus) -> Verdict:
    if status.allowed and status.denied:
        return Verdict(
            Decision.DENY, status.reason, error="webhook subject access review returned both allow and deny response"
        )
    if status.denied:
        return Verdict(Decision.DENY, status.reason)
    return Verdict(Decision.ALLOW if status.allowed else Decision.NO_OPINION, status.reason)


def _length(attributes: Attributes) -> int:
    action = attributes.action
    texts = (
        action.namespace,
        action.verb,
        action.group,
        action.version,
        action.resource,
        action.subresource,
        action.name,
        attributes.path or "",
    )
    return sum(map(len, texts))
