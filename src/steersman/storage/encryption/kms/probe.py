"""Health checks of a KMS plugin, which also let it wrap a new seed when its key has changed.

Follows `kmsv2PluginProbe` of k8s.io/apiserver `server/options/encryptionconfig/config.go`. A healthy plugin is checked
every minute, an unhealthy one every ten seconds, and a seed is used for three minutes after the last healthy check.
"""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from collections.abc import Callable
from time import perf_counter
from typing import Final

from steersman.machinery.metrics import sha256_label
from steersman.machinery.values import times
from steersman.net.log_levels import NOTICE
from steersman.storage.encryption.ciphers import SEED_SIZE
from steersman.storage.encryption.kms.envelope import (
    ActiveSeed,
    SeedState,
    key_id_error,
)
from steersman.storage.encryption.kms.plugin import Plugin, Status, Wrapped
from steersman.storage.encryption.metrics import EnvelopeMetrics
from steersman.storage.encryption.transformer import TransformError, aggregate_texts
from steersman.work.periodic import Periodic

logger = logging.getLogger(__name__)

WELL_INTERVAL: Final = 60.0
UNWELL_INTERVAL: Final = 10.0
SEED_SECONDS: Final = 180.0
WELL_TTL: Final = 20.0
UNWELL_TTL: Final = 3.0
"""The seconds for which the result of a check is reused."""
_VERSIONS: Final = ("v2", "v2beta1")


class PluginUnhealthy(Exception):
    """The plugin cannot be used now; the text tells why. `answer` is the text from the plugin itself, which is all that
    is shown when the same fault is reported again.
    """

    def __init__(self, text: str, answer: str = "") -> None:
        super().__init__(text)
        self.answer = answer


class Probe:
    """See the module. The probe maintains `current`. `clock` returns monotonic seconds."""

    def __init__(
        self,
        name: str,
        plugin: Plugin,
        current: SeedState,
        metrics: EnvelopeMetrics,
        *,
        clock: Callable[[], float] = times.monotonic,
    ) -> None:
        self.name: Final = name
        self._plugin = plugin
        self._current = current
        self._metrics = metrics
        self._clock = clock
        self._asking = asyncio.Lock()
        self._fault: PluginUnhealthy | None = None
        self._answered = -WELL_TTL
        self._ttl = UNWELL_TTL
        self._version = ""
        self._is_well = False
        self._periodic = Periodic(f"KMS plugin {name}", self._check_regularly, self._interval, is_upkeep=False)

    async def start(self) -> None:
        """Check once, and start the regular checks. It is not an error if the plugin is not yet available."""
        await self._check_regularly()
        self._periodic.start()

    async def stop(self) -> None:
        """End the checks and close the connection."""
        await self._periodic.stop()
        await self._plugin.close()

    async def check(self) -> None:
        """Check the plugin, unless there is a recent result. Raises PluginUnhealthy."""
        async with self._asking:
            if self._clock() - self._answered < self._ttl:
                if self._fault is not None:
                    raise self._fault
                return
            try:
                await self._check_plugin()
            except PluginUnhealthy as fault:
                self._fault, self._ttl = PluginUnhealthy(fault.answer or str(fault)), UNWELL_TTL
                raise
            else:
                self._fault, self._ttl = None, WELL_TTL
            finally:
                self._answered = self._clock()

    def _interval(self) -> float:
        return WELL_INTERVAL if self._is_well else UNWELL_INTERVAL

    async def _check_regularly(self) -> None:
        self._is_well = False
        try:
            await self.check()
            self._is_well = True
        except PluginUnhealthy as fault:
            logger.warning("the KMS plugin %s failed its check: %s", self.name, fault)

    async def _check_plugin(self) -> None:
        try:
            status = await self._plugin.status()
        except TransformError as error:
            raise PluginUnhealthy(
                f"failed to perform status section of the healthz check for KMS Provider {self.name}, error: {error}",
                str(error),
            ) from None
        errors = [*self._status_errors(status)]
        wrong = key_id_error(status.key_id)
        if wrong is not None:
            self._metrics.invalid_key_ids.inc((self.name, wrong[0]))
            errors.append(f'got invalid KMSv2 KeyID hash "{sha256_label(status.key_id)}": {wrong[1]}')
        else:
            self._metrics.record_status(self.name, status.key_id)
            if why := await self._rotate(status.key_id):
                errors.append(why)
        if errors:
            raise PluginUnhealthy(f"kmsv2 Provider {self.name} is not healthy, error: {aggregate_texts(errors)}")

    def _status_errors(self, status: Status) -> list[str]:
        errors = []
        if status.healthz != "ok":
            errors.append(f"got unexpected healthz status: {status.healthz}")
        if status.version not in _VERSIONS:
            errors.append(f"expected KMSv2 API version v2, got {status.version}")
        elif self._version and self._version != status.version:
            errors.append(
                "KMSv2 API version should not change after the initial status response version "
                f"{self._version}, got {status.version}"
            )
        else:
            self._version = status.version
        return errors

    async def _rotate(self, key_id: str) -> str:
        """Use a seed that is wrapped with the key of this ID. Return why that is impossible, "" if it is not."""
        current = self._current
        expires = current.clock() + SEED_SECONDS
        active_seed = current.active_seed
        if active_seed is not None and active_seed.source.key_id == key_id:
            current.expires = expires
            return ""
        uid = str(uuid.uuid4())
        seed = self._new_seed()
        source, fault = Wrapped(b"", "", {}), "<nil>"
        try:
            source = await self._plugin.encrypt(seed, uid)
            made = ActiveSeed.create(seed, source)
        except TransformError as error:
            fault = f"failed to encrypt DEK, error: {error}" if not source.key_id else str(error)
            source = Wrapped(b"", "", {})
        if fault == "<nil>" and source.key_id == key_id:
            current.active_seed, current.expires = made, expires
            logger.log(NOTICE, "values of the KMS provider %s are sealed with a new seed from now on", self.name)
            return ""
        state = "<nil>" if active_seed is not None else "got unexpected nil transformer"
        ids = (key_id, source.key_id, "" if active_seed is None else active_seed.source.key_id)
        status, wrapped, old = (f'"{sha256_label(each)}"' for each in ids)
        return (
            f'failed to rotate DEK uid="{uid}", useSeed=true, errState={state}, errGen={fault}, '
            f"statusKeyIDHash={status}, encryptKeyIDHash={wrapped}, stateKeyIDHash={old}, "
            f"expirationTimestamp={current.expiration}"
        )

    def _new_seed(self) -> bytes:
        started = perf_counter()
        seed = os.urandom(SEED_SIZE)
        self._metrics.generated.observe(perf_counter() - started)
        return seed
