"""The cluster's namespaces, and admission of writes in them (upstream's NamespaceLifecycle on an informer)."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from steersman.admission.interface import DELETE, Attributes, NamespaceState
from steersman.admission_plugins.namespace_lifecycle import NamespaceLifecycle
from steersman.api.core.v1 import Namespace
from steersman.client.informer import Informer
from steersman.client.resources import NAMESPACES
from steersman.library.aggregated.cluster import Cluster
from steersman.machinery.validation.formats import is_path_segment_name


class ClusterNamespaces:
    """The namespaces by name, between `start` and `stop`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._informer = Informer(cluster.client, NAMESPACES, transform=_without_texts)

    async def start(self) -> None:
        """Return once all namespaces are known. Raises StatusError."""
        await self._cluster.start_informer(self._informer)

    async def stop(self) -> None:
        """Stop following the namespaces."""
        await self._informer.stop()

    def get(self, name: str) -> NamespaceState | None:
        """Return a namespace, None if the informer has not seen it."""
        found = self._informer.get("", name)
        return None if found is None else NamespaceState(found.status.phase)

    async def look_up(self, name: str) -> NamespaceState | None:
        """Return a namespace that may have been created just now, None if the cluster has none.

        Raises StatusError if the cluster does not answer.
        """
        if is_path_segment_name(name):
            return None
        found = await self._cluster.request(partial(self._cluster.client.find, NAMESPACES, name))
        return None if found is None else NamespaceState(found.status.phase)


def _without_texts(namespace: Namespace) -> None:
    namespace.metadata.labels = namespace.metadata.annotations = {}


class ClusterNamespaceLifecycle(NamespaceLifecycle):
    """NamespaceLifecycle on the cluster's namespaces; a namespace unknown to the informer is requested from the
    cluster.
    """

    def __init__(self, namespaces: ClusterNamespaces) -> None:
        super().__init__(namespaces.get)
        self._namespaces = namespaces

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        namespace = attributes.action.namespace
        if not namespace or attributes.operation == DELETE or self._namespaces.get(namespace) is not None:
            return super().admit(attributes)
        return self._admit_in_requested(attributes, namespace)

    async def _admit_in_requested(self, attributes: Attributes, namespace: str) -> None:
        """Check a write in a namespace that is requested from the cluster first."""
        found = await self._namespaces.look_up(namespace)
        pending = NamespaceLifecycle(lambda _: found).admit(attributes)
        if pending is not None:
            await pending
