"""Reports that a process of pytest-xdist sends: each costs both processes time, and two of three have no information."""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol


class OfResults:
    """Plugin that runs tests and reports their results, but no successful setup or teardown."""

    @pytest.hookimpl
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test. Return True, as no other plugin needs to run it."""
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True
