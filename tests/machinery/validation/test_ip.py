"""IP addresses and CIDRs: strict and lenient rules, and the warnings in between."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.errors.field import Path
from steersman.machinery.validation import ip

HERE = Path("p")
NOT_AN_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NOT_A_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
MAPPED = "must not be an IPv4-mapped IPv6 address"


def told(errors: Any) -> Any:
    return [error.detail for error in errors]


@pytest.mark.parametrize(
    ("value", "strict", "legacy", "lenient"),
    [
        ("10.0.0.1", [], [], []),
        ("2001:db8::1", [], [], []),
        ("::", [], [], []),
        ("FE80::0ABC", ['must be in canonical form ("fe80::abc")'], [], []),
        ("1:0:0:2::3", [], [], []),
        ("010.0.0.1", ["must not have leading 0s"], ["must not have leading 0s"], []),
        ("::00001", ["must not have leading 0s"], ["must not have leading 0s"], []),
        ("::ffff:10.0.0.1", [MAPPED], [MAPPED], []),
        ("::ffff:a00:1", [MAPPED], [MAPPED], []),
        ("10.0.0.256", [NOT_AN_IP], [NOT_AN_IP], [NOT_AN_IP]),
        ("10.0.0", [NOT_AN_IP], [NOT_AN_IP], [NOT_AN_IP]),
        ("fe80::1%eth0", [NOT_AN_IP], [NOT_AN_IP], [NOT_AN_IP]),
        ("", [NOT_AN_IP], [NOT_AN_IP], [NOT_AN_IP]),
        ("1" * 10_000, [NOT_AN_IP], [NOT_AN_IP], [NOT_AN_IP]),
    ],
)
def test_addresses_are_judged(value: str, strict: list[Any], legacy: list[Any], lenient: list[Any]) -> None:
    assert told(ip.is_valid_ip(value, HERE)) == strict
    assert told(ip.is_valid_ip_for_legacy_field(value, HERE)) == legacy
    assert told(ip.is_valid_ip_for_legacy_field(value, HERE, strict=False)) == lenient


def test_values_that_were_stored_may_stay() -> None:
    assert told(ip.is_valid_ip_for_legacy_field("010.0.0.1", HERE, valid_old=["010.0.0.1"])) == []
    assert told(ip.is_valid_cidr_for_legacy_field("10.0.0.1/8", HERE, valid_old=["10.0.0.1/8"])) == []


@pytest.mark.parametrize(
    ("value", "warnings"),
    [
        ("10.0.0.1", []),
        ("2001:db8::1", []),
        ("nonsense", []),
        ("010.0.0.1", ['p: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1"']),
        ("::ffff:10.0.0.1", ['p: non-standard IP address "::ffff:10.0.0.1" is invalid: use "10.0.0.1"']),
        ("FE80::1", ['p: IPv6 address "FE80::1" should be in RFC 5952 canonical format ("fe80::1")']),
    ],
)
def test_addresses_out_of_form_are_warned_of(value: str, warnings: list[Any]) -> None:
    assert ip.warnings_for_ip(value, HERE) == warnings


@pytest.mark.parametrize(
    ("value", "strict", "lenient"),
    [
        ("10.0.0.0/8", [], []),
        ("2001:db8::/32", [], []),
        ("2001:0db8::/32", ['must be in canonical form ("2001:db8::/32")'], []),
        ("10.0.0.1/8", ["must not have bits set beyond the prefix length"], []),
        ("10.0.0.0/08", ["must not have leading 0s in IP or prefix length"], []),
        ("010.0.0.0/8", ["must not have leading 0s in IP or prefix length"], []),
        ("::ffff:10.0.0.0/104", ["must not have an IPv4-mapped IPv6 address"], []),
        ("10.0.0.0/33", [NOT_A_CIDR], [NOT_A_CIDR]),
        ("10.0.0.0/", [NOT_A_CIDR], [NOT_A_CIDR]),
        ("10.0.0.0", [NOT_A_CIDR], [NOT_A_CIDR]),
        ("10.0.0.0/+8", [NOT_A_CIDR], [NOT_A_CIDR]),
        ("10.0.0.0/8/8", [NOT_A_CIDR], [NOT_A_CIDR]),
    ],
)
def test_networks_are_judged(value: str, strict: list[Any], lenient: list[Any]) -> None:
    assert told(ip.is_valid_cidr(value, HERE)) == strict
    assert told(ip.is_valid_cidr_for_legacy_field(value, HERE, strict=False)) == lenient
    legacy = [detail for detail in strict if "canonical" not in detail]
    assert told(ip.is_valid_cidr_for_legacy_field(value, HERE)) == legacy


@pytest.mark.parametrize(
    ("value", "warnings"),
    [
        ("10.0.0.0/8", []),
        ("nonsense", []),
        (
            "10.0.0.1/8",
            ['p: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)'],
        ),
        ("10.0.0.0/08", ['p: non-standard CIDR value "10.0.0.0/08" is invalid: use "10.0.0.0/8"']),
        ("::ffff:10.0.0.0/104", ['p: non-standard CIDR value "::ffff:10.0.0.0/104" is invalid: use "10.0.0.0/8"']),
        ("FE80::/64", ['p: IPv6 CIDR value "FE80::/64" should be in RFC 5952 canonical format ("fe80::/64")']),
    ],
)
def test_networks_out_of_form_are_warned_of(value: str, warnings: list[Any]) -> None:
    assert ip.warnings_for_cidr(value, HERE) == warnings


@pytest.mark.parametrize(
    ("value", "errors"),
    [
        ("10.0.0.5/24", []),
        ("fe80::1/64", []),
        ("010.0.0.5/24", ['must be in canonical form ("10.0.0.5/24")']),
        ("::ffff:10.0.0.5/120", ['must be in canonical form ("10.0.0.5/24")']),
        ("10.0.0.5", ["must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"]),
    ],
)
def test_interface_addresses_are_judged(value: str, errors: list[Any]) -> None:
    assert told(ip.is_valid_interface_address(value, HERE)) == errors


@given(st.ip_addresses())
def test_canonical_addresses_pass_without_a_warning(address: Any) -> None:
    if address.version == 6 and address.ipv4_mapped:
        return
    assert told(ip.is_valid_ip(str(address), HERE)) == []
    assert ip.warnings_for_ip(str(address), HERE) == []


@given(st.ip_addresses(v=4), st.integers(0, 3))
def test_leading_zeros_change_no_address(address: Any, zeros: Any) -> None:
    text = ".".join("0" * zeros + octet for octet in str(address).split("."))
    assert ip.parse_ip_sloppy(text) == address


@given(st.ip_addresses(), st.integers(0, 128))
def test_networks_of_addresses_pass(address: Any, bits: Any) -> None:
    bits = min(bits, address.max_prefixlen)
    network = ipaddress.ip_network((address, bits), strict=False)
    if network.version == 6 and network.network_address.ipv4_mapped:
        return
    assert told(ip.is_valid_cidr(str(network), HERE)) == []


OCTETS = st.one_of(st.integers(0, 300).map(str), st.sampled_from(["00", "01", "", "a"]))
IPV4S = st.lists(OCTETS, min_size=3, max_size=5).map(".".join)


@given(IPV4S)
def test_usual_addresses_are_judged_as_all_others(text: str) -> None:
    """The shortcut for usual addresses agrees with the full validation."""
    usual = bool(ip.is_plain_ipv4(text))
    address = ip.parse_ip_strict(text)
    assert usual == (address is not None and str(address) == text)


@given(IPV4S, st.one_of(st.integers(0, 40).map(str), st.sampled_from(["", "08", "/8", "x"])))
def test_usual_networks_are_judged_as_all_others(address: str, length: str) -> None:
    text = f"{address}/{length}"
    try:
        network = str(ipaddress.IPv4Network(text)) == text
    except ValueError:
        network = False
    assert ip.is_plain_cidr(text) == network
