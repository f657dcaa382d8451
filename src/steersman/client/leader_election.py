"""Leader election: of several processes only the holder of a Lease works (client-go `tools/leaderelection`)."""

from __future__ import annotations

import asyncio
import logging
import socket
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from steersman.api.coordination.v1 import Lease, LeaseSpec
from steersman.api.core.v1 import ObjectReference
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.errors import is_already_exists, is_conflict
from steersman.client.events import Broadcaster, Recorder
from steersman.client.resources import LEASES
from steersman.client.transport import Unreachable
from steersman.machinery.codec.serializer import deep_copy
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times

logger = logging.getLogger(__name__)

_JITTER: Final = 1.2


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations in seconds; the defaults are those of kube-controller-manager."""

    lease: float = 15.0
    """Time after the last renewal when the lease has expired."""
    renew: float = 10.0
    """Time without a successful renewal after which the leader gives up."""
    retry: float = 2.0
    """Time between two attempts to acquire or renew the lease."""


class LeaderElector:
    """Runs work while it holds a Lease: `await lead(work)`.

    `identity` names this candidate and must be unique among all processes.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        timing: Timing | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._timing = timing or Timing()
        self._recorder = recorder
        self._observed: LeaseSpec | None = None
        self._observed_at = 0.0

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Acquire the lease, then run `work`. Return when `work` ends or the lease is lost; a lost lease cancels
        `work`.

        A lease that is still held at the end is released. Raises what `work` raises.
        """
        logger.info("%s waits for the lease %s/%s", self._identity, self._namespace, self._name)
        while not await self._try_acquire_or_renew():  # noqa: ASYNC110 - others write the lease
            await asyncio.sleep(self._timing.retry * _JITTER)
        logger.info("%s has acquired the lease %s/%s", self._identity, self._namespace, self._name)
        self._record_event("became leader")
        working = asyncio.ensure_future(work())
        renewing = asyncio.ensure_future(self._renew())
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
            else:
                logger.error("%s has lost the lease %s/%s", self._identity, self._namespace, self._name)
        finally:
            was_lost = renewing.done()
            for task in (working, renewing):
                task.cancel()
            await asyncio.wait({working, renewing})
            if not was_lost:
                await self._release()
            self._record_event("stopped leading")

    async def _renew(self) -> None:
        """Renew the lease until it is lost, then return."""
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        while True:
            await asyncio.sleep(self._timing.retry)
            try:
                async with asyncio.timeout_at(renewed + self._timing.renew):
                    if await self._try_acquire_or_renew():
                        renewed = loop.time()
            except TimeoutError:
                return
            if loop.time() - renewed >= self._timing.renew:
                return

    async def _try_acquire_or_renew(self) -> bool:
        """Acquire or renew the lease. Return True if this candidate holds it; a failed request counts as False."""
        try:
            return await self._acquire_or_renew()
        except (StatusError, Unreachable) as error:
            level = logging.DEBUG if isinstance(error, StatusError) and is_conflict(error) else logging.WARNING
            logger.log(level, "lease %s/%s: %s", self._namespace, self._name, error)
            return False

    async def _acquire_or_renew(self) -> bool:
        now = times.now_micro()
        found = await self._client.find(LEASES, self._name, self._namespace)
        if found is None:
            return await self._create_lease(now)
        if found.spec != self._observed:
            self._observed, self._observed_at = found.spec, asyncio.get_running_loop().time()
        holder = found.spec.holder_identity or ""
        is_held = holder and holder != self._identity
        lasts = found.spec.lease_duration_seconds or self._timing.lease
        if is_held and self._observed_at + lasts > asyncio.get_running_loop().time():
            return False
        lease = deep_copy(found)
        if holder != self._identity:
            lease.spec.acquire_time = now
            lease.spec.lease_transitions = (lease.spec.lease_transitions or 0) + 1
        lease.spec.holder_identity = self._identity
        lease.spec.lease_duration_seconds = int(self._timing.lease)
        lease.spec.renew_time = now
        self._observed = (await self._client.update(LEASES, lease)).spec
        self._observed_at = asyncio.get_running_loop().time()
        return True

    async def _create_lease(self, now: str) -> bool:
        spec = LeaseSpec(
            holder_identity=self._identity,
            lease_duration_seconds=int(self._timing.lease),
            acquire_time=now,
            renew_time=now,
            lease_transitions=0,
        )
        try:
            lease = await self._client.create(
                LEASES, Lease(metadata=ObjectMeta(name=self._name, namespace=self._namespace), spec=spec)
            )
        except StatusError as error:
            if is_already_exists(error):
                return False
            raise
        self._observed, self._observed_at = lease.spec, asyncio.get_running_loop().time()
        return True

    async def _release(self) -> None:
        """Release the lease, so that another candidate can acquire it at once."""
        try:
            lease = await self._client.get(LEASES, self._name, self._namespace)
            if lease.spec.holder_identity == self._identity:
                lease.spec.holder_identity, lease.spec.lease_duration_seconds = "", 1
                await self._client.update(LEASES, lease)
        except (StatusError, Unreachable) as error:
            logger.warning("lease %s/%s was not released: %s", self._namespace, self._name, error)

    def _record_event(self, what: str) -> None:
        if self._recorder is not None:
            about = ObjectReference(
                kind="Lease", api_version="coordination.k8s.io/v1", namespace=self._namespace, name=self._name
            )
            self._recorder.event(about, "Normal", "LeaderElection", f"{self._identity} {what}")


async def work_as_leader(
    client: Client,
    namespace: str,
    name: str,
    work: Callable[[], Awaitable[None]],
    *,
    component: str,
    host: str | None = None,
) -> None:
    """Run `work` while this process holds a Lease, see `LeaderElector.lead`.

    Events about the lease have the source `component`, and `host` or else the identity of this process as their host.
    """
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    events = Broadcaster(client)
    events.start()
    elector = LeaderElector(
        client, namespace, name, identity, recorder=events.recorder(component, identity if host is None else host)
    )
    try:
        await elector.lead(work)
    finally:
        await events.stop()
