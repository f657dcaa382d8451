"""Executor of preemptions, which deletes the victims (framework/preemption/executor.go)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from steersman.api.core import v1 as core
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_not_found
from steersman.client.event_series import SeriesRecorder
from steersman.client.events import reference
from steersman.client.resources import PODS
from steersman.client.transport import Unreachable
from steersman.machinery.errors.status import StatusError
from steersman.scheduler.pod_status import patch_status

logger = logging.getLogger(__name__)

_FAILURES: Final = (StatusError, Unreachable)


class Executor:
    """Executes preemptions while other pods are decided.

    `pod_of` returns the current state of a pod, None if it is gone.
    """

    def __init__(
        self,
        client: Client,
        recorder: SeriesRecorder,
        pod_of: Callable[[str, str], core.Pod | None],
        failed: Callable[[str], None],
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._pod_of = pod_of
        self._failed = failed
        self._preempting: dict[str, core.Pod | None] = {}
        """Preempting pods by UID, and the last victim of each once that is being deleted."""

    def is_preempting(self, uid: str) -> bool:
        """Return True while victims for a pod are being deleted, so that the pod need not be tried yet."""
        if uid not in self._preempting:
            return False
        last = self._preempting[uid]
        if last is None:
            return True
        now = self._pod_of(last.metadata.namespace, last.metadata.name)
        return now is not None and not now.metadata.deletion_timestamp

    def begin(self, pod: core.Pod) -> None:
        """Mark a pod as preempting; `make_room` follows."""
        self._preempting[pod.metadata.uid] = None

    async def make_room(
        self, pod: core.Pod, node_name: str, victims: Sequence[core.Pod], losing: Iterable[core.Pod]
    ) -> None:
        """Delete the victims of a pod on a node, and clear the nominations of the pods `losing` for that node."""
        uid = pod.metadata.uid
        try:
            for each in losing:
                await self._clear(each)
            *first, last = victims
            await asyncio.gather(*(self._delete(pod, node_name, each) for each in first))
            self._preempting[uid] = last
            await self._delete(pod, node_name, last)
        except _FAILURES as error:
            logger.warning("no room could be made for %s: %s", pod.metadata.name, error)
            del self._preempting[uid]
            self._failed(uid)
        finally:
            self._preempting.pop(uid, None)

    async def _clear(self, pod: core.Pod) -> None:
        try:
            await patch_status(self._client, pod, nominated="")
        except _FAILURES as error:
            logger.warning("the nomination of %s stays: %s", pod.metadata.name, error)

    async def _delete(self, pod: core.Pod, node_name: str, victim: core.Pod) -> None:
        metadata = victim.metadata
        target = core.PodCondition(
            type="DisruptionTarget",
            status="True",
            reason="PreemptionByScheduler",
            message=f"{pod.spec.scheduler_name}: preempting to accommodate a higher priority pod",
            observed_generation=metadata.generation,
        )
        note = f"Preempted by pod {pod.metadata.uid} on node {node_name}"
        with ignoring(is_not_found):
            await patch_status(self._client, victim, target)
            await self._client.delete(PODS, metadata.name, metadata.namespace)
            self._recorder.event(
                reference(PODS, victim), "Normal", "Preempted", "Preempting", note, related=reference(PODS, pod)
            )
