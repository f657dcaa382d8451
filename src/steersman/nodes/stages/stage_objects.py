"""Stage objects (kwok.x-k8s.io/v1alpha1) of a running cluster: followed, checked, and given a condition.

The modules that play stages are loaded with the first Stage.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_not_found
from steersman.client.events import Broadcaster, reference
from steersman.client.informer import Informer
from steersman.client.plain_object import PlainObject
from steersman.machinery.values import times
from steersman.work.offloading import offload_if
from steersman.work.work_queue import WorkQueue

if TYPE_CHECKING:
    from steersman.nodes.stages.players import StagePlayers
    from steersman.nodes.stages.stage_set import Stages

logger = logging.getLogger(__name__)

GROUP: Final = "kwok.x-k8s.io"
VERSION: Final = "v1alpha1"
_COMPONENT: Final = "kwok_controller"
_TOGETHER: Final = 0.05
"""Seconds for which changes wait for each other, as stages are often applied together."""
_MOST_MESSAGE: Final = 1024
_ALL: Final = ""
"""Only key of the queue."""


class StageObject(PlainObject):
    """A Stage."""


STAGES: Final[APIResource[StageObject]] = APIResource(GROUP, VERSION, "stages", "Stage", StageObject, namespaced=False)


class StageObjects:
    """Follower of Stage objects: `start()`, then `await stop()`.

    `begin` starts to play stages and returns their players. `configured` are the stages that are not objects, with their
    players if these have begun.
    """

    def __init__(
        self,
        client: Client,
        events: Broadcaster,
        begin: Callable[[Stages], StagePlayers],
        configured: Stages | None = None,
        players: StagePlayers | None = None,
    ) -> None:
        self._client = client
        self._recorder = events.recorder(_COMPONENT)
        self._begin = begin
        self._stages = configured
        self._players = players
        self._objects: Informer[StageObject] = Informer(client, STAGES)
        self._queue: WorkQueue[str] = WorkQueue(max_delay=30.0)
        self._errors: Mapping[str, str] = {}
        self._read = False
        """True if the present objects have been read."""

    def start(self) -> None:
        """Start to follow the objects."""
        if self._players is not None:
            self._players.on_served = self._served
        self._queue.start(self._sync, name="stage objects", workers=1)
        self._objects.on_change(self._changed)
        self._objects.on_failure(lambda error: logger.info("Stage objects: %s", error))
        self._objects.start()

    async def stop(self) -> None:
        """Stop following. Stages are played until the players stop."""
        await self._objects.stop()
        await self._queue.stop()

    @property
    def idle(self) -> bool:
        """True if no change has to be read."""
        return self._queue.idle

    def _changed(self, old: StageObject | None, new: StageObject | None) -> None:
        if old is None or new is None or old.spec != new.spec:
            self._read = False
            self._queue.add_after(_ALL, _TOGETHER)

    def _served(self) -> None:
        self._queue.add(_ALL)

    async def _sync(self, key: str) -> None:
        if not self._read:
            self._read = True
            try:
                await self._read_all()
            except BaseException:
                self._read = False
                raise
        for each in self._objects.list():
            await self._report(each)

    async def _read_all(self) -> None:
        """Play the stages that the objects say now."""
        from steersman.nodes.stages.declaration import API_VERSION
        from steersman.nodes.stages.stage_set import Stages

        objects = sorted(self._objects.list(), key=lambda each: each.metadata.name)
        before = self._stages or Stages.parse(())
        plain = [
            {"apiVersion": API_VERSION, "metadata": {"name": each.metadata.name}, "spec": each.spec} for each in objects
        ]
        found, self._errors = await offload_if(True, before.with_objects, plain)
        self._stages = found
        if self._players is not None:
            self._players.use(found)
        elif objects:
            self._players = self._begin(found)
            self._players.on_served = self._served

    async def _report(self, stage: StageObject) -> None:
        """Write the condition of a Stage, and record an event if it is invalid."""
        from steersman.nodes.stages.declaration import reference_of

        error = self._errors.get(stage.metadata.name)
        about = reference_of(stage.spec)
        if error is not None:
            wanted = ("False", "Invalid", error[:_MOST_MESSAGE])
        elif self._players is None or (served := self._players.served.get(about)) is None:
            return
        elif served:
            wanted = ("True", "Played", "the stage is played")
        else:
            wanted = ("False", "KindNotServed", f"the server does not serve {about}"[:_MOST_MESSAGE])
        if wanted == _condition_of(stage):
            return
        status, reason, message = wanted
        if error is not None:
            self._recorder.event(reference(STAGES, stage), "Warning", "InvalidStage", message)
        condition = {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": times.now(),
        }
        with ignoring(is_not_found):
            await self._client.patch_without_result(
                STAGES, stage.metadata.name, "", {"status": {"conditions": [condition]}}, subresource="status"
            )


def _condition_of(stage: StageObject) -> tuple[Any, Any, Any] | None:
    """Return status, reason and message of a Stage's condition Ready; None without it."""
    conditions = stage.status.get("conditions") if isinstance(stage.status, dict) else None
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, dict) and each.get("type") == "Ready":
            return each.get("status"), each.get("reason"), each.get("message")
    return None
