"""Tests of the limits of a kubelet's certificate signing requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from steersman.admission_plugins.node_restriction.plugin import NodeRestriction
from steersman.admission_plugins.node_restriction.requests import forbidden_in_request
from steersman.api.certificates.v1 import CertificateSigningRequest, CertificateSigningRequestSpec
from steersman.authentication.user import UserInfo
from steersman.machinery.errors.status import StatusError
from steersman.registry.certificates.certificatesigningrequests import CERTIFICATE_SIGNING_REQUESTS
from tests.admission_plugins.writes import write_of

KEY = ec.generate_private_key(ec.SECP256R1())
FOREIGN = "can only create a node CSR with CN=system:node:n"


def make_request(*names: str, signer: str = "kubernetes.io/kubelet-serving") -> CertificateSigningRequest:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names])
    pem = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(KEY, hashes.SHA256())
    spec = CertificateSigningRequestSpec(request=pem.public_bytes(Encoding.PEM), signer_name=signer)
    return CertificateSigningRequest(spec=spec)


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (make_request("system:node:n"), ""),
        (make_request("system:node:n", signer="kubernetes.io/kube-apiserver-client-kubelet"), ""),
        (make_request("system:node:m"), FOREIGN),
        (make_request(), FOREIGN),
        (make_request("system:node:n", "admin"), FOREIGN),
        (make_request("anybody", signer="acme.com/other"), ""),
    ],
)
def test_a_node_is_none_but_itself(request_: Any, why: Any) -> None:
    assert forbidden_in_request("n", request_) == why


def test_what_cannot_be_read_is_refused() -> None:
    spec = CertificateSigningRequestSpec(request=b"x", signer_name="kubernetes.io/kubelet-serving")
    assert forbidden_in_request("n", CertificateSigningRequest(spec=spec)).startswith("unable to parse csr: ")


@pytest.mark.usefixtures("large_request")
async def test_a_large_request_is_read_beside_the_loop() -> None:
    made = make_request("system:node:n", *["other"] * 1000)
    made.metadata.name = "r"
    attributes = write_of(CERTIFICATE_SIGNING_REQUESTS, made)
    attributes.user = UserInfo("system:node:n", groups=("system:nodes",))
    nothing: Any = None
    judged = asyncio.create_task(NodeRestriction(nothing, nothing, nothing, nothing).admit(attributes))
    await asyncio.sleep(0)
    assert not judged.done()  # it waits for a worker thread
    with pytest.raises(StatusError, match=FOREIGN):
        await judged
