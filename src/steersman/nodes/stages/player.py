"""Controller that takes objects of one kind from stage to stage (kwok `pod_controller.go`, `node_controller.go`,
`stage_controller.go`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from steersman.api.core.v1 import Node, Pod
from steersman.api.meta.v1 import DeleteOptions
from steersman.client.api_resource import APIResource
from steersman.client.client import JSON_PATCH, Client
from steersman.client.errors import is_conflict, is_not_found
from steersman.client.events import Recorder, reference
from steersman.client.informer import Informer, Key, key_of
from steersman.client.transport import Unreachable
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.net.ascii import is_digits
from steersman.nodes.stages.applying import Applying, ServedLater
from steersman.nodes.stages.go_template.builtins import Function
from steersman.nodes.stages.go_template.template import data_of
from steersman.nodes.stages.go_template.values import TemplateError
from steersman.nodes.stages.open_objects import OpenObject
from steersman.nodes.stages.selection import Lifecycle, ObjectSnapshot, PreparedStage
from steersman.nodes.stages.steps import PreparedStep, finalizer_operations
from steersman.work import simulated_time
from steersman.work.backoff import Backoff
from steersman.work.offloading import offload, offload_if
from steersman.work.token_bucket import TokenBucket
from steersman.work.work_queue import WorkQueue
from steersman.work.yielding import next_slice

logger = logging.getLogger(__name__)

T = TypeVar("T")
O = TypeVar("O", Pod, Node, OpenObject)  # noqa: E741

MOST_OBJECT: Final = 1 << 17
"""Bytes of an object's JSON. jq parses so much in about 10 ms, which holds the event loop."""
_LARGE: Final = 1 << 15
"""Bytes of an object from which on templates are evaluated in a worker thread."""
_WORKERS: Final = 16
_BACKOFF: Final = Backoff(1.0, 32 * 60.0, jitter=0.2)
"""Seconds before a failed step is retried."""
_BURST: Final = 20
"""Stages that an object plays in a row without a pause."""
_PER_SECOND: Final = 5.0
"""Stages that an object plays in a second after that, as stages may follow each other for ever."""
_AGAIN: Final = frozenset({"ServerTimeout", "Timeout", "ServiceUnavailable", "TooManyRequests"})
"""Reasons of errors after which a step is retried."""


@dataclass(slots=True)
class _Job(Generic[O]):
    """Pending stage of an object, for one version of the object."""

    obj: O
    stage: PreparedStage | None = None
    """Stage that the object is in; None if it is in no stage, or its stage is done."""
    unseen: bool = False
    """True if a stage has written this version; its next stage is determined when a watch event brings it."""
    due: float = 0.0
    """Time of its next step on the event loop's clock."""
    step: int = 0
    """Index of the first step that is not done yet."""
    failures: int = 0
    lifecycle: Lifecycle | None = None
    """Lifecycle that the stage is of."""


class StagePlayer(Generic[O]):
    """Plays the stages of a kind: `start`, then `queue` for every change; `await stop()`.

    `follows` returns True for an object that is simulated here now. `functions` returns the template functions of an
    object. `applying` applies other objects.
    """

    def __init__(
        self,
        client: Client,
        objects: Informer[O],
        lifecycle: Lifecycle,
        recorder: Recorder,
        *,
        applying: Applying,
        follows: Callable[[O], bool],
        functions: Callable[[O], Mapping[str, Function]],
    ) -> None:
        self._client = client
        self._objects: Informer[O] = objects
        self._resource: APIResource[O] = objects.resource
        self._lifecycle = lifecycle
        self._recorder = recorder
        self._applying = applying
        self._paces: dict[Key, TokenBucket] = {}
        """Pace of each object that has played a stage."""
        self._follows: Callable[[O], bool] = follows
        self._functions: Callable[[O], Mapping[str, Function]] = functions
        self._queue: WorkQueue[Key] = WorkQueue()
        self._jobs: dict[Key, _Job[O]] = {}
        self._reported: dict[Key, str] = {}
        """Last reported error of objects whose stage failed."""

    def start(self) -> None:
        """Start to play stages."""
        name = f"stages of {self._resource.plural}"
        self._queue.start(self._sync, self._failed, name=name, workers=_WORKERS)

    async def stop(self) -> None:
        """Stop. Objects stay in their current stages."""
        await self._queue.stop()

    @property
    def idle(self) -> bool:
        """True if no step is due now; some may be due later."""
        return self._queue.idle

    @property
    def lifecycle(self) -> Lifecycle:
        """Stages that are played."""
        return self._lifecycle

    def use(self, lifecycle: Lifecycle) -> None:
        """Play other stages from now on. An object whose stage stays the same keeps its delay."""
        self._lifecycle = lifecycle
        for obj in self._objects.list():
            self._queue.add(key_of(obj))

    def queue(self, key: Key) -> None:
        """Queue an object that may have changed, or that is followed again."""
        self._queue.add(key)

    def _failed(self, key: Key, error: Exception) -> None:
        logger.error("stages of %s %s/%s", self._resource.plural, *key, exc_info=error)

    async def _sync(self, key: Key) -> None:
        obj = self._objects.get(*key)
        if obj is None:
            self._jobs.pop(key, None)
            self._reported.pop(key, None)
            self._paces.pop(key, None)
            return
        if not self._follows(obj):
            self._jobs.pop(key, None)
            return
        job = self._jobs.get(key)
        if job is None or _is_newer(obj, job.obj) or (job.unseen and not _is_newer(job.obj, obj)):
            job = self._jobs[key] = await self._job(key, obj)
        elif job.lifecycle is not self._lifecycle:
            job = self._jobs[key] = await self._job(key, job.obj, job)
        while job.stage is not None:
            wait = job.due - simulated_time.time()
            if wait <= 0:
                wait = self._pace_of(key).take()
            if wait > 0:
                self._queue.add_after(key, wait)
                return
            job = self._jobs[key] = await self._play(key, job.stage, job)

    def _pace_of(self, key: Key) -> TokenBucket:
        found = self._paces.get(key)
        if found is None:
            found = self._paces[key] = TokenBucket(_BURST, _PER_SECOND, asyncio.get_running_loop().time)
        return found

    async def _job(self, key: Key, obj: O, before: _Job[O] | None = None) -> _Job[O]:
        """Return the pending stage of an object in its current version. `before` is that of earlier stages."""
        lifecycle = self._lifecycle
        text = self._text(obj)
        if len(text) > MOST_OBJECT:
            self._report(key, obj, f"more than {MOST_OBJECT} bytes")
            return _Job(obj, lifecycle=lifecycle)
        struct = None if isinstance(obj, OpenObject) else obj
        snapshot = ObjectSnapshot(text.decode(), obj.metadata.labels, obj.metadata.annotations, struct)
        stage = await offload(lifecycle.stage_of, snapshot)
        if stage is None:
            return _Job(obj, lifecycle=lifecycle)
        if before is not None and before.stage is not None and before.stage.declaration == stage.declaration:
            return replace(before, stage=stage, lifecycle=lifecycle)
        if len(text) > _LARGE:
            await next_slice()
        delay = await offload(stage.delay, snapshot, times.unix_now(), lifecycle.random)
        return _Job(obj, stage, due=simulated_time.time() + delay, lifecycle=lifecycle)

    def _text(self, obj: O) -> bytes:
        return self._resource.encode(obj)

    async def _play(self, key: Key, stage: PreparedStage, job: _Job[O]) -> _Job[O]:
        """Do the steps of an object's stage, and return the stage that is pending after them."""
        latest = job.obj
        try:
            while job.step < len(stage.steps):
                gone = any(each.delete for each in stage.steps[: job.step])
                latest = await self._do(job.obj, stage.steps[job.step], gone=gone) or latest
                job.step += 1
        except (StatusError, Unreachable) as error:
            if isinstance(error, Unreachable) or error.reason in _AGAIN:
                return self._retry(key, job, error)
            if not (is_conflict(error) or is_not_found(error)):
                self._report(key, job.obj, f"stage {stage.name}: {error}")
        except ServedLater as error:
            return self._retry(key, job, error)
        except TemplateError as error:
            self._report(key, job.obj, f"stage {stage.name}: {error}")
        if not _is_newer(latest, job.obj):
            return _Job(latest, lifecycle=job.lifecycle)
        if stage.immediate:
            return await self._job(key, latest)
        return _Job(latest, unseen=True, lifecycle=self._lifecycle)

    def _retry(self, key: Key, job: _Job[O], error: Exception) -> _Job[O]:
        wait = _BACKOFF.wait(job.failures, self._lifecycle.random.random)
        logger.warning("%s %s/%s: %s; again in %.0f s", self._resource.plural, *key, error, wait)
        job.failures += 1
        job.due = simulated_time.time() + wait
        return job

    async def _do(self, obj: O, step: PreparedStep, *, gone: bool) -> O | None:
        """Do a step and return the object if a patch has changed it.

        After a deletion (`gone`) only the event of a step is recorded. Raises StatusError, Unreachable, TemplateError,
        ServedLater.
        """
        result: O | None = None
        if step.event is not None:
            about = reference(self._resource, obj)
            self._recorder.event(about, step.event.type, step.event.reason, step.event.message)
        if gone:
            return None
        if step.finalizers is not None:
            operations = finalizer_operations(obj.metadata.finalizers, step.finalizers)
            if operations:
                result = await self._patch(obj, operations, JSON_PATCH, "")
        if step.delete:
            options = DeleteOptions(grace_period_seconds=0)
            await self._client.delete(self._resource, obj.metadata.name, obj.metadata.namespace, options)
        elif step.patch is not None:
            body = await self._rendered(obj, step.patch.body)
            result = await self._patch(obj, body, step.patch.media, step.patch.subresource, step.patch.user)
        if step.apply is not None and not step.delete:
            await self._applying.apply(step.apply, await self._rendered(obj, step.apply.object), obj.metadata.namespace)
        return result

    async def _rendered(self, obj: O, render: Callable[[Any, Mapping[str, Function]], T]) -> T:
        text, functions = self._text(obj), self._functions(obj)
        return await offload_if(len(text) >= _LARGE, lambda: render(data_of(text), functions))

    async def _patch(self, obj: O, patch: Any, media: str, subresource: str, user: str = "") -> O:
        metadata = obj.metadata
        client = self._client.impersonating(user) if user else self._client
        return await client.patch(
            self._resource, metadata.name, metadata.namespace, patch, media=media, subresource=subresource
        )

    def _report(self, key: Key, obj: O, why: str) -> None:
        """Report once that a stage cannot be played for an object."""
        if self._reported.get(key) == why:
            return
        self._reported[key] = why
        logger.warning("%s %s/%s: %s", self._resource.plural, *key, why)
        self._recorder.event(reference(self._resource, obj), "Warning", "StageFailed", why[:1000])


def _is_newer(obj: Pod | Node | OpenObject, known: Pod | Node | OpenObject) -> bool:
    """Return True if an object is a later version than a known one; an older one may come from a late watch event."""
    version, before = obj.metadata.resource_version, known.metadata.resource_version
    if obj.metadata.uid == known.metadata.uid and is_digits(version) and is_digits(before):
        return int(version) > int(before)
    return version != before
