"""Creation and deletion of pods, with events about them (pkg/controller RealPodControl, slowStartBatch)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from steersman.api.core.v1 import Pod, PodTemplateSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.api_resource import APIResource, Object
from steersman.client.client import Client
from steersman.client.errors import is_namespace_terminating, is_not_found
from steersman.client.events import Recorder, reference
from steersman.client.resources import PODS
from steersman.client.transport import Unreachable
from steersman.controllers.workloads.controller_ref import new_controller_ref
from steersman.machinery.errors.status import StatusError
from steersman.work.work_queue import TryLater
from steersman.work.yielding import TimeSlice

_AT_ONCE: Final = 16
"""Most concurrent requests. The server may run on the same event loop and needs time to answer them."""
_MAX_NAME: Final = 253
_REFUSED: Final = (StatusError, Unreachable, TryLater)


def pod_from_template(
    template: PodTemplateSpec, resource: APIResource[Any], owner: Object, generate_name: str = ""
) -> Pod:
    """Return the pod of a template, controlled by `owner`, an object of `resource`. It shares the template's spec."""
    metadata = template.metadata
    name = owner.metadata.name
    return Pod(
        metadata=ObjectMeta(
            namespace=owner.metadata.namespace,
            labels=dict(metadata.labels),
            annotations=dict(metadata.annotations),
            generate_name=generate_name or (f"{name}-" if len(name) < _MAX_NAME else name),
            finalizers=list(metadata.finalizers),
            owner_references=[new_controller_ref(resource, owner)],
        ),
        spec=template.spec,
    )


class PodControl:
    """Creates and deletes pods for owners of one resource, and records an event about the owner each time."""

    def __init__(self, client: Client, recorder: Recorder, resource: APIResource[Any]) -> None:
        self._client = client
        self._recorder = recorder
        self._resource = resource

    async def create(self, pod: Pod, owner: Object) -> Pod:
        """Create a pod and return it. Raises StatusError, Unreachable; TryLater for a pod without labels."""
        if not pod.metadata.labels:
            raise TryLater("unable to create pods, no labels")
        try:
            created = await self._client.create(PODS, pod)
        except StatusError as error:
            if not is_namespace_terminating(error):
                self.record_event(owner, "Warning", "FailedCreate", f"Error creating: {error}")
            raise
        self.record_event(owner, "Normal", "SuccessfulCreate", f"Created pod: {created.metadata.name}")
        return created

    async def delete(self, pod: Pod, owner: Object) -> None:
        """Delete a pod. Raises StatusError, Unreachable."""
        name = pod.metadata.name
        try:
            await self._client.delete(PODS, name, pod.metadata.namespace)
        except StatusError as error:
            if not is_not_found(error):
                self.record_event(owner, "Warning", "FailedDelete", f"Error deleting: {error}")
            raise
        self.record_event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name}")

    def record_event(self, owner: Object, type_: str, reason: str, message: str) -> None:
        """Record an event about an owner."""
        self._recorder.event(reference(self._resource, owner), type_, reason, message)


async def slow_start(
    count: int, act: Callable[[int], Awaitable[object]], first: int = 1
) -> tuple[int, Exception | None]:
    """Call `act` with 0, 1, ... up to `count`, in batches that double in size until a call fails.

    Return the number of successes and the first error. The slow start avoids many requests that all fail alike.
    """
    done, size, succeeded = 0, min(count, first), 0
    while size > 0:
        errors = await _run_all((partial(act, index) for index in range(done, done + size)), size)
        succeeded += size - len(errors)
        if errors:
            return succeeded, errors[0]
        done += size
        size = min(2 * size, count - done)
    return succeeded, None


async def run_all(acts: Sequence[Callable[[], Awaitable[object]]]) -> list[Exception]:
    """Call all `acts`, up to 16 at the same time, and return their errors (StatusError, Unreachable, TryLater)."""
    return await _run_all(iter(acts), len(acts))


async def _run_all(left: Iterator[Callable[[], Awaitable[object]]], count: int) -> list[Exception]:
    """Call the `count` acts of an iterator, up to 16 at the same time, and return their errors."""
    errors: list[Exception] = []
    time_slice = TimeSlice()

    async def work() -> None:
        for act in left:
            try:
                await act()
            except _REFUSED as error:
                errors.append(error)
            await time_slice.pause_if_over()  # many acts have nothing to do and return without ever waiting

    async with asyncio.TaskGroup() as group:
        for _ in range(min(_AT_ONCE, count)):
            group.create_task(work())
    return errors
