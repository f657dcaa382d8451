"""Hooks at start and before shutdown."""

from __future__ import annotations

import pytest

from steersman.machinery.errors import status
from steersman.server.hooks import Hooks


async def test_a_storage_that_is_away_at_the_end_is_told_in_one_line_and_the_others_are_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done = []

    async def refused() -> None:
        raise status.internal("connection refused")

    async def other() -> None:
        done.append("other")

    hooks = Hooks()
    hooks.add_pre_shutdown("lease", refused)
    hooks.add_pre_shutdown("other", other)
    await hooks.run_pre_shutdown()
    assert done == ["other"]
    (told,) = caplog.records
    assert told.getMessage() == "pre-shutdown hook lease failed: Internal error occurred: connection refused"
    assert told.exc_info is None
