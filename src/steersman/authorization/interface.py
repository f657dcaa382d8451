"""Interface of authorizers (k8s.io/apiserver `authorization/authorizer`).

Most authorizers answer from memory. Therefore `authorize` is a plain function whose result may be an awaitable: only an
authorizer that asks another server (a webhook) makes its caller wait. A caller writes

    verdict = authorizer.authorize(attributes)
    if not isinstance(verdict, Verdict):
        verdict = await verdict

or, if speed does not matter, `await decide(authorizer, attributes)`.
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
    """Decision of an authorizer. A DENY ends the chain. At the chain's end DENY and NO_OPINION both refuse the
    request.
    """

    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


class Verdict(Struct, frozen=True):
    """A decision with its reason and error ("" for none).

    With an error ALLOW still allows the request; otherwise the request ends with status 500.
    """

    decision: Decision
    reason: str = ""
    error: str = ""

    @property
    def allowed(self) -> bool:
        """Return True if the action is allowed."""
        return self.decision is Decision.ALLOW

    @property
    def denied(self) -> bool:
        """Return True if the action is denied, so that no later authorizer is consulted; False for no opinion."""
        return self.decision is Decision.DENY


class Authorizer(Protocol):
    """Decides whether actions are allowed."""

    def authorize(self, attributes: Attributes) -> Verdict | Awaitable[Verdict]:
        """Decide about one action. Raises nothing: errors are part of the verdict."""
        ...


class ResolvedRules(Struct, frozen=True):
    """Rules of a user in a namespace (`SubjectRulesReviewStatus`).

    `incomplete` is True if there may be more rules; `error` is the text of errors while they were resolved.
    """

    resource_rules: tuple[PolicyRule, ...] = ()
    non_resource_rules: tuple[PolicyRule, ...] = ()
    incomplete: bool = False
    error: str = ""


class RuleResolver(Protocol):
    """Lists the rules of a user, for SelfSubjectRulesReview."""

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        """Return the rules that apply to `user` in `namespace`; failures are in the result's `error`."""
        ...


async def decide(authorizer: Authorizer, attributes: Attributes) -> Verdict:
    """Return the authorizer's verdict, awaiting it if necessary."""
    verdict = authorizer.authorize(attributes)
    return verdict if isinstance(verdict, Verdict) else await verdict
