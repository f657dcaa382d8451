"""Distribution of files of tests to the processes of pytest-xdist, which continues after a process dies.

pytest-xdist's own `--dist loadfile` gives everything that a dead process had to other processes: the test that killed
it, and finished files, for which an idle process waits for ever.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

_FEW = 2
"""Tests that a process must have queued to continue: it runs a test when it knows the next."""


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Scheduler that gives files of tests to processes in the order of collection."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._indexes: dict[str, int] = {}

    def schedule(self) -> None:
        """Assign files: to all processes at the start, later to a process that replaces another."""
        is_first = self.collection is None
        super().schedule()
        if is_first:
            return
        for node in self.nodes:
            while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) <= _FEW:
                self._assign_work_unit(node)
            if not self.workqueue:
                self._reschedule(node)  # which tells it that nothing more comes

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a process that has ended, and return the test that killed it, which is not run again."""
        workload = self.assigned_work[node]
        culprit = next((test for tests in workload.values() for test, is_done in tests.items() if not is_done), None)
        if culprit is not None:
            workload[self._split_scope(culprit)][culprit] = True
        for file in [file for file, tests in workload.items() if all(tests.values())]:
            del workload[file]
        super().remove_node(node)
        return culprit

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Assign the next file to a process."""
        if not self._indexes and self.collection is not None:
            self._indexes = {test: index for index, test in enumerate(self.collection)}
        file, tests = self.workqueue.popitem(last=False)
        self.assigned_work.setdefault(node, {})[file] = tests
        node.send_runtest_some([self._indexes[test] for test, is_done in tests.items() if not is_done])
