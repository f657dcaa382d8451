"""Requests in files: what servers of tests write, and reports on it."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from steersman.report import recording
from steersman.report.recording import LONGEST_LINE, VARIABLE, RecordingError, recorded_requests
from steersman.report.report import Report
from steersman.testing import Environment

MAPS = "/api/v1/namespaces/default/configmaps"


def test_environments_write_their_requests_into_the_folder_of_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "requests"
    monkeypatch.setenv(VARIABLE, str(folder))

    async def work() -> None:
        for _ in range(2):
            async with Environment() as environment:
                client = environment.client()
                await client.post(MAPS, {"metadata": {"name": "a"}})
                watch = await client.open("GET", f"{MAPS}?watch=true")
                await watch.aclose()
                await client.get(f"{MAPS}/\udc80b")

    asyncio.run(work())
    assert len(list(folder.iterdir())) == 2
    found = Report(recorded_requests(folder))
    assert [found.count(verb, "configmaps") for verb in ("create", "watch", "get")] == [2, 2, 2]
    one = next(folder.iterdir())
    assert Report(recorded_requests(one)).count("create") == 1


def test_an_open_watch_is_a_right_that_is_used() -> None:
    async def work() -> None:
        async with Environment() as environment:
            found = environment.requests()
            watch = await environment.client().open("GET", f"{MAPS}?watch=true")
            assert [(found.count("watch"), each["verbs"]) for each in found.role()["rules"]] == [(1, ["watch"])]
            await watch.aclose()
            await environment.client().get(MAPS)
            assert found.count("watch") == 1

    asyncio.run(work())


def test_a_line_that_a_killed_server_has_not_finished_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "server.requests"
    file.write_bytes(b'{"verb":"get","code":200}\n{"dropped":3}\n{"verb":"get","co')
    found = Report(recorded_requests(file))
    assert (found.count(), found.dropped) == (1, 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no json\n", "server.requests:1: JSON is malformed"),
        (b'{"verb":"get"}\n[]\n', "server.requests:2: Expected `object`"),
        (b'{"verb":3}\n', "server.requests:1: no line about a request"),
        (b'{"dropped":"many"}\n', "server.requests:1: no line about dropped requests"),
        (b'{"verb":' + b"[" * 60_000 + b"\n", "server.requests:1: "),
        (b"x" * (LONGEST_LINE + 9) + b"\n", "the line has more than 262144 bytes"),
    ],
)
def test_files_of_another_kind_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "server.requests").write_bytes(content)
    with pytest.raises(RecordingError, match=message):
        recorded_requests(tmp_path)


def test_a_folder_without_requests_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RecordingError, match="no file of requests"):
        recorded_requests(tmp_path)
    monkeypatch.setattr(recording, "MOST_FILES", 1)
    for name in ("a", "b"):
        (tmp_path / f"{name}.requests").write_text("")
    with pytest.raises(RecordingError, match="more than 1 files"):
        recorded_requests(tmp_path)


def test_requests_above_the_limit_are_counted_as_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(recording, "MOST_LINES", 2)

    async def work() -> None:
        async with Environment() as environment:
            for _ in range(5):
                await environment.client().get(MAPS)

    asyncio.run(work())
    found = Report(recorded_requests(tmp_path))
    assert (found.count(), found.dropped) == (2, 3)


def test_hostile_lines_take_bounded_memory_and_time(tmp_path: Path) -> None:
    file = tmp_path / "server.requests"
    long = "x" * 2_000
    with file.open("w") as out:
        for number in range(600):
            line = dict.fromkeys(("user", "userAgent", "resource", "apiGroup", "namespace", "name"), f"{number}{long}")
            about = {"verb": "update", "code": number * 10**9, "changed": [long] * 30, "warnings": [f"{number}{long}"]}
            out.write(json.dumps({**line, **about}) + "\n")
    before = time.process_time()
    found = Report(recorded_requests(file))
    assert len(found.clients) == 501
    assert max(len(each.user) for each in found.clients) == 256
    assert {code for each in found.clients for code in each.codes} == {0}
    longest = max(len(name) for each in found.clients for key in each.writes for name in key)
    assert longest <= 2 * 256 + 1
    assert sum(each.total for each in found.clients) == 600
    assert time.process_time() - before < 20
