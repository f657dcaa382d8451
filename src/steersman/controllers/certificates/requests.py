"""Content of CertificateSigningRequests, and the rules of Kubernetes' signers (pkg/apis/certificates/helpers.go)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from steersman.api.certificates.v1 import CertificateSigningRequest
from steersman.machinery.go.pem import decode_block

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest as PKCS10Request
    from cryptography.x509 import GeneralName

APPROVED: Final = "Approved"
DENIED: Final = "Denied"
FAILED: Final = "Failed"

KUBE_APISERVER_CLIENT: Final = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
LEGACY_UNKNOWN: Final = "kubernetes.io/legacy-unknown"
SIGNERS: Final = (KUBELET_SERVING, KUBELET_CLIENT, KUBE_APISERVER_CLIENT, LEGACY_UNKNOWN)

_NODES: Final = "system:nodes"
_NODE: Final = "system:node:"
_CLIENT_USAGES: Final = ("client auth", "digital signature", "key encipherment")
_SERVING_USAGES: Final = ("digital signature", "key encipherment", "server auth")
_NO_RSA: Final = "key encipherment"
"""Usage that is optional for keys other than RSA keys."""


class Unreadable(Exception):
    """The request is no PKCS #10 request."""


class NotSignable(Exception):
    """The signer does not sign such requests. Users see the message."""


class AlternativeNames(Struct, frozen=True):
    """Subject alternative names by type, of the types that are signed."""

    dns: Sequence[GeneralName] = ()
    emails: Sequence[GeneralName] = ()
    addresses: Sequence[GeneralName] = ()
    uris: Sequence[GeneralName] = ()

    @property
    def all(self) -> Sequence[GeneralName]:
        """Return all names, in the order of certificates."""
        return (*self.dns, *self.emails, *self.addresses, *self.uris)


def parse(pem: bytes | None) -> PKCS10Request:
    """Return the request in PEM. Imports the cryptography package. Raises Unreadable."""
    from cryptography.x509 import load_der_x509_csr

    block, _ = decode_block(pem or b"")
    if block is None or block.type != "CERTIFICATE REQUEST":
        raise Unreadable("PEM block type must be CERTIFICATE REQUEST")
    try:
        return load_der_x509_csr(block.content)
    except ValueError as error:
        raise Unreadable("x509: malformed certificate request") from error


def common_name(request: PKCS10Request) -> str:
    """Return the last common name of the subject, "" if there is none."""
    from cryptography.x509.oid import NameOID

    attributes = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(attributes[-1].value) if attributes else ""


def alternative_names(request: PKCS10Request) -> AlternativeNames:
    """Return the subject alternative names. Raises Unreadable."""
    from cryptography import x509

    try:
        names = list(request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return AlternativeNames()
    except ValueError as error:
        raise Unreadable("x509: malformed extension") from error
    sorts = (x509.DNSName, x509.RFC822Name, x509.IPAddress, x509.UniformResourceIdentifier)
    return AlternativeNames(*([each for each in names if isinstance(each, sort)] for sort in sorts))


def check(request: PKCS10Request, usages: Collection[str], signer: str) -> None:
    """Check a request by the rules of a Kubernetes signer. Raises Unfit, Unreadable."""
    if signer == KUBE_APISERVER_CLIENT:
        _check_client_usages(usages)
    elif signer in (KUBELET_CLIENT, KUBELET_SERVING):
        _check_kubelet(request, frozenset(usages), serving=signer == KUBELET_SERVING)


def _check_client_usages(usages: Collection[str]) -> None:
    for each in usages:
        if each not in _CLIENT_USAGES:
            raise NotSignable(f"invalid usage for client certificate: {each}")
    if "client auth" not in usages:
        raise NotSignable("missing required usage for client certificate: client auth")


def _check_kubelet(request: PKCS10Request, usages: frozenset[str], *, serving: bool) -> None:
    from cryptography.x509.oid import NameOID

    organizations = [each.value for each in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    if organizations != [_NODES]:
        raise NotSignable("subject organization is not system:nodes")
    names = alternative_names(request)
    if serving and not (names.dns or names.addresses):
        raise NotSignable("DNS or IP subjectAltName is required")
    if names.dns and not serving:
        raise NotSignable("DNS subjectAltNames are not allowed")
    if names.emails:
        raise NotSignable("Email subjectAltNames are not allowed")
    if names.addresses and not serving:
        raise NotSignable("IP subjectAltNames are not allowed")
    if names.uris:
        raise NotSignable("URI subjectAltNames are not allowed")
    required = _SERVING_USAGES if serving else _CLIENT_USAGES
    if usages not in (set(required), set(required) - {_NO_RSA}):
        raise NotSignable(f"usages did not match [{' '.join(required)}]")
    if not common_name(request).startswith(_NODE):
        raise NotSignable("subject common name does not begin with system:node:")


def is_approved(request: CertificateSigningRequest) -> bool:
    """Return True if a request is approved and not denied."""
    types = {each.type for each in request.status.conditions}
    return APPROVED in types and DENIED not in types


def is_approved_or_denied(request: CertificateSigningRequest) -> bool:
    """Return True if a request is approved or denied."""
    return any(each.type in (APPROVED, DENIED) for each in request.status.conditions)


def has_failed(request: CertificateSigningRequest) -> bool:
    """Return True if the signer has marked the request as failed."""
    return any(each.type == FAILED and each.status in ("", "True") for each in request.status.conditions)
