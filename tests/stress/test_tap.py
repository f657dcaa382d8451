"""Faults at points, as clients of a whole server see them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from steersman.net.message import BodyAborted
from steersman.stress.point import Kind, PlannedFault
from steersman.testing import Environment, User
from tests.stress.tapping import OPERATOR, PATH, Manager, Received, config_map, point, tapped

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[Environment]:
    async with Environment(users=(OPERATOR,)) as environment:
        yield environment


@pytest_asyncio.fixture(loop_scope="module")
async def environment(running: Environment) -> AsyncIterator[Environment]:
    snapshot = running.snapshot()
    yield running
    running.fault_set.interceptor = None
    await running.restore(snapshot)


async def test_points_are_recorded_in_order_with_codes(environment: Environment) -> None:
    tap, manager = tapped(environment), Manager(environment)
    assert await manager.code("POST", PATH, config_map("a")) == 201
    assert await manager.code("POST", PATH, config_map("a")) == 409
    made = await manager.get(f"{PATH}/a")
    assert await manager.code("PUT", f"{PATH}/a", made) == 200
    assert await manager.code("POST", PATH, {"metadata": {"generateName": "b-"}}) == 201
    assert [(each.point, each.code, each.has_version) for each in tap.seen] == [
        (point("create"), 201, False),
        (point("create", nth=2), 409, False),
        (point("get"), 200, False),
        (point("update"), 200, True),
        (point("create", "b-*"), 201, False),
    ]


async def test_other_users_and_events_are_no_points(environment: Environment) -> None:
    tap, manager = tapped(environment), Manager(environment)
    other = environment.client(User("test", ("system:masters",)))
    assert (await other.post(PATH, config_map("a"))).status == 201
    assert await manager.code("GET", "/api/v1/events") == 200
    assert tap.seen == []


async def test_a_conflict_is_the_servers_own_as_somebody_else_has_changed_the_object(environment: Environment) -> None:
    manager = Manager(environment)
    await manager.code("POST", PATH, config_map("a"))
    made = await manager.get(f"{PATH}/a")
    tap = tapped(environment, PlannedFault(Kind.CONFLICT, point("update")))
    assert await manager.code("PUT", f"{PATH}/a", made) == 409
    now = await manager.get(f"{PATH}/a")
    assert list(now["metadata"]["annotations"]) == ["stress.steersman.dev/touched"]
    assert await manager.code("PUT", f"{PATH}/a", now) == 200
    assert tap.hits == [PlannedFault(Kind.CONFLICT, point("update"))]


async def test_objects_by_which_leaders_are_elected_are_no_points(environment: Environment) -> None:
    tap, manager = tapped(environment), Manager(environment)
    lock = config_map("lock")
    lock["metadata"]["annotations"] = {"control-plane.alpha.kubernetes.io/leader": "{}"}
    assert await manager.code("GET", f"{PATH}/lock") == 404
    assert await manager.code("POST", PATH, lock) == 201
    assert await manager.code("GET", f"{PATH}/other") == 404
    assert [each.point for each in tap.seen] == [point("get", "other")]
    assert tap.locks == {("configmaps", "default", "lock")}


@pytest.mark.parametrize(
    ("kind", "code", "exists"),
    [
        (Kind.CONFLICT, 409, False),
        (Kind.ERROR, 500, False),
        (Kind.THROTTLED, 429, False),
        (Kind.UNAVAILABLE, 503, False),
        (Kind.LOST, 504, True),
    ],
)
async def test_a_create_gets_an_error_once(environment: Environment, kind: Kind, code: int, exists: bool) -> None:
    manager = Manager(environment)
    tapped(environment, PlannedFault(kind, point("create")))
    assert await manager.code("POST", PATH, config_map("a")) == code
    assert await manager.code("POST", PATH, config_map("a")) == (409 if exists else 201)


@pytest.mark.parametrize(("kind", "exists"), [(Kind.CRASH_BEFORE, False), (Kind.CRASH_AFTER, True)])
async def test_the_operator_is_killed_before_or_after_a_write(
    environment: Environment, kind: Kind, exists: bool
) -> None:
    manager, crashes = Manager(environment), []
    tapped(environment, PlannedFault(kind, point("create")), crash=lambda: crashes.append(1))
    with pytest.raises(BodyAborted):
        await manager.code("POST", PATH, config_map("a"))
    assert crashes == [1]
    assert await manager.code("GET", f"{PATH}/a") == (200 if exists else 404)


async def test_a_watch_is_closed_before_an_event_which_the_next_watch_has(environment: Environment) -> None:
    manager = Manager(environment)
    revision = str(environment.plane.storage.revision)  # type: ignore[union-attr]
    tapped(environment, PlannedFault(Kind.CLOSED, point("watch", "a", "ADDED")))
    received = Received(await manager.watch(revision))
    await manager.code("POST", PATH, config_map("a"))
    await environment.wait_until(lambda: received.has_ended)
    assert received.events == []
    again = Received(await manager.watch(revision))
    await environment.wait_until(lambda: again.events == [("ADDED", "a")])
    await again.end()


async def test_an_expired_watch_ends_with_410_and_without_the_event(environment: Environment) -> None:
    manager = Manager(environment)
    tapped(environment, PlannedFault(Kind.EXPIRED, point("watch", "a", "DELETED")))
    received = Received(await manager.watch(str(environment.plane.storage.revision)))  # type: ignore[union-attr]
    await manager.code("POST", PATH, config_map("a"))
    await manager.code("DELETE", f"{PATH}/a")
    await environment.wait_until(lambda: received.has_ended)
    assert received.events == [("ADDED", "a"), ("ERROR", "410")]
