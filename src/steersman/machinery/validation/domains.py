"""Validation of domain names, and of values that begin with one.

Follows k8s.io/apimachinery `util/validation`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, Path
from steersman.machinery.validation.formats import (
    characters,
    is_dns1123_label,
    is_dns1123_subdomain,
    regex_error,
)

HTTP_PATH_PATTERN: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_http_path: Final = characters(HTTP_PATH_PATTERN)


def is_fully_qualified_name(name: str, path: Path) -> Iterator[FieldError]:
    """Validate a domain of at least three labels."""
    if not name:
        yield field.required(path)
    elif messages := is_dns1123_subdomain(name):
        yield field.invalid(path, name, ",".join(messages))
    elif name.count(".") < 2:
        yield field.invalid(path, name, "should be a domain with at least three segments separated by dots")


def is_fully_qualified_domain_name(name: str, path: Path) -> Iterator[FieldError]:
    """Validate a domain of at least two labels, with or without a final dot."""
    if not name:
        yield field.required(path)
        return
    name = name.removesuffix(".")
    if messages := is_dns1123_subdomain(name):
        yield field.invalid(path, name, ",".join(messages))
        return
    if "." not in name:
        yield field.invalid(path, name, "should be a domain with at least two segments separated by dots")
        return
    for label in name.split("."):
        if messages := is_dns1123_label(label):
            yield field.invalid(path, label, ",".join(messages))
            return


def is_domain_prefixed_path(value: str, path: Path) -> Iterator[FieldError]:
    """Validate a domain, a slash and an HTTP path: `acme.io/foo`, as names of signers and finalizers are."""
    if not value:
        yield field.required(path)
        return
    host, _, rest = value.partition("/")
    if not host or not rest:
        yield field.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    for message in is_dns1123_subdomain(host):
        yield field.invalid(path, host, message)
    if not _is_http_path(rest):
        yield field.invalid(path, rest, regex_error("Invalid path", HTTP_PATH_PATTERN))
