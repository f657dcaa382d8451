"""A plugin of pytest, which runs tests in several processes: `-p tests.workers --workers 3`.

Unlike with pytest-xdist no process collects what others run. The files are found once; then this process forks, and
each worker takes a file, collects it, runs its tests, takes the next one, and tells of them. In each of them a session
of pytest goes on to its end.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any, Final

import pytest

_FORK: Final = multiprocessing.get_context("fork")
_OF_ONE_PROCESS: Final = ("terminalreporter", "lfplugin", "nfplugin", "stepwiseplugin")
"""Plugins that tell people and write files: what they need to know is told to those of the first process."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=1, help="processes that run tests, each file in one of them")


def pytest_configure(config: pytest.Config) -> None:
    workers, arguments = config.getoption("workers"), config.args
    if workers > 1 and not config.getoption("collectonly") and not any("::" in each for each in arguments):
        config.pluginmanager.register(_Foreman(config, workers), "foreman")


class _Foreman:
    """Finds the files, forks, and passes on what workers tell."""

    def __init__(self, config: pytest.Config, workers: int) -> None:
        self._config = config
        self._number = workers
        self._files: list[pytest.Collector] = []
        self._all_are_found = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> pytest.CollectReport | None:
        """Files are noted, not read: this is left to who takes them."""
        if not isinstance(collector, pytest.File) or self._all_are_found:
            return None
        self._files.append(collector)
        return pytest.CollectReport(collector.nodeid, "passed", None, [])

    def pytest_collection_finish(self) -> None:
        self._all_are_found = True
        # The large ones first: who is left with the last one has little to do.
        self._files.sort(key=lambda each: each.path.stat().st_size, reverse=True)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        taken = _FORK.Value("i", 0)
        workers = []
        for _ in range(min(self._number, len(self._files))):
            ours, theirs = _FORK.Pipe(duplex=False)
            process = os.fork()
            if process == 0:
                ours.close()
                _become_a_worker(self._config, theirs)
                _run(session, _items(session, self._files, taken))
                return True
            theirs.close()
            workers.append(_Worker(process, ours))
        try:
            self._listen(session, workers)
        finally:
            for each in workers:
                each.end()
        return True

    def _listen(self, session: pytest.Session, workers: Sequence[_Worker]) -> None:
        """Until all have ended. Raises Session.Failed after as many failures as `--maxfail` says."""
        by_connection = {each.connection: each for each in workers}
        while by_connection:
            for connection in wait(list(by_connection)):
                assert isinstance(connection, Connection)
                try:
                    what, told = connection.recv()
                except EOFError:
                    self._has_ended(session, by_connection.pop(connection))
                    continue
                self._told(session, by_connection[connection], what, told)
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)

    def _told(self, session: pytest.Session, worker: _Worker, what: str, told: Any) -> None:
        hook = self._config.hook
        if what == "begins":
            worker.running = told
            session.testscollected += 1
        elif what == "deselected":
            hook.pytest_deselected(items=[_Deselected()] * told)
        else:
            report = hook.pytest_report_from_serializable(config=self._config, data=told)
            getattr(hook, what)(report=report)

    def _has_ended(self, session: pytest.Session, worker: _Worker) -> None:
        """A worker that ends without an error has run all it took; its tests have told what failed."""
        status = worker.end()
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.testsfailed += 1
            reporter = self._config.pluginmanager.get_plugin("terminalreporter")
            reporter.write_line(f"a worker ended with {status}; its last test: {worker.running or 'none'}", red=True)


@dataclass
class _Worker:
    process: int
    connection: Connection
    running: str = ""
    _status: int | None = field(default=None, init=False)

    def end(self) -> int:
        """Ends it if it still runs; its exit code, or minus the signal."""
        if self._status is None:
            if not self.connection.closed:
                self.connection.close()
            _, status = os.waitpid(self.process, 0)
            self._status = os.waitstatus_to_exitcode(status)
        return self._status


class _Deselected:
    """A test that was left out."""


def _become_a_worker(config: pytest.Config, to_foreman: Connection) -> None:
    """What is shared with the first process by the fork, and must not be, is ended here or made anew."""
    manager = config.pluginmanager
    capture = manager.get_plugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    for name in _OF_ONE_PROCESS:
        if (plugin := manager.get_plugin(name)) is not None:
            manager.unregister(plugin)
    manager.register(_Teller(config, to_foreman), "teller")


class _Teller:
    """Passes reports on to the first process."""

    def __init__(self, config: pytest.Config, to_foreman: Connection) -> None:
        self._config = config
        self._to_foreman = to_foreman

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._to_foreman.send(("begins", nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tell("pytest_runtest_logreport", report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._tell("pytest_collectreport", report)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self._to_foreman.send(("deselected", len(items)))

    def _tell(self, what: str, report: pytest.TestReport | pytest.CollectReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._to_foreman.send((what, data))


def _items(session: pytest.Session, files: Sequence[pytest.Collector], taken: Any) -> Iterator[pytest.Item]:
    """The tests of the files that this process takes, one file after the other."""
    while True:
        with taken.get_lock():
            index = taken.value
            taken.value += 1
        if index >= len(files):
            return
        items = list(session.genitems(files[index]))
        session.config.hook.pytest_collection_modifyitems(session=session, config=session.config, items=items)
        yield from items


def _run(session: pytest.Session, items: Iterator[pytest.Item]) -> None:
    item = next(items, None)
    while item is not None:
        following = next(items, None)
        session.testscollected += 1
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        item = following
        if session.shouldfail or session.shouldstop:
            return
