"""Controller that publishes the cluster's CA bundle in each namespace
(pkg/controller/certificates/rootcacertpublisher).
"""

from __future__ import annotations

from steersman.api.core.v1 import ConfigMap, Namespace
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.errors import ignoring, is_already_exists, is_namespace_terminating, is_not_found
from steersman.client.resources import CONFIG_MAPS, NAMESPACES
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.machinery.codec.serializer import deep_copy

NAME = "kube-root-ca.crt"
_ANNOTATION = "kubernetes.io/description"
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class RootCAPublisher(Controller[str]):
    """Keeps the ConfigMap `kube-root-ca.crt` in each namespace. A key is the name of a namespace."""

    name = "root-ca-certificate-publisher-controller"
    account = "root-ca-cert-publisher"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._data = {"ca.crt": dependencies.settings.root_ca}
        self._namespaces = self.informers.for_resource(NAMESPACES)
        self._published = self.informers.for_resource(CONFIG_MAPS, field_selector=f"metadata.name={NAME}")
        self._namespaces.on_change(self._namespace_changed)
        self._published.on_change(self._published_changed)

    def _namespace_changed(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is not None and new.status.phase == "Active":
            self.queue.add(new.metadata.name)

    def _published_changed(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        if old is not None:
            self.queue.add(old.metadata.namespace)

    async def sync(self, key: str) -> None:
        namespace = self._namespaces.get("", key)
        if namespace is None or namespace.status.phase != "Active":
            return
        published = self._published.get(key, NAME)
        with ignoring(is_already_exists, is_not_found, is_namespace_terminating):
            if published is None:
                metadata = ObjectMeta(name=NAME, namespace=key, annotations={_ANNOTATION: _DESCRIPTION})
                await self.client.create(CONFIG_MAPS, ConfigMap(metadata=metadata, data=self._data))
            elif published.data != self._data or not published.metadata.annotations.get(_ANNOTATION):
                changed = deep_copy(published)
                changed.data = self._data
                changed.metadata.annotations[_ANNOTATION] = _DESCRIPTION
                await self.client.update(CONFIG_MAPS, changed)
