"""CertificateSubjectRestriction: no client certificate may be requested for the group system:masters."""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import CREATE, OBJECT_ALONE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration
from steersman.authentication.user import SYSTEM_MASTERS
from steersman.machinery.go.pem import decode_block
from steersman.machinery.identity.schema import GroupResource
from steersman.work.offloading import offload

_REQUESTS: Final = GroupResource("certificates.k8s.io", "certificatesigningrequests")
SIGNER: Final = "kubernetes.io/kube-apiserver-client"


class CertificateSubjectRestriction(Plugin):
    """Checks new requests to the signer of client certificates. The request has been validated before."""

    name = "CertificateSubjectRestriction"
    operations = frozenset({CREATE})
    resources = frozenset({_REQUESTS})
    subresources = OBJECT_ALONE
    validates = True

    async def validate(self, attributes: Attributes) -> None:
        if attributes.obj.spec.signer_name != SIGNER:
            return
        try:
            organizations = await offload(_organizations, attributes.obj.spec.request or b"")
        except ValueError as error:
            raise attributes.forbid(f"failed to parse CSR: {error}") from error
        if SYSTEM_MASTERS in organizations:
            raise attributes.forbid(f"use of {SIGNER} signer with {SYSTEM_MASTERS} group is not allowed")


def _organizations(pem: bytes) -> list[str]:
    """Return the organizations in the subject of a PKCS #10 request: the groups of the future user.

    Raises ValueError for a request that cannot be parsed.
    """
    # Imported late: the import is slow, and the server starts without it.
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    block, _ = decode_block(pem)
    if block is None:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    subject = x509.load_der_x509_csr(block.content).subject
    return [str(each.value) for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


CERTIFICATE_SUBJECT_RESTRICTION: Final = Declaration(
    CertificateSubjectRestriction, on_by_default=True, make=lambda dependencies: CertificateSubjectRestriction()
)
