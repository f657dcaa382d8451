"""Encoded documents are made once and kept within a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from steersman.openapi.cache import EncodedDocuments


class Maker:
    """Makes bytes when it is let to, and counts."""

    def __init__(self, data: bytes = b"data") -> None:
        self.data = data
        self.made = 0
        self.go = asyncio.Event()

    async def __call__(self) -> bytes:
        async with asyncio.timeout(10):
            await self.go.wait()
        self.made += 1
        return self.data


def ready(data: bytes) -> Callable[[], Awaitable[bytes]]:
    async def make() -> bytes:
        return data

    return make


async def test_concurrent_requests_make_a_document_once() -> None:
    documents = EncodedDocuments(100)
    maker = Maker()
    waiting = [asyncio.ensure_future(documents.get("a", maker)) for _ in range(5)]
    await asyncio.sleep(0)
    maker.go.set()
    assert await asyncio.gather(*waiting) == [b"data"] * 5
    assert await documents.get("a", maker) == b"data"
    assert maker.made == 1


async def test_cancelled_request_leaves_the_document_to_the_others() -> None:
    documents = EncodedDocuments(100)
    maker = Maker()
    first = asyncio.ensure_future(documents.get("a", maker))
    second = asyncio.ensure_future(documents.get("a", maker))
    await asyncio.sleep(0)
    first.cancel()
    maker.go.set()
    assert await second == b"data"
    assert first.cancelled()
    assert maker.made == 1


async def test_failure_is_told_to_all_and_not_kept() -> None:
    documents = EncodedDocuments(100)

    async def fail() -> bytes:
        raise ValueError("no")

    results = await asyncio.gather(documents.get("a", fail), documents.get("a", fail), return_exceptions=True)
    assert [str(each) for each in results] == ["no", "no"]
    assert await documents.get("a", ready(b"now")) == b"now"


async def test_least_recently_used_are_forgotten_over_the_limit() -> None:
    documents = EncodedDocuments(10)
    await documents.get("a", ready(b"12345"))
    await documents.get("b", ready(b"12345"))
    await documents.get("a", ready(b"unused"))
    await documents.get("c", ready(b"1"))
    assert documents.size == 6
    assert await documents.get("a", ready(b"unused")) == b"12345"
    assert await documents.get("b", ready(b"again")) == b"again"


async def test_document_over_the_limit_is_kept_until_the_next() -> None:
    documents = EncodedDocuments(10)
    await documents.get("large", ready(bytes(11)))
    assert await documents.get("large", ready(b"unused")) == bytes(11)
    await documents.get("small", ready(b"1"))
    assert documents.size == 1
