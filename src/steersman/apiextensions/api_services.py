"""The APIServices of custom resources: created with the first definition of a group version, and deleted with the last.

Follows kube-aggregator's `autoregister` and kube-apiserver's `crdregistration` controllers.
"""

from __future__ import annotations

import logging
from typing import Final

from steersman.api.apiregistration.v1 import APIService, APIServiceSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.errors.status import StatusError
from steersman.rest.context import loopback
from steersman.rest.objects import Objects
from steersman.work.work_queue import WorkQueue

logger = logging.getLogger(__name__)

GroupVersion = tuple[str, str]

AUTOMANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
GROUP_PRIORITY: Final = 1000
VERSION_PRIORITY: Final = 100

_RETRY_SECONDS: Final = 1.0
"""Seconds between retries."""


class CustomAPIServices:
    """The controller of these APIServices."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._versions: dict[str, tuple[str, frozenset[str]]] = {}
        """Group and versions by name of the definition."""
        self._users: dict[GroupVersion, int] = {}
        """The number of definitions in each group version."""
        self._queue: WorkQueue[GroupVersion] = WorkQueue(base_delay=_RETRY_SECONDS, max_delay=_RETRY_SECONDS)

    def start(self) -> None:
        """Start creating and deleting APIServices."""
        self._queue.start(self._sync, _failed, name="APIServices of custom resources", workers=1)

    async def stop(self) -> None:
        """Stop, and return once nothing runs any more."""
        await self._queue.stop()

    def set_versions(self, name: str, group: str, versions: frozenset[str]) -> None:
        """Set the versions in which a definition is to be served, whether it is established or not."""
        before_group, before = self._versions.pop(name, (group, frozenset()))
        if versions:
            self._versions[name] = group, versions
        for version in versions:
            self._count(group, version, 1)
        for version in before:
            self._count(before_group, version, -1)

    def _count(self, group: str, version: str, change: int) -> None:
        key = group, version
        before = self._users.get(key, 0)
        self._users[key] = before + change
        if not self._users[key]:
            del self._users[key]
        if (before == 0) != (before + change == 0):
            self._queue.add(key)

    async def _sync(self, key: GroupVersion) -> None:
        """Create or delete the APIService of a group version. Raises StatusError."""
        group, version = key
        name = f"{version}.{group}"
        there = await self._objects.get_cached("", name)
        is_wanted = (group, version) in self._users
        if is_wanted and there is None:
            service = APIService(
                metadata=ObjectMeta(name=name, labels={AUTOMANAGED: "true"}),
                spec=APIServiceSpec(
                    group=group,
                    version=version,
                    group_priority_minimum=GROUP_PRIORITY,
                    version_priority=VERSION_PRIORITY,
                ),
            )
            try:
                await self._objects.create(loopback(name=name), service)
            except StatusError as error:
                if error.reason != "AlreadyExists":  # another server follows the same definitions
                    raise
        elif not is_wanted and there is not None and there.metadata.labels.get(AUTOMANAGED) == "true":
            try:
                await self._objects.delete(loopback(name=name), name)
            except StatusError as error:
                if error.code != 404:
                    raise


def _failed(key: GroupVersion, error: Exception) -> None:
    logger.error("the APIService of %s/%s cannot be written yet", *key, exc_info=error)
