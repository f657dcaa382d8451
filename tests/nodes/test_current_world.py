"""The environment that commands find in a running container."""

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


class RunningContainer:
    """A running container with a controllable clock."""

    def __init__(self, client: Client, clock: Clock, *command: str) -> None:
        self.client = client
        self.clock = clock
        self.containers = Containers()
        self.resynced: list[tuple[str, str]] = []
        self.containers.resync = self.resynced.append
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
async def running() -> AsyncIterator[RunningContainer]:
    clock = Clock()
    async with Environment() as environment:
        server = environment.plane.server
        assert server is not None
        client = Client(InProcessTransport(server.handler, environment.token()), "kubelet")
        await client.create(CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name="m", namespace="default"), data={"a": "1"}))
        yield RunningContainer(client, clock, "sh", "-c", SCRIPT)


async def test_its_own_command_changes_the_files_as_time_goes_by(running: RunningContainer) -> None:
    assert "/tmp/well" in (await running.world()).files
    assert await running.probe("cat", "/tmp/well") == (0, 0.0, "")
    await running.clock.advance(seconds=31)
    code, _, said = await running.probe("cat", "/tmp/well")
    assert (code, said) == (1, "cat: can't open '/tmp/well': No such file or directory\n")
    assert (await running.world()).files["/tmp/late"] == b"late\n"


async def test_what_one_command_writes_or_removes_the_next_one_finds(running: RunningContainer) -> None:
    assert await running.probe("sh", "-c", "rm /tmp/well; echo x > /tmp/x") == (0, 0.0, "")
    files = (await running.world()).files
    assert "/tmp/well" not in files
    assert files["/tmp/x"] == b"x\n"


async def test_volumes_change_but_for_what_was_written_over_them(running: RunningContainer) -> None:
    first = await running.world()
    assert first.files["/v/a"] == b"1"
    await running.client.patch(CONFIG_MAPS, "m", "default", {"data": {"a": None, "b": "2"}})
    files = (await running.world()).files
    assert "/v/a" not in files
    assert files["/v/b"] == b"2"


async def test_a_probe_gets_the_duration_of_its_command(running: RunningContainer) -> None:
    assert await running.probe("sh", "-c", "echo out; echo err >&2; sleep 3; exit 4") == (4, 3.0, "out\nerr\n")
    assert (await running.probe("sleep", "infinity"))[1] == float("inf")
    assert await running.probe("sh", "-c", "pg_isready") == (0, 0.0, "")


async def test_a_command_may_end_the_container(running: RunningContainer) -> None:
    await running.probe("kill", "1")
    ended = running.containers.exits("u")["c"]
    assert (ended.exit_code, running.resynced) == (143, [("default", "p")])


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


async def test_volumes_that_are_read_again_unchanged_are_kept_once(running: RunningContainer) -> None:
    await running.client.patch(CONFIG_MAPS, "m", "default", {"data": {"a": "1" * 1000}})
    first = (await running.world()).files["/v/a"]
    assert (await running.world()).files["/v/a"] is first
    assert running.containers.files_of(running.status.container_id).volume_files["/v/a"] is first


async def test_a_probe_after_a_command_finds_the_volumes_that_the_command_found(running: RunningContainer) -> None:
    assert await running.probe("cat", "/v/a") == (0, 0.0, "1")
    await running.client.patch(CONFIG_MAPS, "m", "default", {"data": {"a": "2"}})
    assert (await running.world()).files["/v/a"] == b"2"
    assert await running.probe("cat", "/v/a") == (0, 0.0, "2")
