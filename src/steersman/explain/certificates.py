"""CA bundles in configurations, and CertificateSigningRequests without a certificate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from steersman.api.certificates.v1 import CertificateSigningRequest
from steersman.client.api_resource import APIResource
from steersman.client.resources import CERTIFICATE_SIGNING_REQUESTS
from steersman.explain.commands import kubectl
from steersman.explain.explainer import Explainer
from steersman.explain.finding import Finding, Suggestion, at_condition, at_field, error, note, reference
from steersman.explain.warnings import age_of
from steersman.explain.world import World
from steersman.machinery.values.conditions import find_condition
from steersman.machinery.values.times import human_duration

_BUILT_IN: Final = "kubernetes.io/"
_APPROVED_AUTOMATICALLY: Final = frozenset({"kubernetes.io/kube-apiserver-client-kubelet"})
_DAY: Final = 86400.0
_REMOVED_AFTER: Final = {"Pending": _DAY, "Approved": 3600.0}
"""Seconds after which the cleaner removes a request, by state."""


def bundle_problem(bundle: bytes, now: float) -> str:
    """Return the fault of a CA bundle in PEM, "" if it has a valid certificate or is empty."""
    if not bundle:
        return ""
    from cryptography import x509

    try:
        certificates = x509.load_pem_x509_certificates(bundle)
    except ValueError as problem:
        return f"it is no PEM with certificates: {problem}"
    if all(each.not_valid_after_utc.timestamp() < now for each in certificates):
        latest = max(each.not_valid_after_utc for each in certificates)
        return f"all its certificates have expired, the last at {latest:%Y-%m-%dT%H:%M:%SZ}"
    if all(each.not_valid_before_utc.timestamp() > now for each in certificates):
        return "none of its certificates is valid yet"
    return ""


def _summarize(request: CertificateSigningRequest) -> str:
    states = [each.type for each in request.status.conditions if each.status != "False"] or ["Pending"]
    issued = "Issued" if request.status.certificate else "no certificate"
    return f"{', '.join(states)}, {issued}, signer {request.spec.signer_name}, requested by {request.spec.username}"


def signing_request_fault(request: CertificateSigningRequest) -> str:
    """Return the reason why a request is unhealthy, "" if it is not."""
    if request.status.certificate:
        return ""
    states = {each.type: each for each in request.status.conditions if each.status != "False"}
    if "Denied" in states:
        return ""
    if "Failed" in states:
        return f"the signer failed: {states['Failed'].message}"
    return "approved but not signed" if "Approved" in states else "waits for an approval"


async def _check_request(
    world: World, resource: APIResource[Any], request: CertificateSigningRequest
) -> AsyncIterator[Finding]:
    subject, signer = reference(resource, request), request.spec.signer_name
    if request.status.certificate:
        return
    at_signer = at_field(subject, ".spec.signerName", signer)
    denied = find_condition(request.status.conditions, "Denied")
    failed = find_condition(request.status.conditions, "Failed")
    approved = find_condition(request.status.conditions, "Approved")
    if denied is not None:
        text = f"it was denied: {denied.reason}: {denied.message}"
        yield error("Denied", text, at_condition(subject, denied))
    elif failed is not None:
        text = f"the signer failed: {failed.reason}: {failed.message}"
        yield error("SigningFailed", text, at_condition(subject, failed), at_signer)
    elif approved is not None:
        text = f"it is approved, and {_signer_of(signer)} has not signed it"
        yield error("NotSigned", text, at_condition(subject, approved), at_signer)
    else:
        command = kubectl("certificate", "approve", request.metadata.name)
        how = "somebody must approve it"
        if signer in _APPROVED_AUTOMATICALLY:
            how = "the approving controller approves it if the requester may have it"
        approve = Suggestion("approve it, if you know who asks", command)
        text = f"nobody has approved it: {how}"
        yield error(
            "NotApproved", text, at_field(subject, ".status.conditions", None), at_signer, suggestions=(approve,)
        )
    age = age_of(world, request.metadata.creation_timestamp)
    limit = _REMOVED_AFTER["Approved" if approved is not None else "Pending"]
    if age is not None and denied is None:
        text = (
            f"it is {human_duration(age)} old; requests without certificate are removed after {human_duration(limit)}"
        )
        yield note("Age", text, at_field(subject, ".metadata.creationTimestamp", request.metadata.creation_timestamp))


def _signer_of(signer: str) -> str:
    if signer == "kubernetes.io/legacy-unknown":
        return "kube-controller-manager (it signs this name only if it has a CA)"
    if signer.startswith(_BUILT_IN):
        return "kube-controller-manager, with --cluster-signing-cert-file,"
    return f"the controller of {signer}"


SIGNING_REQUEST: Final = Explainer(CERTIFICATE_SIGNING_REQUESTS, _summarize, (_check_request,), signing_request_fault)
