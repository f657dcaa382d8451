"""The transformers of resources according to a configuration, and the KMS plugins that they use.

Follows k8s.io/apiserver `server/options/encryptionconfig/config.go`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from steersman.api.apiserver.v1 import EncryptionConfiguration, Key, KMSConfiguration, ProviderConfiguration
from steersman.machinery.identity.schema import GroupResource
from steersman.storage.encryption.ciphers import AESCBCCipher, AESGCMCipher, Identity, SecretboxCipher
from steersman.storage.encryption.configuration import (
    ANY,
    ConfigurationError,
    parse_group_resource,
    resource_text,
    secret_of,
    socket_of,
    timeout_of,
)
from steersman.storage.encryption.kms.envelope import EnvelopeTransformer, SeedState
from steersman.storage.encryption.kms.plugin import RemotePlugin
from steersman.storage.encryption.kms.probe import PluginUnhealthy, Probe
from steersman.storage.encryption.metrics import EnvelopeMetrics, TransformationMetrics
from steersman.storage.encryption.transformer import Prefixed, PrefixedTransformers, Transformer, aggregate_texts
from steersman.work.extras import MissingExtra, require

_CBC: Final = b"k8s:enc:aescbc:v1:"
_GCM: Final = b"k8s:enc:aesgcm:v1:"
_BOX: Final = b"k8s:enc:secretbox:v1:"
_KMS: Final = b"k8s:enc:kms:v2:"

_Provider = Callable[[str], Prefixed]
"""Returns the transformer of a provider for a resource, whose name is a label of its metrics."""

_V1_IS_OFF: Final = (
    "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  Set "
    "--feature-gates=KMSv1=true to use the deprecated KMSv1 feature."
)


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics of this package."""

    transformations: TransformationMetrics
    envelopes: EnvelopeMetrics


@dataclass(slots=True)
class Providers:
    """The providers of one configuration. `plugin_seconds` is the total of the timeouts of all plugins."""

    metrics: Metrics
    plugin_seconds: float = 0.0
    probes: list[Probe] = field(default_factory=list)
    _by_resource: dict[GroupResource, list[_Provider]] = field(default_factory=dict)
    _made: dict[GroupResource, Transformer] = field(default_factory=dict)

    @classmethod
    def from_configuration(cls, configuration: EncryptionConfiguration, metrics: Metrics) -> Providers:
        """Create the providers. Must be called on the event loop. Raises ConfigurationError for a resource whose rule
        is never reached, and for KMS v1.
        """
        made = cls(metrics)
        for each in configuration.resources or ():
            providers = [made._provider(provider) for provider in each.providers or ()]
            for name in each.resources or ():
                made._add_resource(parse_group_resource(name), providers)
        return made

    def _add_resource(self, resource: GroupResource, providers: Sequence[_Provider]) -> None:
        for rule in (GroupResource(resource.group, "*"), ANY):
            if rule in self._by_resource:
                raise ConfigurationError(
                    f'resource "{resource_text(resource)}" is masked by earlier rule "{resource_text(rule)}"'
                )
        self._by_resource.setdefault(resource, []).extend(providers)

    def _provider(self, provider: ProviderConfiguration) -> _Provider:
        metrics = self.metrics.transformations
        if provider.aesgcm is not None:
            return _keyed_provider(_GCM, AESGCMCipher, provider.aesgcm.keys or (), "AES", metrics)
        if provider.aescbc is not None:
            return _keyed_provider(_CBC, AESCBCCipher, provider.aescbc.keys or (), "AES", metrics)
        if provider.secretbox is not None:
            try:
                require("nacl.secret", feature="keys of secretbox", package="PyNaCl", extra="secretbox")
            except MissingExtra as error:
                raise ConfigurationError(str(error)) from None
            return _keyed_provider(_BOX, SecretboxCipher, provider.secretbox.keys or (), "Secretbox", metrics)
        if provider.kms is not None:
            return self._kms(provider.kms)
        plain = Prefixed(b"", Identity())
        return lambda resource: plain

    def _kms(self, kms: KMSConfiguration) -> _Provider:
        if kms.api_version == "v1":
            raise ConfigurationError(_V1_IS_OFF)
        seconds, metrics = timeout_of(kms), self.metrics.envelopes
        plugin = RemotePlugin(kms.name, socket_of(kms.endpoint), seconds, metrics)
        current = SeedState()
        self.probes.append(Probe(kms.name, plugin, current, metrics))
        self.plugin_seconds += seconds
        transformer = EnvelopeTransformer(kms.name, plugin, current, metrics)
        prefixed = Prefixed(_KMS + f"{kms.name}:".encode(), transformer)
        return lambda resource: prefixed

    def transformer_for(self, resource: GroupResource) -> Transformer | None:
        """Return the transformer of a resource from its own rule, its group's, or the rule for all; None if there is
        none.
        """
        made = self._made.get(resource)
        if made is not None:
            return made
        for rule in (resource, GroupResource(resource.group, "*"), ANY):
            providers = self._by_resource.get(rule)
            if providers is not None:
                name = str(resource)
                prefixed = [each(name) for each in providers]
                made = PrefixedTransformers(name, prefixed, "no matching prefix found", self.metrics.transformations)
                self._made[resource] = made
                return made
        return None

    async def start(self) -> None:
        """Check the plugins one after another, and start the regular checks."""
        for probe in self.probes:
            await probe.start()

    async def stop(self) -> None:
        """Close the connections to the plugins."""
        await asyncio.gather(*(probe.stop() for probe in self.probes))

    async def plugin_errors(self) -> str | None:
        """Return the errors of the plugins, None if there are none."""
        errors = []
        for number, probe in enumerate(self.probes):
            try:
                await probe.check()
            except PluginUnhealthy as fault:
                errors.append(f"kms-provider-{number}: {fault}")
        return aggregate_texts(errors) if errors else None


def _keyed_provider(
    prefix: bytes,
    cipher: Callable[[bytes], Transformer],
    keys: Sequence[Key],
    kind: str,
    metrics: TransformationMetrics,
) -> _Provider:
    """Return a provider with its own keys, each with its name as a prefix."""
    ciphers = [Prefixed(f"{key.name}:".encode(), cipher(secret_of(key))) for key in keys]
    nothing = f"no matching key was found for the provided {kind} transformer"
    return lambda resource: Prefixed(prefix, PrefixedTransformers(resource, ciphers, nothing, metrics))
