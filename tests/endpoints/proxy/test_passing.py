"""Proxying of answers from backends, and its end when the server stops."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from steersman.endpoints.proxy.passing import PassedBody, ended_with
from steersman.endpoints.proxy.rewriting import PAGES_OF_A_USER, PageBody, Rewriter, rewritten_page
from steersman.machinery.errors.status import StatusError
from steersman.net.client.answer import Answer
from steersman.net.message import BodyAborted, Response

REWRITER = Rewriter("/prefix", "10.0.0.1:80", "api.example.org")


async def test_a_request_that_a_backend_has_not_answered_is_ended() -> None:
    open_ones: set[Any] = set()
    answering: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    asked = asyncio.ensure_future(ended_with(open_ones, answering))
    await asyncio.sleep(0)
    for each in list(open_ones):
        each.finish()
    with pytest.raises(StatusError) as refused:
        await asked
    assert (refused.value.code, refused.value.message) == (503, "apiserver is shutting down")
    assert answering.cancelled()
    assert not open_ones


async def test_a_client_that_goes_ends_what_is_asked_for_it() -> None:
    open_ones: set[object] = set()
    waiting: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    asked = asyncio.ensure_future(ended_with(open_ones, waiting))
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert waiting.cancelled()
    assert not open_ones


class Page:
    """A backend's answer that records whether it was read."""

    def __init__(self) -> None:
        self.was_read = asyncio.Event()

    async def read(self, limit: int) -> bytes:
        self.was_read.set()
        return b"<a href=/x>"


async def test_pages_of_a_user_are_read_when_others_have_been_sent() -> None:
    pages = [Page() for _ in range(PAGES_OF_A_USER + 2)]
    asked = [asyncio.ensure_future(rewritten_page(REWRITER, cast(Answer, page), "", "alice")) for page in pages]
    bodies = [(await each)[0] for each in asked[:PAGES_OF_A_USER]]
    assert [page.was_read.is_set() for page in pages[PAGES_OF_A_USER:]] == [False, False]
    other = Page()
    await rewritten_page(REWRITER, cast(Answer, other), "", "bob")
    assert b"".join([piece async for piece in bodies[0]]) == b'<a href="/prefix/x">'
    await bodies[0].close()
    await bodies[0].close()
    await pages[-2].was_read.wait()
    assert not pages[-1].was_read.is_set()
    asked[-2].cancel()
    await pages[-1].was_read.wait()
    await asyncio.gather(*asked, return_exceptions=True)


async def test_a_page_that_is_cut_off_is_not_read_to_its_end() -> None:
    place = asyncio.Semaphore(0)
    body = PassedBody(PageBody(bytes(100_000), place))
    assert await anext(body)
    body.finish()
    assert not place.locked()
    with pytest.raises(BodyAborted):
        await anext(body)
    await body.aclose()
    assert place._value == 1
