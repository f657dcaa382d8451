"""Authorizer that allows everything (`--authorization-mode=AlwaysAllow`)."""

from __future__ import annotations

from typing import Final

from steersman.api.rbac.v1 import PolicyRule
from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, ResolvedRules, Verdict

ALLOWED: Final = Verdict(Decision.ALLOW)


class AlwaysAllowAuthorizer:
    """Allows every action; as a rule resolver it returns rules that allow everything."""

    def authorize(self, attributes: Attributes) -> Verdict:
        """Allow every action."""
        return ALLOWED

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        """Return one rule for all resources and one for all other paths."""
        return ResolvedRules(
            (PolicyRule(verbs=["*"], api_groups=["*"], resources=["*"]),),
            (PolicyRule(verbs=["*"], non_resource_urls=["*"]),),
        )
