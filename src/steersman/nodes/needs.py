"""ConfigMaps and Secrets that a pod needs before it starts, for its volumes and its variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from steersman.api.core.v1 import Pod
from steersman.client.informer import Key, key_of
from steersman.machinery.built_in.pod_resources import AnyContainer, all_containers
from steersman.machinery.built_in.pod_state import is_active
from steersman.machinery.values import times
from steersman.nodes.container_status import all_statuses
from steersman.nodes.context import PodEvent
from steersman.nodes.mounting import FailedSetup, set_up_volumes
from steersman.nodes.references import (
    SECRET,
    Find,
    Source,
    config_error,
    missing_pull_secrets,
    missing_sources,
    sources_of,
)
from steersman.nodes.sources import Sources
from steersman.nodes.unsimulated import REASON

_PATIENCE: Final = 5.0
"""Seconds after a pod's start until an event says that perhaps nobody will create what it waits for."""
_MOST_LISTED: Final = 4
"""Names and keys in that event."""


class NeedsState(NamedTuple):
    """State of a pod's needs. `mounted` is True if its volumes are set up."""

    mounted: bool
    config_error: Callable[[AnyContainer], str]
    """Returns the error in a container's variables; "" for none."""
    events: Sequence[PodEvent]
    next_sync: float | None
    """Time of the next check, in seconds since 1970."""


class Needs:
    """Checks of the ConfigMaps and Secrets that pods need: `start`, then `await stop()`."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._failed: dict[Key, dict[str, FailedSetup]] = {}
        """Failed set-ups of volumes, by pod and volume name."""
        self._advised: set[str] = set()
        """UIDs of pods with an event about what they wait for."""

    async def start(self, wake: Callable[[Key], None]) -> None:
        """Start to follow ConfigMaps and Secrets.

        `wake` is called with a pod when something that it waits for has come.
        """
        await self._sources.start(wake)

    async def stop(self) -> None:
        """Stop following."""
        await self._sources.stop()

    def forget(self, pod: Pod) -> None:
        """Forget a pod that is deleted."""
        self._failed.pop(key_of(pod), None)
        self._advised.discard(pod.metadata.uid)
        self._sources.wait_for(key_of(pod), ())

    async def check(self, pod: Pod) -> NeedsState:
        """Check the needs of a pod and remember what it waits for. Raises StatusError, Unreachable."""
        namespace, key = pod.metadata.namespace, key_of(pod)
        if not _is_to_start(pod):
            return NeedsState(True, partial(self._config_error, namespace), (), None)
        find = await self._sources.finder(pod)
        wrong = partial(config_error, namespace=namespace, find=find)
        if pod.status.pod_ip:  # its volumes were set up before
            waits = any(map(wrong, all_containers(pod.spec)))
            self._wait(pod, waits=waits)
            return NeedsState(True, wrong, self._advice(pod, find) if waits else (), None)
        state = set_up_volumes(pod, self._failed.get(key, {}), find, times.unix_now())
        events = list(state.events)
        if missing := missing_pull_secrets(pod, find):
            text = (
                f"Unable to retrieve some image pull secrets ({', '.join(missing)}); attempting to pull the image may "
                "not succeed."
            )
            events.append(PodEvent("Warning", "FailedToRetrieveImagePullSecret", text))
        if state.failed:
            self._failed[key] = state.failed
        else:
            self._failed.pop(key, None)
        waits = bool(state.failed) or any(map(wrong, all_containers(pod.spec)))
        self._wait(pod, waits=waits)
        if waits:
            events += self._advice(pod, find)
        return NeedsState(not state.failed, wrong, events, state.next_sync)

    def _advice(self, pod: Pod, find: Find) -> Sequence[PodEvent]:
        """Return, once for each pod, an event about what it still waits for after a while, with advice."""
        started, uid = pod.status.start_time, pod.metadata.uid
        if not started or uid in self._advised or times.unix_now() < times.unix(started) + _PATIENCE:
            return ()
        missing = missing_sources(pod, find)
        if not missing:
            return ()
        self._advised.add(uid)
        return (PodEvent("Warning", REASON, _advice_about(missing, pod.metadata.namespace)),)

    def _wait(self, pod: Pod, *, waits: bool) -> None:
        self._sources.wait_for(key_of(pod), sources_of(pod) if waits else ())

    def _config_error(self, namespace: str, container: AnyContainer) -> str:
        return config_error(container, namespace, partial(self._sources.keys, namespace))


def _advice_about(missing: Mapping[Source, set[str]], namespace: str) -> str:
    first, keys = next(iter(missing.items()))
    names = ", ".join(f'{each.kind.lower()} "{each.name}"' for each in [*missing][:_MOST_LISTED])
    kind = "secret generic" if first.kind == SECRET else "configmap"
    values = "".join(f" --from-literal={key}=..." for key in sorted(keys)[:_MOST_LISTED])
    return (
        f"not there: {names}. Programs that are not simulated, such as operators, cert-manager and Jobs of charts, "
        f"make none: what one of them is to make, make yourself (kubectl create {kind} {first.name} "
        f"--namespace={namespace}{values}), and the pod goes on"
    )


def _is_to_start(pod: Pod) -> bool:
    """Return True if a pod has a container that does not run and may still have to start."""
    if not is_active(pod):
        return False
    return not pod.status.pod_ip or any(each.state.running is None for each in all_statuses(pod.status))
