"""Interception of requests, and names of created objects, through a whole server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from steersman.faults.fault import Met, Status
from steersman.faults.interception import CUT, Instead, OpenWatch
from steersman.net.message import BodyAborted, Stream
from steersman.testing import Environment

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/api/v1/namespaces/default/configmaps"


class Observer:
    """An interceptor that notes requests, and answers as it is told."""

    def __init__(self, before: Instead = None, after: Instead = None) -> None:
        self.seen: list[tuple[str, str, bytes]] = []
        self.codes: list[int] = []
        self.watches = 0
        self._before = before
        self._after = after

    def begin(self, met: Met) -> Observer | None:
        if met.action.resource != "configmaps":
            return None
        self.seen.append((met.action.verb, met.name, met.body))
        return self

    async def before(self) -> Instead:
        return self._before

    async def after(self, code: int) -> Instead:
        self.codes.append(code)
        return self._after

    def watch(self, body: OpenWatch) -> Stream:
        self.watches += 1
        return body


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[Environment]:
    async with Environment() as environment:
        yield environment


@pytest.fixture
def environment(running: Environment) -> Environment:
    running.faults.clear()
    running.fault_set.interceptor = None
    return running


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


async def test_requests_are_seen_with_the_names_and_codes(environment: Environment) -> None:
    observer = environment.fault_set.interceptor = Observer()
    client = environment.client()
    assert (await client.post(PATH, config_map("seen"))).status == 201
    assert (await client.post(PATH, config_map("seen"))).status == 409
    assert (await client.get(f"{PATH}/seen")).status == 200
    assert [each[:2] for each in observer.seen] == [("create", "seen"), ("create", "seen"), ("get", "seen")]
    assert observer.codes == [201, 409, 200]
    assert b'"seen"' in observer.seen[0][2]
    assert observer.seen[2][2] == b""


async def test_an_answer_in_place_of_the_request_keeps_it_from_being_carried_out(environment: Environment) -> None:
    environment.fault_set.interceptor = Observer(before=Status(500))
    client = environment.client()
    assert (await client.post(PATH, config_map("unmade"))).status == 500
    environment.fault_set.interceptor = None
    assert (await client.get(f"{PATH}/unmade")).status == 404


async def test_an_answer_in_place_of_the_handlers_leaves_its_effect(environment: Environment) -> None:
    observer = environment.fault_set.interceptor = Observer(after=Status(504))
    client = environment.client()
    assert (await client.post(PATH, config_map("made"))).status == 504
    assert observer.codes == [201]
    environment.fault_set.interceptor = Observer(after=CUT)
    with pytest.raises(BodyAborted):
        await client.post(PATH, config_map("cut"))
    environment.fault_set.interceptor = None
    assert (await client.get(f"{PATH}/made")).status == 200
    assert (await client.get(f"{PATH}/cut")).status == 200


async def test_faults_fit_names_of_created_objects(environment: Environment) -> None:
    fault = environment.faults.add(verb="create", resource="configmaps", name="bad-*", code=500)
    client = environment.client()
    assert (await client.post(PATH, config_map("good-1"))).status == 201
    assert (await client.post(PATH, config_map("bad-1"))).status == 500
    assert [each.name for each in fault.last] == ["bad-1"]
