"""Authorizer that allows nothing (`--authorization-mode=AlwaysDeny`), but lets other authorizers of the chain allow."""

from __future__ import annotations

from typing import Final

from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, ResolvedRules, Verdict

REFUSED: Final = Verdict(Decision.NO_OPINION, "Everything is forbidden.")


class AlwaysDenyAuthorizer:
    """Has no opinion about any action; as a rule resolver it returns no rules."""

    def authorize(self, attributes: Attributes) -> Verdict:
        """Return no opinion on every action, with the reason that everything is forbidden."""
        return REFUSED

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        """Return no rules, which is complete."""
        return ResolvedRules()
