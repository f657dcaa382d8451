"""The sorted entries of a cache, up to a million and more.

Entries are in chunks. A result with many entries shares the chunks, and a shared chunk is copied before it is changed.
So long lists, and kept past revisions, only cost copies of some thousand references.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from operator import attrgetter
from typing import Final, overload

from steersman.storage.cache.entry import Entry
from steersman.storage.rewind import bounds

CHUNK: Final = 1_000
"""The size of a new chunk; a chunk of twice that size is split."""
FEW: Final = CHUNK // 4
"""A chunk with fewer entries is joined with a neighbour, unless that is large."""
COPIED: Final = 2_000
"""Up to this many entries are returned as a list of their own."""
_KEY = attrgetter("key")


class Shared(Sequence[Entry]):
    """A sequence of very many entries, in chunks that are not changed."""

    __slots__ = ("_chunks", "_ends")

    def __init__(self, chunks: list[list[Entry]]) -> None:
        self._chunks = chunks
        self._ends = list(accumulate(map(len, chunks)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Entry]:
        return chain.from_iterable(self._chunks)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            found = self._between(start, stop)
            return found if step == 1 else list(found)[::step]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        at = bisect_left(self._ends, index + 1)
        return self._chunks[at][index - self._ends[at]]

    def _between(self, start: int, stop: int) -> Sequence[Entry]:
        if start >= stop:
            return []
        first, last = bisect_left(self._ends, start + 1), bisect_left(self._ends, stop)
        begin, end = start - self._ends[first], stop - self._ends[last]
        return _given(self._chunks, first, last, begin + len(self._chunks[first]), end + len(self._chunks[last]))


def _given(chunks: list[list[Entry]], first: int, last: int, begin: int, end: int) -> Sequence[Entry]:
    """Return the entries from index `begin` of the first chunk to `end` (exclusive) of the last; a list if they are
    few.
    """
    if first == last:
        return chunks[first][begin:end]
    parts = chunks[first : last + 1]
    parts[0], parts[-1] = parts[0][begin:], parts[-1][:end]
    if len(parts) <= 2 or sum(map(len, parts)) <= COPIED:
        return list(chain.from_iterable(parts))
    return Shared(parts)


class SortedEntries:
    """The entries of a cache, sorted by their keys."""

    __slots__ = ("_chunks", "_lasts", "_owned", "_size")

    def __init__(self) -> None:
        self._chunks: list[list[Entry]] = []
        self._lasts: list[str] = []
        """The last key of each chunk."""
        self._owned: list[bool] = []
        """True for each chunk that is not shared."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    # Reads

    def range(self, prefix: str, start: str = "", limit: int = 0) -> tuple[Sequence[Entry], bool]:
        """Return at most `limit` (0: all) entries under `prefix`, from the key `start` on, and True if more follow.

        The result does not change later.
        """
        first, begin, last, end = self._places(prefix, start)
        if first > last or (first == last and begin >= end):
            return [], False
        if limit:
            at, left = first, limit + begin
            while at < last and left > len(self._chunks[at]):
                left -= len(self._chunks[at])
                at += 1
            more = at < last or left < end
            last, end = at, min(left, end) if at == last else left
        else:
            more = False
        found = _given(self._chunks, first, last, begin, end)
        if isinstance(found, Shared):
            self._share()
        return found, more

    def count(self, prefix: str, start: str = "") -> int:
        """Return the number of entries under `prefix` from the key `start` on."""
        first, begin, last, end = self._places(prefix, start)
        if first > last:
            return 0
        if first == 0 and begin == 0 and last == len(self._chunks) - 1 and end == len(self._chunks[last]):
            return self._size
        return sum(map(len, self._chunks[first:last])) - begin + end

    def _places(self, prefix: str, start: str) -> tuple[int, int, int, int]:
        """Return the first chunk of the range, the index of the range's first entry in it, the last chunk, and the
        index after the range's last entry in it.

        For an empty range the first chunk is beyond the last, or both indexes are equal.
        """
        low, high = bounds(prefix, start)
        chunks, lasts = self._chunks, self._lasts
        first = bisect_left(lasts, low)
        if first == len(chunks):
            return 1, 0, 0, 0
        begin = bisect_left(chunks[first], low, key=_KEY)
        last = len(chunks) - 1 if high is None else min(bisect_left(lasts, high), len(chunks) - 1)
        end = len(chunks[last]) if high is None else bisect_left(chunks[last], high, key=_KEY)
        if not end and last > first:
            last -= 1
            end = len(chunks[last])
        return first, begin, last, max(end, begin) if first == last else end

    def _share(self) -> None:
        self._owned = [False] * len(self._chunks)

    def fork(self) -> SortedEntries:
        """Return a copy that can be changed independently; the chunks are shared until then."""
        other = SortedEntries()
        other._chunks, other._lasts, other._size = self._chunks[:], self._lasts[:], self._size
        other._share()
        self._share()
        return other

    # Changes

    def append(self, entries: Sequence[Entry]) -> None:
        """Append entries in key order, after all present ones."""
        for at in range(0, len(entries), CHUNK):
            chunk = list(entries[at : at + CHUNK])
            if self._chunks and len(self._chunks[-1]) + len(chunk) <= CHUNK:
                self._own(-1).extend(chunk)
                self._lasts[-1] = chunk[-1].key
            else:
                self._add_chunk(len(self._chunks), chunk)
            self._size += len(chunk)

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the entry with its key."""
        key = entry.key
        at = bisect_left(self._lasts, key)
        if at == len(self._chunks):
            self.append([entry])
            return
        chunk = self._chunks[at] if self._owned[at] else self._own(at)
        place = bisect_left(chunk, key, key=_KEY)
        if chunk[place].key == key:
            chunk[place] = entry
            return
        chunk.insert(place, entry)
        self._size += 1
        if len(chunk) >= 2 * CHUNK:
            rest = chunk[CHUNK:]
            del chunk[CHUNK:]
            self._lasts[at] = chunk[-1].key
            self._add_chunk(at + 1, rest)

    def discard(self, key: str) -> None:
        """Remove the entry of a key, if there is one."""
        at = bisect_left(self._lasts, key)
        if at == len(self._chunks):
            return
        place = bisect_left(self._chunks[at], key, key=_KEY)
        if self._chunks[at][place].key != key:
            return
        chunk = self._own(at)
        del chunk[place]
        self._size -= 1
        if not chunk:
            self._drop_chunk(at)
        elif len(chunk) < FEW and self._joined(at):
            return
        elif place == len(chunk):
            self._lasts[at] = chunk[-1].key

    def undo(self, undone: Iterable[tuple[str, Entry | None]]) -> None:
        """Restore the previous entries of keys, None for no entry."""
        for key, entry in undone:
            if entry is not None:
                self.put(entry)
            else:
                self.discard(key)

    def _own(self, at: int) -> list[Entry]:
        """Return a chunk that may be changed, copying it if it is shared."""
        if not self._owned[at]:
            self._chunks[at] = self._chunks[at][:]
            self._owned[at] = True
        return self._chunks[at]

    def _joined(self, at: int) -> bool:
        """Join a small chunk with the one before it, unless that is large; return True if joined."""
        if not at or len(self._chunks[at - 1]) > CHUNK:
            return False
        chunk = self._chunks[at]
        self._own(at - 1).extend(chunk)
        self._lasts[at - 1] = chunk[-1].key
        self._drop_chunk(at)
        return True

    def _add_chunk(self, at: int, chunk: list[Entry]) -> None:
        self._chunks.insert(at, chunk)
        self._lasts.insert(at, chunk[-1].key)
        self._owned.insert(at, True)

    def _drop_chunk(self, at: int) -> None:
        del self._chunks[at], self._lasts[at], self._owned[at]

    def take_chunk(self) -> list[Entry]:
        """Remove and return the last chunk of entries, [] if there are none."""
        if not self._chunks:
            return []
        chunk = self._chunks[-1]
        self._drop_chunk(len(self._chunks) - 1)
        self._size -= len(chunk)
        return chunk
