"""Further ranges of pod addresses, for nodes with more pods than their own range has addresses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from typing import Final, Generic, TypeVar

from steersman.machinery.number_allocator import NumberAllocator

T = TypeVar("T", bound=Hashable)

FURTHER: Final = IPv4Network("100.64.0.0/10")
"""Network of the further ranges, outside of the ranges that Node objects state. Clouds use it for such ranges, too."""
_SUFFIX: Final = 8
"""Number of bits of an address within its range."""


def range_of(address: str) -> int | None:
    """Return the number of an address's range among all of IPv4; None if the text is no address."""
    try:
        return int(IPv4Address(address)) >> _SUFFIX
    except AddressValueError:
        return None


class PodRanges(Generic[T]):
    """Allocator of further ranges to nodes."""

    def __init__(self, network: IPv4Network = FURTHER) -> None:
        self._first: Final = int(network.network_address) >> _SUFFIX
        self._count: Final = network.num_addresses >> _SUFFIX
        self._free = NumberAllocator()
        self._owners: dict[int, T] = {}
        self._of: defaultdict[T, list[int]] = defaultdict(list)

    def owner(self, number: int) -> T | None:
        """Return the node that has a range; None if no node has it."""
        return self._owners.get(number)

    def add(self, node: T) -> int | None:
        """Allocate a range to a node and return its number; None if all ranges are in use."""
        offset = self._free.lowest()
        return self._allocate(node, offset) if offset < self._count else None

    def keep(self, node: T, address: str) -> int | None:
        """Allocate the range of an address that a pod of the node has already.

        Return its number; None if the address is in no further range, or if a node has the range.
        """
        number = range_of(address)
        if number is None or number in self._owners or not 0 <= number - self._first < self._count:
            return None
        return self._allocate(node, number - self._first)

    def release(self, node: T) -> None:
        """Free all ranges of a node."""
        for number in self._of.pop(node, ()):
            del self._owners[number]
            self._free.release(number - self._first)

    def _allocate(self, node: T, offset: int) -> int:
        self._free.allocate(offset)
        number = self._first + offset
        self._owners[number] = node
        self._of[node].append(number)
        return number
