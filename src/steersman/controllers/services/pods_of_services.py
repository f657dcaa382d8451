"""Common base of the controllers of Endpoints and EndpointSlices: the pods of each Service, processed incrementally."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, Generic, TypeVar

from steersman.api.core.v1 import Pod, Service
from steersman.client.indexes import BY_LABEL, by_label, with_labels
from steersman.client.informer import Key, key_of, new_or_old
from steersman.client.resources import PODS, SERVICES
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.services.selecting import add_selector_index, affected_services, selects
from steersman.controllers.services.trigger_times import TriggerTimes
from steersman.work.yielding import TimeSlice

_DELAY_PER_POD: Final = 200e-6
"""Seconds for each pod of a Service that a reconciliation is delayed after a change of a pod.

So a Service with many pods is not written for each single change.
"""
_MAX_DELAY: Final = 0.5


class PodsOfService(ABC):
    """State of a Service's pods; `service` is the Service they were processed for."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.trigger_times = TriggerTimes()
        self.members: set[str] = set()
        """Names of the selected pods."""
        self.changed: dict[str, None] = {}
        """Names of pods to process, in the order of their changes."""

    @abstractmethod
    def put(self, pod: Pod) -> None:
        """Add or update a selected pod."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a pod that is no longer selected."""


S = TypeVar("S", bound=PodsOfService)


class PodsOfServicesController(Controller[Key], Generic[S]):
    """Tracks the pods of Services. A key is the namespace and name of a Service; subclasses write the results."""

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self.states: dict[Key, S] = {}
        self.services = self.informers.for_resource(SERVICES)
        self.pods = self.informers.for_resource(PODS)
        add_selector_index(self.services)
        self.pods.add_index(BY_LABEL, by_label)
        self.services.on_change(self._service_changed)
        self.pods.on_change(self._pod_changed)

    @abstractmethod
    def new_state(self, service: Service) -> S:
        """Return the initial state of a Service."""

    @abstractmethod
    async def service_deleted(self, key: Key) -> None:
        """Clean up after a deleted Service."""

    @abstractmethod
    async def write(self, key: Key, state: S) -> None:
        """Write the objects that follow from the pods of a Service. Raises what `sync` raises."""

    def _service_changed(self, old: Service | None, new: Service | None) -> None:
        self.queue.add(key_of(new_or_old(old, new)))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        one = new_or_old(old, new)
        for key in affected_services(self.services, old, new):
            self.enqueue_pod(key, one.metadata.name)

    def enqueue_pod(self, key: Key, pod: str) -> None:
        """Queue a pod of a Service with a short delay, as more of its pods may change."""
        state = self.states.get(key)
        if state is not None:
            state.changed[pod] = None
        self.queue.add_after(key, 0 if state is None else min(len(state.members) * _DELAY_PER_POD, _MAX_DELAY))

    async def sync(self, key: Key) -> None:
        service = self.services.get(*key)
        state = self.states.get(key)
        if service is None:
            self.states.pop(key, None)
            await self.service_deleted(key)
            return
        if service.spec.type == "ExternalName" or not service.spec.selector:
            self.states.pop(key, None)  # existing objects stay, because other clients may own them
            return
        if state is None:
            state = self.states[key] = self.new_state(service)
            self._mark_all_changed(state)
        elif state.service is not service:
            before, state.service = state.service, service
            if _differs(before, service):
                self._mark_all_changed(state)
        await self._process_changed(key, state)
        await self.write(key, state)

    def _mark_all_changed(self, state: S) -> None:
        service = state.service
        state.changed.update(dict.fromkeys(state.members))
        for pod in with_labels(self.pods, service.metadata.namespace, service.spec.selector):
            state.changed[pod.metadata.name] = None

    async def _process_changed(self, key: Key, state: S) -> None:
        """Process the changed pods. Pods that change meanwhile queue the key again."""
        service = state.service
        time_slice = TimeSlice()
        while state.changed:
            name = next(iter(state.changed))
            del state.changed[name]
            pod = self.pods.get(key[0], name)
            if pod is not None and selects(service, pod.metadata.labels):
                state.members.add(name)
                state.trigger_times.pod_changed(pod)
                state.put(pod)
            else:
                state.members.discard(name)
                state.trigger_times.pod_removed(name)
                state.remove(name)
            await time_slice.pause_if_over()


def _differs(old: Service, new: Service) -> bool:
    """Return True if a change of the Service affects the endpoints of its pods."""
    return (
        old.metadata.uid != new.metadata.uid
        or old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or old.metadata.annotations != new.metadata.annotations
    )
