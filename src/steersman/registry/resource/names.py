"""Validation of names and sets, for all kinds of resource.k8s.io."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from steersman.machinery.errors.field import FieldError, Path, duplicate, invalid, quote, required, too_long, too_many
from steersman.machinery.go.strings import to_lower
from steersman.machinery.validation.formats import byte_length, is_c_identifier
from steersman.machinery.validation.leaves import validate_dns1123_subdomain, validate_with
from steersman.registry.validation.drivers import validate_driver_name
from steersman.work.patterns import late_pattern

T = TypeVar("T")

MAX_POOL_NAME: Final = 253
MAX_ID: Final = 32

_UUID: Final = late_pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_URN: Final = "urn:uuid:"


def validate_pool_name(name: str, path: Path) -> Iterator[FieldError]:
    """Validate a pool name: subdomains joined by slashes."""
    if not name:
        yield required(path)
        return
    if byte_length(name) > MAX_POOL_NAME:
        yield too_long(path, MAX_POOL_NAME)
    for part in name.split("/"):
        yield from validate_dns1123_subdomain(part, path)


def validate_uuid(uid: str, path: Path) -> Iterator[FieldError]:
    """Validate a UUID in canonical form."""
    if _UUID.fullmatch(uid):
        return
    detail = (
        "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` "
        "with lowercase hexadecimal characters"
    )
    if error := _uuid_error(uid):
        detail = f"error validating uid: {error}"
    yield invalid(path, uid, detail)


def _uuid_error(text: str) -> str:
    """Return an error text for a UUID in any form (canonical, without dashes, as a URN, in braces), "" if it is valid."""
    length, plain = byte_length(text), to_lower(text)
    if length == len(_URN) + 36:
        if not plain.startswith(_URN):
            return f"invalid urn prefix: {quote(text[: len(_URN)])}"
        plain = plain[len(_URN) :]
    elif length == 38:
        plain = plain[1:37]  # like upstream, without a check that these are braces
    elif length == 32:
        plain = "-".join((plain[:8], plain[8:12], plain[12:16], plain[16:20], plain[20:]))
    elif length != 36:
        return f"invalid UUID length: {length}"
    return "" if _UUID.fullmatch(plain) else "invalid UUID format"


def validate_qualified_name(name: str, path: Path) -> Iterator[FieldError]:
    """Validate an identifier with an optional driver name before it."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        yield from _validate_identifier(name, path)
        return
    if "/" in identifier:
        return
    if not domain:
        yield invalid(path, "", "the domain must not be empty")
    else:
        yield from validate_driver_name(domain, path)
    if not identifier:
        yield invalid(path, "", "the name must not be empty")
    else:
        yield from _validate_identifier(identifier, path)


def validate_fully_qualified_name(name: str, path: Path) -> Iterator[FieldError]:
    """Validate an identifier with a driver name before it."""
    yield from validate_qualified_name(name, path)
    if "/" not in name:
        yield invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash")


def _validate_identifier(identifier: str, path: Path) -> Iterator[FieldError]:
    if byte_length(identifier) > MAX_ID:
        yield too_long(path, MAX_ID)
    yield from validate_with(is_c_identifier, identifier, path)


def validate_items(
    items: Sequence[T], maximum: int, validate: Callable[[T, Path], Iterable[FieldError]], path: Path
) -> Iterator[FieldError]:
    """Validate every item, unless there are too many."""
    if len(items) > maximum:
        yield too_many(path, len(items), maximum)
        return
    for index, item in enumerate(items):
        yield from validate(item, path[index])


def validate_set(
    items: Sequence[T],
    maximum: int,
    validate: Callable[[T, Path], Iterable[FieldError]],
    key: Callable[[T], Hashable],
    path: Path,
) -> Iterator[FieldError]:
    """Validate every item, and that their keys are unique, unless there are too many."""
    yield from validate_items(items, maximum, validate, path)
    if len(items) > maximum:
        return
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        if (each := key(item)) in seen:
            yield duplicate(path[index], each)
        seen.add(each)
