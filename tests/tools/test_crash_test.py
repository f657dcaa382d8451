"""Tests, of a few rounds, of the tool that kills writers, and servers with writing clients, at random moments."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steersman.storage.sqlite import SQLiteStorage
from steersman.testing import ServerProcess
from tools import crash_test


@pytest.mark.slow
async def test_no_acknowledged_write_is_lost_when_servers_are_killed(tmp_path: Path) -> None:
    ledger = await crash_test.run_server_rounds(tmp_path / "data", 3, seed=11)
    assert len(ledger.revisions) > 10


@pytest.mark.slow
async def test_no_record_of_an_acknowledged_write_is_lost(tmp_path: Path) -> None:
    ledger = await crash_test.run_server_rounds(tmp_path / "data", 2, seed=13, history="256KiB")
    assert len(ledger.revisions) > 10


@pytest.mark.slow
async def test_it_notices_a_server_that_lost_a_write(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    ledger = await crash_test.run_server_rounds(folder, 1, seed=12)
    key, (revision, _) = next(iter(ledger.latest.items()))
    store = await SQLiteStorage.open(folder / "steersman.db", compaction_interval=0, lease_interval=0)
    await store.delete(key, expected_revision=revision)
    await store.close()
    server = ServerProcess(folder)
    try:
        with pytest.raises(crash_test.CrashTestFailed, match="the server answers otherwise than its file says"):
            await asyncio.to_thread(crash_test.start_and_compare, server, ledger)
    finally:
        server.kill()


def test_it_notices_a_revision_that_is_given_out_again() -> None:
    ledger = crash_test.Ledger(floor=10)
    with pytest.raises(crash_test.CrashTestFailed, match="the store was at 10 before"):
        ledger.acknowledge('["/a", 10, "d"]')


def test_a_delete_whose_revision_is_not_told_counts() -> None:
    ledger = crash_test.Ledger()
    ledger.acknowledge('["/a", 5, "d"]')
    ledger.acknowledge('["/a", null, ""]')
    assert ledger.latest == {"/a": (5, "")}


@pytest.mark.slow
async def test_nothing_acknowledged_is_lost_over_several_crashes(tmp_path: Path) -> None:
    ledger = await crash_test.run_rounds(tmp_path / "store.db", 5, seed=42)
    assert len(ledger.revisions) > 20


def test_the_crash_test_counts_every_write_that_was_acknowledged() -> None:
    ledger = crash_test.Ledger()
    for line in ('["/0/1", 2, "a"]', '["/0/1", 3, "b"]', '["/0/1", null, ""]', '["/0/2", 5, "c"]'):
        ledger.acknowledge(line)
    assert ledger.acknowledged == 4


async def test_the_crash_test_notices_a_lost_write(tmp_path: Path) -> None:
    store = await SQLiteStorage.open(tmp_path / "store.db", compaction_interval=0, lease_interval=0)
    await store.create("/0/1", b"value")
    ledger = crash_test.Ledger()
    ledger.acknowledge(f'["/0/1", 2, "{crash_test.digest(b"value")}"]')
    await ledger.check(store)
    with pytest.raises(crash_test.CrashTestFailed, match="given to"):
        ledger.acknowledge('["/0/2", 2, ""]')
    await store.create("/0/2", b"value")
    for line, message in (
        (f'["/0/2", 3, "{crash_test.digest(b"other")}"]', "not what was acknowledged"),
        ('["/0/3", 4, "00"]', "the store is at 3"),
    ):
        ledger.acknowledge(line)
        with pytest.raises(crash_test.CrashTestFailed, match=message):
            await ledger.check(store)
    await store.close()


def test_what_is_acknowledged_together_with_the_first_line_counts() -> None:
    printing = (
        "import os, time; os.write(1, b'ready\\nfirst\\n'); time.sleep(0.05); os.write(1, b'second\\n'); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", printing], stdout=subprocess.PIPE, bufsize=0)
    assert child.stdout is not None
    with child.stdout as output:
        lines = crash_test.lines_until_killed(child, output.fileno(), lambda: time.monotonic() + 1.0)
    assert lines == ["ready", "first", "second"]


@pytest.mark.slow
@pytest.mark.parametrize("statement", sorted(crash_test.STATEMENTS))
async def test_nothing_is_lost_by_a_kill_during_a_statement(tmp_path: Path, statement: str) -> None:
    ledger = await crash_test.run_rounds(tmp_path / "store.db", 2, seed=7, during=statement)
    assert ledger.acknowledged > 0
