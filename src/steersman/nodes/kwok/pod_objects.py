"""Logs, Attach, Exec and PortForward objects of kwok, and their cluster-wide forms (kwok `pkg/kwok/server`).

They are read at each request. What kwok does on its host is bounded here: files are read in one configured folder,
commands run in the simulated container, and no program is started.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from steersman.api.core.v1 import Pod
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_not_found

GROUP: Final = "kwok.x-k8s.io"
VERSION: Final = "v1alpha1"

T = TypeVar("T", bound="ForContainers")


class Refused(Exception):
    """An object exists and does not allow what is asked for. The text is for the client."""


class ForContainers(msgspec.Struct, frozen=True, rename="camel"):
    """Entry of an object, for some containers or, without names, for all."""

    containers: tuple[str, ...] | None = None


class LogFile(ForContainers, frozen=True):
    """Files with the log of a container."""

    logs_file: str = ""
    previous_logs_file: str = ""


class Variable(msgspec.Struct, frozen=True):
    """Variable of the environment."""

    name: str = ""
    value: str = ""


class Local(msgspec.Struct, frozen=True, rename="camel"):
    """Environment of commands."""

    work_dir: str = ""
    envs: tuple[Variable, ...] | None = None


class ExecTarget(ForContainers, frozen=True):
    """Commands in a container."""

    local: Local | None = None


class Target(msgspec.Struct, frozen=True):
    """Address to which a port is forwarded."""

    address: str = ""
    port: int = 0


class Forward(msgspec.Struct, frozen=True):
    """Forwarding of ports, or of all ports."""

    ports: tuple[int, ...] | None = None
    target: Target | None = None
    command: tuple[str, ...] | None = None


class _Selector(msgspec.Struct, frozen=True, rename="camel"):
    match_namespaces: tuple[str, ...] | None = None
    match_names: tuple[str, ...] | None = None

    def selects(self, namespace: str, name: str) -> bool:
        return (not self.match_namespaces or namespace in self.match_namespaces) and (
            not self.match_names or name in self.match_names
        )


def selects(spec: Mapping[str, Any], namespace: str, name: str) -> bool:
    """Return True if the plain spec of a cluster-wide object selects a pod; an invalid selector selects none."""
    try:
        return msgspec.convert(spec.get("selector") or {}, _Selector).selects(namespace, name)
    except msgspec.ValidationError:
        return False


def for_container(parts: tuple[T, ...], container: str) -> T | None:
    """Return the entry that names a container, or the first one for all containers; None without one."""
    named = next((each for each in parts if container in (each.containers or ())), None)
    return named or next((each for each in parts if not each.containers), None)


class PodObjects:
    """Reader of the objects. `folder` is the folder whose files Logs and Attach objects may name, None for no files."""

    def __init__(self, client: Client, folder: Path | None) -> None:
        self._client = client
        self._folder = folder

    async def log_file(self, pod: Pod, container: str, *, previous: bool) -> Path | None:
        """Return the file with a container's log; None if no object is about it. Raises Refused."""
        found = await self._for_container("Logs", "logs", "logs", pod, container, LogFile)
        return None if found is None else self._file(found.previous_logs_file if previous else found.logs_file)

    async def attached_file(self, pod: Pod, container: str) -> Path | None:
        """Return the file that `kubectl attach` shows; None if no object is about the container. Raises Refused."""
        found = await self._for_container("Attach", "attaches", "attaches", pod, container, LogFile)
        return None if found is None else self._file(found.logs_file)

    async def local(self, pod: Pod, container: str) -> Local | None:
        """Return the environment of commands; None if no object is about the container. Raises Refused."""
        found = await self._for_container("Exec", "execs", "execs", pod, container, ExecTarget)
        if found is not None and found.local is None:
            raise Refused("not set local exec")
        return None if found is None else found.local

    async def target(self, pod: Pod, port: int) -> Target | None:
        """Return the address to which a port is forwarded; None if no object is about it. Raises Refused."""
        for spec, is_own in await self._specs("PortForward", "portforwards", pod):
            found = None
            for each in _parts(spec, "forwards", Forward):
                if port in (each.ports or ()):
                    found = each
                    break
                if not each.ports and found is None:
                    found = each
            if found is not None:
                if found.command:
                    raise Refused("commands of PortForward objects are not run")
                if found.target is None:
                    raise Refused("no target or command for port forwarding")
                target: Target = found.target
                return target
            if is_own:
                raise Refused(f"no port forward found for port {port} in pod {_shown(pod)}")
        return None

    async def _for_container(
        self, kind: str, plural: str, member: str, pod: Pod, container: str, part: type[T]
    ) -> T | None:
        for spec, is_own in await self._specs(kind, plural, pod):
            found: T | None = for_container(_parts(spec, member, part), container)
            if found is not None:
                return found
            if is_own:
                raise Refused(f'{member} target not found for container "{container}" in pod {_shown(pod)}')
        return None

    async def _specs(self, kind: str, plural: str, pod: Pod) -> list[tuple[Mapping[str, Any], bool]]:
        """Return the spec of the pod's own object and True; without one, those of the cluster-wide objects for it."""
        namespace, name = pod.metadata.namespace, pod.metadata.name
        own: APIResource[dict[str, Any]] = APIResource(GROUP, VERSION, plural, kind, dict)
        found = await self._client.find(own, name, namespace)
        if found is not None:
            return [(found.get("spec") or {}, True)]
        plural, kind = f"cluster{plural}", f"Cluster{kind}"
        others: APIResource[dict[str, Any]] = APIResource(GROUP, VERSION, plural, kind, dict, namespaced=False)
        with ignoring(is_not_found):
            specs = [each.get("spec") or {} for each in (await self._client.list(others)).items]
            return [(each, False) for each in specs if selects(each, namespace, name)]
        return []

    def _file(self, name: str) -> Path:
        """Return the file of a name in the folder of logs. Raises Refused."""
        if not name:
            raise Refused("no file is set")
        if self._folder is None:
            raise Refused("the configuration of the cluster names no folder of log files (logFiles)")
        folder = self._folder.resolve()
        found = (folder / name.lstrip("/")).resolve()
        if not found.is_relative_to(folder) or "\0" in name:
            raise Refused(f"failed to open log file {name!r}: it is not in the folder of log files")
        return found


def _parts(spec: Mapping[str, Any], member: str, part: Any) -> tuple[Any, ...]:
    """Return the entries of a plain spec. Raises Refused for an object that somebody's own definition has let through."""
    try:
        return tuple(msgspec.convert(each, part) for each in spec.get(member) or ())
    except (msgspec.ValidationError, TypeError) as error:
        raise Refused(f"spec.{member}: {error}") from None


def _shown(pod: Pod) -> str:
    return f'"{pod.metadata.namespace}/{pod.metadata.name}"'
