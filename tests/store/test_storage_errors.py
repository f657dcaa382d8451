"""Answers while stored objects cannot be read."""

from __future__ import annotations

from math import inf

import pytest

from steersman.storage.interface import Unreadable
from steersman.store.storage_errors import not_decrypted


@pytest.mark.parametrize(("seconds", "told"), [(0.0, 1), (12.0, 2), (30.0, 6), (57.0, 30), (1e9, 30), (inf, 30)])
def test_the_longer_it_lasts_the_later_clients_are_to_come_again(seconds: float, told: int) -> None:
    error = not_decrypted("core.Secret", Unreadable("/registry/secrets/x", "no key fits"), seconds)
    assert error.retry_after == told
    assert error.code == 429
