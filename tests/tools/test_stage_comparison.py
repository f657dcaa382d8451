"""Tests that stages are played as kwok plays them."""

from __future__ import annotations

import shutil

import pytest

from tools.stage_comparison.command import PROGRAMS, SETS, compare

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (PROGRAMS / "kwok").exists() or not shutil.which("go"), reason="kwok is not there"),
]


async def test_what_becomes_of_pods_and_nodes_is_alike(capsys: pytest.CaptureFixture[str]) -> None:
    alike, of = await compare(next(each for each in SETS if each.name == "own"))
    assert alike == of > 0, capsys.readouterr().out
