"""What pods need of ConfigMaps and Secrets before something of them starts: files of their volumes, variables."""

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
from steersman.nodes.mounting import Tried, mount
from steersman.nodes.place import Happened
from steersman.nodes.references import (
    SECRET,
    Find,
    Source,
    missing_pull_secrets,
    missing_sources,
    sources_of,
    wrong_with,
)
from steersman.nodes.sources import Sources
from steersman.nodes.unsimulated import REASON

_PATIENCE: Final = 5.0
"""Seconds after a pod's start until it is told that nobody may make what it waits for."""
_MOST_TOLD: Final = 4
"""Names and keys that are told."""


class Needed(NamedTuple):
    """What a pod's needs come to now."""

    mounted: bool
    wrong_with: Callable[[AnyContainer], str]
    """Why the variables of a container cannot be made, "" if they can."""
    happened: Sequence[Happened]
    again: float | None
    """When to look again, in seconds since 1970."""


class Needs:
    """`start`, then `await stop()`."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._tried: dict[Key, dict[str, Tried]] = {}
        """Volumes of pods that could not be filled, by name."""
        self._told: set[str] = set()
        """UIDs of pods that were told that nobody may make what they wait for."""

    async def start(self, wake: Callable[[Key], None]) -> None:
        """Begins to follow what pods name; `wake` is called with one for which something has come."""
        await self._sources.start(wake)

    async def stop(self) -> None:
        """Ends."""
        await self._sources.stop()

    def forget(self, pod: Pod) -> None:
        """The pod is gone."""
        self._tried.pop(key_of(pod), None)
        self._told.discard(pod.metadata.uid)
        self._sources.wait_for(key_of(pod), ())

    async def look(self, pod: Pod) -> Needed:
        """Raises StatusError, Unreachable."""
        namespace, key = pod.metadata.namespace, key_of(pod)
        if not _is_to_start(pod):
            return Needed(True, partial(self._wrong_with, namespace), (), None)
        find = await self._sources.finder(pod)
        wrong = partial(wrong_with, namespace=namespace, find=find)
        if pod.status.pod_ip:  # its volumes were filled before
            waits = any(map(wrong, all_containers(pod.spec)))
            self._wait(pod, waits=waits)
            return Needed(True, wrong, self._advice(pod, find) if waits else (), None)
        found = mount(pod, self._tried.get(key, {}), find, times.moment())
        happened = list(found.happened)
        if missing := missing_pull_secrets(pod, find):
            text = (
                f"Unable to retrieve some image pull secrets ({', '.join(missing)}); attempting to pull the image may "
                "not succeed."
            )
            happened.append(Happened("Warning", "FailedToRetrieveImagePullSecret", text))
        if found.tried:
            self._tried[key] = found.tried
        else:
            self._tried.pop(key, None)
        waits = bool(found.tried) or any(map(wrong, all_containers(pod.spec)))
        self._wait(pod, waits=waits)
        if waits:
            happened += self._advice(pod, find)
        return Needed(not found.tried, wrong, happened, found.again)

    def _advice(self, pod: Pod, find: Find) -> Sequence[Happened]:
        """Tell once of what a pod has waited for in vain for a while, and of what can be done."""
        started, uid = pod.status.start_time, pod.metadata.uid
        if not started or uid in self._told or times.moment() < times.unix(started) + _PATIENCE:
            return ()
        missing = missing_sources(pod, find)
        if not missing:
            return ()
        self._told.add(uid)
        return (Happened("Warning", REASON, _advice_about(missing, pod.metadata.namespace)),)

    def _wait(self, pod: Pod, *, waits: bool) -> None:
        self._sources.wait_for(key_of(pod), sources_of(pod) if waits else ())

    def _wrong_with(self, namespace: str, container: AnyContainer) -> str:
        return wrong_with(container, namespace, partial(self._sources.keys, namespace))


def earliest(one: float | None, other: float | None) -> float | None:
    """The first of two times."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _advice_about(missing: Mapping[Source, set[str]], namespace: str) -> str:
    first, keys = next(iter(missing.items()))
    names = ", ".join(f'{each.kind.lower()} "{each.name}"' for each in [*missing][:_MOST_TOLD])
    kind = "secret generic" if first.kind == SECRET else "configmap"
    values = "".join(f" --from-literal={key}=..." for key in sorted(keys)[:_MOST_TOLD])
    return (
        f"not there: {names}. Programs that are not simulated, such as operators, cert-manager and Jobs of charts, "
        f"make none: what one of them is to make, make yourself (kubectl create {kind} {first.name} "
        f"--namespace={namespace}{values}), and the pod goes on"
    )


def _is_to_start(pod: Pod) -> bool:
    """Whether something of a pod does not run that may have to start."""
    if not is_active(pod):
        return False
    return not pod.status.pod_ip or any(each.state.running is None for each in all_statuses(pod.status))
