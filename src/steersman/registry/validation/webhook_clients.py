"""Validation of the client configurations of webhooks (k8s.io/apiserver `util/webhook/validation.go`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from steersman.machinery.errors.field import FieldError, Path, invalid, required
from steersman.machinery.go import pem, urls
from steersman.machinery.validation.formats import is_dns1035_label, is_dns1123_subdomain, is_valid_port_num
from steersman.machinery.validation.leaves import validate_with

REVIEW_VERSIONS: Final = ("v1", "v1beta1")
"""The supported versions of reviews."""

_FORM: Final = "; desired format: https://host[/path]"
_NO_ROOTS: Final = "unable to load root certificates: "


def validate_webhook_url(url: str, path: Path, *, https: bool = True) -> Iterator[FieldError]:
    """Validate a URL of scheme, host and path; the scheme must be https unless `https` is False."""
    error = urls.url_error(url)
    if error is not None:
        yield required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    parts = urls.parse_reference(url)
    if https and parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not parts.host:
        yield invalid(path, parts.host, f"host must be specified{_FORM}")
    if parts.user is not None:
        yield invalid(path, parts.user, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, parts.query, "query parameters are not permitted in the URL")


def are_supported(versions: Sequence[str]) -> bool:
    """Return True if a supported version is among `versions`, or there are none."""
    return not versions or any(version in REVIEW_VERSIONS for version in versions)


def validate_review_versions(
    versions: Sequence[str], path: Path, *, missing: str = "", any_version: bool
) -> Iterator[FieldError]:
    """Validate the review versions that a webhook accepts; `missing` is the error text if there are none.

    Unless `any_version`, one of them must be supported.
    """
    if not versions:
        yield required(path, missing)
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            yield invalid(path[index], version, "duplicate version")
            continue
        seen.add(version)
        yield from validate_with(is_dns1035_label, version, path[index])
    if not any_version and seen.isdisjoint(REVIEW_VERSIONS):
        yield invalid(path, list(versions), f"must include at least one of {', '.join(REVIEW_VERSIONS)}")


def validate_webhook_service(
    namespace: str, name: str, url_path: str | None, port: int, path: Path
) -> Iterator[FieldError]:
    """Validate a Service's name and port, and a path whose segments are DNS subdomains."""
    if not name:
        yield required(path / "name")
    if not namespace:
        yield required(path / "namespace")
    if errors := is_valid_port_num(port):
        yield invalid(path / "port", port, f"port is not valid: {', '.join(errors)}")
    if url_path and url_path != "/":
        yield from validate_with(_path_errors, url_path, path / "path")


def _path_errors(url_path: str) -> Iterator[str]:
    if url_path == "//":
        yield "segment[0] may not be empty"
        return
    if not url_path.startswith("/"):
        yield "must start with a '/'"
    # Upstream skips the first character, whatever it is.
    for index, segment in enumerate(url_path[1:].removesuffix("/").split("/")):
        if not segment:
            yield f"segment[{index}] may not be empty"
            continue
        for message in is_dns1123_subdomain(segment):
            yield f"segment[{index}]: {message}"


def validate_ca_bundle(bundle: bytes, path: Path) -> Iterator[FieldError]:
    """Validate a bundle of PEM certificates, at least one of which must be usable."""
    error = _ca_error(bundle)
    if error is not None:
        yield invalid(path, bundle, _NO_ROOTS + error)


def _ca_error(bundle: bytes) -> str | None:
    """Return an error text for a bundle, None if one certificate can be parsed; other blocks are ignored."""
    from cryptography.x509 import load_der_x509_certificate

    others = False
    unread = False
    for block in pem.blocks(bundle):
        if block.type != "CERTIFICATE" or block.has_headers:
            others = True
            continue
        try:
            load_der_x509_certificate(block.content)
        except ValueError:
            unread = True
            continue
        return None
    if unread:
        return "failed to parse certificate: x509: malformed certificate"
    if others and bundle.endswith((b"-----", b"-----\n")):
        return "no valid certificate authority data seen"
    return "unable to parse bytes as PEM block"
