"""Tests of approval, signing and clean-up of certificate signing requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from steersman.api.certificates.v1 import CertificateSigningRequest
from steersman.client.client import Client
from steersman.client.resources import CERTIFICATE_SIGNING_REQUESTS as REQUESTS
from steersman.controllers.certificates.approver import CSRApprover
from steersman.controllers.certificates.cleaner import CSRCleaner, is_over
from steersman.controllers.certificates.requests import KUBE_APISERVER_CLIENT, KUBELET_CLIENT, LEGACY_UNKNOWN, SIGNERS
from steersman.controllers.certificates.signer import CSRSigner
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.values import times
from tests.controllers.certificates.asked import NODE, authority, pem, request
from tests.controllers.waiting import Run, eventually

CLIENT = ("digital signature", "client auth")
NOW = float(times.unix("2026-01-02T00:00:00Z"))


async def approve(client: Client, name: str, condition: str = "Approved") -> None:
    given = {"type": condition, "status": "True", "reason": "ByHand"}
    await client.patch(REQUESTS, name, "", {"status": {"conditions": [given]}}, subresource="approval")


async def wait_for_condition(client: Client, name: str) -> CertificateSigningRequest:
    async def look() -> CertificateSigningRequest | None:
        request = await client.get(REQUESTS, name)
        return request if request.status.certificate or request.status.conditions else None

    return await eventually(look)


async def wait_for_certificate(client: Client, name: str) -> CertificateSigningRequest:
    async def look() -> CertificateSigningRequest | None:
        request = await client.get(REQUESTS, name)
        return request if request.status.certificate or len(request.status.conditions) > 1 else None

    return await eventually(look)


async def test_what_is_approved_is_signed(run: Run, tmp_path: Path) -> None:
    by = authority(tmp_path)
    client = await run(CSRSigner, signers=dict.fromkeys(SIGNERS, by))
    await client.create(REQUESTS, request("a", pem(("CN", "alice")), KUBE_APISERVER_CLIENT, ["client auth"]))
    await client.create(REQUESTS, request("b", pem(("CN", "b")), KUBE_APISERVER_CLIENT, ["server auth"]))
    await client.create(REQUESTS, request("c", pem(("CN", "c")), "example.com/signer", ["client auth"]))
    for name in ("a", "b", "c"):
        await approve(client, name)
    certificate = x509.load_pem_x509_certificate((await wait_for_certificate(client, "a")).status.certificate or b"")
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(by.certificate.read_bytes()))
    failed = (await wait_for_certificate(client, "b")).status.conditions[-1]
    assert (failed.type, failed.reason) == ("Failed", "SignerValidationFailure")
    assert failed.message == "invalid usage for client certificate: server auth"
    assert not (await client.get(REQUESTS, "c")).status.certificate


async def test_a_kubelets_client_certificate_is_approved_where_the_user_may_ask_for_it(run: Run) -> None:
    client = await run(CSRApprover)
    await client.create(REQUESTS, request("n", pem(*NODE), KUBELET_CLIENT, CLIENT))
    await client.create(REQUESTS, request("x", pem(("O", "dev"), ("CN", "x")), KUBELET_CLIENT, CLIENT))
    condition = (await wait_for_condition(client, "n")).status.conditions[0]
    assert (condition.type, condition.status, condition.reason) == ("Approved", "True", "AutoApproved")
    assert condition.message == "Auto approving kubelet client certificate after SubjectAccessReview."
    assert not (await client.get(REQUESTS, "x")).status.conditions


@pytest.mark.parametrize(
    ("condition", "hours", "certificate", "over"),
    [
        ("", 23, False, False),
        ("", 25, False, True),
        ("Approved", 23, False, False),
        ("Approved", 25, False, True),
        ("Approved", 0.5, True, False),
        ("Approved", 1.5, True, True),
        ("Denied", 0.5, False, False),
        ("Denied", 1.5, False, True),
        ("Failed", 1.5, False, True),
        ("Other", 99, False, False),
    ],
)
def test_when_a_request_is_over(condition: str, hours: float, certificate: bool, over: bool) -> None:
    then = times.format_time(times.parse("2026-01-02T00:00:00Z").fromtimestamp(NOW - hours * 3600).astimezone())
    given: dict[str, Any] = {"metadata": {"name": "a", "creationTimestamp": then}, "status": {}}
    if condition:
        given["status"]["conditions"] = [{"type": condition, "status": "True", "lastUpdateTime": then}]
    asked = from_plain(CertificateSigningRequest, given)
    if certificate:
        asked.status.certificate = b"PEM"
    assert is_over(asked, NOW) is over


async def test_requests_are_deleted_when_they_are_over(run: Run, tmp_path: Path) -> None:
    client = await run(CSRSigner, signers={LEGACY_UNKNOWN: authority(tmp_path)})
    await client.create(REQUESTS, request("denied", pem(("CN", "a")), KUBE_APISERVER_CLIENT, ["client auth"]))
    await client.create(REQUESTS, request("waiting", pem(("CN", "a")), KUBE_APISERVER_CLIENT, ["client auth"]))
    await approve(client, "denied", "Denied")
    times.advance(2 * 3600)
    try:
        await run(CSRCleaner)

        async def done() -> bool:
            return [each.metadata.name for each in (await client.list(REQUESTS)).items] == ["waiting"]

        await eventually(done)
    finally:
        times.advance(-2 * 3600)
