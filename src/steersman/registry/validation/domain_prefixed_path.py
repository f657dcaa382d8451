"""Validation of names with a domain, such as `acme.io/foo`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.machinery.errors.field import FieldError, Path, invalid, required
from steersman.machinery.validation.formats import is_dns1123_subdomain, regex_error
from steersman.machinery.validation.leaves import validate_with
from steersman.work.patterns import late_pattern

_HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_PATTERN: Final = late_pattern(_HTTP_PATH)


def validate_domain_prefixed_path(value: str, path: Path) -> Iterator[FieldError]:
    """Validate a subdomain, a slash, and a URL path."""
    if not value:
        yield required(path)
        return
    host, _, rest = value.partition("/")
    if not host or not rest:
        yield invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    yield from validate_with(is_dns1123_subdomain, host, path)
    if not _PATTERN.fullmatch(rest):
        yield invalid(path, rest, regex_error("Invalid path", _HTTP_PATH))
