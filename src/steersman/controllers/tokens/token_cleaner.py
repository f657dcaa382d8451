"""Controller that deletes expired bootstrap tokens (pkg/controller/bootstrap/tokencleaner.go)."""

from __future__ import annotations

from steersman.api.core.v1 import Secret
from steersman.api.meta.v1 import DeleteOptions, Preconditions
from steersman.client.errors import ignoring, is_conflict, is_not_found
from steersman.client.informer import Key, key_of
from steersman.client.resources import SECRETS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.tokens.bootstrap_tokens import NAMESPACE
from steersman.machinery.built_in.bootstrap_tokens import SECRET_TYPE, seconds_left
from steersman.machinery.values import times


class TokenCleaner(Controller[Key]):
    """Deletes expired bootstrap tokens. A key is the namespace and name of a secret."""

    name = "token-cleaner-controller"
    account = "token-cleaner"
    on_by_default = False
    workers = 1

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._secrets = self.informers.for_resource(SECRETS, field_selector=f"type={SECRET_TYPE}")
        self._secrets.on_change(self._changed)

    def _changed(self, _: Secret | None, new: Secret | None) -> None:
        if new is not None and new.metadata.namespace == NAMESPACE:
            self.queue.add(key_of(new))

    async def sync(self, key: Key) -> None:
        secret = self._secrets.get(*key)
        left = None if secret is None else seconds_left(secret.data, times.unix_now())
        if secret is None or left is None:
            return
        if left > 0:
            self.queue.add_after(key, left)
            return
        options = DeleteOptions(preconditions=Preconditions(uid=secret.metadata.uid))
        with ignoring(is_conflict, is_not_found):
            await self.client.delete(SECRETS, secret.metadata.name, secret.metadata.namespace, options)
