"""Records about tokens in secrets (KEP-2799): a ConfigMap with the first date of tracking, and the date of last use."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from steersman.api.core.v1 import ConfigMap, Secret
from steersman.api.meta.v1 import ObjectMeta
from steersman.controlplane.initial_objects import ensure
from steersman.controlplane.objects import StoreObjects
from steersman.machinery.built_in.token_secrets import LAST_USED
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.rest.context import loopback
from steersman.work.single_flight import SingleFlight

logger = logging.getLogger(__name__)

NAMESPACE: Final = "kube-system"
NAME: Final = "kube-apiserver-legacy-service-account-token-tracking"
_SINCE: Final = "since"
_PAUSE: Final = 1800.0
"""Seconds between two creations of the ConfigMap: servers that disagree must not fight over it."""


class LegacyTokenTracking:
    """Maintains the ConfigMap. `clock` is monotonic, in seconds."""

    def __init__(self, config_maps: StoreObjects, clock: Callable[[], float] = times.monotonic) -> None:
        self._config_maps = config_maps
        self._clock = clock
        self._made: float | None = None

    async def sync(self) -> None:
        """Create the ConfigMap if it is missing, and correct a malformed date."""
        config_maps = self._config_maps
        cached: ConfigMap | None = await config_maps.get_cached(NAMESPACE, NAME)
        today = times.today()
        if cached is None:
            now = self._clock()
            if self._made is None or now - self._made >= _PAUSE:
                metadata = ObjectMeta(name=NAME, namespace=NAMESPACE)
                await ensure(config_maps, ConfigMap(metadata=metadata, data={_SINCE: today}))
                self._made = now
        elif not times.is_date(cached.data.get(_SINCE, "")):

            def change(old: ConfigMap) -> ConfigMap:
                if not times.is_date(old.data.get(_SINCE, "")):  # another server may have corrected it
                    old.data[_SINCE] = today
                return old

            await config_maps.update(loopback(NAMESPACE, NAME), NAME, change)


class TokenUse:
    """Writes the day of last use of a token into its secret. `secrets` is called at the first use."""

    def __init__(self, secrets: Callable[[], StoreObjects]) -> None:
        self._secrets = secrets
        self._writing: SingleFlight[tuple[str, str], None] = SingleFlight()

    def note(self, namespace: str, name: str) -> None:
        """Record that the token of a secret is used today; does nothing while a write for the secret is in progress."""
        self._writing.begin((namespace, name), partial(self._write, namespace, name))

    async def stop(self) -> None:
        """Cancel writes in progress."""
        await self._writing.stop()

    async def _write(self, namespace: str, name: str) -> None:
        def change(old: Secret) -> Secret:
            old.metadata.labels[LAST_USED] = times.today()
            return old

        try:
            await self._secrets().update(loopback(namespace, name), name, change)
        except StatusError as error:
            logger.warning("recording the use of the token in secret %s/%s failed: %s", namespace, name, error)
