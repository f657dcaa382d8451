"""Points that the servers of a test suite note into files."""

from __future__ import annotations

import logging
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steersman.faults.fault import Met
from steersman.machinery.identity.action import Action
from steersman.stress import drop_in
from steersman.stress.drop_in import Notes, Task, read_hits, read_points, write_task
from steersman.stress.point import Kind, PlannedFault, Point

ACTION = Action("get", "", "v1", "configmaps", namespace="default", name="a")
POINT = Point("manager", "get", "configmaps", "default", "a")


@contextmanager
def no_space() -> Iterator[None]:
    """Let no file of this process grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def request(notes: Notes) -> None:
    """Let a request pass the interceptor of a server."""
    assert notes.fault_set.interceptor is not None
    observed = notes.fault_set.interceptor.begin(Met(ACTION, "jane", (), "manager/v1", "a"))
    assert observed is not None
    if await observed.before() is None:
        await observed.after(200)


async def test_requests_go_on_if_there_is_no_space_for_their_points(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_task(tmp_path, Task([PlannedFault(Kind.ERROR, POINT)]))
    notes = Notes(tmp_path)
    await request(notes)
    with caplog.at_level(logging.WARNING), no_space():
        await request(notes)
        await request(notes)
    assert [each.getMessage() for each in caplog.records] == [
        "points of steersman stress are missing: [Errno 27] File too large"
    ]
    await request(notes)
    notes.close()
    assert [each.point.nth for each in read_points(tmp_path)] == [1, 4]
    assert read_hits(tmp_path) == [PlannedFault(Kind.ERROR, POINT)]


@pytest.mark.parametrize(
    ("kind", "verb", "code"), [(Kind.LOST, "create", 201), (Kind.CONFLICT, "create", 0), (Kind.ERROR, "get", 0)]
)
async def test_a_fault_is_noted_before_the_program_learns_of_it(
    tmp_path: Path, kind: Kind, verb: str, code: int
) -> None:
    at = Point("manager", verb, "configmaps", "default", "a")
    write_task(tmp_path, Task([PlannedFault(kind, at)]))
    notes = Notes(tmp_path)
    assert notes.fault_set.interceptor is not None
    action = Action(verb, "", "v1", "configmaps", namespace="default", name="a")
    observed = notes.fault_set.interceptor.begin(Met(action, "jane", (), "manager/v1", "a"))
    assert observed is not None
    instead = await (observed.after(code) if code else observed.before())
    assert instead is not None
    assert read_hits(tmp_path) == [PlannedFault(kind, at)]  # also if the program ends at once
    assert [each.point for each in read_points(tmp_path)] == [at]
    notes.close()


async def test_a_request_that_ends_after_the_server_s_part_goes_on(tmp_path: Path) -> None:
    write_task(tmp_path, Task())
    notes = Notes(tmp_path)
    assert notes.fault_set.interceptor is not None
    observed = notes.fault_set.interceptor.begin(Met(ACTION, "jane", (), "manager/v1", "a"))
    assert observed is not None
    notes.close()
    assert await observed.after(200) is None
    assert read_points(tmp_path) == []


def lines_of_points(folder: Path) -> list[int]:
    """Return the numbers of lines in the files of all servers."""
    return [file.read_bytes().count(b"\n") for file in folder.glob("points-*")]


async def test_a_server_notes_a_bounded_number_of_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drop_in, "MOST_POINTS", 3)
    write_task(tmp_path, Task())
    for _ in range(2):
        notes = Notes(tmp_path)
        for _ in range(5):
            await request(notes)
        notes.close()
    assert lines_of_points(tmp_path) == [3, 3]
    assert [each.point.nth for each in read_points(tmp_path)] == [1, 2, 3]
