"""Tests of the allocator of address blocks."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.controllers.node_ipam.cidr_set import CIDRSet, NoBlockLeft, OutOfRange


def test_blocks_are_handed_out_in_turn() -> None:
    blocks = CIDRSet(IPv4Network("10.0.0.0/22"), 24)
    assert [str(blocks.allocate()) for _ in range(3)] == ["10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"]
    blocks.release(IPv4Network("10.0.0.0/24"))
    assert str(blocks.allocate()) == "10.0.3.0/24"  # those that were freed come last
    assert str(blocks.allocate()) == "10.0.0.0/24"
    with pytest.raises(NoBlockLeft):
        blocks.allocate()


def test_what_is_occupied_is_not_handed_out() -> None:
    blocks = CIDRSet(IPv4Network("10.0.0.0/22"), 24)
    blocks.occupy(IPv4Network("10.0.0.0/23"))
    blocks.occupy(IPv4Network("10.0.2.128/25"))  # a part of a block
    assert str(blocks.allocate()) == "10.0.3.0/24"
    with pytest.raises(NoBlockLeft):
        blocks.allocate()
    blocks.release(IPv4Network("10.0.0.0/8"))  # more than the range
    assert str(blocks.allocate()) == "10.0.0.0/24"
    with pytest.raises(OutOfRange, match=r"cidr 11.0.0.0/24 is out the range of cluster cidr 10.0.0.0/22"):
        blocks.occupy(IPv4Network("11.0.0.0/24"))
    with pytest.raises(OutOfRange):
        blocks.release(IPv6Network("fd00::/64"))


def test_blocks_of_ipv6() -> None:
    blocks = CIDRSet(IPv6Network("fd00:1:2::/48"), 64)
    assert [str(blocks.allocate()) for _ in range(2)] == ["fd00:1:2::/64", "fd00:1:2:1::/64"]
    with pytest.raises(ValueError, match="too big"):
        CIDRSet(IPv6Network("fd00::/40"), 64)
    with pytest.raises(ValueError, match="Invalid --cluster-cidr"):
        CIDRSet(IPv4Network("10.0.0.0/24"), 20)


@given(st.lists(st.integers(0, 15), max_size=40))
def test_no_block_is_handed_out_twice(freed: list[int]) -> None:
    whole = IPv4Network("10.0.0.0/20")
    every = list(whole.subnets(new_prefix=24))
    blocks = CIDRSet(whole, 24)
    taken: set[Any] = set()
    for number in freed:
        for _ in range(2):
            if len(taken) < len(every):
                block = blocks.allocate()
                assert block not in taken
                taken.add(block)
        blocks.release(every[number])
        taken.discard(every[number])
