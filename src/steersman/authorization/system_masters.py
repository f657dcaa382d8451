"""Authorizer that allows everything to a privileged group.

It comes first in every chain, so that a broken policy does not lock everybody out.
"""

from __future__ import annotations

from typing import Final

from steersman.authentication.user import SYSTEM_MASTERS
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, Verdict

_ALLOWED: Final = Verdict(Decision.ALLOW)
_NO_OPINION: Final = Verdict(Decision.NO_OPINION)


class PrivilegedGroupAuthorizer:
    """Allows everything to the members of one group, by default `system:masters`."""

    def __init__(self, group: str = SYSTEM_MASTERS) -> None:
        self._group = group

    def authorize(self, attributes: Attributes) -> Verdict:
        """Allow every action of members of the group; return no opinion about others."""
        return _ALLOWED if self._group in attributes.user.groups else _NO_OPINION
