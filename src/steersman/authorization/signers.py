"""Rights on certificate signers, which are not API objects: approve, sign and attest.

Follows kubernetes `pkg/apis/certificates`: the right is on the signer itself, or on all signers of its domain
(`resourceNames: ["example.com/*"]`).
"""

from __future__ import annotations

from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Authorizer, decide
from steersman.machinery.identity.action import Action


async def may_use_signer(authorizer: Authorizer, user: UserInfo, verb: str, signer_name: str) -> bool:
    """Return True if `user` may perform `verb` (approve, sign or attest) for a signer such as `example.com/name`."""
    domain = signer_name.partition("/")[0]
    for name in (signer_name, f"{domain}/*"):
        action = Action(verb, "certificates.k8s.io", "*", "signers", name=name)
        if (await decide(authorizer, Attributes(user, action))).allowed:
            return True
    return False
