"""Encryption at rest, configured by the file of `--encryption-provider-config`.

With `--encryption-provider-config-automatic-reload` the file is checked every minute. A changed configuration takes
effect once its KMS plugins are healthy; until then the previous one stays, and the new one is retried with back-off
(k8s.io/apiserver `server/options/etcd.go`, `server/options/encryptionconfig/controller`).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from pathlib import Path
from typing import Final

from steersman.api.apiserver.v1 import EncryptionConfiguration
from steersman.controlplane.ending import Ending
from steersman.controlplane.followed_configuration import FollowedConfiguration, Unusable
from steersman.controlplane.identity_lease import server_id
from steersman.controlplane.options import Options, OptionsError
from steersman.controlplane.reload_metrics import ReloadMetrics
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.metrics import Registry
from steersman.net.log_levels import NOTICE
from steersman.server.health import HealthCheck
from steersman.server.server import Server
from steersman.storage.encryption.ciphers import Identity
from steersman.storage.encryption.configuration import ConfigurationError, parse_configuration, read_file
from steersman.storage.encryption.encrypted_values import EncryptedValues
from steersman.storage.encryption.metrics import EnvelopeMetrics, TransformationMetrics
from steersman.storage.encryption.providers import Metrics, Providers
from steersman.storage.encryption.transformer import Opened, Transformer
from steersman.storage.interface import Storage
from steersman.storage.lagging import LaggingFeeds
from steersman.storage.mapped import MappedStorage
from steersman.work.backoff import Backoff, Retries
from steersman.work.offloading import offload_if

logger = logging.getLogger(__name__)

LOOK_EVERY: Final = 60.0
"""Seconds between checks of the file."""
_WELL_WITHIN: Final = 10.0
"""Least number of seconds allowed for the plugins of a changed file to become healthy."""
_ASK_EVERY: Final = 0.1
_BACKOFF: Final = Backoff(0.005, 1000.0)
"""Pauses before retries of an unusable file, longer after each failure since the start."""
_PLAIN: Final = Identity()


class Encryption:
    """The current encryption providers. The constructor needs a running event loop.

    Raises OptionsError for a configuration that cannot be used.
    """

    def __init__(self, options: Options, registry: Registry) -> None:
        self._path = Path(options.encryption_provider_config)
        self._follows = options.encryption_provider_config_automatic_reload
        server = server_id(socket.gethostname())
        self._metrics = Metrics(TransformationMetrics(), EnvelopeMetrics(server))
        self._metrics.transformations.register(registry)
        self._metrics.envelopes.register(registry)
        try:
            data = self._read()
            self._providers = self._create_providers(self._parsed(data))
        except ConfigurationError as error:
            raise OptionsError(str(error)) from None
        self.following = FollowedConfiguration(
            "encryption configuration",
            self._path,
            data,
            read=self._read_anew,
            take=self._apply,
            metrics=ReloadMetrics(registry, "encryption", server, data),
            interval=LOOK_EVERY,
            refused=self._try_again,
        )
        self._retries = Retries(_BACKOFF)
        self._retrying: asyncio.TimerHandle | None = None
        self._ending = Ending()

    def _read(self) -> bytes:
        """Return the bytes of the file. Raises ConfigurationError."""
        try:
            return read_file(self._path)
        except ConfigurationError as error:
            raise ConfigurationError(f"error while parsing file: {error}") from None

    def _read_anew(self, path: Path) -> bytes:
        try:
            return read_file(path)
        except ConfigurationError as error:
            raise self._unusable(str(error)) from None

    def _parsed(self, data: bytes) -> EncryptionConfiguration:
        """Return the configuration in a file. Raises ConfigurationError."""
        try:
            return parse_configuration(data, self._path, reloads=self._follows)
        except ConfigurationError as error:
            raise ConfigurationError(f"error while parsing file: {error}") from None

    def _create_providers(self, configuration: EncryptionConfiguration) -> Providers:
        """Return the providers of a configuration. Raises ConfigurationError."""
        try:
            return Providers.from_configuration(configuration, self._metrics)
        except ConfigurationError as error:
            raise ConfigurationError(f"error while building transformers: {error}") from None

    async def start(self) -> None:
        """Ask the KMS plugins for their current keys."""
        await self._providers.start()

    def install(self, server: Server) -> None:
        """Add the health checks of plugins, and follow the file once the server runs."""
        server.add_checks(*self._health_checks(), alive=False)
        if self._follows:
            server.add_post_start_hook("start-encryption-provider-config-automatic-reload", self._start_following)

    async def _start_following(self) -> None:
        self.following.start()

    async def stop(self) -> None:
        """Close the connections to the plugins."""
        if self._retrying is not None:
            self._retrying.cancel()
        await self.following.stop()
        await asyncio.gather(self._ending.stop(), self._providers.stop(), return_exceptions=True)

    def storage_of(self, resource: GroupResource, storage: Storage, lagging: LaggingFeeds | None = None) -> Storage:
        """Return the storage for the values of a resource: `storage`, with encryption if the file demands it.

        `lagging` counts the subscribers that still have to be notified.
        """
        followed = _Followed(self, resource) if self._follows else None
        transformer = followed or self._providers.transformer_for(resource)
        return storage if transformer is None else MappedStorage(storage, EncryptedValues(transformer), lagging)

    def transformer_of(self, resource: GroupResource) -> Transformer:
        """Return the transformer that encrypts the values of a resource now."""
        return self._providers.transformer_for(resource) or _PLAIN

    def _health_checks(self) -> tuple[HealthCheck, ...]:
        """Return the health check of all KMS plugins, in a tuple; () if neither this nor a later file can name any."""
        if not (self._follows or self._providers.probes):
            return ()
        return (HealthCheck("kms-providers", lambda: self._providers.plugin_errors()),)

    async def _apply(self, data: bytes) -> bool:
        """Put a changed configuration in place if it is usable. Raises Unusable."""
        try:
            providers = self._create_providers(await offload_if(True, self._parsed, data))
        except ConfigurationError as error:
            raise self._unusable(str(error)) from None
        try:
            await providers.start()
            wrong = await _wrong_within(providers)
        except asyncio.CancelledError:
            await providers.stop()
            raise
        if wrong:
            await providers.stop()
            raise self._unusable(f"health check for new transformers failed, polling error timed out waiting: {wrong}")
        before, self._providers = self._providers, providers
        logger.log(NOTICE, "reloaded the encryption configuration from %s", self._path)
        self._ending.later(2 * before.plugin_seconds, before.stop)
        return True

    def _unusable(self, why: str) -> Unusable:
        return Unusable(f"error processing encryption config file {self._path}: {why}", transient=True)

    def _try_again(self) -> None:
        self._retrying = asyncio.get_running_loop().call_later(self._retries.next(), self.following.wake)


class _Followed:
    """The current transformer of a resource, which follows reloads."""

    def __init__(self, encryption: Encryption, resource: GroupResource) -> None:
        self._encryption = encryption
        self._resource = resource

    def seal(self, value: bytes, path: bytes) -> bytes:
        return self._encryption.transformer_of(self._resource).seal(value, path)

    def open(self, stored: bytes, path: bytes) -> Opened:
        return self._encryption.transformer_of(self._resource).open(stored, path)


async def _wrong_within(providers: Providers) -> str | None:
    """Wait until the plugins are healthy; return an error text if they are not in time, otherwise None."""
    wrong = None
    try:
        async with asyncio.timeout(max(_WELL_WITHIN, 2 * providers.plugin_seconds)):
            while True:
                wrong = await providers.plugin_errors()
                if wrong is None:
                    return None
                await asyncio.sleep(_ASK_EVERY)
    except TimeoutError:
        return wrong or "the plugins did not answer in time"
