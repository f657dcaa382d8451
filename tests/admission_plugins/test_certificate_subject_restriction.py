"""Tests of CertificateSubjectRestriction: no certificates for system:masters."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from steersman.admission.interface import Chain
from steersman.admission_plugins.certificate_subject_restriction import SIGNER, CertificateSubjectRestriction
from steersman.api.certificates.v1 import CertificateSigningRequest, CertificateSigningRequestSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.registry.certificates.certificatesigningrequests import CERTIFICATE_SIGNING_REQUESTS
from tests.admission_plugins.writes import refusal, write_of

PLUGIN = CertificateSubjectRestriction()


def make_write(signer: str, *groups: str, **more: Any) -> Any:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "me"), *organizations])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    pem = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(
        serialization.Encoding.PEM
    )
    spec = CertificateSigningRequestSpec(request=pem, signer_name=signer)
    made = CertificateSigningRequest(metadata=ObjectMeta(name="r"), spec=spec)
    return write_of(CERTIFICATE_SIGNING_REQUESTS, made, **more)


@pytest.mark.parametrize("groups", [("system:masters",), ("dev", "system:masters")])
async def test_a_client_certificate_of_the_masters_is_refused(groups: tuple[str, ...]) -> None:
    assert await refusal(PLUGIN.validate(make_write(SIGNER, *groups))) == (
        'certificatesigningrequests.certificates.k8s.io "r" is forbidden: use of kubernetes.io/kube-apiserver-client '
        "signer with system:masters group is not allowed"
    )


async def test_what_cannot_be_read_is_refused() -> None:
    for pem in (b"", b"-----BEGIN CERTIFICATE REQUEST-----\nYQ==\n-----END CERTIFICATE REQUEST-----\n"):
        spec = CertificateSigningRequestSpec(request=pem, signer_name=SIGNER)
        made = CertificateSigningRequest(metadata=ObjectMeta(name="r"), spec=spec)
        message = await refusal(PLUGIN.validate(write_of(CERTIFICATE_SIGNING_REQUESTS, made)))
        assert message.startswith(
            'certificatesigningrequests.certificates.k8s.io "r" is forbidden: failed to parse CSR: '
        )


async def test_other_groups_and_signers_are_let_through() -> None:
    await PLUGIN.validate(make_write(SIGNER))
    await PLUGIN.validate(make_write(SIGNER, "dev", "system:masters2"))
    await PLUGIN.validate(make_write("kubernetes.io/kubelet-serving", "system:masters"))
    await Chain((PLUGIN,)).validate(make_write(SIGNER, "system:masters", subresource="approval"))


@pytest.mark.usefixtures("large_request")
async def test_a_large_request_is_read_beside_the_loop() -> None:
    attributes = make_write(SIGNER, *["dev"] * 1000, "system:masters")
    held = asyncio.create_task(_refusal_text(attributes))
    await asyncio.sleep(0)
    assert not held.done()  # it waits for a worker thread
    assert "system:masters group is not allowed" in await held


async def _refusal_text(attributes: Any) -> str:
    return await refusal(PLUGIN.validate(attributes))
