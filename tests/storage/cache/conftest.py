"""A cache on each store there is."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from steersman.storage.cache.cacher import Cacher
from steersman.storage.interface import Storage
from tests.storage.cache.shown import PODS, body_at, present


@pytest.fixture
async def cacher(store: Storage) -> AsyncIterator[Cacher]:
    cacher = Cacher(store, PODS, present=present, body_at=body_at)
    await cacher.start()
    yield cacher
    await cacher.stop()
