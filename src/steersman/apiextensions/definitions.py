"""What follows the definitions that are stored: names them, serves them, and deletes their objects when they go.

kube-apiserver has a controller for each of these, and each writes a condition (apiextensions-apiserver
`pkg/controller`). Here one looks at a definition at a time and writes all that has changed at once.
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
from steersman.apiextensions.accepted_names import NAMES_ACCEPTED, TakenNames, judge_names, refuse_names
from steersman.apiextensions.approved import judge_approval
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
from steersman.work.offloading import offload_if
from steersman.work.work_queue import WorkQueue
from steersman.work.yielding import time_sliced

if TYPE_CHECKING:
    from steersman.apiextensions.strategy import Versions

logger = logging.getLogger(__name__)

TERMINATING: Final = "Terminating"

_AGAIN: Final = (0.05, 0.5, 2.0, 5.0)
"""Seconds after which what has failed is tried again."""
_LOOKS: Final = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds between looks at whether all objects are gone."""
_COOLING: Final = 70.0
"""Seconds after which no request is left that was begun before a definition changed."""
_LONGEST_WAIT: Final = 3.0
"""Seconds for which a request waits for a definition to count that was stored before."""
_PATIENCE: Final = 60
"""Looks after which the condition says that there are still some."""

Serves = Callable[[str, str, str], bool]


class Serving(Protocol):
    """Who serves resources while the server runs (the control plane)."""

    async def serve_custom(self, resource: Resource[Any, Any], serves: Serves, *, announced: bool) -> None:
        """Serves a resource in the versions for which `serves` (group, version, plural) says so, from now on, in the
        place of the one of its name. A new one that is not `announced` is not told of before `announce`. Raises
        ValueError if one that is stored elsewhere has its name."""
        ...

    def announce(self, group: str, plural: str) -> None:
        """Tells clients of one that is served. Raises KeyError if it is not."""
        ...

    def notify_changed(self, group: str) -> None:
        """Says that discovery tells something else of a group now."""
        ...

    async def withdraw(self, group: str, plural: str) -> None:
        """Ends serving one. Raises KeyError if it is not served."""
        ...

    async def filled_objects(self, group: str, plural: str) -> Objects:
        """Its objects, once they are read. Raises KeyError, and StatusError 429."""
        ...


class Announcing(Protocol):
    """Who tells what versions of what groups there are (`APIService` objects)."""

    def changed(self, name: str, group: str, versions: frozenset[str]) -> None:
        """A definition has these versions to be served, whether it is established or not."""
        ...


class _Known(Struct, frozen=True):
    """What is remembered of every definition: its group, and the names that it has been given."""

    group: str
    accepted: CustomResourceDefinitionNames
    wants_more: bool
    going: str
    """The uid of one that is to be deleted, "" of another."""


class _Served(Struct, frozen=True):
    """A definition that is served: what of it counts for that."""

    state: tuple[str, int, CustomResourceDefinitionNames]
    group: str
    plural: str
    versions: Versions


Made = tuple[Resource[Any, Any], "Versions"]


def _import_maker() -> Callable[[Services, ConversionMetrics, Declared], Made]:
    """What makes resources of definitions: servers without any do without schemas and rules."""
    from steersman.apiextensions.conversion import Converters
    from steersman.apiextensions.custom_resource import resource_of

    def make(services: Services, metrics: ConversionMetrics, definition: Declared) -> Made:
        return resource_of(definition, Converters(services, metrics))

    return make


class Definitions:
    """`start` begins, `stop` ends."""

    def __init__(
        self,
        store: Store[CustomResourceDefinition],
        objects: Objects,
        serving: Serving,
        announcing: Announcing,
        services: Services,
        metrics: ConversionMetrics,
    ) -> None:
        self._store = store
        self._objects = objects
        self._serving = serving
        self._announcing = announcing
        self._services = services
        self._metrics = metrics
        self._known: dict[str, _Known] = {}
        self._taken: dict[str, TakenNames] = {}
        """By group."""
        self._wanting: dict[str, dict[str, None]] = {}
        """By group, the definitions that have not been given all names they want."""
        self._served: dict[str, _Served] = {}
        """By the name of the definition."""
        self._reserved: dict[tuple[str, str], CustomResourceDefinitionNames] = {}
        """By group and plural, the names of custom resources that no definition stands for."""
        self._make: Callable[[Declared], Made] | None = None
        self._waiting: dict[str, asyncio.Future[None]] = {}
        """Names of definitions that wait for a look, and futures that complete when they have had it."""
        self._looks: dict[str, asyncio.Future[None]] = {}
        """Names of definitions that wait for a look or have it now, with the same futures."""
        self._queue: WorkQueue[str] = WorkQueue(base_delay=_AGAIN[0], max_delay=_AGAIN[-1])
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """What deletes objects, by definition."""

    def reserve(self, group: str, names: CustomResourceDefinitionNames) -> None:
        """Keeps names for a resource that no definition stands for: one that wants them, or has them, is served no
        more, and its condition NamesAccepted says so."""
        before = self._reserved.get((group, names.plural))
        taken = self._taken.setdefault(group, TakenNames())
        self._wanting.setdefault(group, {})
        if before is not None:
            taken.remove(before)
        taken.add(names)
        self._reserved[group, names.plural] = names
        name = f"{names.plural}.{group}"
        known = self._served.pop(name, None)
        if known is not None:
            known.versions.life.is_ending = True
        self._announcing.changed(name, group, frozenset())
        if name in self._known:
            self._look_at(name)

    def _is_reserved(self, definition: Declared) -> bool:
        return (definition.spec.group, definition.spec.names.plural) in self._reserved

    def install(self, add_hook: Callable[[str, Callable[[], Awaitable[None]]], None]) -> None:
        """Adds the hooks that kube-apiserver has for it: what they stand for is done by `start`."""
        for name in ("start-apiextensions-informers", "start-apiextensions-controllers", "crd-informer-synced"):
            add_hook(name, self.settled)

    async def start(self) -> None:
        """Looks at every definition, and from then on at every one that changes; returns once all are served that are
        stored."""
        Follower(self._store, self._changed).begin()
        self._queue.start(self._see_to, _failed, name="custom resource definitions", workers=1)
        await self.settled()

    async def stop(self) -> None:
        """Returns once nothing of it runs any more."""
        await self._queue.stop()
        tasks = list(self._tasks.values())
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for look in self._waiting.values():
            look.set_result(None)
        self._waiting.clear()
        self._looks.clear()

    def behind(self, group: str, plural: str) -> Awaitable[None] | None:
        """Completes once what is known of a definition counts here, or after a while; None if it does. Without a plural
        this is about all definitions of the group."""
        if not self._looks:
            return None
        if plural:
            own = self._looks.get(f"{plural}.{group}")
            looks = [] if own is None else [own]
        else:
            looks = [look for name, look in self._looks.items() if name.endswith(f".{group}")]
        return self._seen(looks) if looks else None

    @staticmethod
    async def _seen(looks: Sequence[asyncio.Future[None]]) -> None:
        await asyncio.wait(looks, timeout=_LONGEST_WAIT)

    async def settled(self) -> None:
        """Returns once everything that was stored has been looked at."""
        await self._queue.wait_until_idle()

    def _changed(self, _: str, name: str, entry: Entry | None) -> None:
        before = self._known.pop(name, None)
        now = None
        if entry is not None:
            found = read_named(entry.body)
            accepted = found.status.accepted_names
            going = found.metadata.uid if found.metadata.deletion_timestamp else ""
            now = self._known[name] = _Known(found.spec.group, accepted, accepted != found.spec.names, going)
        self._count(name, before, now)
        if before is not None and (now is None or now.accepted != before.accepted):
            for other in self._wanting.get(before.group, ()):
                self._look_at(other)
        self._look_at(name)

    def _count(self, name: str, before: _Known | None, now: _Known | None) -> None:
        """Keeps what is known of groups."""
        for known in (before, now):
            if known is None:
                continue
            taken = self._taken.setdefault(known.group, TakenNames())
            wanting = self._wanting.setdefault(known.group, {})
            if known is before:
                taken.remove(known.accepted)
                wanting.pop(name, None)
            else:
                taken.add(known.accepted)
                if known.wants_more:
                    wanting[name] = None
            if not taken.resources and not taken.kinds and not wanting:
                del self._taken[known.group], self._wanting[known.group]

    def _look_at(self, name: str) -> None:
        self._expect(name)
        self._queue.add(name)

    def _expect(self, name: str) -> None:
        if name not in self._waiting:
            self._waiting[name] = self._looks[name] = asyncio.get_running_loop().create_future()

    async def _see_to(self, name: str) -> None:
        """Look at a definition, and tell those who wait for that."""
        self._expect(name)  # a look that is tried again is waited for too
        look = self._waiting.pop(name)
        try:
            await self._look(name)
        finally:
            look.set_result(None)
            if self._looks.get(name) is look:
                del self._looks[name]

    async def _look(self, name: str) -> None:
        entry = self._store.cacher.get(self._store.prefix + name)
        if entry is None:
            await self._withdraw(name)
            return
        large = is_large(entry.body)
        definition = await offload_if(large, read_declared, entry.body)
        if definition.metadata.deletion_timestamp is None:
            await self._follow(definition, large=large)
            return
        known = self._served.get(name)
        if known is None and definition.is_established and not self._is_reserved(definition):
            await self._serve(definition, large=large)
            known = self._served[name]
        if known is not None and not known.versions.life.is_ending:
            known.versions.life.is_ending = True
            self._serving.notify_changed(known.group)
        if CLEANUP_FINALIZER in definition.metadata.finalizers and name not in self._tasks:
            finalizing = self._finalize(name, definition.metadata.uid)
            task = asyncio.get_running_loop().create_task(finalizing, name=f"deleting all of {name}")
            self._tasks[name] = task
            task.add_done_callback(lambda _: self._finalized(name))

    # One that is to be served

    async def _follow(self, definition: Declared, *, large: bool) -> None:
        before = msgspec.json.encode(definition.status)
        is_reserved = self._is_reserved(definition)
        if is_reserved:
            refuse_names(definition)
        else:
            await offload_if(large, judge_names, definition, self._taken.get(definition.spec.group) or TakenNames())
        judge_approval(definition)
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
            self._announcing.changed(definition.metadata.name, definition.spec.group, _versions(definition))
        if msgspec.json.encode(status) != before:

            def changed(stored: CustomResourceDefinition) -> CustomResourceDefinition:
                stored.status.accepted_names = status.accepted_names
                stored.status.conditions = status.conditions
                return stored

            await self._write(definition.metadata.name, changed, subresource="status")
        if known is not None:  # who finds it finds a definition that the server has done with
            self._serving.announce(known.group, known.plural)

    async def _serve(self, definition: Declared, *, large: bool) -> None:
        name, spec = definition.metadata.name, definition.spec
        state = definition.metadata.uid, definition.metadata.generation, definition.status.accepted_names
        known = self._served.get(name)
        if known is not None and known.state == state:
            return
        if self._make is None:
            self._make = partial(await asyncio.to_thread(_import_maker), self._services, self._metrics)
        resource, versions = await offload_if(large, self._make, definition)
        if known is not None and known.state[0] == definition.metadata.uid:
            versions.life = known.versions.life
        elif known is not None:
            known.versions.life.is_ending = True
        if definition.metadata.deletion_timestamp is not None:
            versions.life.is_ending = True
        served = _versions(definition)
        await self._serving.serve_custom(
            resource, lambda group, version, plural: version in served, announced=definition.is_established
        )
        if known is not None:
            _cool_later(known.versions)
        self._served[name] = _Served(state, spec.group, resource.plural, versions)
        self._announcing.changed(name, spec.group, served)

    async def _withdraw(self, name: str) -> None:
        self._announcing.changed(name, name.partition(".")[2], frozenset())
        known = self._served.pop(name, None)
        if known is not None:
            known.versions.life.is_ending = True
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

    # One that goes

    async def _finalize(self, name: str, uid: str) -> None:
        """Deletes the objects of a definition, and then lets it go; however often that has to be tried. Another server
        may do so at the same time, and be first; then another definition may have the name."""
        tries = 0
        while self._is_going(name, uid):
            try:
                await self._let_go(name, uid)
                return
            except Exception:
                if self._is_going(name, uid):
                    logger.exception("the objects of %s cannot be deleted yet", name)
            await asyncio.sleep(_AGAIN[min(tries, len(_AGAIN) - 1)])
            tries += 1

    def _finalized(self, name: str) -> None:
        del self._tasks[name]
        self._look_at(name)  # another definition of the name may have to go by now

    def _is_going(self, name: str, uid: str) -> bool:
        """Whether this very definition is there, and to be deleted."""
        known = self._known.get(name)
        return known is not None and known.going == uid

    async def _let_go(self, name: str, uid: str) -> None:
        await self._tell(name, uid, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
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

    async def _tell(self, name: str, uid: str, status: str, reason: str, message: str) -> None:
        def told(found: CustomResourceDefinition) -> CustomResourceDefinition:
            _check(found, uid)
            set_condition(found, TERMINATING, status, reason, message)
            return found

        await self._write(name, told, subresource="status")

    async def _delete_all(self, definition: str, uid: str, objects: Objects) -> None:
        """Returns once nothing is left. Raises _LetGo."""
        looks = 0
        asked: set[tuple[str, str]] = set()
        """Those that are deleted once their finalizers are gone; no new ones are made."""
        while True:
            await objects.wait_until_current()  # with what other servers have taken before they heard of the end
            if not self._is_going(definition, uid):
                raise _LetGo(definition)
            await self._delete_each([each for each in objects.names() if each not in asked], objects, asked)
            if not objects.count():
                return
            if looks == _PATIENCE:
                text = "could not confirm zero CustomResources remaining: timed out waiting for the condition"
                await self._tell(definition, uid, "True", "InstanceDeletionCheck", text)
            await asyncio.sleep(_LOOKS[min(looks, len(_LOOKS) - 1)])
            looks += 1

    async def _delete_each(
        self, names: Sequence[tuple[str, str]], objects: Objects, asked: set[tuple[str, str]]
    ) -> None:
        async for namespace, name in time_sliced(names):  # deleting what is deleted already waits for nothing
            try:
                await objects.delete(loopback(namespace, name), name)
            except StatusError as error:
                if error.code != 404:
                    raise
            asked.add((namespace, name))


def _failed(name: str, error: Exception) -> None:
    logger.error("the definition %s cannot be served yet", name, exc_info=error)


class _LetGo(Exception):
    """A definition is gone: another server has been first."""


def _check(found: CustomResourceDefinition, uid: str) -> None:
    """Raises _LetGo for another definition of the same name."""
    if found.metadata.uid != uid:
        raise _LetGo(found.metadata.name)


def _versions(definition: Declared) -> frozenset[str]:
    """Those in which it is to be served."""
    return frozenset(each.name for each in definition.spec.versions if each.served)


def _cool_later(versions: Versions) -> None:
    asyncio.get_running_loop().call_later(_COOLING, versions.cool)
