"""Tests of the distribution of files of tests over processes, some of which die."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("xdist")

from tests.distribution import ByFile

TESTS = [f"{file}::test_{number}" for file in ("a.py", "b.py", "c.py", "d.py", "e.py") for number in range(3)]


class Process:
    """Process that records the tests assigned to it, and runs them as those of pytest-xdist do."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.waiting: list[int] = []

    def send_runtest_some(self, indexes: list[int]) -> None:
        self.waiting += indexes

    def shutdown(self) -> None:
        self.shutting_down = True

    def next(self) -> int | None:
        """Return the test it runs now: a test that has a next one, or the last test once no more will come."""
        return self.waiting[0] if len(self.waiting) > 1 or (self.waiting and self.shutting_down) else None


class Run:
    """Run of TESTS in two processes, in which a process dies when it runs a test of `deadly`."""

    def __init__(self, deadly: set[str]) -> None:
        config: Any = SimpleNamespace(
            getvalue=lambda _: ["popen", "popen"],
            option=SimpleNamespace(loadscopereorder=False),
            hook=SimpleNamespace(),
        )
        config.getoption = config.getvalue
        silent: Any = SimpleNamespace(loadfilesched=lambda *_: None, loadscopesched=lambda *_: None)
        self.scheduler = ByFile(config, silent)
        self.deadly = deadly
        self.ran: list[str] = []
        self.culprits: list[str | None] = []
        self.processes: list[Any] = []
        for _ in range(2):
            self.begin()

    def begin(self) -> None:
        """Start a process, and distribute tests once all have started."""
        process: Any = Process(f"gw{len(self.processes)}")
        self.processes.append(process)
        self.scheduler.add_node(process)
        self.scheduler.add_node_collection(process, TESTS)
        if self.scheduler.collection_is_completed:
            self.scheduler.schedule()

    def step(self, process: Any) -> bool:
        """Run a process's next test, or end it; return False if it waits."""
        index = process.next()
        if index is None:
            if process.shutting_down and process in self.scheduler.nodes:
                assert self.scheduler.remove_node(process) is None
                return True
            return False
        if TESTS[index] in self.deadly:
            process.waiting.clear()
            process.shutting_down = True
            self.culprits.append(self.scheduler.remove_node(process))
            self.begin()
        else:
            process.waiting.pop(0)
            self.ran.append(TESTS[index])
            self.scheduler.mark_test_complete(process, index)
        return True

    def to_the_end(self) -> None:
        """Run all tests, one of each process at a time."""
        moved = [True]
        while any(moved):
            moved = [self.step(process) for process in list(self.processes)]
            assert len(self.processes) < 20, self.culprits
        assert not self.scheduler.nodes, "some wait for ever"


def test_files_begin_in_the_order_of_their_tests() -> None:
    run = Run(set())
    assert [TESTS[process.waiting[0]] for process in run.processes] == ["a.py::test_0", "b.py::test_0"]
    run.to_the_end()
    assert sorted(run.ran) == TESTS


@pytest.mark.parametrize("deadly", TESTS)
def test_a_test_that_ends_its_process_is_told_once_and_all_others_run(deadly: str) -> None:
    run = Run({deadly})
    run.to_the_end()
    assert run.culprits == [deadly]
    assert sorted(run.ran) == sorted(set(TESTS) - {deadly})


def test_several_may_end_theirs() -> None:
    deadly = {TESTS[1], TESTS[2], TESTS[6], TESTS[14]}
    run = Run(deadly)
    run.to_the_end()
    assert sorted(map(str, run.culprits)) == sorted(deadly)
    assert sorted(run.ran) == sorted(set(TESTS) - deadly)
