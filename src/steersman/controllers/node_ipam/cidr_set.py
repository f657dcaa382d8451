"""Allocator of the equal blocks of an address range (pkg/controller/nodeipam/ipam/cidrset)."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from typing import Final

Network = IPv4Network | IPv6Network

MOST_BITS: Final = 16
"""Most bits by which the prefix of IPv6 blocks may be longer than that of their range."""


class NoBlockLeft(Exception):
    """All blocks are allocated."""


class OutOfRange(ValueError):
    """A block is outside of the range."""


class CIDRSet:
    """Blocks of prefix length `size` of a range, allocated in rotation."""

    def __init__(self, whole: Network, size: int) -> None:
        """Create the allocator. Raises ValueError for blocks that are larger than the range, or too many blocks."""
        if size < whole.prefixlen:
            raise ValueError(
                "Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to "
                "--node-cidr-mask-size configured for CIDR family"
            )
        if whole.version == 6 and size - whole.prefixlen > MOST_BITS:
            raise ValueError("New CIDR set failed; the node CIDR size is too big")
        self._whole = whole
        self._size = size
        self._count = 1 << (size - whole.prefixlen)
        self._allocated = 0
        self._next = 0

    def allocate(self) -> Network:
        """Allocate and return the next free block. Raises NoBlockLeft."""
        free = ~self._allocated & ((1 << self._count) - 1)
        after = free >> self._next << self._next or free
        if not after:
            raise NoBlockLeft(
                "CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range"
            )
        number = (after & -after).bit_length() - 1
        self._allocated |= 1 << number
        self._next = (number + 1) % self._count
        shift = self._whole.max_prefixlen - self._size
        return type(self._whole)((int(self._whole.network_address) + (number << shift), self._size))

    def occupy(self, block: Network) -> None:
        """Allocate all blocks that overlap `block`, free or not. Raises OutOfRange."""
        self._allocated |= self._mask(block)

    def release(self, block: Network) -> None:
        """Free all blocks that overlap `block`. Raises OutOfRange."""
        self._allocated &= ~self._mask(block)

    def overlaps(self, block: Network) -> bool:
        """Return True if the range overlaps a block."""
        return block.version == self._whole.version and self._whole.overlaps(block)

    def _mask(self, block: Network) -> int:
        if not self.overlaps(block):
            raise OutOfRange(f"cidr {block} is out the range of cluster cidr {self._whole}")
        if block.prefixlen <= self._whole.prefixlen:
            return (1 << self._count) - 1
        start, shift = int(self._whole.network_address), self._whole.max_prefixlen - self._size
        first = (int(block.network_address) - start) >> shift
        last = (int(block.broadcast_address) - start) >> shift
        return ((1 << (last - first + 1)) - 1) << first
