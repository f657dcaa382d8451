"""Controller of terminating namespaces: it deletes their content, then the namespaces themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator

from steersman.api.core.v1 import Namespace, NamespaceSpec, Pod
from steersman.api.meta.v1 import DeleteOptions, PartialObjectMetadata
from steersman.client.discovery import DiscoveredResource, DiscoveryResult, preferred_resources
from steersman.client.errors import is_conflict, is_not_found
from steersman.client.resources import NAMESPACES, PODS
from steersman.controllers.aggregated_servers import AggregatedServerLimit, AggregatedServers
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.namespaces.findings import Findings, RemainingObjects
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.codec.serializer import deep_copy
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.work.backoff import Backoff, Retries

FINALIZER = "kubernetes"
_BACKGROUND = DeleteOptions(propagation_policy="Background")
_PODS_AT_ONCE = 100
"""Pods of one page: decoding them takes some milliseconds."""
_PAGE = 500
MOST_PAGES = 200
"""Most pages of one resource in one reconciliation. A faulty aggregated server may never send the last page."""
_FIRST_PAUSE = 0.1
"""Seconds before the first retry for a namespace with remaining content.

The pause doubles up to upstream's pause, which is half of the estimated time.
"""


class NamespaceController(Controller[str]):
    """Deletes terminating namespaces: pods first, then other content, then the namespace. A key is the name of a
    namespace.
    """

    name = "namespace-controller"
    account = "namespace-controller"
    workers = 10
    longest_retry_delay = 60

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._grace = dependencies.settings.namespace_deletion_grace
        self._namespaces = self.informers.for_resource(NAMESPACES)
        self._namespaces.on_change(self._changed)
        self._pods = self.informers.for_resource(PODS)
        self._pods.on_change(self._pod_changed)
        self._aggregated_servers = AggregatedServers(self.informers)
        self._limit = AggregatedServerLimit(self._aggregated_servers, self.workers // 2)
        self._backoffs: dict[str, Retries] = {}

    def _changed(self, _: Namespace | None, new: Namespace | None) -> None:
        if new is not None and new.metadata.deletion_timestamp:
            self.queue.add_after(new.metadata.name, self._grace)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Queue a terminating namespace at once when its last pod is gone."""
        if new is None and old is not None and not self._pods.list(old.metadata.namespace):
            namespace = self._namespaces.get("", old.metadata.namespace)
            if namespace is not None and namespace.metadata.deletion_timestamp:
                self.queue.add(namespace.metadata.name)

    async def sync(self, key: str) -> None:
        namespace = await self._find_namespace(key)
        if namespace is None or not namespace.metadata.deletion_timestamp:
            self._backoffs.pop(key, None)
            return
        if namespace.status.phase != "Terminating":
            namespace.status.phase = "Terminating"
            namespace = await self.client.update_status(NAMESPACES, namespace)
        if not namespace.spec.finalizers:
            return
        remaining = await self._delete_content(namespace)
        await self._update_conditions(namespace, remaining)
        if remaining.estimate:
            longest = remaining.estimate / 2 + 1
            pauses = self._backoffs.setdefault(key, Retries(Backoff(_FIRST_PAUSE, longest, jitter=1.0)))
            self.queue.add_after(key, min(pauses.next(), longest))
        elif remaining.errors:
            raise remaining.errors[0]
        else:
            self._backoffs.pop(key, None)
            await self._finalize(key, namespace.metadata.uid)

    async def _find_namespace(self, name: str) -> Namespace | None:
        if self._namespaces.get("", name) is None:
            return None
        return await self.client.find(NAMESPACES, name)

    async def _delete_content(self, namespace: Namespace) -> Findings:
        findings = Findings()
        discovered = await self._discover(findings)
        deletable = [each for each in discovered.served if each.resource.namespaced and "delete" in each.verbs]
        pods = [each for each in deletable if each.resource == PODS.metadata_only]
        rest = [each for each in deletable if each not in pods]
        rest.sort(
            key=lambda each: self._aggregated_servers.serves(each.resource)
        )  # aggregated servers may be slow: they come last
        silent: set[str] = set()
        for some in (pods, rest):
            for each in some:
                if each.resource.api_version not in silent and await self._delete_all(each, namespace, findings) == 504:
                    silent.add(each.resource.api_version)
            if findings.remaining:
                break  # pods may need other objects of the namespace until they have ended
        return findings

    async def _discover(self, found: Findings) -> DiscoveryResult:
        try:
            discovered = await preferred_resources(self.client)
        except StatusError as error:
            found.discovery = str(error)
            found.errors.append(error)
            return DiscoveryResult(())
        if discovered.failed:
            stale = ", ".join(f"{each}: stale GroupVersion discovery: {each}" for each in discovered.failed)
            found.discovery = (
                f"Discovery failed for some groups, {len(discovered.failed)} failing: "
                f"unable to retrieve the complete list of server APIs: {stale}"
            )
            found.errors.append(StatusError(503, "ServiceUnavailable", found.discovery))
        return discovered

    async def _delete_all(self, each: DiscoveredResource, namespace: Namespace, found: Findings) -> int:
        """Delete the objects of a resource, and record in `found` what remains. Return the error code, 200 if all went
        well.
        """
        resource, name = each.resource, namespace.metadata.name
        estimate = await self._longest_grace(namespace) if resource == PODS.metadata_only else 0
        try:
            if (left := await self._remaining_objects(each, name)).number:
                if "deletecollection" in each.verbs:
                    async with self._limit.request(resource, name):
                        await self.client.delete_collection(resource, name, options=_BACKGROUND)
                else:
                    await self._delete_each(each, name)
                left = await self._remaining_objects(each, name)
        except StatusError as error:
            if error.code not in (404, 405):
                found.failed(error, estimate)
            return error.code
        if left.number:
            found.remain(resource, name, left, estimate)
        return 200

    async def _remaining_objects(self, each: DiscoveredResource, namespace: str) -> RemainingObjects:
        left = RemainingObjects()
        async for obj in self._objects(each, namespace):
            left.number += 1
            left.finalizers.update(obj.metadata.finalizers)
        return left

    async def _objects(self, each: DiscoveredResource, namespace: str) -> AsyncIterator[PartialObjectMetadata]:
        if "list" not in each.verbs:
            return
        token = ""
        for _ in range(MOST_PAGES):
            async with self._limit.request(each.resource, namespace):
                page = await self.client.list(each.resource, namespace, limit=_PAGE, continue_token=token)
            for obj in page.items:
                yield obj
            token = page.metadata.continue_
            if not token:
                return

    async def _delete_each(self, each: DiscoveredResource, namespace: str) -> None:
        async for obj in self._objects(each, namespace):
            try:
                async with self._limit.request(each.resource, namespace):
                    await self.client.delete(each.resource, obj.metadata.name, namespace, _BACKGROUND)
            except StatusError as error:
                if error.code not in (404, 405):
                    raise

    async def _longest_grace(self, namespace: Namespace) -> int:
        """Return the longest grace period of the pods in seconds, 0 once that time has passed since the namespace's
        deletion.
        """
        longest = 0
        async for pod in self.client.iterate(PODS, namespace.metadata.name, page=_PODS_AT_ONCE):
            if not is_terminal(pod):
                longest = max(longest, pod.spec.termination_grace_period_seconds or 0)
        deleted = times.unix(namespace.metadata.deletion_timestamp or times.now())
        return longest if times.unix(times.now()) - deleted < longest else 0

    async def _update_conditions(self, namespace: Namespace, found: Findings) -> None:
        """Update the conditions if they have changed."""
        changed = deep_copy(namespace)
        changed.status.conditions = found.updated_conditions(namespace.status.conditions)
        if changed.status.conditions != namespace.status.conditions:
            await self.client.update_status(NAMESPACES, changed)

    async def _finalize(self, name: str, uid: str) -> None:
        while True:
            namespace = await self._find_namespace(name)
            if namespace is None or namespace.metadata.uid != uid:
                return
            left = [each for each in namespace.spec.finalizers if each != FINALIZER]
            try:
                await self.client.update(
                    NAMESPACES,
                    Namespace(metadata=namespace.metadata, spec=NamespaceSpec(finalizers=sorted(left))),
                    "finalize",
                )
            except StatusError as error:
                if is_conflict(error):
                    continue
                if not is_not_found(error):
                    raise
            return
