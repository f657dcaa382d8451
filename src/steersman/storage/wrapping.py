"""The base class of storages that keep their values in another storage."""

from __future__ import annotations

from steersman.storage.interface import Changes, Storage


class WrappingStorage:
    """Delegates revisions, compaction and closing to the storage below; subclasses implement reads, writes and
    subscriptions.
    """

    def __init__(self, inner: Storage) -> None:
        self.knows_newest = inner.knows_newest
        self.has_other_servers = inner.has_other_servers
        self.keeps_records = inner.keeps_records
        self.refusals = inner.refusals
        self._inner = inner

    @property
    def revision(self) -> int:
        """Delegate to the storage below."""
        return self._inner.revision

    async def current_revision(self) -> int:
        """Delegate to the storage below."""
        return await self._inner.current_revision()

    @property
    def compact_revision(self) -> int:
        """Delegate to the storage below."""
        return self._inner.compact_revision

    @property
    def refusal(self) -> str:
        """Delegate to the storage below."""
        return self._inner.refusal

    async def wait_until(self, revision: int) -> None:
        """Delegate to the storage below."""
        await self._inner.wait_until(revision)

    async def history(self, prefix: str, *, is_key: bool = False, before: int = 0, limit: int) -> Changes:
        """Delegate to the storage below."""
        return await self._inner.history(prefix, is_key=is_key, before=before, limit=limit)

    async def revision_at(self, seconds: float) -> int:
        """Delegate to the storage below."""
        return await self._inner.revision_at(seconds)

    async def compact(self, revision: int) -> None:
        """Delegate to the storage below."""
        await self._inner.compact(revision)

    async def close(self) -> None:
        """Close the storage below."""
        await self._inner.close()
