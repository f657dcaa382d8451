"""Since when the use of tokens kept in secrets is recorded (KEP-2799): a ConfigMap that others read the date from."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import ObjectMeta
from steersman.controlplane.objects import StoreObjects
from steersman.machinery.values import times
from steersman.rest.context import loopback

NAMESPACE: Final = "kube-system"
NAME: Final = "kube-apiserver-legacy-service-account-token-tracking"
_SINCE: Final = "since"
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PAUSE: Final = 1800.0
"""Seconds in which the ConfigMap is made once at most: servers of two minds must not fight about it."""


class LegacyTokenTracking:
    """Keeps the ConfigMap. `clock` tells seconds that only grow."""

    def __init__(self, config_maps: StoreObjects, clock: Callable[[], float] = times.monotonic) -> None:
        self._config_maps = config_maps
        self._clock = clock
        self._made: float | None = None

    async def sync(self) -> None:
        """Makes what is missing, and mends a date that is none."""
        config_maps = self._config_maps
        found: ConfigMap | None = await config_maps.find(NAMESPACE, NAME)
        today = datetime.fromtimestamp(times.moment(), UTC).strftime("%Y-%m-%d")
        if found is None:
            now = self._clock()
            if self._made is None or now - self._made >= _PAUSE:
                metadata = ObjectMeta(name=NAME, namespace=NAMESPACE)
                await config_maps.create(loopback(NAMESPACE), ConfigMap(metadata=metadata, data={_SINCE: today}))
                self._made = now
        elif not _is_date(found.data.get(_SINCE, "")):

            def change(old: ConfigMap) -> ConfigMap:
                old.data[_SINCE] = today
                return old

            await config_maps.update(loopback(NAMESPACE, NAME), NAME, change)


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        datetime.strptime(text, "%Y-%m-%d")
    except ValueError:
        return False
    return True
