"""The controller of CustomResourceDefinitions: accepts names, serves resources, and deletes objects on termination.

kube-apiserver has a controller for each of these, and each writes a condition (apiextensions-apiserver
`pkg/controller`). This controller syncs one definition at a time and writes all changes at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec import Struct

from steersman.api.apiextensions.v1 import CustomResourceDefinition, CustomResourceDefinitionNames
from steersman.apiextensions.accepted_names import NAMES_ACCEPTED, NamesInUse, accept_names, reject_reserved_names
from steersman.apiextensions.approval_condition import set_approval_condition
from steersman.apiextensions.conversion_metrics import ConversionMetrics
from steersman.apiextensions.declared import Declared, read_declared, read_named
from steersman.machinery.errors.status import StatusError
from steersman.machinery.large_work.sizes import is_large
from steersman.registry.apiextensions.conditions import ESTABLISHED, find_condition, set_condition
from steersman.registry.apiextensions.customresourcedefinitions import CLEANUP_FINALIZER
from steersman.registry.services import Services
from steersman.rest.context import loopback
from steersman.rest.objects import Objects
from steersman.rest.resource import Resource
from steersman.storage.cache.entry import Entry
from steersman.store.follower import Follower
from steersman.store.store import Store
from steersman.work.backoff import Backoff, Retries
from steersman.work.offloading import offload_if
from steersman.work.work_queue import WorkQueue
from steersman.work.yielding import time_sliced

if TYPE_CHECKING:
    from steersman.apiextensions.strategy import Versions

logger = logging.getLogger(__name__)

TERMINATING: Final = "Terminating"

_BACKOFF: Final = Backoff(0.05, 5.0, factor=10.0)
"""Pauses before retries."""
CHECKS: Final = Backoff(0.05, 1.0)
"""Pauses between checks for remaining objects."""
COOL_DELAY: Final = 70.0
"""Seconds after which no request is left that began before a definition changed."""
LONGEST_WAIT: Final = 3.0
"""The most seconds for which a request waits until a stored definition is in effect."""
_CHECKS_BEFORE_REPORT: Final = 60
"""The number of checks after which the condition reports remaining objects."""

Serves = Callable[[str, str, str], bool]


class Serving(Protocol):
    """Serves resources while the server runs; implemented by the control plane."""

    async def serve_custom(self, resource: Resource[Any, Any], serves: Serves, *, announced: bool) -> None:
        """Serve a resource from now on, in the versions for which `serves` (group, version, plural) is True.

        It replaces the resource of the same name. Discovery shows a new resource that is not `announced` only after
        `announce`. Raises ValueError if a resource with another storage has the name.
        """
        ...

    def announce(self, group: str, plural: str) -> None:
        """Show a served resource in discovery. Raises KeyError if it is not served."""
        ...

    def notify_changed(self, group: str) -> None:
        """Notify subscribers that the discovery of a group has changed."""
        ...

    async def withdraw(self, group: str, plural: str) -> None:
        """Stop serving a resource. Raises KeyError if it is not served."""
        ...

    async def filled_objects(self, group: str, plural: str) -> Objects:
        """Return access to the objects of a resource, once they are cached. Raises KeyError, and StatusError 429."""
        ...


class GroupVersionRegistry(Protocol):
    """Registers group versions (as `APIService` objects)."""

    def set_versions(self, name: str, group: str, versions: frozenset[str]) -> None:
        """Set the versions in which a definition is to be served, whether it is established or not."""
        ...


class _DefinitionState(Struct, frozen=True):
    """The state of a definition that the controller keeps: its group and its accepted names."""

    group: str
    accepted: CustomResourceDefinitionNames
    has_conflict: bool
    terminating_uid: str
    """The UID of a terminating definition, "" for any other."""


class _Served(Struct, frozen=True):
    """A served definition, with the state on which its resource depends."""

    state: tuple[str, int, CustomResourceDefinitionNames]
    group: str
    plural: str
    versions: Versions


Built = tuple[Resource[Any, Any], "Versions"]


def _import_builder() -> Callable[[Services, ConversionMetrics, Declared], Built]:
    """Import and return the function that makes resources of definitions.

    Servers without definitions do not load schemas and rules.
    """
    from steersman.apiextensions.conversion import Converters
    from steersman.apiextensions.custom_resource import resource_of

    def make(services: Services, metrics: ConversionMetrics, definition: Declared) -> Built:
        return resource_of(definition, Converters(services, metrics))

    return make


class Definitions:
    """The controller; see the module."""

    def __init__(
        self,
        store: Store[CustomResourceDefinition],
        objects: Objects,
        serving: Serving,
        registry: GroupVersionRegistry,
        services: Services,
        metrics: ConversionMetrics,
    ) -> None:
        self._store = store
        self._objects = objects
        self._serving = serving
        self._registry = registry
        self._services = services
        self._metrics = metrics
        self._states: dict[str, _DefinitionState] = {}
        self._names: dict[str, NamesInUse] = {}
        """Names in use by group."""
        self._conflicting: dict[str, dict[str, None]] = {}
        """Definitions with a name conflict, by group."""
        self._served: dict[str, _Served] = {}
        """Served definitions by name."""
        self._reserved: dict[tuple[str, str], CustomResourceDefinitionNames] = {}
        """Names of custom resources without a definition, by group and plural."""
        self._build: Callable[[Declared], Built] | None = None
        self._queued: dict[str, asyncio.Future[None]] = {}
        """Definitions in the queue, with futures that complete when they have been synced."""
        self._pending: dict[str, asyncio.Future[None]] = {}
        """Definitions in the queue or being synced, with the same futures."""
        self._queue: WorkQueue[str] = WorkQueue(base_delay=_BACKOFF.first, max_delay=_BACKOFF.longest)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """Tasks that delete objects, by name of the definition."""

    def reserve(self, group: str, names: CustomResourceDefinitionNames) -> None:
        """Reserve names for a resource without a definition.

        A definition that wants or has these names is no longer served, and its condition NamesAccepted says so.
        """
        before = self._reserved.get((group, names.plural))
        taken = self._names.setdefault(group, NamesInUse())
        self._conflicting.setdefault(group, {})
        if before is not None:
            taken.remove(before)
        taken.add(names)
        self._reserved[group, names.plural] = names
        name = f"{names.plural}.{group}"
        known = self._served.pop(name, None)
        if known is not None:
            known.versions.lifecycle.is_ending = True
        self._registry.set_versions(name, group, frozenset())
        if name in self._states:
            self._enqueue(name)

    def _is_reserved(self, definition: Declared) -> bool:
        return (definition.spec.group, definition.spec.names.plural) in self._reserved

    def install(self, add_hook: Callable[[str, Callable[[], Awaitable[None]]], None]) -> None:
        """Add kube-apiserver's post-start hooks, which complete once all stored definitions are served."""
        for name in ("start-apiextensions-informers", "start-apiextensions-controllers", "crd-informer-synced"):
            add_hook(name, self.wait_until_synced)

    async def start(self) -> None:
        """Start following definitions; return once all stored definitions are served."""
        Follower(self._store, self._changed).begin()
        self._queue.start(self._sync, _failed, name="custom resource definitions", workers=1)
        await self.wait_until_synced()

    async def stop(self) -> None:
        """Stop, and return once nothing runs any more."""
        await self._queue.stop()
        tasks = list(self._tasks.values())
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for synced in self._queued.values():
            synced.set_result(None)
        self._queued.clear()
        self._pending.clear()

    def wait_for(self, group: str, plural: str) -> Awaitable[None] | None:
        """Wait until the stored state of a definition is in effect, or for `LONGEST_WAIT` seconds.

        Returns None if it is in effect already. Without a plural, waits for all definitions of the group.
        """
        if not self._pending:
            return None
        if plural:
            own = self._pending.get(f"{plural}.{group}")
            syncs = [] if own is None else [own]
        else:
            syncs = [synced for name, synced in self._pending.items() if name.endswith(f".{group}")]
        return self._wait(syncs) if syncs else None

    @staticmethod
    async def _wait(syncs: Sequence[asyncio.Future[None]]) -> None:
        await asyncio.wait(syncs, timeout=LONGEST_WAIT)

    async def wait_until_synced(self) -> None:
        """Return once everything in the queue has been synced."""
        await self._queue.wait_until_idle()

    def _changed(self, _: str, name: str, entry: Entry | None) -> None:
        before = self._states.pop(name, None)
        now = None
        if entry is not None:
            definition = read_named(entry.body)
            accepted = definition.status.accepted_names
            terminating_uid = definition.metadata.uid if definition.metadata.deletion_timestamp else ""
            now = self._states[name] = _DefinitionState(
                definition.spec.group, accepted, accepted != definition.spec.names, terminating_uid
            )
        self._count(name, before, now)
        if before is not None and (now is None or now.accepted != before.accepted):
            for other in self._conflicting.get(before.group, ()):
                self._enqueue(other)
        self._enqueue(name)

    def _count(self, name: str, before: _DefinitionState | None, now: _DefinitionState | None) -> None:
        """Update the names in use and the name conflicts of the groups."""
        for known in (before, now):
            if known is None:
                continue
            taken = self._names.setdefault(known.group, NamesInUse())
            conflicting = self._conflicting.setdefault(known.group, {})
            if known is before:
                taken.remove(known.accepted)
                conflicting.pop(name, None)
            else:
                taken.add(known.accepted)
                if known.has_conflict:
                    conflicting[name] = None
            if not taken.resources and not taken.kinds and not conflicting:
                del self._names[known.group], self._conflicting[known.group]

    def _enqueue(self, name: str) -> None:
        self._expect(name)
        self._queue.add(name)

    def _expect(self, name: str) -> None:
        if name not in self._queued:
            self._queued[name] = self._pending[name] = asyncio.get_running_loop().create_future()

    async def _sync(self, name: str) -> None:
        """Sync a definition and complete the future of its waiters."""
        self._expect(name)  # also for a retry
        synced = self._queued.pop(name)
        try:
            await self.sync_definition(name)
        finally:
            synced.set_result(None)
            if self._pending.get(name) is synced:
                del self._pending[name]

    async def sync_definition(self, name: str) -> None:
        """Serve, change or withdraw the resource of a definition, as the cached definition says."""
        entry = self._store.cacher.get(self._store.prefix + name)
        if entry is None:
            await self._withdraw(name)
            return
        large = is_large(entry.body)
        definition = await offload_if(large, read_declared, entry.body)
        if definition.metadata.deletion_timestamp is None:
            await self._apply(definition, large=large)
            return
        known = self._served.get(name)
        if known is None and definition.is_established and not self._is_reserved(definition):
            await self._serve(definition, large=large)
            known = self._served[name]
        if known is not None and not known.versions.lifecycle.is_ending:
            known.versions.lifecycle.is_ending = True
            self._serving.notify_changed(known.group)
        if CLEANUP_FINALIZER in definition.metadata.finalizers and name not in self._tasks:
            finalizing = self._finalize(name, definition.metadata.uid)
            task = asyncio.get_running_loop().create_task(finalizing, name=f"deleting all of {name}")
            self._tasks[name] = task
            task.add_done_callback(lambda _: self._finalized(name))

    # Serving

    async def _apply(self, definition: Declared, *, large: bool) -> None:
        before = msgspec.json.encode(definition.status)
        is_reserved = self._is_reserved(definition)
        if is_reserved:
            reject_reserved_names(definition)
        else:
            await offload_if(large, accept_names, definition, self._names.get(definition.spec.group) or NamesInUse())
        set_approval_condition(definition)
        names = find_condition(definition, NAMES_ACCEPTED)
        may_be_served = definition.is_established or (names is not None and names.status == "True")
        if may_be_served and not is_reserved:
            await self._serve(definition, large=large)
            if not definition.is_established:
                text = "the initial names have been accepted"
                set_condition(definition, ESTABLISHED, "True", "InitialNamesAccepted", text)
        status = definition.status
        known = self._served.get(definition.metadata.name)
        if known is None and not is_reserved:
            self._registry.set_versions(definition.metadata.name, definition.spec.group, _versions(definition))
        if msgspec.json.encode(status) != before:

            def changed(stored: CustomResourceDefinition) -> CustomResourceDefinition:
                stored.status.accepted_names = status.accepted_names
                stored.status.conditions = status.conditions
                return stored

            await self._write(definition.metadata.name, changed, subresource="status")
        if known is not None:  # only now, so that a client that discovers the resource finds its definition complete
            self._serving.announce(known.group, known.plural)

    async def _serve(self, definition: Declared, *, large: bool) -> None:
        name, spec = definition.metadata.name, definition.spec
        state = definition.metadata.uid, definition.metadata.generation, definition.status.accepted_names
        known = self._served.get(name)
        if known is not None and known.state == state:
            return
        if self._build is None:
            self._build = partial(await offload_if(True, _import_builder), self._services, self._metrics)
        resource, versions = await offload_if(large, self._build, definition)
        if known is not None and known.state[0] == definition.metadata.uid:
            versions.lifecycle = known.versions.lifecycle
        elif known is not None:
            known.versions.lifecycle.is_ending = True
        if definition.metadata.deletion_timestamp is not None:
            versions.lifecycle.is_ending = True
        served = _versions(definition)
        await self._serving.serve_custom(
            resource, lambda group, version, plural: version in served, announced=definition.is_established
        )
        if known is not None:
            _cool_later(known.versions)
        self._served[name] = _Served(state, spec.group, resource.plural, versions)
        self._registry.set_versions(name, spec.group, served)

    async def _withdraw(self, name: str) -> None:
        self._registry.set_versions(name, name.partition(".")[2], frozenset())
        known = self._served.pop(name, None)
        if known is not None:
            known.versions.lifecycle.is_ending = True
            _cool_later(known.versions)
            await self._serving.withdraw(known.group, known.plural)

    async def _write(
        self, name: str, change: Callable[[CustomResourceDefinition], CustomResourceDefinition], subresource: str = ""
    ) -> None:
        try:
            await self._objects.update(loopback(name=name), name, change, subresource=subresource)
        except StatusError as error:
            if error.code != 404:
                raise

    # Termination

    async def _finalize(self, name: str, uid: str) -> None:
        """Delete the objects of a definition and then remove its finalizer, with retries.

        Another server may do so at the same time and finish first, and another definition may get the name then.
        """
        retries = Retries(_BACKOFF)
        while self._is_terminating(name, uid):
            try:
                await self._delete_instances(name, uid)
                return
            except Exception:
                if self._is_terminating(name, uid):
                    logger.exception("the objects of %s cannot be deleted yet", name)
            await retries.pause()

    def _finalized(self, name: str) -> None:
        del self._tasks[name]
        self._enqueue(name)  # a new definition of the same name may be terminating by now

    def _is_terminating(self, name: str, uid: str) -> bool:
        """Return True if this very definition still exists and is terminating."""
        known = self._states.get(name)
        return known is not None and known.terminating_uid == uid

    async def _delete_instances(self, name: str, uid: str) -> None:
        await self._set_terminating(name, uid, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
        known = self._served.get(name)
        if known is None:
            status = "False", "NeverEstablished", "resource was never established"
        else:
            await self._delete_all(name, uid, await self._serving.filled_objects(known.group, known.plural))
            status = "False", "InstanceDeletionCompleted", "removed all instances"

        def released(found: CustomResourceDefinition) -> CustomResourceDefinition:
            _check(found, uid)
            found.metadata.finalizers = [each for each in found.metadata.finalizers if each != CLEANUP_FINALIZER]
            set_condition(found, TERMINATING, *status)
            return found

        await self._write(name, released, subresource="status")

    async def _set_terminating(self, name: str, uid: str, reason: str, message: str) -> None:
        def with_condition(found: CustomResourceDefinition) -> CustomResourceDefinition:
            _check(found, uid)
            set_condition(found, TERMINATING, "True", reason, message)
            return found

        await self._write(name, with_condition, subresource="status")

    async def _delete_all(self, definition: str, uid: str, objects: Objects) -> None:
        """Delete all objects, and return once none are left. Raises _DefinitionGone."""
        checks = Retries(CHECKS)
        requested: set[tuple[str, str]] = set()
        """Objects with finalizers, which are deleted later; no new objects are created."""
        while True:
            await objects.wait_until_current()  # other servers may have stored objects before they saw the termination
            if not self._is_terminating(definition, uid):
                raise _DefinitionGone(definition)
            await self.delete_each([each for each in objects.names() if each not in requested], objects, requested)
            if not objects.count():
                return
            if checks.failures == _CHECKS_BEFORE_REPORT:
                text = "could not confirm zero CustomResources remaining: timed out waiting for the condition"
                await self._set_terminating(definition, uid, "InstanceDeletionCheck", text)
            await checks.pause()

    async def delete_each(
        self, names: Sequence[tuple[str, str]], objects: Objects, requested: set[tuple[str, str]]
    ) -> None:
        """Delete the objects with these namespaces and names, and add them to `requested`. Raises StatusError."""
        async for namespace, name in time_sliced(names):  # deleting a marked object returns without waiting
            try:
                await objects.delete(loopback(namespace, name), name)
            except StatusError as error:
                if error.code != 404:
                    raise
            requested.add((namespace, name))


def _failed(name: str, error: Exception) -> None:
    logger.error("the definition %s cannot be served yet", name, exc_info=error)


class _DefinitionGone(Exception):
    """Raised if the definition is gone because another server finished its termination."""


def _check(found: CustomResourceDefinition, uid: str) -> None:
    """Raise _DefinitionGone if this is another definition of the same name."""
    if found.metadata.uid != uid:
        raise _DefinitionGone(found.metadata.name)


def _versions(definition: Declared) -> frozenset[str]:
    """Return the served versions of a definition."""
    return frozenset(each.name for each in definition.spec.versions if each.served)


def _cool_later(versions: Versions) -> None:
    asyncio.get_running_loop().call_later(COOL_DELAY, versions.cool)
