"""CertificateSigningRequests: the permitted writers of each part, and validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from steersman.registry.certificates.certificatesigningrequests import CERTIFICATE_SIGNING_REQUESTS, condition

GROUP, PLURAL = "certificates.k8s.io", "certificatesigningrequests"
SIGNER = "example.com/signer"


@pytest.fixture(scope="module")
def pem() -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "me")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name)
    return request.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(
        serialization.Encoding.PEM
    )


def request(pem: bytes, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "r"},
        "spec": {"request": pem, "signerName": SIGNER, "usages": ["client auth"], **spec},
    }


async def test_who_asks_is_who_sends(cluster: Callable[..., Any], pem: bytes) -> None:
    c = await cluster(CERTIFICATE_SIGNING_REQUESTS)
    made = await c.create(PLURAL, request(pem, username="other", groups=["g"]), group=GROUP)
    assert (made["spec"]["username"], made["spec"]["groups"]) == ("admin", ["system:masters"])


async def test_approval_and_status_each_write_their_own(cluster: Callable[..., Any], pem: bytes) -> None:
    c = await cluster(CERTIFICATE_SIGNING_REQUESTS)
    made = await c.create(PLURAL, request(pem), group=GROUP)
    made["status"] = {"conditions": [{"type": "Approved", "status": "True"}]}
    assert await c.faults(c.update(PLURAL, made, group=GROUP, subresource="status")) == [
        'status.conditions: Forbidden: updates may not add a condition of type "Approved"'
    ]
    made = await c.update(PLURAL, made, group=GROUP, subresource="approval")
    assert made["status"]["conditions"][0]["lastUpdateTime"]
    store = c.stores[GROUP, PLURAL]
    assert condition(c.read(store, made)) == "Approved"
    made["status"]["conditions"].append({"type": "Denied", "status": "True"})
    assert await c.faults(c.update(PLURAL, made, group=GROUP, subresource="approval")) == [
        'status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive'
    ]
    made["status"] = {"conditions": made["status"]["conditions"][:1], "certificate": b"no certificate"}
    assert await c.faults(c.update(PLURAL, made, group=GROUP, subresource="status")) == [
        'status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block'
    ]


async def test_a_request_is_refused_for_each_thing_that_is_wrong(cluster: Callable[..., Any]) -> None:
    c = await cluster(CERTIFICATE_SIGNING_REQUESTS)
    body = request(b"not a request", usages=["client auth", "client auth"], signerName="x", expirationSeconds=1)
    assert await c.faults(c.create(PLURAL, body, group=GROUP)) == [
        'spec.request: Invalid value: "bm90IGEgcmVxdWVzdA==": PEM block type must be CERTIFICATE REQUEST',
        'spec.usages[1]: Duplicate value: "client auth"',
        'spec.signerName: Invalid value: "x": must be a fully qualified domain and path of the form '
        "'example.com/signer-name'",
        "spec.expirationSeconds: Invalid value: 1: may not specify a duration less than 600 seconds (10 minutes)",
    ]
