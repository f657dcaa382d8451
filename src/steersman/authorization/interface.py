"""The authorization contract: may this user do this? (k8s.io/apiserver `authorization/authorizer`)

Most authorizers answer from memory, so `authorize` is a plain call whose answer may be an awaitable: only one that asks
somebody else (a webhook) makes its caller wait. A caller writes

    verdict = authorizer.authorize(attributes)
    if not isinstance(verdict, Verdict):
        verdict = await verdict

or, where speed does not matter, `await decide(authorizer, attributes)`.
"""

from __future__ import annotations

from collections.abc import Awaitable
from enum import Enum
from typing import Protocol

from msgspec import Struct

from steersman.api.rbac.v1 import PolicyRule
from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes


class Decision(Enum):
    """What an authorizer says. A DENY ends the chain; at its end DENY and NO_OPINION are both a refusal."""

    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


class Verdict(Struct, frozen=True):
    """A decision, why, and what went wrong on the way (empty: nothing).

    An error does not undo an ALLOW; together with anything else the request ends with 500.
    """

    decision: Decision
    reason: str = ""
    error: str = ""

    @property
    def allowed(self) -> bool:
        return self.decision is Decision.ALLOW

    @property
    def denied(self) -> bool:
        return self.decision is Decision.DENY


class Authorizer(Protocol):
    """One judge of actions."""

    def authorize(self, attributes: Attributes) -> Verdict | Awaitable[Verdict]:
        """Judges one action. Raises nothing: what goes wrong is in the verdict."""
        ...


class ResolvedRules(Struct, frozen=True):
    """What a user may do in a namespace (`SubjectRulesReviewStatus`).

    `incomplete` tells that there may be more; `error` holds what could not be evaluated.
    """

    resource_rules: tuple[PolicyRule, ...] = ()
    non_resource_rules: tuple[PolicyRule, ...] = ()
    incomplete: bool = False
    error: str = ""


class RuleResolver(Protocol):
    """Lists what a user may do, for SelfSubjectRulesReview."""

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        """The rules that hold for `user` in `namespace`; those that cannot be found are in `error`."""
        ...


async def decide(authorizer: Authorizer, attributes: Attributes) -> Verdict:
    """The authorizer's verdict, waited for if need be."""
    verdict = authorizer.authorize(attributes)
    return verdict if isinstance(verdict, Verdict) else await verdict
