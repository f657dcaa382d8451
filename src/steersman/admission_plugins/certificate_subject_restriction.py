"""CertificateSubjectRestriction: no client certificate is asked for in the name of system:masters."""

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
    """Looks at new requests to the signer of client certificates; the request has been validated before."""

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
    """The O of the subject of a PKCS #10 request: the groups of the user that it will make. Raises ValueError."""
    # imported here, as it takes long and the server starts without
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    block, _ = decode_block(pem)
    if block is None:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    subject = x509.load_der_x509_csr(block.content).subject
    return [str(each.value) for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


CERTIFICATE_SUBJECT_RESTRICTION: Final = Declaration(
    CertificateSubjectRestriction, on_by_default=True, make=lambda server: CertificateSubjectRestriction()
)
