"""Whether the servers behind APIServices answer: the condition Available.

Follows kube-aggregator's `controllers/status` (local and remote AvailableConditionController). A server is asked for
the resources of its group version when its APIService or its Service changes, and every 30 seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from steersman.aggregator.backend import Backend, Unreachable
from steersman.aggregator.metrics import AvailabilityMetrics
from steersman.aggregator.remote_service import AVAILABLE, LOCAL, REGISTRATION, Condition, Registration
from steersman.aggregator.service_resolver import NoRoute, ServiceFacts, ServiceName, ServiceResolver
from steersman.api.apiregistration.v1 import APIService, APIServiceCondition
from steersman.authentication.user import SYSTEM_MASTERS, UserInfo
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import conditions
from steersman.net.client.dial import host_port
from steersman.rest.context import loopback
from steersman.rest.objects import Objects
from steersman.work.work_queue import TryLater, WorkQueue

PROBER: Final = UserInfo("system:kube-aggregator", groups=(SYSTEM_MASTERS,))
TIMEOUT: Final = 5.0
"""Seconds in which a server must answer."""
RESYNC: Final = 30.0
_WORKERS: Final = 5
_ATTEMPTS: Final = 5
_ALONE: Final = 1.0
"""Seconds that the first attempt has before others are made beside it."""
_TIMED_OUT: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


class Availability:
    """`start` begins, `stop` ends. `backends` finds the server behind an APIService, None if there is none."""

    def __init__(
        self,
        objects: Objects,
        backends: Callable[[str], Backend | None],
        resolver: ServiceResolver,
        metrics: AvailabilityMetrics,
    ) -> None:
        self._objects = objects
        self._metrics = metrics
        self._backends = backends
        self._resolver = resolver
        self._queue: WorkQueue[str] = WorkQueue(max_delay=RESYNC)
        self._judged: dict[str, tuple[Registration, Condition]] = {}
        """What was found for an APIService as it was then."""
        self._of_services: dict[ServiceName, set[str]] = {}
        """The APIServices of a Service."""

    def start(self) -> None:
        """Judges what there is, and from then on whatever changes."""
        self._queue.start(self._sync, name="availability", workers=_WORKERS)

    async def stop(self) -> None:
        """Returns once nothing is judged any more."""
        await self._queue.stop()

    def changed(self, name: str, registration: Registration | None) -> None:
        """An APIService has changed, or is gone."""
        judged = self._judged.get(name)
        if judged is not None:
            self._unlink(judged[0])
        if registration is None:
            self._judged.pop(name, None)
            self._metrics.available.pop(name, None)
            self._queue.discard(name)
            return
        if registration.service is not None:
            key = (registration.service.namespace, registration.service.name)
            self._of_services.setdefault(key, set()).add(name)
        found = registration.condition or Condition("Unknown")
        is_judged = (
            judged is not None
            and judged[1] == found
            and _without_condition(judged[0]) == _without_condition(registration)
        )
        self._judged[name] = registration, found
        self._metrics.available[name] = found.is_true
        if not is_judged and (registration.service is not None or found != LOCAL):
            self._queue.add(name)

    def service_changed(self, service: ServiceName) -> None:
        """A Service that APIServices name, or its endpoints, have changed."""
        for name in self._of_services.get(service, ()):
            self._queue.add(name)

    def _unlink(self, registration: Registration) -> None:
        if registration.service is not None:
            key = (registration.service.namespace, registration.service.name)
            names = self._of_services.get(key, set())
            names.discard(registration.name)
            if not names:
                self._of_services.pop(key, None)

    async def _sync(self, name: str) -> float | None:
        """Raises TryLater for a server that gives no answer, once that is written."""
        registration = self._objects.read_cached("", name, REGISTRATION)
        if registration is None:
            return None
        backend = self._backends(name)
        if registration.service is None or backend is None:
            await self._write(registration, LOCAL)
            return None
        found = await self._judge(registration, backend)
        await self._write(registration, found)
        if found.reason == "FailedDiscoveryCheck":
            raise TryLater(found.message)
        return RESYNC

    async def _judge(self, registration: Registration, backend: Backend) -> Condition:
        assert registration.service is not None
        key = registration.service
        where = f"service/{key.name} in {quote(key.namespace)}"
        service = self._resolver.service((key.namespace, key.name))
        if service is None:
            return Condition("False", "ServiceNotFound", f"{where} is not present")
        if service.type == "ClusterIP" and (fault := await self._fault_of(registration, service, where)) is not None:
            return fault
        message = await self._ask(registration, backend)
        if message:
            return Condition("False", "FailedDiscoveryCheck", message)
        return Condition("True", "Passed", "all checks passed")

    async def _fault_of(self, registration: Registration, service: ServiceFacts, where: str) -> Condition | None:
        assert registration.service is not None
        key = registration.service
        port_name = service.port_name(key.port)
        if port_name is None:
            return Condition("False", "ServicePortError", f"{where} is not listening on port {key.port}")
        slices = await self._resolver.slices((key.namespace, key.name))
        if not slices:
            return Condition("False", "EndpointsNotFound", f"cannot find endpointslices for {where}")
        if not any(each.ready and any(name == port_name for name, _ in each.ports) for each in slices):
            message = f"endpointslices for {where} have no addresses with port name {quote(port_name)}"
            return Condition("False", "MissingEndpoints", message)
        return None

    async def _ask(self, registration: Registration, backend: Backend) -> str:
        """ "" if the server answers, else what it does instead. Five attempts are made: the first by itself, unless it
        takes long or fails, as each may find another endpoint."""
        path = registration.discovery_path
        attempts = [asyncio.create_task(_attempt(backend, path))]
        try:
            await asyncio.wait(attempts, timeout=_ALONE)
            if attempts[0].done() and not attempts[0].result():
                return ""
            attempts += [asyncio.create_task(_attempt(backend, path)) for _ in range(_ATTEMPTS - 1)]
            message = ""
            for each in asyncio.as_completed(attempts):
                message = await each
                if not message:
                    break
            return message
        finally:
            for task in attempts:
                task.cancel()
            await asyncio.gather(*attempts, return_exceptions=True)

    async def _write(self, registration: Registration, found: Condition) -> None:
        """Writes the condition if it has changed. Raises TryLater."""
        name = registration.name
        if name not in self._judged:
            return  # it is gone
        if registration.condition == found:
            return
        was_available = registration.is_available
        self._judged[name] = registration, found
        try:
            await self._objects.update(
                loopback(name=name), name, lambda service: with_condition(service, found), subresource="status"
            )
        except StatusError as error:
            if error.code == 404:
                return
            raise TryLater(error.message) from None
        if was_available and not found.is_true:
            self._metrics.unavailable.inc((name, found.reason))


async def _attempt(backend: Backend, path: str) -> str:
    """ "" for an answer of success, else what is wrong."""
    try:
        place = await backend.place()
    except NoRoute as error:
        return str(error)
    url = f"https://{host_port(*place)}{path}"
    try:
        async with asyncio.timeout(TIMEOUT):
            status = await backend.probe(path, PROBER, place)
    except TimeoutError:
        return f"failing or missing response from {url}: Get {quote(url)}: {_TIMED_OUT}"
    except Unreachable as error:
        return f"failing or missing response from {url}: Get {quote(url)}: {error}"
    if not 200 <= status < 300:
        return f"failing or missing response from {url}: bad status from {url}: {status}"
    return ""


def with_condition(service: APIService, found: Condition) -> APIService:
    """Return the APIService with the condition Available."""
    new = APIServiceCondition(type=AVAILABLE, status=found.status, reason=found.reason, message=found.message)
    service.status.conditions = conditions.with_condition(service.status.conditions, new)
    return service


def _without_condition(registration: Registration) -> Registration:
    return replace(registration, condition=None)
