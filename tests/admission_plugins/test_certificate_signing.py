"""Tests of CertificateSigning: permissions to write certificates of a signer."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission.interface import UPDATE, Chain
from steersman.admission_plugins.certificate_signing import CertificateSigning
from steersman.api.certificates.v1 import CertificateSigningRequest
from steersman.machinery.codec.serializer import from_plain
from steersman.registry.certificates.certificatesigningrequests import CERTIFICATE_SIGNING_REQUESTS
from tests.admission_plugins.writes import Allowing, refusal, write_of


def request(**status: Any) -> CertificateSigningRequest:
    body = {"metadata": {"name": "r"}, "spec": {"signerName": "example.com/one"}, "status": status}
    return from_plain(CertificateSigningRequest, body)


APPROVED, FAILED = {"type": "Approved", "status": "True"}, {"type": "Failed", "status": "True"}


@pytest.mark.parametrize("new", [request(certificate="YQ=="), request(conditions=[FAILED])])
async def test_certificates_and_failures_are_written_by_those_who_may_sign(new: CertificateSigningRequest) -> None:
    write = write_of(CERTIFICATE_SIGNING_REQUESTS, new, UPDATE, old=request(), subresource="status")
    await CertificateSigning(Allowing(("sign", "signers", "example.com/one"))).validate(write)
    assert await refusal(CertificateSigning(Allowing(("approve", "signers", "example.com/one"))).validate(write)) == (
        'certificatesigningrequests.certificates.k8s.io "r" is forbidden: user not permitted to sign requests with '
        'signerName "example.com/one"'
    )


@pytest.mark.parametrize(
    ("old", "new", "subresource"),
    [
        (request(), request(conditions=[APPROVED]), "status"),
        (request(certificate="YQ=="), request(certificate="YQ==", conditions=[APPROVED]), "status"),
        (request(conditions=[FAILED]), request(conditions=[APPROVED, FAILED]), "status"),
        (request(), request(certificate="YQ=="), "approval"),
        (request(), request(certificate="YQ=="), ""),
    ],
)
async def test_other_writes_are_let_through(
    old: CertificateSigningRequest, new: CertificateSigningRequest, subresource: str
) -> None:
    write = write_of(CERTIFICATE_SIGNING_REQUESTS, new, UPDATE, old=old, subresource=subresource)
    await Chain((CertificateSigning(Allowing()),)).validate(write)
