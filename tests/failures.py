"""Report of failed tests as soon as they fail: pytest's summary comes at the end, and an aborted run has none."""

from __future__ import annotations

import pytest


class Teller:
    """Plugin that writes a line for each failure at once."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the name of a test that has failed, and the first line of its error."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if not report.failed or reporter is None:
            return
        lines = report.longreprtext.strip().splitlines()
        error = next((line.removeprefix("E").strip() for line in lines if line.startswith("E ")), "".join(lines[-1:]))
        # the line of dots is not ended
        reporter.write_line(f"\nFAILED {report.nodeid} ({report.when}): {error[:200]}")
