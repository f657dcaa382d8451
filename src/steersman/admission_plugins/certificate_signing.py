"""CertificateSigning: only users with permission for the signer write certificates into signing requests."""

from __future__ import annotations

from typing import Any, Final

from steersman.admission.interface import UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration
from steersman.authorization.interface import Authorizer
from steersman.authorization.signers import may_use_signer
from steersman.machinery.errors.field import quote
from steersman.machinery.identity.schema import GroupResource

_REQUESTS: Final = GroupResource("certificates.k8s.io", "certificatesigningrequests")


class CertificateSigning(Plugin):
    """Checks the permission `sign` on the signer at writes of `/status` that set the certificate or a Failed condition."""

    name = "CertificateSigning"
    operations = frozenset({UPDATE})
    resources = frozenset({_REQUESTS})
    subresources = frozenset({"status"})
    validates = True

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def validate(self, attributes: Attributes) -> None:
        new, old = attributes.obj, attributes.old
        if new.status.certificate == old.status.certificate and _failures(new) == _failures(old):
            return
        signer = old.spec.signer_name
        if not await may_use_signer(self._authorizer, attributes.user, "sign", signer):
            raise attributes.forbid(f"user not permitted to sign requests with signerName {quote(signer)}")


def _failures(request: Any) -> list[Any]:
    return [each for each in request.status.conditions if each.type == "Failed"]


CERTIFICATE_SIGNING: Final = Declaration(
    CertificateSigning, on_by_default=True, make=lambda dependencies: CertificateSigning(dependencies.authorizer)
)
