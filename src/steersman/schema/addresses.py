"""Addresses as Go's package net parses them: IP, CIDR with leading zeros, MAC."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Final

from steersman.machinery.validation.ip import parse_cidr_sloppy, parse_ip_sloppy
from steersman.work.patterns import late_pattern

_LONGEST: Final = 64
"""The longest text that is examined; no address is longer."""
_IP_CHARACTERS: Final = late_pattern(r"[0-9a-fA-F:.]+")
_MAC_GROUPS: Final = (
    late_pattern(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2})+"),
    late_pattern(r"[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2})+"),
    late_pattern(r"[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4})+"),
    late_pattern(r"[0-9A-Fa-f]+"),
)
_MAC_DIGITS: Final = frozenset({12, 16, 40})


def is_ip(text: str) -> bool:
    """Return True for an address of either family (net.ParseIP)."""
    if len(text) > _LONGEST or not _IP_CHARACTERS.fullmatch(text):
        return False
    try:
        IPv6Address(text) if ":" in text else IPv4Address(text)
    except ValueError:
        return False
    return True


def is_ipv4(text: str) -> bool:
    """Return True for an address with dots in it, also IPv4 in IPv6 form; leading zeros are allowed."""
    return "." in text and parse_ip_sloppy(text) is not None


def is_ipv6(text: str) -> bool:
    """Return True for an address with colons in it."""
    return ":" in text and is_ip(text)


def is_cidr(text: str) -> bool:
    """Return True for an address and a prefix length; leading zeros are allowed."""
    return parse_cidr_sloppy(text) is not None


def is_mac(text: str) -> bool:
    """Return True for 6, 8 or 20 bytes in hexadecimal, in groups or without separators (net.ParseMAC)."""
    if len(text) > _LONGEST or not any(groups.fullmatch(text) for groups in _MAC_GROUPS):
        return False
    return sum(char not in ":-." for char in text) in _MAC_DIGITS
