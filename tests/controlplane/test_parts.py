"""The list of parts of a control plane: parts can be omitted or replaced, and a failed start leaves nothing behind."""

from __future__ import annotations

import asyncio
import shutil
import threading
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from steersman.authentication.user import UserInfo
from steersman.controlplane.control_plane import PARTS, ControlPlane
from steersman.controlplane.options import Options
from steersman.controlplane.parts.admitting import Audit, PriorityAndFairness
from steersman.controlplane.parts.basis import LoopWatch
from steersman.controlplane.parts.keeping import Followers, Hooks, MaintainedObjects, Registration
from steersman.controlplane.parts.live import Aggregation
from steersman.controlplane.parts.serving import HealthChecks, Listening
from steersman.controlplane.parts.storing import CacheConsistency, StoredVersions
from steersman.testing import Client
from steersman.work.parts import Part

pytestmark = pytest.mark.usefixtures("from_nothing")

MAY_BE_LEFT_OUT = (
    LoopWatch,
    StoredVersions,
    Audit,
    PriorityAndFairness,
    MaintainedObjects,
    HealthChecks,
    CacheConsistency,
    Aggregation,
    Registration,
    Listening,
    Followers,
)
ADMIN = UserInfo("admin", groups=("system:masters",))
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def options(folder: Path, **more: Any) -> Options:
    return Options(data_dir=folder, storage="memory", listen=False, **more)


def client_of(plane: ControlPlane) -> Client:
    return Client(plane, {"admin": plane.token_of(ADMIN)}, "admin")


async def test_parts_may_be_left_out(tmp_path: Path, keys_folder: Path) -> None:
    parts = tuple(each for each in PARTS if each not in MAY_BE_LEFT_OUT)
    plane = ControlPlane(options(keys_folder), parts=parts)
    await plane.start()
    try:
        assert (await client_of(plane).post(CONFIGMAPS, {"metadata": {"name": "a"}})).status == 201
        assert (await client_of(plane).get(f"{CONFIGMAPS}/a")).status == 200
        with pytest.raises(LookupError, match="no part of the type Aggregation"):
            plane.part(Aggregation)
    finally:
        await plane.stop()


async def test_a_part_that_others_need_is_missed_by_name(keys_folder: Path) -> None:
    plane = ControlPlane(options(keys_folder), parts=PARTS[1:])
    with pytest.raises(LookupError, match="LoopWatch needs Common, which no earlier part provides"):
        await plane.start()


class Fails(Part):
    """A part whose start fails."""

    async def start(self, ending: AsyncExitStack) -> None:
        raise OSError("no room")


class Waits(Part):
    """A part whose start is cancelled."""

    async def start(self, ending: AsyncExitStack) -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_soon(task.cancel)
        await asyncio.Event().wait()


def threads() -> set[threading.Thread]:
    """Return the threads that are not the event loop's own."""
    return {each for each in threading.enumerate() if not each.name.startswith("asyncio_")}


EARLY = (0, PARTS.index(Hooks), len(PARTS))


@pytest.mark.parametrize(("part", "error"), [(Fails, OSError), (Waits, asyncio.CancelledError)])
@pytest.mark.parametrize(
    "place",
    [*EARLY, *(pytest.param(place, marks=pytest.mark.slow) for place in range(len(PARTS)) if place not in EARLY)],
)
async def test_a_start_that_ends_early_leaves_nothing(
    tmp_path: Path, keys_folder: Path, place: int, part: type[Part], error: type[BaseException]
) -> None:
    shutil.copytree(keys_folder, tmp_path / "data")
    options = Options(data_dir=tmp_path / "data", listen=True, bind_address="127.0.0.1", secure_port=0)
    plane = ControlPlane(options, parts=(*PARTS[:place], part, *PARTS[place:]))
    tasks, before = asyncio.all_tasks(), threads()
    with pytest.raises(error):
        await asyncio.ensure_future(plane.start())
    assert asyncio.all_tasks() <= tasks
    for thread in threads() - before:
        thread.join(10)
        assert not thread.is_alive(), thread
    assert plane.server is None
    assert plane.storage is None
    again = ControlPlane(options)
    await again.start()  # the lock of the folder is free
    await again.stop()
