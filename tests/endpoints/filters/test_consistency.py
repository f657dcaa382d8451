"""Requests wait for acknowledged writes of other servers, and writes wait until others know this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from steersman.endpoints.filters.consistency import ConsistencyWait, with_consistency_wait
from steersman.endpoints.request import Request
from steersman.endpoints.request_info import request_info
from steersman.machinery.errors.status import StatusError
from steersman.net.body import EMPTY_BODY
from steersman.net.message import Headers, Peer, Response
from steersman.net.message import Request as HttpRequest
from steersman.storage.interface import StorageUnavailable

MAPS = "/api/v1/namespaces/ns/configmaps"


class Joining:
    """A process that is not known to others yet."""

    def __init__(self, error: Exception | None = None) -> None:
        self.known = asyncio.Event()
        self._error = error

    def may_write(self) -> Awaitable[None] | None:
        return None if self.known.is_set() else self._wait()

    async def _wait(self) -> None:
        if self._error is not None:
            raise self._error
        await self.known.wait()


async def ask(method: str, joining: Joining) -> Response:
    request = Request(HttpRequest(method, MAPS, "", Headers(), EMPTY_BODY, Peer()))
    request.info = request_info(method, MAPS, "")
    arrival = ConsistencyWait(lambda: 7, lambda revision: None, costs=True, may_write=joining.may_write)

    async def handler(request: Request) -> Response:
        return Response(200, [], str(request.newest).encode())

    return await with_consistency_wait(arrival)(request, handler)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_write_waits_until_others_know_of_this_process(method: str) -> None:
    joining = Joining()
    write = asyncio.create_task(ask(method, joining))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not write.done()
    joining.known.set()
    assert (await write).body == b"7"
    assert (await ask(method, joining)).status == 200


async def test_a_read_does_not() -> None:
    assert (await ask("GET", Joining())).body == b"7"


async def test_a_write_is_refused_if_others_cannot_be_told() -> None:
    with pytest.raises(StatusError) as refused:
        await ask("POST", Joining(StorageUnavailable("no connection")))
    assert (refused.value.code, refused.value.retry_after) == (429, 1)
