"""Names of signers, such as `kubernetes.io/kubelet-serving`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.machinery.errors.field import FieldError, Path, invalid, quote, required, too_long
from steersman.machinery.validation.formats import byte_length, is_dns1123_label, is_dns1123_subdomain

MAX_DOMAIN: Final = 253
MAX_NAME: Final = MAX_DOMAIN + 1 + 253 + 1 + 63
"""Bytes of a domain, a slash, a namespace and a name."""


def validate_signer_name(name: str, path: Path) -> Iterator[FieldError]:
    """Validate a signer name: a domain of at least two labels, a slash, and a name."""
    if not name:
        yield required(path)
        return
    segments = name.split("/")
    if len(segments) != 2:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield invalid(path, name, detail)
        return
    domain, rest = segments
    if byte_length(domain) > MAX_DOMAIN:
        yield too_long(path, MAX_DOMAIN)
    labels = domain.split(".")
    # Only the first invalid label is reported, as further messages would be equal.
    for label in labels:
        if problems := is_dns1123_label(label):
            for message in problems:
                yield invalid(path, domain, f"validating label {quote(label)}: {message}")
            break
    if len(labels) < 2:
        yield invalid(path, domain, "should be a domain with at least two segments separated by dots")
    for label in rest.split("."):
        if problems := is_dns1123_subdomain(label):
            for message in problems:
                yield invalid(path, rest, f"validating label {quote(label)}: {message}")
            break
    if byte_length(name) > MAX_NAME:
        yield too_long(path, MAX_NAME)
