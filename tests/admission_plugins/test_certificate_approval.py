"""Tests of CertificateApproval: permissions to approve requests for a signer."""

from __future__ import annotations

from steersman.admission.interface import UPDATE, Chain
from steersman.admission_plugins.certificate_approval import CertificateApproval
from steersman.api.certificates.v1 import CertificateSigningRequest, CertificateSigningRequestSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.registry.certificates.certificatesigningrequests import CERTIFICATE_SIGNING_REQUESTS
from tests.admission_plugins.writes import Allowing, refusal, write_of

REQUEST = CertificateSigningRequest(
    metadata=ObjectMeta(name="r"), spec=CertificateSigningRequestSpec(signer_name="example.com/one")
)


async def test_approval_is_for_those_who_may_approve_for_the_signer() -> None:
    write = write_of(CERTIFICATE_SIGNING_REQUESTS, REQUEST, UPDATE, old=REQUEST, subresource="approval")
    await CertificateApproval(Allowing(("approve", "signers", "example.com/one"))).validate(write)
    await CertificateApproval(Allowing(("approve", "signers", "example.com/*"))).validate(write)
    assert await refusal(CertificateApproval(Allowing(("sign", "signers", "example.com/one"))).validate(write)) == (
        'certificatesigningrequests.certificates.k8s.io "r" is forbidden: user not permitted to approve requests with '
        'signerName "example.com/one"'
    )


async def test_nothing_but_approval_is_looked_at() -> None:
    for subresource in ("", "status"):
        write = write_of(CERTIFICATE_SIGNING_REQUESTS, REQUEST, UPDATE, old=REQUEST, subresource=subresource)
        await Chain((CertificateApproval(Allowing()),)).validate(write)
