"""Deletes what is in namespaces that are being deleted (pkg/controller/namespace)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from steersman.api.core.v1 import Namespace, NamespaceCondition, NamespaceSpec, Pod
from steersman.api.meta.v1 import DeleteOptions, PartialObjectMetadata
from steersman.client.api_resource import APIResource
from steersman.client.backoff import Backoff
from steersman.client.discovery import Discovered, Served, preferred_resources
from steersman.client.errors import is_conflict, is_not_found
from steersman.client.resources import NAMESPACES, PODS
from steersman.controllers.controller import Controller, Surroundings
from steersman.machinery.codec.serializer import deep_copy
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times

FINALIZER = "kubernetes"
_BACKGROUND = DeleteOptions(propagation_policy="Background")
_PODS_AT_ONCE = 100
"""Read in one piece: some milliseconds' work."""
_MOST_OBJECTS = 100_000
"""Of one resource that are looked at at a time: a server behind this one may never come to an end."""
_ESTIMATE_OF_FINALIZERS = 15
"""Seconds that finalizers are given."""
_FIRST_PAUSE = 0.1
"""Seconds after which a namespace is looked at again in which something was left; they double until they are what
upstream waits, which is half of what is estimated."""
_GOOD = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    ("NamespaceDeletionContentFailure", "ContentDeleted",
     "All content successfully deleted, may be waiting on finalization"),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)  # fmt: skip
"""The conditions, and what they say when nothing is wrong."""


class NamespaceController(Controller[str]):
    """A key is a namespace's name. Its pods go first; it goes when nothing is left in it."""

    name = "namespace-controller"
    account = "namespace-controller"
    workers = 10

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self._grace = given.settings.namespace_deletion_grace
        self._namespaces = self.informers.of(NAMESPACES)
        self._namespaces.on_change(self._changed)
        self._pods = self.informers.of(PODS)
        self._pods.on_change(self._pod_changed)
        self._pauses: dict[str, Backoff] = {}

    def _changed(self, _: Namespace | None, new: Namespace | None) -> None:
        if new is not None and new.metadata.deletion_timestamp:
            self.queue.add_after(new.metadata.name, self._grace)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """The rest of a namespace follows its last pod at once."""
        if new is None and old is not None and not self._pods.list(old.metadata.namespace):
            namespace = self._namespaces.get("", old.metadata.namespace)
            if namespace is not None and namespace.metadata.deletion_timestamp:
                self.queue.add(namespace.metadata.name)

    async def sync(self, key: str) -> None:
        namespace = await self._current(key)
        if namespace is None or not namespace.metadata.deletion_timestamp:
            self._pauses.pop(key, None)
            return
        if namespace.status.phase != "Terminating":
            namespace.status.phase = "Terminating"
            namespace = await self.client.update_status(NAMESPACES, namespace)
        if not namespace.spec.finalizers:
            return
        found = await self._delete_content(namespace)
        await self._tell(namespace, found)
        if found.estimate:
            longest = found.estimate / 2 + 1
            self.queue.add_after(key, min(self._pauses.setdefault(key, Backoff(_FIRST_PAUSE, longest)).next(), longest))
        elif found.errors:
            raise found.errors[0]
        else:
            self._pauses.pop(key, None)
            await self._finalize(key, namespace.metadata.uid)

    async def _current(self, name: str) -> Namespace | None:
        if self._namespaces.get("", name) is None:
            return None
        try:
            return await self.client.get(NAMESPACES, name)
        except StatusError as error:
            if is_not_found(error):
                return None
            raise

    async def _delete_content(self, namespace: Namespace) -> _Found:
        found = _Found()
        discovered = await self._discovered(found)
        deletable = [each for each in discovered.served if each.resource.namespaced and "delete" in each.verbs]
        pods = [each for each in deletable if each.resource == PODS.metadata_only]
        for some in (pods, [each for each in deletable if each not in pods]):
            for each in some:
                await self._delete_all(each, namespace, found)
            if found.remaining:
                break  # pods may need what is around them until they have ended
        return found

    async def _discovered(self, found: _Found) -> Discovered:
        try:
            discovered = await preferred_resources(self.client)
        except StatusError as error:
            found.discovery = str(error)
            found.errors.append(error)
            return Discovered(())
        if discovered.failed:
            stale = ", ".join(f"{each}: stale GroupVersion discovery: {each}" for each in discovered.failed)
            found.discovery = (
                f"Discovery failed for some groups, {len(discovered.failed)} failing: "
                f"unable to retrieve the complete list of server APIs: {stale}"
            )
            found.errors.append(StatusError(503, "ServiceUnavailable", found.discovery))
        return discovered

    async def _delete_all(self, each: Served, namespace: Namespace, found: _Found) -> None:
        """Deletes the objects of a resource, and looks what is left."""
        resource, name = each.resource, namespace.metadata.name
        estimate = await self._longest_grace(namespace) if resource == PODS.metadata_only else 0
        try:
            left = await self._left(each, name)
            if left and "deletecollection" in each.verbs:
                await self.client.delete_collection(resource, name, options=_BACKGROUND)
            elif left:
                await self._delete_each(resource, name, left)
            if left:
                left = await self._left(each, name)
        except StatusError as error:
            if error.code not in (404, 405):
                found.failed(error, estimate)
            return
        if left:
            finalizers = Counter(name for obj in left for name in obj.metadata.finalizers)
            found.remain(resource, name, len(left), finalizers, estimate)

    async def _left(self, each: Served, namespace: str) -> list[PartialObjectMetadata]:
        if "list" not in each.verbs:
            return []
        found: list[PartialObjectMetadata] = []
        async for obj in self.client.each(each.resource, namespace):
            found.append(obj)
            if len(found) == _MOST_OBJECTS:
                break
        return found

    async def _delete_each(
        self, resource: APIResource[PartialObjectMetadata], namespace: str, objects: list[PartialObjectMetadata]
    ) -> None:
        for obj in objects:
            try:
                await self.client.delete(resource, obj.metadata.name, namespace, _BACKGROUND)
            except StatusError as error:
                if error.code not in (404, 405):
                    raise

    async def _longest_grace(self, namespace: Namespace) -> int:
        """Seconds that pods may take to end; 0 once they should have."""
        longest = 0
        async for pod in self.client.each(PODS, namespace.metadata.name, page=_PODS_AT_ONCE):
            if pod.status.phase not in ("Succeeded", "Failed"):
                longest = max(longest, pod.spec.termination_grace_period_seconds or 0)
        deleted = times.unix(namespace.metadata.deletion_timestamp or times.now())
        return longest if times.unix(times.now()) - deleted < longest else 0

    async def _tell(self, namespace: Namespace, found: _Found) -> None:
        """Writes the conditions, if they have changed."""
        changed = deep_copy(namespace)
        if found.change(changed.status.conditions):
            await self.client.update_status(NAMESPACES, changed)

    async def _finalize(self, name: str, uid: str) -> None:
        while True:
            namespace = await self._current(name)
            if namespace is None or namespace.metadata.uid != uid:
                return
            left = [each for each in namespace.spec.finalizers if each != FINALIZER]
            try:
                await self.client.update(
                    NAMESPACES, Namespace(metadata=namespace.metadata, spec=NamespaceSpec(finalizers=sorted(left))),
                    "finalize",
                )  # fmt: skip
            except StatusError as error:
                if is_conflict(error):
                    continue
                if not is_not_found(error):
                    raise
            return


@dataclass(slots=True)
class _Found:
    """What is left of a namespace, and why."""

    estimate: int = 0
    """Seconds until it may be gone."""
    discovery: str = ""
    errors: list[StatusError] = field(default_factory=list)
    contents: list[str] = field(default_factory=list)
    remaining: dict[str, int] = field(default_factory=dict)
    finalizers: Counter[str] = field(default_factory=Counter)

    def failed(self, error: StatusError, estimate: int) -> None:
        self.errors.append(error)
        self.contents.append(str(error))
        self.estimate = max(self.estimate, estimate)

    def remain(
        self, resource: APIResource[PartialObjectMetadata], namespace: str, number: int, finalizers: Counter[str],
        estimate: int,
    ) -> None:  # fmt: skip
        self.remaining[f"{resource.plural}.{resource.group}"] = number
        self.finalizers += finalizers
        if not estimate and finalizers:
            estimate = _ESTIMATE_OF_FINALIZERS
        elif not estimate:
            text = (
                f"unexpected items still remain in namespace: {namespace} for gvr: "
                f"{resource.group or ''}/{resource.version}, Resource={resource.plural}"
            )
            self.failed(StatusError(500, "InternalError", text), 0)
        self.estimate = max(self.estimate, estimate)

    def change(self, conditions: list[NamespaceCondition]) -> bool:
        """Makes conditions say how it is; whether any has changed."""
        wrong = self._wrong()
        changed = False
        for type_, reason, message in _GOOD:
            status, reason, message = ("True", *wrong[type_]) if type_ in wrong else ("False", reason, message)
            condition = next((each for each in conditions if each.type == type_), None)
            if condition is None:
                conditions.append(NamespaceCondition(
                    type=type_, status=status, last_transition_time=times.now(), reason=reason, message=message
                ))  # fmt: skip
                changed = True
            elif (condition.status, condition.reason, condition.message) != (status, reason, message):
                if condition.status != status:
                    condition.last_transition_time = times.now()
                condition.status, condition.reason, condition.message = status, reason, message
                changed = True
        return changed

    def _wrong(self) -> dict[str, tuple[str, str]]:
        wrong: dict[str, tuple[str, str]] = {}
        if self.discovery:
            wrong["NamespaceDeletionDiscoveryFailure"] = "DiscoveryFailed", self.discovery
        if self.contents:
            text = ", ".join(sorted(self.contents))
            wrong["NamespaceDeletionContentFailure"] = (
                "ContentDeletionFailed", f"Failed to delete all resource types, {len(self.contents)} remaining: {text}"
            )  # fmt: skip
        if self.remaining:
            texts = sorted(f"{resource} has {number} resource instances" for resource, number in self.remaining.items())
            wrong["NamespaceContentRemaining"] = (
                "SomeResourcesRemain", f"Some resources are remaining: {', '.join(texts)}"
            )  # fmt: skip
        if self.finalizers:
            texts = sorted(f"{name} in {number} resource instances" for name, number in self.finalizers.items())
            wrong["NamespaceFinalizersRemaining"] = (
                "SomeFinalizersRemain",
                f"Some content in the namespace has finalizers remaining: {', '.join(texts)}",
            )  # fmt: skip
        return wrong
