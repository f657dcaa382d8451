"""Allows nothing (`--authorization-mode=AlwaysDeny`), but leaves it to the others in the chain to allow."""

from __future__ import annotations

from typing import Final

from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, ResolvedRules, Verdict

REFUSED: Final = Verdict(Decision.NO_OPINION, "Everything is forbidden.")


class AlwaysDenyAuthorizer:
    """Has nothing to allow to anyone."""

    def authorize(self, attributes: Attributes) -> Verdict:
        return REFUSED

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        return ResolvedRules()
