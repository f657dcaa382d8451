"""Periodic work of a control plane."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from steersman.machinery.errors.status import StatusError
from steersman.storage.interface import StorageUnavailable
from steersman.work.periodic import Periodic


def periodic(
    name: str, work: Callable[[], Awaitable[object]], interval: float, *, is_simulated: bool = False
) -> Periodic:
    """Return periodic work that runs every `interval` seconds; failed requests and unavailable storage are expected
    errors.
    """
    return Periodic(name, work, interval, expected=(StatusError, StorageUnavailable), is_simulated=is_simulated)
