"""Files that the containers of a pod share: snapshots from their starts, and the changes by their commands.

A command that changes or awaits shared files is followed between syncs (`FollowedCommand`). The files that a container finds are
recorded once, at its start, so that its log and its end stay consistent with them.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Final

from msgspec import Struct, field

from steersman.api.core.v1 import ContainerStatus, FileKeySelector, PersistentVolume, Pod, Volume
from steersman.client.informer import Key
from steersman.machinery.built_in.pod_resources import AnyContainer, all_containers
from steersman.machinery.errors.field import quote
from steersman.machinery.values import times
from steersman.machinery.values.quantity import nanos
from steersman.nodes.behaviour import unknown_programs
from steersman.nodes.container_status import all_statuses
from steersman.nodes.context import EMPTY_RECORD, CommandProgress, ContainerRecord, StartSnapshot, exact_time
from steersman.nodes.env_file import EnvFile, EnvFileError
from steersman.nodes.followed_command import FollowedCommand, run_in_order
from steersman.nodes.initial_world import command_of, plain_variables
from steersman.nodes.mounted_files import Mount, MountedFiles
from steersman.nodes.naming import hostname_of
from steersman.nodes.rehearsal import LONGEST, Printed, Unknown, rehearsed
from steersman.nodes.shares import Shares, Slices
from steersman.nodes.shell.effects import NoSpace, World, bytes_of_file
from steersman.nodes.variables import ArgumentsTooLong, expanded
from steersman.nodes.volume_places import SERVER, of_persistent, of_pod, place_of
from steersman.nodes.volume_store import VolumeFiles, VolumeKey, VolumeStore
from steersman.work.patterns import late_pattern

_CHANGES_FILES: Final = late_pattern(
    r">|\b(touch|rm|tar|tee|dd|mkdir|rmdir|cp|ln|mv|sed|truncate|new_file\w*)\b", re.ASCII
)
"""Pattern of commands that change files; others need not be followed."""
_WAITS: Final = late_pattern(r"\b(while|until|tail)\b", re.ASCII)
"""Pattern of commands that may wait for files."""
_MOST_FOUND: Final = 64 << 10
"""Bytes of files in the snapshot of one container."""
_MOST_FOUND_BY_ALL: Final = 32 << 20
"""Bytes of files in all snapshots."""
_KEPT_RUNS: Final = 2
"""Runs of a container whose snapshots and logs are kept."""
SECONDS_IN_SYNC: Final = 0.006
"""CPU time of all followed commands together in one sync, which holds the event loop."""
_STEPS_BETWEEN_SYNCS: Final = 500
"""Steps of followed commands between two syncs; the event loop may run other tasks after each."""
MOST_FOLLOWED: Final = 2000
"""Containers with followed commands."""
_MOST_SNAPSHOT: Final = 64 << 10
"""Bytes of files, and characters of variables, that a container with a followed command gets."""
_MOST_ENV_FILES: Final = 128 << 10
"""Bytes of files of variables that are read in one sync of a pod."""
_MOST_VOLUMES: Final = 256
"""Volumes of a pod that are shared; files of further ones are private to each container."""
_MOST_MOUNTS: Final = 1024
"""Mounts of a container."""
_MOST_EXPRESSIONS: Final = 16 << 10
"""Characters of all `subPathExpr` of a container."""
MOST_SERVERS: Final = 256
"""NFS servers with files of their own; volumes of further servers live as long as their pods."""
_MOST_NAME: Final = 253
_MOST_WRITERS: Final = 256
"""Followed containers that share one volume."""
_LEAST_WAIT: Final = 1.0
"""Seconds between two syncs of a pod whose containers write or await files, at least."""
_LONGEST_WAIT: Final = 60.0
"""Seconds between two syncs of a pod whose containers write or await files, at most."""
_PART: Final = 10
"""Divisor of the time for which a command has run; the quotient is the wait until the pod's next sync."""


def changes_files(container: AnyContainer) -> bool:
    """Return True if the command of a container may change files."""
    return _has(_CHANGES_FILES, container)


def _has(pattern: re.Pattern[str], container: AnyContainer) -> bool:
    """Return True if a word of the command matches; a script that is too long to be rehearsed is not searched."""
    return any(len(each) <= LONGEST and pattern.search(each) for each in (*container.command, *container.args))


class _PodState(Struct):
    """State of a pod's containers, by container ID or name."""

    starts: dict[str, StartSnapshot] = field(default_factory=dict)
    commands: dict[str, FollowedCommand] = field(default_factory=dict)
    """Followed commands of running containers, by ID."""
    logs: dict[str, FollowedCommand] = field(default_factory=dict)
    """Followed commands of all containers whose snapshot is known, by ID, for logs."""
    worlds: dict[str, World] = field(default_factory=dict)
    """Environments of containers that are to start, by name."""
    full: set[str] = field(default_factory=set)
    """Names of volumes that were reported as full."""
    follows: dict[str, bool] = field(default_factory=dict)
    """True for containers whose command is to be followed, by name."""
    is_gone: bool = False
    """True once the pod is deleted, so that nothing more is kept for it."""


class Contents:
    """Shared files of all pods. `volume_of` returns the persistent volume of a claim."""

    def __init__(self, own_files: Callable[[str], dict[str, bytes]]) -> None:
        """`own_files` returns the files of a container, by its ID, that are in no volume."""
        self.own_files = own_files
        self.store: Final = VolumeStore()
        self.shares: Final = Shares()
        """CPU time and records of programs in containers, by namespace."""
        self.lock: Final = threading.RLock()
        """Held for some milliseconds at most, as large pods are synced in worker threads."""
        self.volume_of: Callable[[Key], PersistentVolume | None] = _no_volume
        self.unknown_programs_of: Callable[[Pod], Unknown | None] = _default_treatment
        """Returns the treatment of programs that are not simulated on a pod's node."""
        self._pods: dict[str, _PodState] = {}
        self.full: Callable[[Pod, str], None] = _ignore_full_volume
        """Called once with a pod and the name of its volume that is full."""
        self._found = self._servers = 0
        self.followed = 0
        """Number of commands that are followed."""
        self._writers: dict[VolumeKey, dict[str, FollowedCommand]] = {}

    def for_pod(self, pod: Pod) -> PodContents | None:
        """Return the shared files of a pod; None if it has no volumes for any."""
        mounts = {}
        for volume in pod.spec.volumes[:_MOST_VOLUMES]:
            place = place_of(pod, volume, self.volume_of)
            if place is not None:
                mounts[volume.name] = Mount("", self._files(pod, volume, place.key), place.inside, volume.name)
        return PodContents(self, pod, mounts, self._pods.setdefault(pod.metadata.uid, _PodState())) if mounts else None

    def get(self, pod: Pod) -> PodContents | None:
        """Return the shared files of a pod that its node has synced; None for any other pod."""
        return self.for_pod(pod) if pod.metadata.uid in self._pods else None

    def _files(self, pod: Pod, volume: Volume, key: VolumeKey) -> VolumeFiles:
        if key.kind == SERVER and not self.store.has(key):
            if self._servers >= MOST_SERVERS or len(key.owner) > _MOST_NAME:
                return self.store.files(of_pod(pod, volume))
            self._servers += 1
        return self.store.files(key)

    def stop_commands(self, pod: Pod) -> None:
        """Stop the commands of a pod, of which nothing runs any more."""
        state = self._pods.get(pod.metadata.uid)
        if state is None:
            return
        with self.lock:
            for container_id in tuple(state.commands):
                state.commands[container_id].stop()
                self.drop_command(state, container_id)
            state.worlds.clear()

    def forget(self, pod: Pod) -> None:
        """Forget a deleted pod, and delete the volumes that live as long as it does."""
        self.stop_commands(pod)
        state = self._pods.pop(pod.metadata.uid, None)
        if state is not None:
            state.is_gone = True
            self._found -= sum(each.size for each in state.starts.values())
        for volume in pod.spec.volumes:
            self.store.drop(of_pod(pod, volume))

    def forget_volume(self, volume: PersistentVolume) -> None:
        """Delete the files of a deleted persistent volume."""
        self.store.drop(of_persistent(volume))

    def keep_start(self, state: _PodState, container_id: str, start: StartSnapshot) -> StartSnapshot:
        """Keep the snapshot from a container's start; without its files if the bound of all snapshots is reached."""
        if state.is_gone or self._found + start.size > _MOST_FOUND_BY_ALL:
            start = start._replace(files={}, size=0)
        self._found += start.size
        state.starts[container_id] = start
        for older in [each for each, other in state.starts.items() if other.name == start.name][:-_KEPT_RUNS]:
            self._found -= state.starts.pop(older).size
            state.logs.pop(older, None)
        return start

    def add_command(self, state: _PodState, container_id: str, command: FollowedCommand) -> None:
        """Follow the command of a container, unless as many are followed as may be."""
        if state.is_gone or self.followed >= MOST_FOLLOWED:
            return
        self.followed += 1
        state.commands[container_id] = state.logs[container_id] = command
        for key in command.keys:
            writers = self._writers.setdefault(key, {})
            if len(writers) < _MOST_WRITERS:
                writers[container_id] = command

    def drop_command(self, state: _PodState, container_id: str) -> None:
        """Stop following the command of a container."""
        command = state.commands.pop(container_id, None)
        if command is not None:
            self.followed -= 1
        for key in () if command is None else command.keys:
            writers = self._writers.get(key, {})
            writers.pop(container_id, None)
            if not writers:
                self._writers.pop(key, None)

    def writers(self, keys: Sequence[VolumeKey]) -> list[FollowedCommand]:
        """Return the followed commands that use one of the volumes."""
        with self.lock:
            commands = {name: command for key in keys for name, command in self._writers.get(key, {}).items()}
        return list(commands.values())


class PodContents:
    """Shared files of one pod in one sync. `mounts` are its volumes by name."""

    def __init__(self, all_: Contents, pod: Pod, mounts: Mapping[str, Mount], state: _PodState) -> None:
        self._all = all_
        self._pod = pod
        self._volumes = mounts
        self._state = state
        self._left = SECONDS_IN_SYNC
        self._env_files: dict[tuple[str, str], tuple[bytes, EnvFile]] = {}
        """Parsed files of variables by volume and path, each with the data it was parsed from."""
        self._env_left = _MOST_ENV_FILES

    # Mounts

    def mounts(self, container: AnyContainer) -> list[Mount]:
        """Return the mounts of a container.

        Mounts of volumes that no other container writes into, and mounts beyond the bounds, have no files.
        """
        mounts = []
        variables: Mapping[str, str] | None = None
        left = _MOST_EXPRESSIONS
        for mount in container.volume_mounts[:_MOST_MOUNTS]:
            volume = self._volumes.get(mount.name)
            at = posixpath.normpath(mount.mount_path)
            left -= len(mount.sub_path_expr)
            if volume is None or volume.files is None or (mount.sub_path_expr and left < 0):
                mounts.append(Mount(at, None, name=mount.name))
                continue
            inside = mount.sub_path
            if mount.sub_path_expr:
                with contextlib.suppress(ArgumentsTooLong):  # then the container does not start anyway
                    variables = plain_variables(self._pod, container) if variables is None else variables
                    inside = expanded(mount.sub_path_expr, variables)
            inside = posixpath.normpath(posixpath.join("/", volume.inside, inside.lstrip("/"))).strip("/")
            mounts.append(Mount(at, volume.files, inside, mount.name))
        return mounts

    def view(self, container: AnyContainer, own: dict[str, bytes]) -> MountedFiles:
        """Return the files that a container sees, with its private files `own`."""
        return MountedFiles(own, self.mounts(container), self._is_full)

    def _is_full(self, name: str) -> None:
        if name not in self._state.full:
            self._state.full.add(name)
            self._all.full(self._pod, name)

    def shares(self, container: AnyContainer) -> bool:
        """Return True if a container mounts a shared volume."""
        return any(each.name in self._volumes for each in container.volume_mounts)

    # Starts

    def start_of(self, container: AnyContainer, container_id: str) -> StartSnapshot:
        """Return the snapshot from the start of a running container; taken now if there is none yet."""
        with self._all.lock:
            start = self._state.starts.get(container_id)
            return self._take_snapshot(container, container_id) if start is None else start

    def _take_snapshot(self, container: AnyContainer, container_id: str) -> StartSnapshot:
        mounts = [each for each in self.mounts(container) if each.files is not None]
        files: dict[str, bytes] = {}
        size = 0
        if mounts:
            view = MountedFiles({}, mounts)
            for path in view:
                data = view.get(path)
                size += bytes_of_file(path, data)
                if size > _MOST_FOUND:
                    break
                if data is not None:
                    files[path] = data
        variables, _ = self._variables(container)
        start = StartSnapshot(container.name, files, variables, min(size, _MOST_FOUND))
        return self._all.keep_start(self._state, container_id, start)

    def start_container(self, container: AnyContainer, container_id: str, at: float) -> None:
        """Take the snapshot of a container that starts at `at`, after running other commands up to that time, and
        follow it.
        """
        with self._all.lock:
            self.advance(at)
            self._make_folders(container)
            self._take_snapshot(container, container_id)
            self._follow(container, container_id, at)

    def _make_folders(self, container: AnyContainer) -> None:
        """Create the folders that a container mounts by a sub-path, where nothing exists."""
        for each in self.mounts(container):
            if each.files is None or each.inside == self._volumes[each.name].inside:
                continue
            folder = f"{each.inside}/"
            if each.inside not in each.files and not any(path.startswith(folder) for path in each.files):
                with contextlib.suppress(NoSpace):  # then the container does not find the folder
                    each.files[folder] = b""

    def _follow(self, container: AnyContainer, container_id: str, at: float) -> None:
        if not self._is_followed(container) or self._state.is_gone:
            return
        own = self._all.own_files(container_id)
        world = self._state.worlds.get(container.name)
        if world is None:
            try:
                variables = plain_variables(self._pod, container)
            except ArgumentsTooLong:  # such a container does not start
                return
            folders = frozenset(each.mount_path.rstrip("/") or "/" for each in container.volume_mounts)
            world = World(hostname_of(self._pod), variables, times.unix_now, mounts=folders)
        given = 0
        for path, data in world.files.items():
            given += len(data)
            own.setdefault(path, data if given <= _MOST_SNAPSHOT else b"")
        self._state.worlds.pop(container.name, None)
        if sum(len(name) + len(value) for name, value in world.environment.items()) > _MOST_SNAPSHOT:
            return
        found = {**world.environment, **self._state.starts[container_id].variables}
        mounts = self.mounts(container)
        there = world.copy(files=self.view(container, own), environment=found)
        words = command_of(container, found)
        keys = {each.files.key for each in mounts if each.files is not None}
        unknown = unknown_programs(self._pod, container, self._all.unknown_programs_of(self._pod))
        rest = rehearsed(words, there, at, times.unix_now(), unknown)
        self._all.add_command(self._state, container_id, FollowedCommand(rest, at, tuple(keys), self._all.lock))

    def _is_followed(self, container: AnyContainer) -> bool:
        known = self._state.follows.get(container.name)
        if known is None:
            known = self._state.follows[container.name] = (
                not container.stdin and self.shares(container) and (changes_files(container) or _has(_WAITS, container))
            )
        return known

    # Time

    def advance(self, until: float) -> None:
        """Run the due steps of all commands that share these volumes, within the CPU time of one sync."""
        keys = [each.files.key for each in self._volumes.values() if each.files is not None]
        if self._left <= 0:
            return
        with self._all.lock:
            started_at = time.thread_time()
            for _ in run_in_order(self._all.writers(keys), until, _STEPS_BETWEEN_SYNCS):
                if time.thread_time() - started_at > self._left:
                    break
            self._left -= time.thread_time() - started_at

    def progress(self, container_id: str, now: float) -> CommandProgress | None:
        """Return the progress of a command at `now`; None if the command is not followed."""
        command = self._state.commands.get(container_id)
        if command is None:
            return None
        self.advance(now)
        return CommandProgress(command.next, command.ended_at, command.exit_code)

    def known_start(self, container_id: str) -> StartSnapshot | None:
        """Return the snapshot from a container's start, or None."""
        return self._state.starts.get(container_id)

    def log_of(self, container_id: str) -> Iterator[Printed | float] | None:
        """Return the output of a container whose command is or was followed; None for any other."""
        command = self._state.logs.get(container_id)
        return None if command is None else command.lines()

    def is_followed(self, container_id: str) -> bool:
        """Return True if the command of a container is followed."""
        return container_id in self._state.commands

    def end_container(self, container_id: str, at: float) -> None:
        """Run the command of a container up to its end at `at`, and no further."""
        command = self._state.commands.get(container_id)
        if command is None:
            return
        with self._all.lock:
            command.last = at
            self.advance(at)
            self._drop_finished()

    async def start_and_run(
        self, records: Mapping[str, ContainerRecord], world_of: Callable[[AnyContainer], Awaitable[World]], now: float
    ) -> None:
        """Start following running containers, and run all steps that are due at `now`.

        `world_of` reads the environments of containers that are to start. Containers that started before this process
        are followed from their start on, in the order of their starts.
        """
        containers = {each.name: each for each in all_containers(self._pod.spec)}
        running = {
            each.name
            for each in all_statuses(self._pod.status)
            if each.state.running is not None and each.container_id in self._state.starts
        }
        for name, container in containers.items():
            if name not in self._state.worlds and name not in running and self._is_followed(container):
                self._state.worlds[name] = await world_of(container)
        for status, started_at, ended_at in _runs(self._pod, records):
            if status.container_id in self._state.starts or status.name not in containers:
                continue
            self.start_container(containers[status.name], status.container_id, started_at)
            if ended_at is not None:
                self.end_container(status.container_id, ended_at)
        await self.run_due(now)

    async def run_due(self, now: float) -> None:
        """Run the due steps of all commands that share these volumes, with time slices in between."""
        keys = [each.files.key for each in self._volumes.values() if each.files is not None]
        turns = run_in_order(self._all.writers(keys), now, _STEPS_BETWEEN_SYNCS)
        slices = Slices(self._all.shares.for_namespace(self._pod.metadata.namespace), waits=False)
        is_over = False
        while not is_over:
            await slices.begin()
            try:
                is_over = next(turns, True) is not None
            finally:
                slices.end()
        self._drop_finished()

    def _drop_finished(self) -> None:
        """Stop following the commands of containers that have ended, once all steps up to their end are done."""
        with self._all.lock:
            for container_id, command in tuple(self._state.commands.items()):
                if command.last < inf and command.is_finished:
                    command.stop()
                    self._all.drop_command(self._state, container_id)

    def next_sync(self, now: float) -> float | None:
        """Return the time of the next sync for containers whose end depends on files; None if there are none."""
        commands = [each for each in self._state.commands.values() if each.next is not None]
        if not commands:
            return None
        due = min(each.next for each in commands if each.next is not None)
        age = now - max(each.started_at for each in commands)
        return max(due, now + min(max(age / _PART, _LEAST_WAIT), _LONGEST_WAIT))

    # Variables and bounds

    def config_error(self, container: AnyContainer) -> str:
        """Return the error in a container's variables that come from files; "" for none."""
        return self._variables(container)[1]

    def _variables(self, container: AnyContainer) -> tuple[dict[str, str], str]:
        """Return the variables that come from files, and the error that ended the reading, if any."""
        variables: dict[str, str] = {}
        for each in container.env:
            if each.value_from is None or each.value_from.file_key_ref is None:
                continue
            try:
                value = self._value(each.value_from.file_key_ref)
            except EnvFileError as error:
                return variables, str(error)
            if value is not None:
                variables[each.name] = value
        return variables, ""

    def _value(self, reference: FileKeySelector) -> str | None:
        """Return the value of a key; None if the key is optional and missing. Raises EnvFileError."""
        volume = self._volumes.get(reference.volume_name)
        if volume is None or volume.files is None:
            raise EnvFileError(f"cannot find the volume {quote(reference.volume_name)} referenced by FileKeyRef")
        path = posixpath.normpath(posixpath.join("/", reference.path)).lstrip("/")
        data = volume.files.get(f"{volume.inside}/{path}" if volume.inside else path)
        try:
            value = None if data is None else self._env_file(reference, data).value(reference.key)
        except EnvFileError:
            value = None
        if value is None:
            raise EnvFileError("couldn't parse env file")
        if value or reference.optional:
            return value or None
        place = (
            f"/var/lib/kubelet/pods/{self._pod.metadata.uid}/volumes/kubernetes.io~empty-dir/{reference.volume_name}"
        )
        raise EnvFileError(
            f"environment variable key {quote(reference.key)} not found in file {quote(f'{place}/{path}')}"
        )

    def _env_file(self, reference: FileKeySelector, data: bytes) -> EnvFile:
        """Parse a file of variables, once in a sync. Raises EnvFileError if there is too much to read."""
        key = (reference.volume_name, reference.path)
        known = self._env_files.get(key)
        if known is not None and known[0] is data:
            return known[1]
        if len(data) > self._env_left:
            raise EnvFileError("too large")
        self._env_left -= len(data)
        env_file = EnvFile(data.decode(errors="replace"))
        self._env_files[key] = (data, env_file)
        return env_file

    def size_limit_error(self) -> str:
        """Return the eviction message of a pod whose emptyDir volume exceeds its size limit; "" if none does."""
        for volume in self._pod.spec.volumes:
            source = volume.empty_dir
            if source is None or not source.size_limit:
                continue
            files = self._volumes[volume.name].files
            if files is not None and 0 < nanos(source.size_limit) < files.size * 10**9:
                return f"Usage of EmptyDir volume {quote(volume.name)} exceeds the limit {quote(source.size_limit)}. "
        return ""


def _runs(pod: Pod, records: Mapping[str, ContainerRecord]) -> list[tuple[ContainerStatus, float, float | None]]:
    """Return the last runs of a pod's containers, with start and end, in the order of their starts."""
    runs: list[tuple[ContainerStatus, float, float | None]] = []
    for status in all_statuses(pod.status):
        known = records.get(status.name, EMPTY_RECORD)
        running, ended_at = status.state.running, status.state.terminated
        if running is not None:
            runs.append((status, exact_time(running.started_at, known.started_at), None))
        elif ended_at is not None and ended_at.started_at and status.container_id:
            runs.append(
                (status, exact_time(ended_at.started_at, None), exact_time(ended_at.finished_at, known.ended_at))
            )
    return sorted(runs, key=lambda each: each[1])


def _ignore_full_volume(_: Pod, __: str) -> None:
    """Do nothing."""


def _no_volume(_: Key) -> None:
    """Return None: no claim is bound."""


def _default_treatment(_: Pod) -> None:
    """Return None: each container has its default."""
