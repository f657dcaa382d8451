"""Reports of tests that a process of pytest-xdist sends: each costs both sides, and of three most say nothing."""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol


class OfResults:
    """A plugin that runs tests and reports how each came out, and no setup or teardown that went well."""

    @pytest.hookimpl
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test, and return True as it has been run."""
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True
