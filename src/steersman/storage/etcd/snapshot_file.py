"""The file of an etcd member, and of `etcdctl snapshot save`: a B+ tree of pages, as go.etcd.io/bbolt writes it.

The bucket `key` has every revision of every key. Pages are checked as they are read: a damaged file gets an error, never
an endless walk.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from steersman.storage.etcd.messages import MessageError, Stored, read_key_value

_MAGIC: Final = 0xED0CDAED
_VERSION: Final = 2
_HEADER: Final = struct.Struct("<QHHI")
"""Header of a page: number, flags, count of elements, count of further pages."""
_META: Final = struct.Struct("<IIIIQQQQQQ")
"""Meta page: magic, version, size of a page, flags, root page, sequence, free list, pages, transaction, checksum."""
_BRANCH: Final = struct.Struct("<IIQ")
"""Element of a branch: distance of the key, size of the key, page."""
_LEAF: Final = struct.Struct("<IIII")
"""Element of a leaf: flags, distance of the key, size of the key, size of the value."""
_BUCKET: Final = struct.Struct("<QQ")
"""Header of a bucket: root page, sequence."""
_IS_BRANCH, _IS_LEAF, _IS_BUCKET = 1, 2, 1
_SIZES: Final = frozenset(1 << each for each in range(9, 17))
_REVISION: Final = 17
"""Bytes of a revision, which is the key of a value. A deletion has one more."""
_DEEPEST: Final = 64
_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


class SnapshotError(ValueError):
    """The error for a file that is no snapshot of etcd, or a damaged one. The text is one line."""


class _Meta(NamedTuple):
    page_size: int
    root: int
    transaction: int


def is_snapshot(head: bytes) -> bool:
    """Return True if bytes are the beginning of a file of etcd."""
    return len(head) >= 24 and head[16:20] == struct.pack("<I", _MAGIC)


def read_snapshot(path: Path, most_bytes: int) -> dict[bytes, Stored]:
    """Return the present values by key. Raises SnapshotError, also for over `most_bytes` of values, and OSError."""
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise SnapshotError("the file is empty") from None
        with data:
            return _present(_Pages(data), most_bytes)


def _present(pages: _Pages, most_bytes: int) -> dict[bytes, Stored]:
    found: dict[bytes, Stored] = {}
    size = 0
    for revision, value in pages.bucket(b"key"):
        try:
            stored = read_key_value(value)
        except MessageError as error:
            raise SnapshotError(f"damaged value: {error}") from None
        if (before := found.pop(stored.key, None)) is not None:
            size -= len(before.value)
        if len(revision) == _REVISION:
            found[stored.key] = stored
            size += len(stored.value)
            if size > most_bytes:
                raise SnapshotError(f"its values have more than {most_bytes >> 20} MiB")
    return found


@dataclass(frozen=True, slots=True)
class _Page:
    at: int
    """Position of its header in the file."""
    end: int
    is_branch: bool
    count: int


class _Pages:
    """Pages of a file."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        metas = [each for size in (0, *sorted(_SIZES)) if (each := self._meta(size)) is not None]
        if not metas:
            raise SnapshotError("no intact meta page")
        self._meta_page = max(metas, key=lambda each: each.transaction)

    def _meta(self, at: int) -> _Meta | None:
        """Return the meta page at a position, None if there is no intact one."""
        begin = at + _HEADER.size
        raw = self._data[begin : begin + _META.size]
        if len(raw) < _META.size:
            return None
        magic, version, size, _, root, _, _, _, transaction, checksum = _META.unpack(raw)
        if (magic, version) != (_MAGIC, _VERSION) or size not in _SIZES or at not in (0, size):
            return None
        return _Meta(size, root, transaction) if _checksum(raw[:-8]) == checksum else None

    def bucket(self, name: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values of a bucket in order. Raises SnapshotError."""
        for flags, key, value in self._leaves(self._meta_page.root, set()):
            if key != name or not flags & _IS_BUCKET:
                continue
            if len(value) < _BUCKET.size:
                raise SnapshotError("damaged bucket")
            root, _ = _BUCKET.unpack_from(value)
            if root == 0:  # a small bucket is a page inside of its value
                elements = _elements(value[_BUCKET.size :], _inline(value[_BUCKET.size :]))
            else:
                elements = self._leaves(root, set())
            for _, inner, content in elements:
                yield inner, content
            return
        raise SnapshotError(f"it has no bucket {name.decode()!r}")

    def _leaves(self, number: int, seen: set[int], depth: int = 0) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield flags, key and value of all elements below a page. `seen` are the pages of the tree so far."""
        if depth > _DEEPEST or number in seen:
            raise SnapshotError("damaged tree")
        seen.add(number)
        page = self._page(number)
        if not page.is_branch:
            yield from _elements(self._data, page)
            return
        children = []
        for index in range(page.count):
            at = page.at + _HEADER.size + index * _BRANCH.size
            if at + _BRANCH.size > page.end:
                raise SnapshotError("damaged branch")
            children.append(_BRANCH.unpack_from(self._data, at)[2])
        for each in children:
            yield from self._leaves(each, seen, depth + 1)

    def _page(self, number: int) -> _Page:
        size = self._meta_page.page_size
        at = number * size
        if number < 2 or at + size > len(self._data):
            raise SnapshotError(f"page {number} is not in the file")
        found, flags, count, more = _HEADER.unpack_from(self._data, at)
        end = at + size * (more + 1)
        if found != number or end > len(self._data) or flags not in (_IS_BRANCH, _IS_LEAF):
            raise SnapshotError(f"page {number} is damaged")
        return _Page(at, end, flags == _IS_BRANCH, count)


def _inline(data: bytes) -> _Page:
    if len(data) < _HEADER.size:
        raise SnapshotError("damaged bucket")
    _, flags, count, _ = _HEADER.unpack_from(data)
    if flags != _IS_LEAF:
        raise SnapshotError("damaged bucket")
    return _Page(0, len(data), is_branch=False, count=count)


def _elements(data: mmap.mmap | bytes, page: _Page) -> Iterator[tuple[int, bytes, bytes]]:
    left = page.end - page.at  # elements share no bytes
    for index in range(page.count):
        at = page.at + _HEADER.size + index * _LEAF.size
        if at + _LEAF.size > page.end:
            raise SnapshotError("damaged leaf")
        flags, distance, key_size, value_size = _LEAF.unpack_from(data, at)
        begin = at + distance
        middle, end = begin + key_size, begin + key_size + value_size
        left -= end - begin
        if end > page.end or left < 0:
            raise SnapshotError("damaged leaf")
        yield flags, data[begin:middle], data[middle:end]


def _checksum(data: bytes) -> int:
    """Return the 64-bit FNV-1a checksum."""
    total = _FNV_OFFSET
    for each in data:
        total = ((total ^ each) * _FNV_PRIME) & 0xFFFFFFFFFFFFFFFF
    return total
