"""What commands find in a container."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from steersman.api.core.v1 import (
    ConfigMap,
    ConfigMapVolumeSource,
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    Pod,
    PodSpec,
    PodStatus,
    Volume,
    VolumeMount,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.client.resources import CONFIG_MAPS
from steersman.machinery.values import times
from steersman.nodes.container.probes import DueCommand
from steersman.nodes.containers import Containers
from steersman.nodes.context import LIVENESS
from steersman.nodes.current_world import current_world, run_command
from steersman.nodes.shell.effects import World
from steersman.testing import Environment
from steersman.testing.clock import Clock

SCRIPT = "touch /tmp/well; sleep 30; rm /tmp/well; echo late > /tmp/late; sleep 600"


class Room:
    """A container that runs, on a clock that can be moved."""

    def __init__(self, client: Client, clock: Clock, *command: str) -> None:
        self.client = client
        self.clock = clock
        self.containers = Containers()
        self.looked: list[tuple[str, str]] = []
        self.containers.resync = self.looked.append
        self.container = Container(
            name="c", command=list(command), volume_mounts=[VolumeMount(name="v", mount_path="/v")]
        )
        self.status = ContainerStatus(
            name="c",
            container_id="containerd://1",
            state=ContainerState(running=ContainerStateRunning(started_at=times.now())),
        )
        volume = Volume(name="v", config_map=ConfigMapVolumeSource(name="m"))
        self.pod = Pod(
            metadata=ObjectMeta(name="p", namespace="default", uid="u"),
            spec=PodSpec(containers=[self.container], volumes=[volume]),
            status=PodStatus(container_statuses=[self.status]),
        )

    async def world(self) -> World:
        return await current_world(self.client, self.containers, self.pod, self.container, self.status)

    async def probe(self, *words: str) -> tuple[int, float, str]:
        wanted = DueCommand(self.container, self.status, LIVENESS, list(words), self.status.container_id)
        done = await run_command(self.client, self.containers, self.pod, wanted)
        return done.exit_code, done.seconds, done.output


@pytest_asyncio.fixture
async def room() -> AsyncIterator[Room]:
    clock = Clock()
    async with Environment() as environment:
        server = environment.plane.server
        assert server is not None
        client = Client(InProcessTransport(server.handler, environment.token()), "kubelet")
        await client.create(CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name="m", namespace="default"), data={"a": "1"}))
        yield Room(client, clock, "sh", "-c", SCRIPT)


async def test_its_own_command_changes_the_files_as_time_goes_by(room: Room) -> None:
    assert "/tmp/well" in (await room.world()).files
    assert await room.probe("cat", "/tmp/well") == (0, 0.0, "")
    await room.clock.advance(seconds=31)
    code, _, said = await room.probe("cat", "/tmp/well")
    assert (code, said) == (1, "cat: can't open '/tmp/well': No such file or directory\n")
    assert (await room.world()).files["/tmp/late"] == b"late\n"


async def test_what_one_command_writes_or_removes_the_next_one_finds(room: Room) -> None:
    assert await room.probe("sh", "-c", "rm /tmp/well; echo x > /tmp/x") == (0, 0.0, "")
    files = (await room.world()).files
    assert "/tmp/well" not in files
    assert files["/tmp/x"] == b"x\n"


async def test_volumes_change_but_for_what_was_written_over_them(room: Room) -> None:
    first = await room.world()
    assert first.files["/v/a"] == b"1"
    await room.client.patch(CONFIG_MAPS, "m", "default", {"data": {"a": None, "b": "2"}})
    files = (await room.world()).files
    assert "/v/a" not in files
    assert files["/v/b"] == b"2"


async def test_a_probe_is_told_how_long_its_command_takes(room: Room) -> None:
    assert await room.probe("sh", "-c", "echo out; echo err >&2; sleep 3; exit 4") == (4, 3.0, "out\nerr\n")
    assert (await room.probe("sleep", "infinity"))[1] == float("inf")
    assert await room.probe("sh", "-c", "pg_isready") == (0, 0.0, "")


async def test_a_command_may_end_the_container(room: Room) -> None:
    await room.probe("kill", "1")
    ended = room.containers.exits("u")["c"]
    assert (ended.exit_code, room.looked) == (143, [("default", "p")])


async def test_files_of_a_namespace_are_bounded_in_all_its_containers() -> None:
    containers = Containers()
    pod = Pod(metadata=ObjectMeta(name="p", namespace="a"))
    other = Pod(metadata=ObjectMeta(name="p", namespace="b"))
    containers.files_of("kept").files["/f"] = b"1"
    containers.count_written(other, "kept")
    for number in range(100):
        containers.files_of(str(number)).files["/f"] = bytes(1_000_000)
        containers.count_written(pod, str(number))
    kept = [number for number in range(100) if containers.files_of(str(number)).files]
    assert kept == list(range(33, 100))
    assert containers.files_of("kept").files


def test_what_containers_are_given_is_bounded_in_all_of_them() -> None:
    containers = Containers()
    for number in range(100):
        inside = containers.files_of(str(number))
        inside.volume_files = {"/m/a": bytes(1_000_000)}
        inside.files |= inside.volume_files
        inside.files["/own"] = b"1"
        containers.count_volume_files(str(number), 1_000_000)
    kept = [number for number in range(100) if containers.files_of(str(number)).volume_files]
    assert kept == list(range(33, 100))
    assert all(containers.files_of(str(number)).files["/own"] == b"1" for number in range(100))
    assert "/m/a" not in containers.files_of("0").files


async def test_volumes_that_are_read_again_unchanged_are_kept_once(room: Room) -> None:
    await room.client.patch(CONFIG_MAPS, "m", "default", {"data": {"a": "1" * 1000}})
    first = (await room.world()).files["/v/a"]
    assert (await room.world()).files["/v/a"] is first
    assert room.containers.files_of(room.status.container_id).volume_files["/v/a"] is first


async def test_a_probe_after_a_command_finds_the_volumes_that_the_command_found(room: Room) -> None:
    assert await room.probe("cat", "/v/a") == (0, 0.0, "1")
    await room.client.patch(CONFIG_MAPS, "m", "default", {"data": {"a": "2"}})
    assert (await room.world()).files["/v/a"] == b"2"
    assert await room.probe("cat", "/v/a") == (0, 0.0, "2")
