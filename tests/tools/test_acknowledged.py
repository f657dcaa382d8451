"""Tests of the tool that checks on every connection that a write acknowledged on one is visible."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.storage.etcd.process import program
from tools import acknowledged
from tools.acknowledged import Ask, Connection


class Remembering(Connection):
    """Connection to a process that may lag behind."""

    def __init__(self, *, is_behind: bool) -> None:
        self.is_behind = is_behind


def test_what_is_answered_as_before_is_counted_by_what_was_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    writers = []

    def follow(writer: Connection) -> Iterator[tuple[str, Ask]]:
        writers.append(writer)
        yield "a thing", lambda each: not getattr(each, "is_behind")  # noqa: B009

    monkeypatch.setattr(acknowledged, "FOLLOWED", (follow,))
    connections = [Remembering(is_behind=number == 1) for number in range(3)]
    asked, missed = acknowledged.play(connections, 3)
    assert writers == connections
    assert (asked, missed) == ({"a thing": 6}, {"a thing": 2})


@pytest.mark.slow
def test_nothing_is_as_before_with_workers(capsys: pytest.CaptureFixture[str]) -> None:
    assert acknowledged.main(["--rounds", "2", "--connections", "4"]) == 0, capsys.readouterr().out


@pytest.mark.slow
def test_nothing_is_as_before_with_servers_on_etcd_of_which_one_is_told_late(
    capsys: pytest.CaptureFixture[str],
) -> None:
    program()  # skips where there is no etcd
    server = f"{sys.executable} {acknowledged.ROOT}/bench/serve --etcd --servers=2 --late=0.1"
    assert acknowledged.main(["--rounds", "2", "--connections", "4", "--server", server]) == 0, capsys.readouterr().out
