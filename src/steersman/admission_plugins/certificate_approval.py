"""CertificateApproval: only users with permission for the signer approve or deny certificate signing requests."""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration
from steersman.authorization.interface import Authorizer
from steersman.authorization.signers import may_use_signer
from steersman.machinery.errors.field import quote
from steersman.machinery.identity.schema import GroupResource

_REQUESTS: Final = GroupResource("certificates.k8s.io", "certificatesigningrequests")


class CertificateApproval(Plugin):
    """Checks the permission `approve` on the signer at writes of `/approval`."""

    name = "CertificateApproval"
    operations = frozenset({UPDATE})
    resources = frozenset({_REQUESTS})
    subresources = frozenset({"approval"})
    validates = True

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def validate(self, attributes: Attributes) -> None:
        signer = attributes.old.spec.signer_name
        if not await may_use_signer(self._authorizer, attributes.user, "approve", signer):
            raise attributes.forbid(f"user not permitted to approve requests with signerName {quote(signer)}")


CERTIFICATE_APPROVAL: Final = Declaration(
    CertificateApproval, on_by_default=True, make=lambda dependencies: CertificateApproval(dependencies.authorizer)
)
