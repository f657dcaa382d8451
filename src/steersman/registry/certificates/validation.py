"""Validation of CertificateSigningRequests (kubernetes `pkg/apis/certificates/validation`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from steersman.api.certificates.v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestSpec,
)
from steersman.machinery.errors.field import (
    FieldError,
    Path,
    duplicate,
    forbidden,
    invalid,
    quote,
    required,
)
from steersman.machinery.go.pem import blocks, decode_block
from steersman.machinery.validation.leaves import validate_choice, validate_supported, validate_unique
from steersman.registry.certificates.signer_name import validate_signer_name

USAGES: Final = tuple(
    sorted(
        (
            "signing",
            "digital signature",
            "content commitment",
            "key encipherment",
            "key agreement",
            "data encipherment",
            "cert sign",
            "crl sign",
            "encipher only",
            "decipher only",
            "any",
            "server auth",
            "client auth",
            "code signing",
            "email protection",
            "s/mime",
            "ipsec end system",
            "ipsec tunnel",
            "ipsec user",
            "timestamping",
            "ocsp signing",
            "microsoft sgc",
            "netscape sgc",
        )
    )
)
LEGACY_SIGNER: Final = "kubernetes.io/legacy-unknown"
MIN_SECONDS: Final = 600
STATUSES: Final = ("False", "True", "Unknown")
TERMINAL: Final = ("Approved", "Denied", "Failed")
"""Conditions that are either true or missing."""

_CONDITIONS: Final = Path("status", "conditions")


class Allowance(Struct, frozen=True, kw_only=True):
    """Values that a request may have because its old object has them, and parts that an endpoint may write."""

    approval: bool = False
    certificate: bool = False
    approved_and_denied: bool = False
    legacy_signer: bool = False
    duplicate_conditions: bool = False
    empty_condition: bool = False
    any_certificate: bool = False
    unknown_usages: bool = False
    duplicate_usages: bool = False


def allowance_of_update(
    new: CertificateSigningRequest, old: CertificateSigningRequest, *, approval: bool = False, certificate: bool = False
) -> Allowance:
    """Return the allowance for an update of `old`; `approval` and `certificate` name the endpoint of the update."""
    types = Counter(condition.type for condition in old.status.conditions)
    usages = Counter(old.spec.usages)
    same = new.status.certificate == old.status.certificate
    return Allowance(
        approval=approval,
        certificate=certificate,
        approved_and_denied="Approved" in types and "Denied" in types,
        legacy_signer=old.spec.signer_name == LEGACY_SIGNER,
        duplicate_conditions=any(count > 1 for count in types.values()),
        empty_condition="" in types,
        any_certificate=same or certificate_error(old.status.certificate) != "",
        unknown_usages=any(usage not in USAGES for usage in usages),
        duplicate_usages=any(count > 1 for count in usages.values()),
    )


def validate_request(request: CertificateSigningRequest, allowance: Allowance) -> Iterator[FieldError]:
    """Validate a whole request."""
    spec, path = request.spec, Path("spec")
    if error := request_error(spec.request or b""):
        yield invalid(path / "request", spec.request, error)
    yield from _validate_usages(spec, path / "usages", allowance)
    if spec.signer_name == LEGACY_SIGNER and not allowance.legacy_signer:
        detail = "the legacy signerName is not allowed via this API version"
        yield invalid(path / "signerName", spec.signer_name, detail)
    else:
        yield from validate_signer_name(spec.signer_name, path / "signerName")
    seconds = spec.expiration_seconds
    if seconds is not None and seconds < MIN_SECONDS:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        yield invalid(path / "expirationSeconds", seconds, detail)
    yield from _validate_conditions(request.status.conditions, allowance)
    if not allowance.any_certificate and (error := certificate_error(request.status.certificate)):
        yield invalid(Path("status", "certificate"), "<certificate data>", error)


def _validate_usages(spec: CertificateSigningRequestSpec, path: Path, allowance: Allowance) -> Iterator[FieldError]:
    if not spec.usages:
        yield required(path)
    if not allowance.unknown_usages:
        for index, usage in enumerate(spec.usages):
            yield from validate_supported(usage, USAGES, path[index])
    if not allowance.duplicate_usages:
        seen: set[str] = set()
        for index, usage in enumerate(spec.usages):
            yield from validate_unique(usage, seen, path[index])


def _validate_conditions(
    conditions: list[CertificateSigningRequestCondition], allowance: Allowance
) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        path = _CONDITIONS[index]
        if not condition.type and not allowance.empty_condition:
            yield required(path / "type")
        statuses = ("True",) if condition.type in TERMINAL else STATUSES
        yield from validate_choice(condition.status, statuses, path / "status")
        other = {"Approved": "Denied", "Denied": "Approved"}.get(condition.type)
        if other in seen and not allowance.approved_and_denied:
            detail = "Approved and Denied conditions are mutually exclusive"
            yield invalid(_CONDITIONS, condition.type, detail)
        if condition.type in seen and not allowance.duplicate_conditions:
            yield duplicate(path / "type", condition.type)
        seen.add(condition.type)


def validate_request_update(
    new: CertificateSigningRequest, old: CertificateSigningRequest, allowance: Allowance
) -> Iterator[FieldError]:
    """Validate an update: final conditions stay, and each endpoint writes only its own parts."""
    yield from validate_request(new, allowance)
    for condition_type in TERMINAL:
        if len(_conditions_of_type(new, condition_type)) < len(_conditions_of_type(old, condition_type)):
            detail = f"updates may not remove a condition of type {quote(condition_type)}"
            yield forbidden(_CONDITIONS, detail)
    if not allowance.approval:
        for condition_type in ("Approved", "Denied"):
            before, after = _conditions_of_type(old, condition_type), _conditions_of_type(new, condition_type)
            if len(after) > len(before):
                yield forbidden(_CONDITIONS, f"updates may not add a condition of type {quote(condition_type)}")
            elif len(after) == len(before) and after != before:
                yield forbidden(_CONDITIONS, f"updates may not modify a condition of type {quote(condition_type)}")
    if new.status.certificate != old.status.certificate:
        path = Path("status", "certificate")
        if not allowance.certificate:
            yield forbidden(path, "updates may not set certificate content")
        elif old.status.certificate:
            yield forbidden(path, "updates may not modify existing certificate content")


def _conditions_of_type(
    request: CertificateSigningRequest, condition_type: str
) -> list[CertificateSigningRequestCondition]:
    return [condition for condition in request.status.conditions if condition.type == condition_type]


def request_error(pem: bytes) -> str:
    """Return an error text for the PKCS #10 request (RFC 2986) in PEM, "" if it is valid."""
    # Imported on first use: the import is slow and startup does not need it.
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    block, _ = decode_block(pem)
    if block is None or block.type != "CERTIFICATE REQUEST":
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        request = x509.load_der_x509_csr(block.content)
    except ValueError:
        return _der_error(block.content)
    try:
        valid = request.is_signature_valid
    except (ValueError, UnsupportedAlgorithm):
        return "x509: cannot verify signature: algorithm unimplemented"
    except InvalidSignature:
        valid = False
    return "" if valid else _wrong_signature(request.public_key())


def _wrong_signature(key: object) -> str:
    """Return Go's error text for a signature that does not belong to this key."""
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    if isinstance(key, RSAPublicKey):
        return "crypto/rsa: verification error"
    return f"x509: {'ECDSA' if isinstance(key, EllipticCurvePublicKey) else 'Ed25519'} verification failure"


def _der_error(data: bytes) -> str:
    """Return Go's error text for truncated or trailing data, and a general text for any other error."""
    if len(data) < 2:
        return "asn1: syntax error: " + ("truncated tag or length" if data else "sequence truncated")
    size, start = data[1], 2
    if size > 0x80:
        start += size - 0x80
        size = int.from_bytes(data[2:start], "big")
    if len(data) < start + size:
        return "asn1: syntax error: data truncated"
    if len(data) > start + size:
        return "asn1: syntax error: trailing data"
    return "asn1: syntax error: sequence truncated" if not size else "asn1: structure error: no certificate request"


def certificate_error(pem: bytes) -> str:
    """Return an error text for certificates in PEM, "" if they are valid; no certificates at all are valid."""
    if not pem:
        return ""
    from cryptography import x509  # as above

    found = 0
    for block in blocks(pem):
        if block.type != "CERTIFICATE":
            return f"only CERTIFICATE PEM blocks are allowed, found {quote(block.type)}"
        if block.has_headers:
            return "no PEM block headers are permitted"
        found += 1
        if not block.content:
            return "found CERTIFICATE PEM block containing 0 certificates"
        try:
            x509.load_der_x509_certificate(block.content)
        except ValueError:
            return "x509: malformed certificate"
    return "" if found else "must contain at least one CERTIFICATE PEM block"
