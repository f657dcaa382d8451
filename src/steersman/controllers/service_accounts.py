"""Controller that creates the service account `default` in each namespace (pkg/controller/serviceaccount).

Follows serviceaccounts_controller.go.
"""

from __future__ import annotations

from steersman.api.core.v1 import Namespace, ServiceAccount
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.errors import ignoring, is_already_exists, is_namespace_terminating
from steersman.client.resources import NAMESPACES, SERVICE_ACCOUNTS
from steersman.controllers.controller import Controller, ControllerDependencies

DEFAULT = "default"


class ServiceAccountsController(Controller[str]):
    """Keeps the service account `default`. A key is the name of a namespace."""

    name = "serviceaccount-controller"
    account = "service-account-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._namespaces = self.informers.for_resource(NAMESPACES)
        self._accounts = self.informers.for_resource(SERVICE_ACCOUNTS)
        self._namespaces.on_change(self._namespace_changed)
        self._accounts.on_change(self._account_changed)

    def _namespace_changed(self, _: Namespace | None, new: Namespace | None) -> None:
        if new is not None:
            self.queue.add(new.metadata.name)

    def _account_changed(self, old: ServiceAccount | None, new: ServiceAccount | None) -> None:
        if new is None and old is not None and old.metadata.name == DEFAULT:
            self.queue.add(old.metadata.namespace)

    async def sync(self, key: str) -> None:
        namespace = self._namespaces.get("", key)
        if namespace is None or namespace.status.phase != "Active" or self._accounts.get(key, DEFAULT) is not None:
            return
        account = ServiceAccount(metadata=ObjectMeta(name=DEFAULT, namespace=key))
        with ignoring(is_already_exists, is_namespace_terminating):
            await self.client.create(SERVICE_ACCOUNTS, account)
