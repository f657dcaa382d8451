"""ConfigMaps and Secrets that pods on nodes reference: their keys, and the pods that wait for them.

All ConfigMaps and Secrets are watched, but only their keys are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from steersman.api.core.v1 import ConfigMap, Pod, Secret
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.informer import Informer, Key, key_of
from steersman.client.resources import CONFIG_MAPS, SECRETS
from steersman.nodes.references import CONFIG_MAP, MOST_NAME, SECRET, Find, Keys, Source, sources_of


class Sources:
    """Watched ConfigMaps and Secrets: `start`, then `await stop()`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._config_maps = Informer(client, CONFIG_MAPS, transform=_without_values)
        self._secrets = Informer(client, SECRETS, transform=_without_secret_values)
        self._waiting: dict[tuple[str, Source], set[Key]] = {}
        """Waiting pods by namespace and ConfigMap or Secret."""
        self._waits_for: dict[Key, set[Source]] = {}

    async def start(self, wake: Callable[[Key], None]) -> None:
        """Start to watch. `wake` is called with a pod when something that it waits for was created or changed."""

        def told(kind: str) -> Callable[[ConfigMap | Secret | None, ConfigMap | Secret | None], None]:
            def changed(_: ConfigMap | Secret | None, new: ConfigMap | Secret | None) -> None:
                if new is not None:
                    namespace, name = key_of(new)
                    for pod in tuple(self._waiting.get((namespace, Source(kind, name)), ())):
                        wake(pod)

            return changed

        self._config_maps.on_change(told(CONFIG_MAP))
        self._secrets.on_change(told(SECRET))
        self._config_maps.start()
        self._secrets.start()
        await self._config_maps.wait_until_synced()
        await self._secrets.wait_until_synced()

    async def stop(self) -> None:
        """Stop watching."""
        await self._config_maps.stop()
        await self._secrets.stop()

    async def finder(self, pod: Pod) -> Find:
        """Return a function that finds the keys of what a pod references; what the cache lacks is requested from the
        server.

        Raises StatusError, Unreachable.
        """
        namespace, _ = key_of(pod)
        known = {each: self.keys(namespace, each) for each in set(sources_of(pod))}
        for source, keys in known.items():
            if keys is None:
                known[source] = await self._asked(namespace, source)
        return known.get

    def wait_for(self, pod: Key, sources: Iterable[Source]) -> None:
        """Replace the ConfigMaps and Secrets that a pod waits for."""
        namespace, _ = pod
        current, before = set(sources), self._waits_for.pop(pod, set())
        for each in before - current:
            waiting = self._waiting[(namespace, each)]
            waiting.discard(pod)
            if not waiting:
                del self._waiting[(namespace, each)]
        for each in current - before:
            self._waiting.setdefault((namespace, each), set()).add(pod)
        if current:
            self._waits_for[pod] = current

    def keys(self, namespace: str, source: Source) -> Keys | None:
        """Return the keys of a ConfigMap or Secret from the cache; None if it is not there."""
        source_object: ConfigMap | Secret | None
        if source.kind == SECRET:
            source_object = self._secrets.get(namespace, source.name)
        else:
            source_object = self._config_maps.get(namespace, source.name)
        return None if source_object is None else _keys_of(source_object)

    async def _asked(self, namespace: str, source: Source) -> Keys | None:
        if not source.name or len(source.name) > MOST_NAME:
            return None
        resource: APIResource[Any] = SECRETS if source.kind == SECRET else CONFIG_MAPS
        source_object: ConfigMap | Secret | None = await self._client.find(resource, source.name, namespace)
        return None if source_object is None else _keys_of(source_object)


def _keys_of(found: ConfigMap | Secret) -> Keys:
    plain = frozenset(found.data)
    return Keys(plain | frozenset(found.binary_data) if isinstance(found, ConfigMap) else plain, plain)


def _without_values(found: ConfigMap) -> None:
    found.data = dict.fromkeys(found.data, "")
    found.binary_data = dict.fromkeys(found.binary_data, b"")
    found.metadata.annotations = {}


def _without_secret_values(found: Secret) -> None:
    found.data = dict.fromkeys(found.data, b"")
    found.metadata.annotations = {}
