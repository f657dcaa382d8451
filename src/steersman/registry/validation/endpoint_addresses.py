"""Validation of target addresses and ports, for Services, Endpoints and EndpointSlices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.machinery.validation.ip import Address, parse_ip_sloppy, unmapped

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
"""Protocols in the order of messages."""


def validate_endpoint_ip(text: str, path: Path) -> Iterator[FieldError]:
    """Validate an address to which traffic may be sent: neither of this host nor link-local multicast."""
    address = parse_ip_sloppy(text)
    if address is None:
        yield invalid(path, text, "must be a valid IP address")
        return
    plain = unmapped(address)
    if plain.is_unspecified:
        yield invalid(path, text, f"may not be unspecified ({text})")
    if plain.is_loopback:
        yield invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if plain.is_link_local:
        yield invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if _is_link_local_multicast(plain):
        yield invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


def _is_link_local_multicast(address: Address) -> bool:
    packed = address.packed
    if address.version == 4:
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02
