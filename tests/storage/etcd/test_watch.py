"""The watch of etcd, with members that send impossible events."""

from __future__ import annotations

import asyncio

import pytest

from steersman.net.protobuf_fields import varint
from steersman.storage.etcd import watch
from steersman.storage.etcd.messages import Change
from steersman.storage.etcd.watch import Ended, Inconsistent, Watch


def _field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def told(*revisions: int, progress: int = 0, fragment: bool = False) -> bytes:
    """A WatchResponse with puts of these revisions."""
    header = _field(1, varint(3 << 3) + varint(progress or revisions[-1]))
    events = b"".join(_field(11, _field(2, _field(1, b"/a") + varint(3 << 3) + varint(each))) for each in revisions)
    return header + (b"\x38\x01" if fragment else b"") + events


class Told:
    """The changes that a watch has passed on."""

    def __init__(self, after: int) -> None:
        self.revisions: list[int] = []
        self.progress: list[int] = []
        self.watch = Watch(self._changed, self.progress.append)
        self.watch.revision = after

    def _changed(self, changes: object) -> None:
        assert isinstance(changes, list)
        self.revisions += [each.current.mod_revision for each in changes if isinstance(each, Change)]

    def take(self, *messages: bytes) -> BaseException | None:
        for each in messages:
            self.watch.receive(each)
        return self.watch.over.exception() if self.watch.over.done() else None


async def test_changes_are_passed_on_in_their_order_with_fragments_joined() -> None:
    found = Told(after=3)
    messages = (told(4, 5, 5), told(progress=7), told(8, fragment=True), told(8, 9))
    assert found.take(*messages) is None
    assert found.revisions == [4, 5, 5, 8, 8, 9]
    assert found.progress == [7]


@pytest.mark.parametrize(
    "messages",
    [
        (told(3),),
        (told(5, 4),),
        (told(4), told(4)),
        (told(6), told(5)),
        (told(progress=7), told(6)),
        (told(5, fragment=True), told(4)),
    ],
    ids=["of the past", "backwards", "twice", "backwards later", "after progress", "in fragments"],
)
async def test_what_comes_out_of_order_is_not_believed(messages: tuple[bytes, ...]) -> None:
    found = Told(after=3)
    assert isinstance(found.take(*messages), Inconsistent)
    known = list(found.revisions)
    found.take(told(100))  # nothing is taken after that
    assert found.revisions == known
    assert known == sorted(set(known))


async def test_fragments_without_end_end_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MAX_FRAGMENTS_BYTES", 500)
    found = Told(after=3)
    error = found.take(*[told(4, 4, fragment=True)] * 50)
    assert isinstance(error, Ended)
    assert not found.revisions
    whole = Told(after=3)
    assert whole.take(*[told(revision, revision, fragment=bool(revision % 2)) for revision in range(4, 60)]) is None
    assert len(whole.revisions) == 2 * 55  # the last one is not whole


async def test_garbage_ends_the_watch() -> None:
    told = Told(after=3)
    error = told.take(b"\x0a\xff")
    assert error is not None
    assert not isinstance(error, Inconsistent)
    assert not told.revisions
    await asyncio.sleep(0)
