"""The cluster's namespaces, and what may be made in them (upstream's NamespaceLifecycle on an informer)."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import msgspec

from steersman.admission.interface import DELETE, Attributes, KnownNamespace
from steersman.admission_plugins.namespace_lifecycle import NamespaceLifecycle
from steersman.library.aggregated.cluster import Cluster
from steersman.library.aggregated.follower import ClusterFollower, Meta
from steersman.machinery.errors.status import StatusError
from steersman.machinery.validation.formats import is_path_segment_name

_PATH: Final = "/api/v1/namespaces"


class _Status(msgspec.Struct):
    phase: str = ""


class _Namespace(msgspec.Struct):
    metadata: Meta = msgspec.field(default_factory=Meta)
    status: _Status = msgspec.field(default_factory=_Status)


class ClusterNamespaces:
    """The namespaces by their names, from `start` to `stop`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_name: dict[str, KnownNamespace] = {}
        self._follower = ClusterFollower(
            cluster, _PATH, _Namespace, replaced=self._replace, changed=self._take, gone=self._forget
        )

    async def start(self) -> None:
        """Returns once all are known. Raises StatusError."""
        await self._follower.start()

    async def stop(self) -> None:
        """Follows them no more."""
        await self._follower.stop()

    def find(self, name: str) -> KnownNamespace | None:
        """Return a namespace, None for one of which nothing was told yet."""
        return self._by_name.get(name)

    async def look(self, name: str) -> None:
        """Asks for one that is not known: it may have been made a moment ago. Raises StatusError unless the cluster
        says that there is one, or none."""
        if is_path_segment_name(name):
            return
        try:
            self._take(await self._cluster.get(_Namespace, f"{_PATH}/{quote(name, safe='')}"))
        except StatusError as error:
            if error.code != 404:
                raise

    def _replace(self, found: list[_Namespace]) -> None:
        self._by_name = {each.metadata.name: KnownNamespace(each.status.phase) for each in found}

    def _take(self, found: _Namespace) -> None:
        self._by_name[found.metadata.name] = KnownNamespace(found.status.phase)

    def _forget(self, name: str) -> None:
        self._by_name.pop(name, None)


class ClusterNamespaceLifecycle(NamespaceLifecycle):
    """The same of the cluster's namespaces, which are asked for if they are not known."""

    def __init__(self, namespaces: ClusterNamespaces) -> None:
        super().__init__(namespaces.find)
        self._namespaces = namespaces

    async def admit(self, attributes: Attributes) -> None:
        namespace = attributes.action.namespace
        if namespace and attributes.operation != DELETE and self._namespaces.find(namespace) is None:
            await self._namespaces.look(namespace)
        await super().admit(attributes)
