"""Node ports of Services, allocated from one range that all servers on one store share.

The allocation is a bitmap in a RangeAllocation (`/registry/ranges/servicenodeports`), written by compare-and-swap, and
has kube-apiserver's key and form. The lower part of the range is reserved for ports requested by number (KEP-3668).
Other ports are chosen at random from the rest, and from the lower part only once the rest is full. Follows
pkg/registry/core/service/portallocator and allocator/storage.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import msgspec

from steersman.api.core.v1 import RangeAllocation
from steersman.kinds.stored import from_value, to_value
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.status import StatusError
from steersman.net.ascii import is_digits
from steersman.rest.resource import KEYS
from steersman.storage.interface import Conflict, KeyExists, KeyValue, Storage

T = TypeVar("T")

KEY: Final = KEYS + "/ranges/servicenodeports"

ALLOCATED: Final = "provided port is already allocated"
FULL: Final = "range is full"
OTHER_RANGE: Final = "the provided range does not match the current range"

_DRY_RUN_FIRST: Final = 32_769
"""The first number that a dry run returns for a port that it would allocate."""
_ATTEMPTS: Final = 100
"""The most attempts of a change that conflicts with writes of others."""


class PortError(Exception):
    """A failed allocation of a port; the text gives the reason."""


class NoRange(Exception):
    """A missing allocation: no server has stored it yet."""


def static_band(size: int) -> int:
    """Return the number of ports of a range of `size` that are reserved for requests by number."""
    return 0 if size <= 16 else min(max(16, size // 32), 128)


class PortBitmap:
    """The allocated ports of a range: bit n of `bits` stands for its nth port."""

    def __init__(self, ports: range, bits: int = 0) -> None:
        self.ports = ports
        self.bits = bits

    def __contains__(self, port: int) -> bool:
        return port in self.ports and bool(self.bits >> port - self.ports.start & 1)

    def __iter__(self) -> Iterator[int]:
        bits = self.bits
        while bits:
            yield self.ports.start + _lowest(bits)
            bits &= bits - 1

    def allocate(self, port: int) -> None:
        """Allocate a port. Raises PortError."""
        if port not in self.ports:
            raise PortError(
                f"provided port is not in the valid range. The range of valid ports is {range_text(self.ports)}"
            )
        if port in self:
            raise PortError(ALLOCATED)
        self.bits |= 1 << port - self.ports.start

    def allocate_next(self) -> int:
        """Allocate any free port and return it. Raises PortError."""
        size = len(self.ports)
        band = static_band(size)
        for low, high in ((band, size), (0, band)):
            index = _free_bit(self.bits, low, high)
            if index is not None:
                self.bits |= 1 << index
                return self.ports[index]
        raise PortError(FULL)

    def release(self, port: int) -> None:
        """Release a port; does nothing if it is not allocated or of another range."""
        if port in self:
            self.bits ^= 1 << port - self.ports.start


def _free_bit(bits: int, low: int, high: int) -> int | None:
    """Return the first unset bit of `low` to `high` after a random bit, wrapping around; None if all are set."""
    size = high - low
    free = ~(bits >> low) & (1 << size) - 1
    if not free:
        return None
    start = random.randrange(size)
    behind = free >> start
    return low + (start + _lowest(behind) if behind else _lowest(free))


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def range_text(ports: range) -> str:
    """Return a range in the form of its flag: both ends, with a dash between."""
    return f"{ports.start}-{ports.stop - 1}"


def encode_bitmap(bitmap: PortBitmap) -> bytes:
    """Return the stored value: the bits as one big-endian number in a RangeAllocation."""
    data = bitmap.bits.to_bytes((bitmap.bits.bit_length() + 7) // 8)
    return to_value(RangeAllocation(range=range_text(bitmap.ports), data=data or None))


def decode_bitmap(value: bytes) -> PortBitmap:
    """Decode a stored value. Raises ValueError if that fails."""
    try:
        found = from_value(RangeAllocation, value)
    except (DecodeError, msgspec.DecodeError) as error:
        raise ValueError("the stored range of node ports cannot be read") from error
    first, _, last = found.range.partition("-")
    if not (is_digits(first) and is_digits(last) and len(first + last) <= 10):
        raise ValueError(f"the stored range of node ports {found.range!r} is none")
    return PortBitmap(range(int(first), int(last) + 1), int.from_bytes(found.data or b""))


class NodePorts:
    """The stored allocation. It is read again only where a stale copy could lead to a wrong result."""

    def __init__(self, ports: range, storage: Storage) -> None:
        self._ports = ports
        self._storage = storage
        self._lock = asyncio.Lock()
        self._known: KeyValue | None = None
        """The last known stored value; other servers may have written since."""

    async def change(self, work: Callable[[PortBitmap], T]) -> T:
        """Run `work`, which allocates and releases ports, store the outcome, and return its result.

        `work` runs again after a conflict with another write, and also, if the copy may be stale, after it raised or
        changed nothing. Raises what the last run raises, NoRange, PortError, and what storage raises.
        """
        async with self._lock:
            known, is_new = self._known, False
            for _ in range(_ATTEMPTS):
                if known is None:
                    known, is_new = await self._read(), True
                try:
                    bitmap = self._decode(known)
                    before = bitmap.bits
                    result = work(bitmap)
                except (PortError, StatusError):
                    if is_new:
                        raise
                    known = None
                    continue
                if bitmap.bits == before:
                    if is_new:
                        return result
                    known = None  # another server may have allocated the port that is to be released
                    continue
                try:
                    self._known = await self._storage.update(
                        KEY, encode_bitmap(bitmap), expected_revision=known.mod_revision
                    )
                except Conflict as conflict:
                    known, is_new = conflict.current, conflict.current is not None
                    continue
                return result
            raise PortError("the port allocation changes too often")

    async def preview(self, work: Callable[[PortBitmap], T]) -> T:
        """Run `work` on the stored allocation, discard its changes, and return its result.

        Raises what `work` raises, NoRange, PortError, and what storage raises.
        """
        return work(self._decode(await self._read()))

    async def stored(self) -> KeyValue | None:
        """Return the stored value, None if there is none. Raises what storage raises."""
        self._known = await self._storage.get(KEY)
        return self._known

    async def replace(self, bitmap: PortBitmap, before: KeyValue | None) -> bool:
        """Store `bitmap` in place of `before`; return False after a conflict. Raises what storage raises."""
        value = encode_bitmap(bitmap)
        if before is not None and before.value == value:
            return True
        try:
            if before is None:
                self._known = await self._storage.create(KEY, value)
            else:
                self._known = await self._storage.update(KEY, value, expected_revision=before.mod_revision)
        except (KeyExists, Conflict):
            return False
        return True

    async def _read(self) -> KeyValue:
        found = await self.stored()
        if found is None:
            raise NoRange
        return found

    def _decode(self, stored: KeyValue) -> PortBitmap:
        try:
            bitmap = decode_bitmap(stored.value)
        except ValueError as error:
            raise PortError(str(error)) from error
        if bitmap.ports != self._ports:
            raise PortError(OTHER_RANGE)
        return bitmap


class PortOperation:
    """The ports of one request: allocated before it is stored, released after."""

    def __init__(self, bitmap: PortBitmap, *, dry_run: bool) -> None:
        self._ports = bitmap
        self._dry_run = dry_run
        self.allocated: list[int] = []
        self.released: list[int] = []

    def allocate(self, port: int) -> None:
        """Allocate a port. Raises PortError."""
        if not self._dry_run:
            self._ports.allocate(port)
        elif port in self._ports or port in self.allocated:
            raise PortError(ALLOCATED)
        self.allocated.append(port)

    def allocate_next(self) -> int:
        """Allocate any free port and return it; a dry run returns numbers beyond the default range. Raises PortError."""
        port = max(self.allocated, default=_DRY_RUN_FIRST - 1) + 1 if self._dry_run else self._ports.allocate_next()
        self.allocated.append(port)
        return port

    def release_later(self, port: int) -> None:
        """Note a port that is to be released once the request is stored."""
        self.released.append(port)
