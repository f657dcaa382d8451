"""Revisions of a DaemonSet: the present one is found or created, old ones are deleted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steersman.api.apps.v1 import ControllerRevision, DaemonSet
from steersman.api.core.v1 import Pod
from steersman.client.client import Client
from steersman.client.errors import is_already_exists
from steersman.client.resources import CONTROLLER_REVISIONS, DAEMON_SETS, PODS
from steersman.controllers.workloads.large_templates import offload_if_large
from steersman.controllers.workloads.revisions import REVISION_HASH, equal_revisions, has_data, new_revision
from steersman.controllers.workloads.template_hash import template_hash
from steersman.machinery.codec.serializer import deep_copy
from steersman.machinery.errors.status import StatusError
from steersman.work.work_queue import TryLater


class History:
    """The revisions of one DaemonSet, all of which it controls."""

    def __init__(
        self,
        client: Client,
        daemon_set: DaemonSet,
        data: bytes,
        same: list[ControllerRevision],
        old: list[ControllerRevision],
    ) -> None:
        """Create a history; `same` are the revisions with `data`, the data of the present template."""
        self._client = client
        self._daemon_set = daemon_set
        self._data = data
        self._same = same
        self.old = old

    @classmethod
    async def load(cls, client: Client, daemon_set: DaemonSet, revisions: Sequence[ControllerRevision]) -> History:
        """Return the history of a DaemonSet from its revisions."""
        template = daemon_set.spec.template
        data, same = await offload_if_large(template, equal_revisions, template, revisions)
        return cls(client, daemon_set, data, same, [each for each in revisions if each not in same])

    async def current(self, pods: Sequence[Pod]) -> ControllerRevision:
        """Return the revision of the present template as the newest revision; it is created if it is missing.

        Of several equal revisions one is kept, and `pods` get its hash.
        """
        newest = max((each.revision for each in self.old), default=0) + 1
        if not self._same:
            return await self._create(newest)
        kept = max(self._same, key=lambda each: each.revision)
        if len(self._same) > 1:
            await self._keep_one(kept, pods)
        if kept.revision < newest or REVISION_HASH not in kept.metadata.labels:
            kept = deep_copy(kept)
            kept.metadata.labels.setdefault(REVISION_HASH, kept.metadata.name)
            kept.revision = max(newest, kept.revision)
            kept = await self._client.update(CONTROLLER_REVISIONS, kept)
        return kept

    async def _keep_one(self, kept: ControllerRevision, pods: Sequence[Pod]) -> None:
        hash_ = kept.metadata.labels.get(REVISION_HASH, kept.metadata.name)
        for pod in pods:
            if pod.metadata.labels.get(REVISION_HASH) != hash_:
                patch = {"metadata": {"labels": {REVISION_HASH: hash_}}}
                await self._client.patch(PODS, pod.metadata.name, pod.metadata.namespace, patch)
        for each in self._same:
            if each is not kept:
                await self._client.delete(CONTROLLER_REVISIONS, each.metadata.name, each.metadata.namespace)

    async def _create(self, number: int) -> ControllerRevision:
        daemon_set = self._daemon_set
        metadata, template = daemon_set.metadata, daemon_set.spec.template
        hash_ = await offload_if_large(template, template_hash, template, daemon_set.status.collision_count)
        name = f"{metadata.name}-{hash_}"
        revision = new_revision(DAEMON_SETS, daemon_set, name, {REVISION_HASH: hash_}, self._data, number)
        try:
            return await self._client.create(CONTROLLER_REVISIONS, revision)
        except StatusError as error:
            if not is_already_exists(error):
                raise
            existing = await self._client.get(CONTROLLER_REVISIONS, name, metadata.namespace)
            if await offload_if_large(template, has_data, existing, self._data):
                return existing
            await self._count_collision()
            raise

    async def _count_collision(self) -> None:
        """Count a hash collision: another template's revision has the name."""
        cached = self._daemon_set
        fresh = await self._client.get(DAEMON_SETS, cached.metadata.name, cached.metadata.namespace)
        if fresh.status.collision_count != cached.status.collision_count:
            raise TryLater(f"found a stale collision count of DaemonSet {cached.metadata.name}")
        fresh.status.collision_count = (fresh.status.collision_count or 0) + 1
        await self._client.update_status(DAEMON_SETS, fresh)

    async def clean_up(self, pods: Iterable[Pod]) -> None:
        """Delete the oldest unused revisions beyond the history limit."""
        limit = self._daemon_set.spec.revision_history_limit
        surplus = len(self.old) - (10 if limit is None else limit)
        if surplus <= 0:
            return
        live = {pod.metadata.labels.get(REVISION_HASH) for pod in pods}
        dead = [each for each in self.old if each.metadata.labels.get(REVISION_HASH) not in live]
        for each in sorted(dead, key=lambda each: each.revision)[:surplus]:
            await self._client.delete(CONTROLLER_REVISIONS, each.metadata.name, each.metadata.namespace)
