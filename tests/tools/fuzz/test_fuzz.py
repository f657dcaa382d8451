"""Tests of parsers of client input with the corpora and mutated inputs, and of the fuzzer that finds faults."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.fuzz.command import keep, main
from tools.fuzz.runner import Run, fuzz, judge
from tools.fuzz.target import Target, same
from tools.fuzz.targets import TARGETS

pytestmark = pytest.mark.filterwarnings("ignore")  # joserfc's of short keys

_NAMES = [each.name for each in TARGETS]


@pytest.mark.parametrize("target", TARGETS, ids=_NAMES)
def test_nothing_is_found_soon(target: Target) -> None:
    run = fuzz(target, 0.1, seed=1)
    assert not run.findings
    assert run.inputs > len(target.corpus())


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=_NAMES)
def test_nothing_is_found_in_some_minutes_for_all(target: Target) -> None:
    assert not fuzz(target, 300 / len(TARGETS), seed=int(time.time())).findings


def _target(run: Callable[[bytes], object]) -> Target:
    return Target("sample", run, (KeyError,), base=0.05)


def test_what_a_reader_says_it_raises_is_no_finding() -> None:
    run = Run(_target(lambda data: dict[bytes, int]()[data]))
    assert judge(run, b"a")
    assert not judge(run, b"a")
    assert not run.findings


def test_another_exception_is_one() -> None:
    run = Run(_target(lambda data: data[5]))
    judge(run, b"a")
    [found] = run.findings.values()
    assert "IndexError" in found.what
    assert found.data == b"a"


def test_what_takes_long_is_one() -> None:
    def slow(data: bytes) -> None:
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass

    run = Run(_target(slow))
    judge(run, b"a")
    assert [*run.findings] == ["slow"]


def test_two_readings_that_differ_are_one() -> None:
    run = Run(_target(lambda data: same(data, data.lower(), "both")))
    judge(run, b"a")
    assert not run.findings
    judge(run, b"A")
    assert [*run.findings] == ["wrong"]


def test_what_is_found_is_kept(tmp_path: Path) -> None:
    run = Run(_target(lambda data: data[5]))
    judge(run, b"abc")
    [found] = run.findings.values()
    keep(found, tmp_path)
    assert (tmp_path / "sample" / found.file_name).read_bytes() == b"abc"


def test_the_command_says_what_it_has_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["continue", "--seconds", "0.1"]) == 0
    assert "0 findings" in capsys.readouterr().out
