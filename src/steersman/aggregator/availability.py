"""The controller of the condition Available of APIServices.

Follows kube-aggregator's `controllers/status` (local and remote AvailableConditionController). It requests the resource
list of a group version when its APIService or its Service changes, and every 30 seconds.
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
"""Seconds within which a server must answer."""
RESYNC: Final = 30.0
_WORKERS: Final = 5
_ATTEMPTS: Final = 5
_FIRST_ATTEMPT_SECONDS: Final = 1.0
"""Seconds after which more attempts are made in parallel to the first."""
_TIMED_OUT: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


class Availability:
    """The controller. `backends` returns the server behind an APIService, None if there is none."""

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
        self._conditions: dict[str, tuple[Registration, Condition]] = {}
        """APIServices by name, with the condition determined for this state."""
        self._by_service: dict[ServiceName, set[str]] = {}
        """Names of the APIServices of each Service."""

    def start(self) -> None:
        """Start checking all APIServices, and from then on those that change."""
        self._queue.start(self._sync, name="availability", workers=_WORKERS)

    async def stop(self) -> None:
        """Stop, and return once no check runs any more."""
        await self._queue.stop()

    def changed(self, name: str, registration: Registration | None) -> None:
        """Handle a changed or deleted (None) APIService."""
        before = self._conditions.get(name)
        if before is not None:
            self._unlink(before[0])
        if registration is None:
            self._conditions.pop(name, None)
            self._metrics.available.pop(name, None)
            self._queue.discard(name)
            return
        if registration.service is not None:
            key = (registration.service.namespace, registration.service.name)
            self._by_service.setdefault(key, set()).add(name)
        condition = registration.condition or Condition("Unknown")
        is_current = (
            before is not None
            and before[1] == condition
            and _without_condition(before[0]) == _without_condition(registration)
        )
        self._conditions[name] = registration, condition
        self._metrics.available[name] = condition.is_true
        if not is_current and (registration.service is not None or condition != LOCAL):
            self._queue.add(name)

    def service_changed(self, service: ServiceName) -> None:
        """Handle a change of a Service of APIServices, or of its endpoints."""
        for name in self._by_service.get(service, ()):
            self._queue.add(name)

    def _unlink(self, registration: Registration) -> None:
        if registration.service is not None:
            key = (registration.service.namespace, registration.service.name)
            names = self._by_service.get(key, set())
            names.discard(registration.name)
            if not names:
                self._by_service.pop(key, None)

    async def _sync(self, name: str) -> float | None:
        """Determine and write the condition. Raises TryLater, after writing, for a server that does not answer."""
        registration = self._objects.read_cached("", name, REGISTRATION)
        if registration is None:
            return None
        backend = self._backends(name)
        if registration.service is None or backend is None:
            await self._write(registration, LOCAL)
            return None
        found = await self._check(registration, backend)
        await self._write(registration, found)
        if found.reason == "FailedDiscoveryCheck":
            raise TryLater(found.message)
        return RESYNC

    async def _check(self, registration: Registration, backend: Backend) -> Condition:
        assert registration.service is not None
        key = registration.service
        where = f"service/{key.name} in {quote(key.namespace)}"
        service = self._resolver.service((key.namespace, key.name))
        if service is None:
            return Condition("False", "ServiceNotFound", f"{where} is not present")
        if (
            service.type == "ClusterIP"
            and (fault := await self._check_endpoints(registration, service, where)) is not None
        ):
            return fault
        message = await self._probe(registration, backend)
        if message:
            return Condition("False", "FailedDiscoveryCheck", message)
        return Condition("True", "Passed", "all checks passed")

    async def _check_endpoints(self, registration: Registration, service: ServiceFacts, where: str) -> Condition | None:
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

    async def _probe(self, registration: Registration, backend: Backend) -> str:
        """Return "" if the server answers, else a description of the failure.

        Up to five attempts are made: the first alone, the others in parallel once it is slow or has failed, as each may
        reach another endpoint.
        """
        path = registration.discovery_path
        attempts = [asyncio.create_task(_attempt(backend, path))]
        try:
            await asyncio.wait(attempts, timeout=_FIRST_ATTEMPT_SECONDS)
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
        """Write the condition if it has changed. Raises TryLater."""
        name = registration.name
        if name not in self._conditions:
            return  # the APIService has been deleted
        if registration.condition == found:
            return
        was_available = registration.is_available
        self._conditions[name] = registration, found
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
    """Return "" for a successful answer, else a description of the failure."""
    try:
        address = await backend.address()
    except NoRoute as error:
        return str(error)
    url = f"https://{host_port(*address)}{path}"
    try:
        async with asyncio.timeout(TIMEOUT):
            status = await backend.probe(path, PROBER, address)
    except TimeoutError:
        return f"failing or missing response from {url}: Get {quote(url)}: {_TIMED_OUT}"
    except Unreachable as error:
        return f"failing or missing response from {url}: Get {quote(url)}: {error}"
    if not 200 <= status < 300:
        return f"failing or missing response from {url}: bad status from {url}: {status}"
    return ""


def with_condition(service: APIService, found: Condition) -> APIService:
    """Return the APIService with the condition Available set to `found`."""
    new = APIServiceCondition(type=AVAILABLE, status=found.status, reason=found.reason, message=found.message)
    service.status.conditions = conditions.with_condition(service.status.conditions, new)
    return service


def _without_condition(registration: Registration) -> Registration:
    return replace(registration, condition=None)
