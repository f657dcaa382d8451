"""Rights on signers."""

from __future__ import annotations

import pytest

from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, Verdict
from steersman.authorization.signers import may_use_signer
from steersman.machinery.identity.action import Action

ALICE = UserInfo("alice")


class Naming:
    """Allows every verb on one name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[Attributes] = []

    def authorize(self, attributes: Attributes) -> Verdict:
        self.asked.append(attributes)
        return Verdict(Decision.ALLOW if attributes.action.name == self.name else Decision.DENY)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("example.com/a", True), ("example.com/*", True), ("example.com/b", False), ("*", False), ("", False)],
)
async def test_a_right_is_on_the_signer_or_all_of_its_domain(name: str, allowed: bool) -> None:
    authorizer = Naming(name)
    assert await may_use_signer(authorizer, ALICE, "approve", "example.com/a") is allowed
    first = authorizer.asked[0]
    assert first.user is ALICE
    assert first.action == Action("approve", "certificates.k8s.io", "*", "signers", name="example.com/a")
