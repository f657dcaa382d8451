"""Trigger times for the annotation `endpoints.kubernetes.io/last-change-trigger-time`.

Follows k8s.io/endpointslice TriggerTimeTracker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from steersman.api.core.v1 import Pod, Service
from steersman.machinery.values.conditions import find_condition

ANNOTATION: Final = "endpoints.kubernetes.io/last-change-trigger-time"


class TriggerTimes:
    """Trigger times of one Service. A time is a text as in objects, with seconds; "" for none."""

    def __init__(self) -> None:
        self._pods: dict[str, str] = {}
        self._service = ""
        self._earliest = ""
        self._is_known = False

    def pod_changed(self, pod: Pod) -> None:
        """Note a change of one of the Service's pods."""
        condition = find_condition(pod.status.conditions, "Ready")
        time = "" if condition is None else condition.last_transition_time or ""
        if not time:
            self._pods.pop(pod.metadata.name, None)
            return
        if time > self._pods.get(pod.metadata.name, ""):
            self._record_trigger(time)
        self._pods[pod.metadata.name] = time

    def pod_removed(self, pod: str) -> None:
        """Remove a pod that the Service no longer selects."""
        self._pods.pop(pod, None)

    def take_earliest(self, service: Service) -> str:
        """Return the earliest change since the last call; the first call returns the creation time of the Service."""
        created = service.metadata.creation_timestamp or ""
        if created > self._service:
            self._service = created
            self._record_trigger(created)
        earliest, self._earliest = self._earliest, ""
        if not self._is_known:
            self._is_known = True
            return created
        return earliest

    def _record_trigger(self, time: str) -> None:
        self._earliest = min(self._earliest or time, time)


def with_trigger_time(annotations: Mapping[str, str], time: str) -> dict[str, str]:
    """Return annotations with the trigger time, without the annotation if it is ""."""
    rest = {key: value for key, value in annotations.items() if key != ANNOTATION}
    return {**rest, ANNOTATION: time} if time else rest
