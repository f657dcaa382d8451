"""Controller that removes automatically created service account tokens after a long time without use.

Follows pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go. Kubernetes before 1.24 created such a
token for each account.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from steersman.api.core.v1 import Secret
from steersman.api.meta.v1 import DeleteOptions, Preconditions
from steersman.client.errors import ignoring, is_conflict, is_not_found
from steersman.client.resources import CONFIG_MAPS, PODS, SECRETS, SERVICE_ACCOUNTS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.machinery.built_in.pod_secrets import secret_names
from steersman.machinery.built_in.token_secrets import (
    ACCOUNT_NAME,
    ACCOUNT_UID,
    INVALID_SINCE,
    LAST_USED,
    SECRET_TYPE,
)
from steersman.machinery.values import times
from steersman.work.work_queue import TryLater

TRACKING: Final = "kube-apiserver-legacy-service-account-token-tracking"
"""ConfigMap of kube-system with the date since which the use of tokens is recorded."""
INTERVAL: Final = 86400.0
"""Seconds between two clean-ups."""
_SINCE: Final = "since"


class LegacyTokenCleaner(Controller[str]):
    """Cleans up all tokens, for which there is a single key."""

    name = "legacy-serviceaccount-token-cleaner-controller"
    account = "legacy-service-account-token-cleaner"
    workers = 1

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._period = dependencies.settings.legacy_token_clean_up_period
        self._accounts = self.informers.for_resource(SERVICE_ACCOUNTS)
        self._secrets = self.informers.for_resource(SECRETS, field_selector=f"type={SECRET_TYPE}")
        self._pods = self.informers.for_resource(PODS)
        self.queue.add("")

    async def sync(self, key: str) -> None:
        now = times.unix_now()
        if now >= await self._tracked_since() + self._period:
            mounted: dict[str, frozenset[str]] = {}
            for secret in self._secrets:
                if self._is_unused(secret, now) and self._is_auto_generated(secret):
                    namespace = secret.metadata.namespace
                    if namespace not in mounted:
                        mounted[namespace] = self._mounted(namespace)
                    if secret.metadata.name not in mounted[namespace]:
                        await self._invalidate_or_delete(secret, now)
        self.queue.add_after(key, INTERVAL)

    async def _tracked_since(self) -> float:
        """Return the end of the first day on which the use of tokens was recorded, in seconds since 1970."""
        since = (await self.client.get(CONFIG_MAPS, TRACKING, "kube-system")).data.get(_SINCE, "")
        if not times.is_date(since):
            raise TryLater(f"{TRACKING} lacks the date since which tokens are tracked")
        return (datetime.strptime(since, "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=1)).timestamp()

    def _is_unused(self, secret: Secret, now: float) -> bool:
        metadata = secret.metadata
        created_at = metadata.creation_timestamp
        if metadata.deletion_timestamp or created_at is None or times.unix(created_at) >= now - self._period:
            return False
        used = metadata.labels.get(LAST_USED)
        return used is None or (times.is_date(used) and used < times.day(now - self._period))

    def _is_auto_generated(self, secret: Secret) -> bool:
        """Return True if the account lists the secret: only the old controller wrote such references."""
        annotations = secret.metadata.annotations
        account = self._accounts.get(secret.metadata.namespace, annotations.get(ACCOUNT_NAME, ""))
        if account is None or annotations.get(ACCOUNT_UID, "") not in ("", account.metadata.uid):
            return False
        return any(each.name == secret.metadata.name for each in account.secrets)

    def _mounted(self, namespace: str) -> frozenset[str]:
        return frozenset(name for pod in self._pods.list(namespace) for name in secret_names(pod.spec))

    async def _invalidate_or_delete(self, secret: Secret, now: float) -> None:
        """Label a token as invalid, or delete it if it has been labelled for long enough."""
        metadata = secret.metadata
        since = metadata.labels.get(INVALID_SINCE, "")
        with ignoring(is_conflict, is_not_found):
            if not times.is_date(since):
                changes = {"labels": {INVALID_SINCE: times.day(now)}, "uid": metadata.uid}
                await self.client.patch(SECRETS, metadata.name, metadata.namespace, {"metadata": changes})
            elif since < times.day(now - self._period):
                only = Preconditions(resource_version=metadata.resource_version)
                options = DeleteOptions(preconditions=only)
                await self.client.delete(SECRETS, metadata.name, metadata.namespace, options)
