"""Limits of a kubelet's certificate signing requests: the subject must be its own node."""

from __future__ import annotations

from typing import Final

from steersman.api.certificates.v1 import CertificateSigningRequest
from steersman.machinery.go.pem import decode_block

_SIGNERS: Final = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")


def forbidden_in_request(node: str, request: CertificateSigningRequest) -> str:
    """Return the reason why a node may not request this certificate; "" if it may."""
    if request.spec.signer_name not in _SIGNERS:
        return ""
    try:
        name = _common_name(request.spec.request or b"")
    except ValueError as error:
        return f"unable to parse csr: {error}"
    return "" if name == f"system:node:{node}" else f"can only create a node CSR with CN=system:node:{node}"


def _common_name(pem: bytes) -> str:
    """Return the last CN in the subject of a PKCS #10 request. Raises ValueError."""
    # Imported late: the import is slow, and the server starts without it.
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    block, _ = decode_block(pem)
    if block is None:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    names = x509.load_der_x509_csr(block.content).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[-1].value) if names else ""
