"""Changed configuration files are applied; invalid ones are reported and change nothing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from steersman.controlplane import followed_configuration
from steersman.controlplane.followed_configuration import FollowedConfiguration, Unusable
from steersman.controlplane.reload_metrics import ReloadMetrics
from steersman.machinery.metrics import Registry
from steersman.work.followed_files import Stamp, stamp


class File:
    """A file and its history: `taken` are the applied texts, `reads` counts reads."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.taken: list[str] = []
        self.reads = self.looks = self.refusals = 0
        self.is_down = False
        self._registry = Registry()
        self._looked = asyncio.Condition()
        self._writes = 0
        monkeypatch.setattr(followed_configuration, "stamp", self._stamp)
        self.write("first")
        self.followed = FollowedConfiguration(
            "a file",
            path,
            b"first",
            read=self._read,
            take=self._take,
            metrics=ReloadMetrics(self._registry, "authorization", "it", b"first"),
            interval=0.001,
            refused=self._refused,
        )

    def write(self, text: str) -> None:
        self._writes += 1
        whole = self.path.with_suffix(".whole")  # it is read at any time
        whole.write_text(text)
        os.utime(whole, (self._writes, self._writes))
        whole.replace(self.path)

    def _stamp(self, path: Path) -> Stamp | None:
        self.looks += 1
        return stamp(path)

    def _read(self, path: Path) -> bytes:
        self.reads += 1
        try:
            return path.read_bytes()
        except OSError:
            raise Unusable("it is gone") from None

    async def _take(self, data: bytes) -> bool:
        text = data.decode()
        if text == "bad":
            raise Unusable("it is bad")
        if self.is_down:
            raise Unusable("nobody answers", transient=True)
        self.taken.append(text)
        return text != "same"

    def _refused(self) -> None:
        self.refusals += 1

    async def rounds(self) -> None:
        """Return after some more checks of the file."""
        until = self.looks + 4
        async with asyncio.timeout(20):
            while self.looks < until:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0)

    def count(self, status: str) -> int:
        start = f'apiserver_authorization_config_controller_automatic_reloads_total{{status="{status}"'
        lines = [line for line in "".join(self._registry.expose()).splitlines() if line.startswith(start)]
        return int(float(lines[0].split()[-1])) if lines else 0


@pytest.fixture
async def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[File]:
    file = File(tmp_path / "file", monkeypatch)
    file.followed.start()
    yield file
    await file.followed.stop()


async def test_a_file_that_stays_as_it_is_is_read_once(file: File) -> None:
    await file.rounds()
    await file.rounds()
    assert (file.reads, file.taken) == (1, [])


async def test_a_file_that_changes_is_taken_once(file: File) -> None:
    await file.rounds()
    file.write("second")
    await file.rounds()
    assert (file.taken, file.count("success"), file.count("failure")) == (["second"], 1, 0)


async def test_a_file_that_means_what_counted_before_is_not_counted(file: File) -> None:
    file.write("same")
    await file.rounds()
    assert (file.taken, file.count("success")) == (["same"], 0)


@pytest.mark.parametrize(
    ("change", "why"), [(lambda file: file.write("bad"), "it is bad"), (lambda file: file.path.unlink(), "it is gone")]
)
async def test_a_file_that_cannot_be_used_is_told_of_once(
    file: File, caplog: pytest.LogCaptureFixture, change: Callable[[File], None], why: str
) -> None:
    await file.rounds()
    change(file)
    await file.rounds()
    await file.rounds()
    assert (file.count("failure"), file.refusals, [each.getMessage() for each in caplog.records]) == (1, 1, [why])
    file.write("second")
    await file.rounds()
    assert (file.taken, file.count("success")) == (["second"], 1)


async def test_a_file_that_cannot_be_used_now_is_tried_again(file: File, caplog: pytest.LogCaptureFixture) -> None:
    file.is_down = True
    file.write("second")
    await file.rounds()
    assert file.count("failure") >= 2
    assert {each.getMessage() for each in caplog.records} == {"nobody answers"}
    file.is_down = False
    await file.rounds()
    assert (file.taken, file.count("success")) == (["second"], 1)


async def test_a_file_written_twice_with_one_time_is_read_again(file: File) -> None:
    file.write("second")
    os.utime(file.path)
    young = file.path.stat()
    await file.rounds()
    with file.path.open("r+b", buffering=0) as again:
        again.write(b"third!")
        os.utime(file.path, ns=(young.st_atime_ns, young.st_mtime_ns))
    await file.rounds()
    assert file.taken == ["second", "third!"]
