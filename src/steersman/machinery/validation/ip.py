"""Validation of IP addresses and CIDRs: strict rules for new fields, lenient rules and warnings for old fields.

Follows k8s.io/apimachinery `util/validation` (ip.go). Old fields allowed leading zeros in octets, prefix lengths and
groups, IPv4 in IPv6 form, and (in CIDRs) bits after the prefix.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, Path, quote
from steersman.work.patterns import late_pattern

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NOT_AN_IP: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NOT_A_CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_NOT_AN_INTERFACE: Final = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"

_MAX_TEXT: Final = 128
"""The longest text that is parsed: addresses are shorter, apart from absurd numbers of leading zeros."""

_characters: Final = re.compile(r"[0-9a-fA-F:.]+", re.ASCII).fullmatch
_leading_zeros: Final = late_pattern(r"(?<![0-9a-fA-F])0+(?=[0-9a-fA-F])", re.ASCII)
_prefix_length: Final = re.compile("0*([0-9]{1,3})", re.ASCII).fullmatch
_OCTET: Final = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
is_plain_ipv4: Final = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}", re.ASCII).fullmatch
"""A matcher of IPv4 addresses in canonical form, as nearly all are."""
_strict_prefix_length: Final = re.compile("0|[1-9][0-9]{0,2}", re.ASCII).fullmatch


def parse_ip_sloppy(value: str) -> Address | None:
    """Parse an address, ignoring leading zeros; None if it is malformed or has a zone."""
    if len(value) > _MAX_TEXT or not _characters(value):
        return None
    text = _leading_zeros.sub("", value)
    try:
        return IPv6Address(text) if ":" in value else IPv4Address(text)
    except ValueError:
        return None


def parse_ip_strict(value: str) -> Address | None:
    """Return an address, None for a text that is no address in the form of RFC 4291 or dotted decimals."""
    try:
        return IPv6Address(value) if ":" in value else IPv4Address(value)
    except ValueError:
        return None


def _is_mapped(address: Address | None) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def ip_text(address: Address) -> str:
    """Return an address in canonical form; IPv4 in IPv6 form becomes plain IPv4."""
    return str(unmapped(address))


def unmapped(address: Address) -> Address:
    """Return IPv4 in IPv6 form as plain IPv4. Go judges it so, while Python's versions differ in that."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _ip_errors(value: str, path: Path, *, strict: bool) -> list[FieldError]:
    if is_plain_ipv4(value):
        return []
    if parse_ip_sloppy(value) is None:
        return [field.invalid(path, value, _NOT_AN_IP)]
    if not strict:
        return []
    address = parse_ip_strict(value)
    if address is None:
        return [field.invalid(path, value, "must not have leading 0s")]
    if _is_mapped(address):
        return [field.invalid(path, value, "must not be an IPv4-mapped IPv6 address")]
    return []


def is_valid_ip(value: str, path: Path) -> Iterator[FieldError]:
    """Validate an address in canonical form, for fields that always required it."""
    if is_plain_ipv4(value):
        return
    errors = _ip_errors(value, path, strict=True)
    yield from errors
    address = parse_ip_sloppy(value)
    if not errors and address is not None and (canonical := ip_text(address)) != value:
        yield field.invalid(path, value, f"must be in canonical form ({quote(canonical)})")


def is_valid_ip_for_legacy_field(
    value: str, path: Path, *, strict: bool = True, valid_old: Collection[str] = ()
) -> Iterator[FieldError]:
    """Validate an address in a field that once allowed any form; stored addresses in `valid_old` may stay."""
    if value not in valid_old:
        yield from _ip_errors(value, path, strict=strict)


def warnings_for_ip(value: str, path: Path) -> list[str]:
    """Return warnings about an address that is not in canonical form; none for malformed text."""
    if is_plain_ipv4(value):
        return []
    sloppy = parse_ip_sloppy(value)
    if sloppy is None:
        return []
    address = parse_ip_strict(value)
    if address is None or _is_mapped(address):
        return [f"{path}: non-standard IP address {quote(value)} is invalid: use {quote(ip_text(sloppy))}"]
    if address.version == 6 and str(address) != value:
        canonical = quote(str(address))
        return [f"{path}: IPv6 address {quote(value)} should be in RFC 5952 canonical format ({canonical})"]
    return []


def parse_cidr_sloppy(value: str) -> tuple[Address, Network] | None:
    """Parse a CIDR, ignoring leading zeros; return its address and network, None if it is malformed."""
    text, slash, length = value.partition("/")
    address = parse_ip_sloppy(text)
    bits = _prefix_length(length) if len(length) <= _MAX_TEXT else None
    if not slash or address is None or bits is None or int(bits[1]) > address.max_prefixlen:
        return None
    return address, _network(address, int(bits[1]))


def _network(address: Address, bits: int) -> Network:
    if isinstance(address, IPv4Address):
        return IPv4Network((address, bits), strict=False)
    return IPv6Network((address, bits), strict=False)


def cidr_text(network: Network) -> str:
    """Return a network in canonical form; IPv4 in IPv6 form becomes plain IPv4."""
    if _is_mapped(network.network_address):
        return f"{ip_text(network.network_address)}/{network.prefixlen - 96}"
    return str(network)


def _parse_cidr_strict(value: str) -> tuple[Address, int] | None:
    text, _, length = value.partition("/")
    address = parse_ip_strict(text)
    if address is None or not _strict_prefix_length(length) or int(length) > address.max_prefixlen:
        return None
    return address, int(length)


def is_plain_cidr(value: str) -> bool:
    """Return True for an IPv4 network in canonical form without bits after the prefix, as nearly all are."""
    text, _, length = value.partition("/")
    if not is_plain_ipv4(text) or len(length) > 2 or not _strict_prefix_length(length) or int(length) > 32:
        return False
    first, second, third, fourth = map(int, text.split("."))
    address = first << 24 | second << 16 | third << 8 | fourth
    return not address & (1 << 32 - int(length)) - 1


def _cidr_errors(value: str, path: Path, *, strict: bool) -> list[FieldError]:
    if is_plain_cidr(value):
        return []
    if parse_cidr_sloppy(value) is None:
        return [field.invalid(path, value, _NOT_A_CIDR)]
    if not strict:
        return []
    parsed = _parse_cidr_strict(value)
    if parsed is None:
        return [field.invalid(path, value, "must not have leading 0s in IP or prefix length")]
    address, bits = parsed
    if _is_mapped(address):
        return [field.invalid(path, value, "must not have an IPv4-mapped IPv6 address")]
    if _network(address, bits).network_address != address:
        return [field.invalid(path, value, "must not have bits set beyond the prefix length")]
    return []


def is_valid_cidr(value: str, path: Path) -> Iterator[FieldError]:
    """Validate a network in canonical form, for fields that always required it."""
    errors = _cidr_errors(value, path, strict=True)
    yield from errors
    parsed = parse_cidr_sloppy(value)
    if not errors and parsed is not None and (canonical := cidr_text(parsed[1])) != value:
        yield field.invalid(path, value, f"must be in canonical form ({quote(canonical)})")


def is_valid_cidr_for_legacy_field(
    value: str, path: Path, *, strict: bool = True, valid_old: Collection[str] = ()
) -> Iterator[FieldError]:
    """Validate a network in a field that once allowed any form; stored networks in `valid_old` may stay."""
    if value not in valid_old:
        yield from _cidr_errors(value, path, strict=strict)


def warnings_for_cidr(value: str, path: Path) -> list[str]:
    """Return warnings about a network that is not in canonical form; none for malformed text."""
    if is_plain_cidr(value):
        return []
    sloppy = parse_cidr_sloppy(value)
    if sloppy is None:
        return []
    address, network = sloppy
    shown = cidr_text(network)
    warnings = []
    if network.network_address != address:
        single = quote(f"{ip_text(address)}/{address.max_prefixlen}")
        warnings.append(
            f"{path}: CIDR value {quote(value)} is ambiguous in this context (should be {quote(shown)} or {single}?)"
        )
    strict = _parse_cidr_strict(value)
    if strict is None or _is_mapped(strict[0]):
        warnings.append(f"{path}: non-standard CIDR value {quote(value)} is invalid: use {quote(shown)}")
    elif not warnings and strict[0].version == 6 and (canonical := f"{strict[0]}/{strict[1]}") != value:
        warnings.append(
            f"{path}: IPv6 CIDR value {quote(value)} should be in RFC 5952 canonical format ({quote(canonical)})"
        )
    return warnings


def is_valid_interface_address(value: str, path: Path) -> Iterator[FieldError]:
    """Validate an address with the prefix length of its network (`192.168.1.5/24`), in canonical form."""
    parsed = parse_cidr_sloppy(value)
    if parsed is None:
        yield field.invalid(path, value, _NOT_AN_INTERFACE)
        return
    address, network = parsed
    bits = network.prefixlen
    if _is_mapped(address) and bits > 32:
        bits -= 96  # upstream's arithmetic: below 96 the length becomes negative, as upstream
    canonical = f"{ip_text(address)}/{bits}"
    if value != canonical:
        yield field.invalid(path, value, f"must be in canonical form ({quote(canonical)})")
