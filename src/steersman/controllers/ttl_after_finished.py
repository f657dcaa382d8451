"""Controller that deletes finished Jobs after their time to live (pkg/controller/ttlafterfinished)."""

from __future__ import annotations

from steersman.api.batch.v1 import Job
from steersman.api.meta.v1 import DeleteOptions, Preconditions
from steersman.client.informer import Key, key_of
from steersman.client.resources import JOBS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.job.state import finished
from steersman.machinery.values import times


class TTLAfterFinishedController(Controller[Key]):
    """Deletes expired Jobs. A key is the namespace and name of a Job."""

    name = "ttl-after-finished-controller"
    account = "ttl-after-finished-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._jobs = self.informers.for_resource(JOBS)
        self._jobs.on_change(self._changed)

    def _changed(self, _: Job | None, new: Job | None) -> None:
        if new is not None and _expires(new) is not None:
            self.queue.add(key_of(new))

    async def sync(self, key: Key) -> None:
        cached = self._jobs.get(*key)
        if cached is None or not self._has_expired(cached):
            return
        namespace, name = key
        fresh = await self.client.find(JOBS, name, namespace)
        if fresh is not None and self._has_expired(fresh):
            only = Preconditions(uid=fresh.metadata.uid)
            options = DeleteOptions(propagation_policy="Foreground", preconditions=only)
            await self.client.delete(JOBS, name, namespace, options)

    def _has_expired(self, job: Job) -> bool:
        """Return True if the time to live of a Job is over. If it is still running, queue the Job for its end."""
        expires = _expires(job)
        if expires is None:
            return False
        left = expires - times.unix(times.now())
        if left > 0:
            self.queue.add_after(key_of(job), left)
        return left <= 0


def _expires(job: Job) -> int | None:
    """Return the time at which a Job expires, in seconds since 1970; None if it does not expire."""
    seconds = job.spec.ttl_seconds_after_finished
    if seconds is None or job.metadata.deletion_timestamp:
        return None
    end = finished(job)
    return None if end is None or not end.last_transition_time else times.unix(end.last_transition_time) + seconds
