"""Current files of a container: those of its volumes, with the changes by its own command and by others."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from steersman.api.core.v1 import ContainerStatus, Pod
from steersman.client.client import Client
from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.machinery.values import times
from steersman.nodes.behaviour import unknown_programs
from steersman.nodes.container.probes import DueCommand
from steersman.nodes.containers import ContainerFiles, Containers
from steersman.nodes.contents import changes_files
from steersman.nodes.context import EMPTY_RECORD, POST_START, CommandResult, exact_time
from steersman.nodes.initial_world import initial_world, offloaded_command_of
from steersman.nodes.processes import processes_of
from steersman.nodes.rehearsal import attempt, rehearsed
from steersman.nodes.shares import Slices
from steersman.nodes.shell.effects import Memory, World

_FRESH: Final = 60.0
"""Seconds for which probes and hooks reuse the environment that was read for the last one."""
_ENTRY_SIZE: Final = 100
"""Bytes of a name and a value with their entry in a dict, besides their characters."""
_MOST_STEPS: Final = 2000
"""Steps of a container's command that are followed at once for its changes of files."""


async def current_world(
    client: Client,
    containers: Containers,
    pod: Pod,
    container: AnyContainer,
    status: ContainerStatus,
    *,
    container_id: str = "",
    own_use: bool = False,
    allocatable: Mapping[str, str] = MappingProxyType({}),
) -> World:
    """Return the environment of a command in a container, whose files the command may change.

    `allocatable` are the resources of its node. For a kubelet's `own_use` (probes, hooks) there are no tokens, and the
    environment may be a minute old. Raises Unreachable.
    """
    name = container_id or status.container_id
    files_of_container, shared = containers.files_of(name), containers.contents.get(pod)
    start = None if shared is None else shared.known_start(name)
    variables = {} if start is None else start.variables
    world = await _initial_world(client, files_of_container, pod, container, allocatable, variables, own_use=own_use)
    world.processes = processes_of(pod, container)
    before = files_of_container.volume_files
    read = {path: before[path] if before.get(path) == data else data for path, data in world.files.items()}
    files_of_container.files |= {path: data for path, data in read.items() if before.get(path) is not data}
    if own_use:
        files_of_container.volume_files = {**before, **read}
    else:
        for path in before.keys() - read.keys():
            files_of_container.files.pop(path, None)
        files_of_container.volume_files = read
        files_of_container.cached_world = None  # older than this
    world.files = read
    containers.count_volume_files(name, _size(world, files_of_container.volume_files))
    running = status.state.running
    if shared is not None:
        await shared.run_due(times.unix_now())
        files_of_container.view = shared.view(container, files_of_container.files)
    if (
        running is not None
        and not container.stdin
        and changes_files(container)
        and not (shared is not None and shared.is_followed(name))
    ):
        known = containers.records(pod.metadata.uid).get(container.name, EMPTY_RECORD)
        started_at = exact_time(running.started_at, known.started_at)
        await _follow(files_of_container, containers, pod, container, world, started_at)
    return _copy(world, files_of_container, memory=containers.shares.for_namespace(pod.metadata.namespace))


async def _initial_world(
    client: Client,
    files_of_container: ContainerFiles,
    pod: Pod,
    container: AnyContainer,
    allocatable: Mapping[str, str],
    file_variables: Mapping[str, str],
    *,
    own_use: bool,
) -> World:
    now = times.unix_now()
    if own_use and files_of_container.cached_world is not None and now - files_of_container.cached_world[0] < _FRESH:
        return files_of_container.cached_world[1]
    world = await initial_world(
        client, pod, container, allocatable=allocatable, file_variables=file_variables, tokens=not own_use
    )
    if own_use:
        files_of_container.cached_world = now, world
    return world


def _size(world: World, volume_files: Mapping[str, bytes]) -> int:
    """Return about how many bytes the variables of a container and the files of its volumes take."""
    variables = sum(map(len, world.environment)) + sum(map(len, world.environment.values()))
    files = sum(map(len, volume_files)) + sum(map(len, volume_files.values()))
    return variables + files + _ENTRY_SIZE * (2 * len(world.environment) + len(volume_files))


def _copy(world: World, files_of_container: ContainerFiles, *, memory: Memory) -> World:
    files = files_of_container.files if files_of_container.view is None else files_of_container.view
    return world.copy(
        environment=dict(world.environment),
        now=times.unix_now,
        files=files,
        memory=memory,
        modes=ChainMap(files_of_container.modes, world.modes),
    )


async def _follow(
    files_of_container: ContainerFiles,
    containers: Containers,
    pod: Pod,
    container: AnyContainer,
    world: World,
    started: float,
) -> None:
    """Run the container's own command up to now, so that its changes of files are there."""
    now = times.unix_now()
    share = containers.shares.for_namespace(pod.metadata.namespace)
    slices = Slices(share)
    if files_of_container.rehearsal is None:
        words = await offloaded_command_of(container, world.environment)
        own = _copy(world, files_of_container, memory=share)
        unknown = unknown_programs(pod, container, containers.contents.unknown_programs_of(pod))
        files_of_container.rehearsal = rehearsed(words, own, started, now, unknown)
        files_of_container.next_output = started
    for _ in range(_MOST_STEPS):
        at = files_of_container.next_output
        if at is None or (at if isinstance(at, float) else at.at) > now:
            return
        await slices.begin()
        try:
            files_of_container.next_output = next(files_of_container.rehearsal, None)
        finally:
            slices.end()


async def run_command(client: Client, containers: Containers, pod: Pod, command: DueCommand) -> CommandResult:
    """Run a command of a probe or a hook and return its result. Raises Unreachable."""
    world = await current_world(
        client, containers, pod, command.container, command.status, container_id=command.container_id, own_use=True
    )
    done = attempt(command.words, world)
    containers.count_written(pod, command.container_id)
    if done.signal is not None and command.kind != POST_START:
        containers.end(pod, command.status, 128 + done.signal, times.unix_now())
    return CommandResult(command.container_id, command.number, done.seconds, done.exit_code, done.output, done.errors)
