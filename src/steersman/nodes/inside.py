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
from steersman.nodes.container.probes import Wanted
from steersman.nodes.containers import Containers, Inside
from steersman.nodes.contents import changes_files
from steersman.nodes.place import NOTHING, POST_START, Ran, moment_of
from steersman.nodes.processes import processes_of
from steersman.nodes.rehearsal import attempt, rehearsed
from steersman.nodes.shares import Slices
from steersman.nodes.shell.effects import Memory, World
from steersman.nodes.surroundings import command_of, surroundings

_FRESH: Final = 60.0
"""Seconds for which probes and hooks reuse the environment that was read for the last one."""
_ENTRY: Final = 100
"""Bytes of a name and a value with their place in a dict, besides their characters."""
_MOST_TURNS: Final = 2000
"""Steps of a container's command that are followed at once for its changes of files."""


async def world_in(
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
    inside, shared = containers.inside(name), containers.contents.known(pod)
    start = None if shared is None else shared.known_start(name)
    variables = {} if start is None else start.variables
    world = await _around(client, inside, pod, container, allocatable, variables, own_use=own_use)
    world.processes = processes_of(pod, container)
    before = inside.given
    given = {path: before[path] if before.get(path) == data else data for path, data in world.files.items()}
    inside.files |= {path: data for path, data in given.items() if before.get(path) is not data}
    if own_use:
        inside.given = {**before, **given}
    else:
        for path in before.keys() - given.keys():
            inside.files.pop(path, None)
        inside.given = given
        inside.around = None  # older than this
    world.files = given
    containers.keep_given(name, _size(world, inside.given))
    running = status.state.running
    if shared is not None:
        await shared.go_on(times.unix_now())
        inside.view = shared.view(container, inside.files)
    if (
        running is not None
        and not container.stdin
        and changes_files(container)
        and not (shared is not None and shared.is_followed(name))
    ):
        known = containers.memory(pod.metadata.uid).get(container.name, NOTHING)
        began = moment_of(running.started_at, known.began)
        await _follow(inside, containers, pod, container, world, began)
    return _copy(world, inside, memory=containers.shares.of(pod.metadata.namespace))


async def _around(
    client: Client,
    inside: Inside,
    pod: Pod,
    container: AnyContainer,
    allocatable: Mapping[str, str],
    of_files: Mapping[str, str],
    *,
    own_use: bool,
) -> World:
    now = times.unix_now()
    if own_use and inside.around is not None and now - inside.around[0] < _FRESH:
        return inside.around[1]
    world = await surroundings(client, pod, container, allocatable=allocatable, of_files=of_files, tokens=not own_use)
    if own_use:
        inside.around = now, world
    return world


def _size(world: World, given: Mapping[str, bytes]) -> int:
    """Return about how many bytes the variables of a container and the files of its volumes take."""
    variables = sum(map(len, world.environment)) + sum(map(len, world.environment.values()))
    files = sum(map(len, given)) + sum(map(len, given.values()))
    return variables + files + _ENTRY * (2 * len(world.environment) + len(given))


def _copy(world: World, inside: Inside, *, memory: Memory) -> World:
    files = inside.files if inside.view is None else inside.view
    return world.copy(
        environment=dict(world.environment),
        now=times.unix_now,
        files=files,
        memory=memory,
        modes=ChainMap(inside.modes, world.modes),
    )


async def _follow(
    inside: Inside, containers: Containers, pod: Pod, container: AnyContainer, world: World, started: float
) -> None:
    """Run the container's own command up to now, so that its changes of files are there."""
    now = times.unix_now()
    share = containers.shares.of(pod.metadata.namespace)
    slices = Slices(share)
    if inside.course is None:
        words = command_of(container, world.environment)
        own = _copy(world, inside, memory=share)
        unknown = unknown_programs(pod, container, containers.contents.unknown_of(pod))
        inside.course = rehearsed(words, own, started, now, unknown)
        inside.next = started
    for _ in range(_MOST_TURNS):
        at = inside.next
        if at is None or (at if isinstance(at, float) else at.at) > now:
            return
        await slices.begin()
        try:
            inside.next = next(inside.course, None)
        finally:
            slices.end()


async def ran(client: Client, containers: Containers, pod: Pod, wanted: Wanted) -> Ran:
    """Run a command of a probe or a hook and return its result. Raises Unreachable."""
    world = await world_in(
        client, containers, pod, wanted.container, wanted.status, container_id=wanted.container_id, own_use=True
    )
    done = attempt(wanted.words, world)
    containers.has_written(pod, wanted.container_id)
    if done.signal is not None and wanted.kind != POST_START:
        containers.end(pod, wanted.status, 128 + done.signal, times.unix_now())
    return Ran(wanted.container_id, wanted.number, done.seconds, done.exit_code, done.output, done.errors)
