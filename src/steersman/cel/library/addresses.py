"""The functions `ip("...")` and `cidr("...")` (apiserver `cel/library` ip and cidr)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

from steersman.cel.environment import Library, Overload
from steersman.cel.types import BOOL, INT, STRING, opaque
from steersman.cel.values import EvaluationError, Extension
from steersman.machinery.errors.field import quote
from steersman.work.patterns import late_pattern

IP: Final = opaque("net.IP")
CIDR: Final = opaque("net.CIDR")

Address = IPv4Address | IPv6Address


class IPValue(Extension):
    """An IP address."""

    __slots__ = ("address",)
    cel_type = IP

    def __init__(self, address: Address) -> None:
        self.address: Final = address

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IPValue) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def cel_size(self) -> int:
        """Return the number of bytes."""
        return len(self.address.packed)


class CIDRValue(Extension):
    """A CIDR: an address and the number of its network bits."""

    __slots__ = ("address", "bits")
    cel_type = CIDR

    def __init__(self, address: Address, bits: int) -> None:
        self.address: Final = address
        self.bits: Final = bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CIDRValue) and (self.address, self.bits) == (other.address, other.bits)

    def __hash__(self) -> int:
        return hash((self.address, self.bits))

    def cel_size(self) -> int:
        """Return the number of bytes with network bits."""
        return (self.bits + 7) // 8

    def masked(self) -> Address:
        """Return the address with all other bits cleared."""
        shift = self.address.max_prefixlen - self.bits
        return type(self.address)(int(self.address) >> shift << shift)

    def contains(self, address: Address) -> bool:
        """Return True if an address is in the network."""
        shift = self.address.max_prefixlen - self.bits
        return address.version == self.address.version and int(address) >> shift == int(self.address) >> shift


class _AddressError(ValueError):
    """The text is not an address; the message is Go's."""


_SEPARATOR: Final = late_pattern("[.:%]")
_GROUP: Final = late_pattern("[0-9a-fA-F]{0,5}")
_BYTES: Final = 16
_PREFIX_LENGTH: Final = late_pattern("0|[1-9][0-9]{0,17}")
_ANY_ZONE: Final = "z"


def _parse_address(text: str) -> Address:
    """Parse an address as Go's netip does. Raises _AddressError.

    The text of a zone is not kept, because no expression may use one and only its presence matters.
    """
    first = _SEPARATOR.search(text)
    if first is None:
        raise _fault(text, "unable to parse IP")
    if first[0] == "%":
        raise _fault(text, "missing IPv6 address")
    return IPv4Address(_ipv4_fields(text, text)) if first[0] == "." else _parse_ipv6(text)


def _fault(text: str, message: str, at: str = "") -> _AddressError:
    shown = f" (at {quote(at)})" if at else ""
    return _AddressError(f"ParseAddr({quote(text)}): {message}{shown}")


def _ipv4_fields(whole: str, text: str) -> bytes:
    """Parse the four numbers of `text`, which is a part of an address. Raises _AddressError."""
    fields: list[int] = []
    digits = ""
    for index, character in enumerate(text):
        if "0" <= character <= "9":
            if digits == "0":
                raise _fault(whole, "IPv4 field has octet with leading zero")
            digits += character
            if int(digits) > 255:
                raise _fault(whole, "IPv4 field has value >255")
        elif character == ".":
            if index == 0 or index == len(text) - 1 or text[index - 1] == ".":
                raise _fault(whole, "IPv4 field must have at least one digit", text[index:])
            if len(fields) == 3:
                raise _fault(whole, "IPv4 address too long")
            fields.append(int(digits))
            digits = ""
        else:
            raise _fault(whole, "unexpected character", text[index:])
    if len(fields) < 3:
        raise _fault(whole, "IPv4 address too short")
    return bytes((*fields, int(digits)))


def _parse_ipv6(whole: str) -> IPv6Address:
    """Parse an IPv6 address as `parseIPv6` of Go's netip does, up to the first invalid group or the eighth."""
    text, percent, zone = whole.partition("%")
    if percent and not zone:
        raise _fault(whole, "zone must be a non-empty string")
    packed = bytearray()
    gap, at = (0, 2) if text.startswith("::") else (-1, 0)
    while at < len(text) and len(packed) < _BYTES:
        digits = _GROUP.match(text, at)
        assert digits is not None  # it may be empty
        if len(digits[0]) > 4:
            raise _fault(whole, "each group must have 4 or less digits", text[at:])
        if not digits[0]:
            raise _fault(whole, "each colon-separated field must have at least one digit", text[at:])
        if text[digits.end() : digits.end() + 1] == ".":
            packed += _ipv4_at_the_end(whole, text[at:], len(packed), has_gap=gap >= 0)
            at = len(text)
            break
        packed += int(digits[0], 16).to_bytes(2, "big")
        at = _next_group(whole, text, digits.end())
        if text[at : at + 1] == ":":
            if gap >= 0:
                raise _fault(whole, "multiple :: in address", text[at:])
            gap = len(packed)
            at += 1
    if at < len(text):
        raise _fault(whole, "trailing garbage after address", text[at:])
    missing = _BYTES - len(packed)
    if missing and gap < 0:
        raise _fault(whole, "address string too short")
    if not missing and gap >= 0:
        raise _fault(whole, "the :: must expand to at least one field of zeros")
    if missing:
        packed[gap:gap] = bytes(missing)
    address = IPv6Address(bytes(packed))
    return IPv6Address(f"{address}%{_ANY_ZONE}") if zone else address


def _next_group(whole: str, text: str, at: int) -> int:
    """Return the position of the group after the one that ends at `at`, the end of the text if there is none. Raises
    _AddressError.
    """
    if at == len(text):
        return at
    if text[at] != ":":
        raise _fault(whole, "unexpected character, want colon", text[at:])
    if at + 1 == len(text):
        raise _fault(whole, "colon must be followed by more characters", text[at:])
    return at + 1


def _ipv4_at_the_end(whole: str, text: str, before: int, *, has_gap: bool) -> bytes:
    """Return the bytes of an IPv4 address at the end of an IPv6 one, of which `before` bytes were parsed. Raises
    _AddressError.
    """
    if not has_gap and before != 12:
        raise _fault(whole, "embedded IPv4 address must replace the final 2 fields of the address", text)
    if before > 12:
        raise _fault(whole, "too many hex fields to fit an embedded IPv4 at the end of the address", text)
    return _ipv4_fields(whole, text)


def read_ip(text: str) -> Address:
    """Parse an IP address. Raises EvaluationError."""
    try:
        address = _parse_address(text)
    except _AddressError as error:
        raise EvaluationError(f"IP Address {quote(text)} parse error during conversion from string: {error}") from None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise EvaluationError(f"IP address {quote(text)} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise EvaluationError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return address


def read_cidr(text: str) -> CIDRValue:
    """Parse a CIDR. Raises EvaluationError."""
    try:
        address, bits = _parse_prefix(text)
    except _AddressError as error:
        raise EvaluationError(
            f"network address parse error during conversion from string: network address parse error during "
            f"conversion from string: netip.ParsePrefix({quote(text)}): {error}"
        ) from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(
            f"network address parse error during conversion from string: IPv4-mapped IPv6 address {quote(text)} "
            "is not allowed"
        )
    return CIDRValue(address, bits)


def _parse_prefix(text: str) -> tuple[Address, int]:
    before, slash, length = text.rpartition("/")
    if not slash:
        raise _AddressError("no '/'")
    address = _parse_address(before)
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise _AddressError("IPv6 zones cannot be present in a prefix")
    if _PREFIX_LENGTH.fullmatch(length) is None:
        raise _AddressError(f"bad bits after slash: {quote(length)}")
    if int(length) > address.max_prefixlen:
        raise _AddressError("prefix length out of range")
    return address, int(length)


def _is_ip(text: str) -> bool:
    try:
        read_ip(text)
    except EvaluationError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    try:
        read_cidr(text)
    except EvaluationError:
        return False
    return True


def _is_link_local_multicast(value: IPValue) -> bool:
    packed = value.address.packed
    return packed[:3] == b"\xe0\x00\x00" if len(packed) == 4 else packed[0] == 0xFF and packed[1] & 0x0F == 2


def _is_link_local(value: IPValue) -> bool:
    packed = value.address.packed
    return packed[:2] == b"\xa9\xfe" if len(packed) == 4 else packed[0] == 0xFE and packed[1] & 0xC0 == 0x80


def _is_global(value: IPValue) -> bool:
    address = value.address
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or _is_link_local(value)
        or (address.version == 4 and address.packed == b"\xff\xff\xff\xff")
    )


def _contains_cidr(value: CIDRValue, other: Any) -> bool:
    inner = read_cidr(other) if isinstance(other, str) else other
    return value.bits <= inner.bits and value.contains(inner.address)


def _contains_ip(value: CIDRValue, other: Any) -> bool:
    if not isinstance(other, str):
        return value.contains(other.address)
    try:
        return value.contains(read_ip(other))
    except EvaluationError:  # upstream does not name the error of an address here, in contrast to a CIDR's
        raise EvaluationError("no such overload") from None


def _of_ip(id: str, call: Any, result: Any = BOOL) -> tuple[Overload, ...]:
    return (Overload(id, (IP,), result, call, member=True),)


IPS: Final = Library(
    functions={
        "ip": (Overload("string_to_ip", (STRING,), IP, lambda text: IPValue(read_ip(text))),),
        "family": _of_ip("ip_family", lambda value: value.address.version, INT),
        "ip.isCanonical": (Overload("ip_is_canonical", (STRING,), BOOL, lambda text: str(read_ip(text)) == text),),
        "isUnspecified": _of_ip("ip_is_unspecified", lambda value: value.address.is_unspecified),
        "isLoopback": _of_ip("ip_is_loopback", lambda value: value.address.is_loopback),
        "isLinkLocalMulticast": _of_ip("ip_is_link_local_multicast", _is_link_local_multicast),
        "isLinkLocalUnicast": _of_ip("ip_is_link_local_unicast", _is_link_local),
        "isGlobalUnicast": _of_ip("ip_is_global_unicast", _is_global),
        "isIP": (Overload("is_ip", (STRING,), BOOL, _is_ip),),
        "string": (Overload("ip_to_string", (IP,), STRING, lambda value: str(value.address)),),
    },
    types=(IP,),
)

CIDRS: Final = Library(
    functions={
        "cidr": (Overload("string_to_cidr", (STRING,), CIDR, read_cidr),),
        "containsIP": (
            Overload("cidr_contains_ip_string", (CIDR, STRING), BOOL, _contains_ip, member=True),
            Overload("cidr_contains_ip_ip", (CIDR, IP), BOOL, _contains_ip, member=True),
        ),
        "containsCIDR": (
            Overload("cidr_contains_cidr_string", (CIDR, STRING), BOOL, _contains_cidr, member=True),
            Overload("cidr_contains_cidr", (CIDR, CIDR), BOOL, _contains_cidr, member=True),
        ),
        "ip": (Overload("cidr_ip", (CIDR,), IP, lambda value: IPValue(value.address), member=True),),
        "prefixLength": (Overload("cidr_prefix_length", (CIDR,), INT, lambda value: value.bits, member=True),),
        "masked": (
            Overload("cidr_masked", (CIDR,), CIDR, lambda value: CIDRValue(value.masked(), value.bits), member=True),
        ),
        "isCIDR": (Overload("is_cidr", (STRING,), BOOL, _is_cidr),),
        "string": (Overload("cidr_to_string", (CIDR,), STRING, lambda value: f"{value.address}/{value.bits}"),),
    },
    types=(CIDR,),
)
