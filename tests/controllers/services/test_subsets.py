"""Tests of subsets of Endpoints."""

from __future__ import annotations

import asyncio

from steersman.api.core.v1 import EndpointAddress, EndpointPort, EndpointSubset
from steersman.controllers.services.ports import Port
from steersman.controllers.services.subsets import (
    AddressKey,
    Group,
    Subset,
    group_of_subset,
    in_order,
    repack,
    truncated,
)

HTTP, DNS = Port("http", "TCP", 80, None), Port("dns", "UDP", 53, None)


def address_keys(*ips: str) -> list[AddressKey]:
    return [AddressKey(each, "") for each in ips]


def plain_groups(groups: list[Group]) -> list[tuple[list[str | None], list[str], list[str]]]:
    return [
        ([port.name for port in each.ports], [key.ip for key in each.ready], [key.ip for key in each.not_ready])
        for each in in_order(repack(groups))
    ]


def test_ports_of_the_same_addresses_are_together() -> None:
    groups = [Group([HTTP], address_keys("1", "2"), []), Group([DNS], address_keys("1", "2"), [])]
    assert [(sorted(map(str, ports)), ready) for ports, ready, _ in plain_groups(groups)] == [
        (["dns", "http"], ["1", "2"])
    ]


def test_a_port_of_several_groups_has_the_addresses_of_all() -> None:
    groups = [Group([HTTP, DNS], address_keys("1"), []), Group([DNS], address_keys("2"), address_keys("3"))]
    assert plain_groups(groups) == [(["dns"], ["1", "2"], ["3"]), (["http"], ["1"], [])]


def test_what_is_not_ready_in_one_group_is_not_ready() -> None:
    assert plain_groups([Group([HTTP], address_keys("1"), []), Group([HTTP], [], address_keys("1"))]) == [
        (["http"], [], ["1"])
    ]


def test_addresses_without_ports_stay() -> None:
    assert plain_groups([Group([], address_keys("1"), address_keys("2"))]) == [([], ["1"], ["2"])]


def test_subsets_that_somebody_wrote_lose_what_is_said_twice() -> None:
    addresses: dict[AddressKey, EndpointAddress] = {}
    subset = EndpointSubset(
        addresses=[EndpointAddress(ip="2"), EndpointAddress(ip="1"), EndpointAddress(ip="2")],
        ports=[EndpointPort(name="http", port=80, protocol="TCP")],
    )
    assert plain_groups([asyncio.run(group_of_subset(subset, addresses))]) == [(["http"], ["1", "2"], [])]


def numbered(count: int) -> list[AddressKey]:
    return address_keys(*(f"{number:05}" for number in range(count)))


def test_what_is_not_ready_is_left_out_first() -> None:
    found, is_truncated = truncated([Subset([HTTP], numbered(900), numbered(300))])
    assert is_truncated
    assert [(len(each.ready), len(each.not_ready)) for each in found] == [(900, 100)]


def test_each_subset_keeps_its_share() -> None:
    given = [Subset([HTTP], numbered(1500), numbered(5)), Subset([DNS], numbered(500), ())]
    found, is_truncated = truncated(given)
    assert is_truncated
    assert [(len(each.ready), len(each.not_ready)) for each in found] == [(750, 0), (250, 0)]


def test_a_thousand_addresses_are_not_too_many() -> None:
    given = [Subset([HTTP], numbered(999), numbered(1))]
    assert truncated(given) == (given, False)
