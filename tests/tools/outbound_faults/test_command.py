"""Test of the tool itself at a small size; the full size takes a minute or two."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.server.certificates import ensure_certificates
from tools.outbound_faults import command
from tools.outbound_faults.command import Usage
from tools.outbound_faults.webhooks import FAULTS


def test_growth_is_more_than_two_looks_may_differ_by() -> None:
    before = Usage(100 << 20, 50, 80)
    assert not Usage(110 << 20, 55, 85).grew(before)
    assert Usage(120 << 20, 50, 80).grew(before)
    assert Usage(100 << 20, 60, 80).grew(before)
    assert Usage(100 << 20, 50, 90).grew(before)


@pytest.mark.slow
async def test_servers_that_fail_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "BEGINNING", 3)
    monkeypatch.setattr(command, "SPARE_BYTES", 256 << 20)  # after so little memory still finds its level
    files = ensure_certificates(tmp_path, ["127.0.0.1"])
    assert not await command.run(60 * len(FAULTS), 30, files)
    output = capsys.readouterr().out
    for each in ("good-one 201: 30", "good-two 201: 30", "hang-two 500: 30", "calls of webhooks: after", "good 200: "):
        assert each in output
