"""Files that the containers of a pod share."""

from __future__ import annotations

import time
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.core.v1 import (
    Container,
    EmptyDirVolumeSource,
    EnvVar,
    EnvVarSource,
    FileKeySelector,
    HostPathVolumeSource,
    NFSVolumeSource,
    PersistentVolume,
    PersistentVolumeClaimVolumeSource,
    PersistentVolumeSpec,
    Pod,
    PodSpec,
    PodStatus,
    Volume,
    VolumeMount,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.nodes.container.sync import status_time
from steersman.nodes.containers import Containers
from steersman.nodes.contents import Contents
from steersman.nodes.context import PodContext
from steersman.nodes.initial_world import plain_variables
from steersman.nodes.mounted_files import Mount, MountedFiles
from steersman.nodes.pod_life import PodSyncResult, sync_pod
from steersman.nodes.shell.effects import World
from steersman.nodes.volume_store import MOST_IN_VOLUME, VolumeKey, VolumeStore
from tests.counted_work import calls

NOW = 1_800_000_000.0
EMPTY = Volume(name="d", empty_dir=EmptyDirVolumeSource())


def container(name: str, script: str, **more: Any) -> Container:
    mounts = more.pop("volume_mounts", [VolumeMount(name="d", mount_path="/d")])
    return Container(name=name, image="busybox", command=["sh", "-c", script], volume_mounts=mounts, **more)


class PodOnNode:
    """A pod on a node that keeps records of its containers. Other pods may share `containers` with it."""

    def __init__(
        self,
        *main: Container,
        init: tuple[Container, ...] = (),
        volume: Volume = EMPTY,
        uid: str = "u",
        containers: Containers | None = None,
        restart: str = "Never",
        node: str = "n",
    ) -> None:
        self.containers = containers or Containers()
        self.pod = Pod(
            metadata=ObjectMeta(name="p", namespace="n", uid=uid, generation=1),
            spec=PodSpec(
                containers=list(main),
                init_containers=list(init),
                restart_policy=restart,
                volumes=[volume],
                node_name=node,
                termination_grace_period_seconds=30,
            ),
            status=PodStatus(phase="Pending"),
        )
        self.context = PodContext(("172.16.0.2",), ("10.128.0.2",))
        self.done: PodSyncResult | None = None
        self.next_sync: float | None = None

    @property
    def container(self) -> Container:
        """The first container."""
        return (self.pod.spec.containers or [])[0]

    @property
    def contents(self) -> Contents:
        return self.containers.contents

    async def sync_at(self, seconds: float) -> PodOnNode:
        """Sync the pod at a time in seconds after the start."""
        now = NOW + seconds
        shared = self.contents.for_pod(self.pod)
        if shared is not None:
            await shared.start_and_run(self.context.records, self._world, now)
        self.done = done = sync_pod(self.pod, replace(self.context, shared=shared), now)
        self.pod.status = done.status
        self.context = replace(self.context, records=done.records, images=[*self.context.images, *done.pulled])
        self.next_sync = None if shared is None else shared.next_sync(now)
        return self

    async def _world(self, container: AnyContainer) -> World:
        return World("p", plain_variables(self.pod, container), lambda: NOW)

    def exit_of(self, name: str) -> tuple[int, float] | None:
        """Return the exit code of a container and how long it ran; None if it has not ended."""
        for each in (*self.pod.status.container_statuses, *self.pod.status.init_container_statuses):
            if each.name == name and (end := each.state.terminated) is not None:
                assert self.done is not None
                return end.exit_code, 0.0 if end.finished_at is None else _seconds(end.finished_at)
        return None

    def file(self, path: str) -> bytes | None:
        shared = self.contents.for_pod(self.pod)
        assert shared is not None
        assert self.pod.spec.containers is not None
        return shared.view(self.pod.spec.containers[0], {}).get(path)


def _seconds(text: str) -> float:
    return next(number for number in range(10_000) if status_time(NOW + number) == text)


async def test_what_an_init_container_writes_the_others_find() -> None:
    it = PodOnNode(
        container("c", 'test "$(cat /d/f)" = from-init || exit 9; sleep 1000'),
        init=(container("i", "echo from-init > /d/f"),),
    )
    await it.sync_at(0)
    assert it.pod.status.phase == "Running"
    await it.sync_at(1)
    assert it.exit_of("c") is None
    assert it.file("/d/f") == b"from-init\n"


async def test_what_a_run_has_left_the_next_one_finds() -> None:
    script = "f=/d/n; count=$(echo x >> $f; wc -l $f | awk {'print $1'}); exit $count"
    it = PodOnNode(container("c", script), restart="Always")
    codes = []
    for at in (0, 10, 40):
        await it.sync_at(at)
        last = it.pod.status.container_statuses[0]
        ended = last.state.terminated or last.last_state.terminated
        assert ended is not None
        codes.append(ended.exit_code)
    assert codes == [2, 3, 4]


async def test_files_are_written_when_they_are_due() -> None:
    it = PodOnNode(container("c", "sleep 5; echo a > /d/a; sleep 5; rm /d/a; sleep 1000"))
    await it.sync_at(0)
    for seconds, found in ((4, None), (6, b"a\n"), (11, None)):
        await it.sync_at(seconds)
        assert it.file("/d/a") == found


async def test_a_container_that_waits_for_a_file_of_another_ends_when_that_is_there() -> None:
    it = PodOnNode(
        container("waits", "until [ -f /d/done ]; do sleep 1; done; exit 3"),
        container("works", "sleep 8; touch /d/done; sleep 1000"),
    )
    await it.sync_at(0)
    assert it.next_sync is not None
    at = 0.0
    while it.exit_of("waits") is None and at < 30:
        assert it.next_sync is not None
        at = max(it.next_sync - NOW, at + 0.5)
        await it.sync_at(at)
    assert it.exit_of("waits") is not None
    code, seconds = it.exit_of("waits") or (0, 0)
    assert code == 3
    assert 8 <= seconds <= 11
    await it.sync_at(at + 1)
    assert it.exit_of("works") is None


async def test_a_command_that_is_killed_writes_nothing_more() -> None:
    it = PodOnNode(container("c", "sleep 5; touch /d/a; sleep 5; touch /d/b"))
    await it.sync_at(0)
    it.pod.metadata.deletion_timestamp, it.pod.metadata.deletion_grace_period_seconds = status_time(NOW + 36), 30
    await it.sync_at(6)
    await it.sync_at(20)
    assert it.file("/d/a") == b""
    assert it.file("/d/b") is None


async def test_a_process_that_began_later_finds_what_containers_have_written() -> None:
    it = PodOnNode(container("c", "cat /d/f || exit 9; sleep 1000"), init=(container("i", "echo from-init > /d/f"),))
    await it.sync_at(0)
    it.containers = Containers()
    it.context = replace(it.context, records={})
    await it.sync_at(60)
    assert it.exit_of("c") is None
    assert it.file("/d/f") == b"from-init\n"


async def test_a_part_of_a_volume_is_shared_by_its_path() -> None:
    part = [VolumeMount(name="d", mount_path="/part", sub_path="a/b")]
    named = [VolumeMount(name="d", mount_path="/own", sub_path_expr="$(POD)")]
    name = [EnvVar(name="POD", value_from=EnvVarSource(field_ref=_field("metadata.name")))]
    it = PodOnNode(
        container("c", "sleep 1000"),
        container("b", "echo 1 > /part/f; sleep 1000", volume_mounts=part),
        container("a", "echo 2 > /own/f; sleep 1000", volume_mounts=named, env=name),
    )
    await it.sync_at(0)
    await it.sync_at(1)
    assert (it.file("/d/a/b/f"), it.file("/d/p/f")) == (b"1\n", b"2\n")


async def test_a_path_in_a_volume_that_is_mounted_is_a_folder_there() -> None:
    part = [VolumeMount(name="d", mount_path="/part", sub_path="a/b"), VolumeMount(name="d", mount_path="/d")]
    it = PodOnNode(container("c", "test -d /d/a/b && test -d /part && exit 3", volume_mounts=part))
    await it.sync_at(0)
    await it.sync_at(1)
    assert it.exit_of("c") == (3, 0.0)


async def test_a_link_leads_to_what_another_container_has_written() -> None:
    it = PodOnNode(
        container("c", "sleep 1; touch /d/f; ln -s /d/real /d/link; sleep 1000"),
        container("b", "sleep 2; echo 1 > /d/real; test $(cat /d/link) = 1 && exit 3"),
    )
    for seconds in range(4):
        await it.sync_at(seconds)
    assert it.exit_of("b") == (3, 2.0)


def test_mounts_are_found_in_a_time_by_their_number_and_not_by_that_of_variables_too() -> None:
    env = [EnvVar(name=f"A{number}", value="$(A0)") for number in range(300)]

    def found(mounts: int, expression: str = "$(A1)") -> tuple[int, int]:
        """Return the number of calls made, and the number of containers that have files."""
        given = [VolumeMount(name="d", mount_path=f"/m/{number}", sub_path_expr=expression) for number in range(mounts)]
        it = PodOnNode(container("c", "sleep 1000", volume_mounts=given, env=env))
        shared = it.contents.for_pod(it.pod)
        assert shared is not None
        read = [each for each in shared.mounts(it.container) if each.files is not None]
        return calls(lambda: shared.mounts(it.container)), len(read)

    (few, of_few), (many, of_many) = found(2), found(200)
    assert (of_few, of_many) == (2, 200)
    assert many < few + 200 * 50
    assert found(20, "$(A1)" * 1000)[1] == 3
    assert found(5000)[1] == 1024


def _field(path: str) -> Any:
    from steersman.api.core.v1 import ObjectFieldSelector

    return ObjectFieldSelector(field_path=path)


async def test_pods_of_a_node_share_its_paths_and_those_of_others_do_not() -> None:
    host = Volume(name="d", host_path=HostPathVolumeSource(path="/var/data"))
    above = Volume(name="d", host_path=HostPathVolumeSource(path="/var"))
    first = PodOnNode(container("c", "echo a > /d/f; sleep 1000"), volume=host)
    await first.sync_at(0)
    await first.sync_at(1)
    same = PodOnNode(container("c", "true"), volume=above, uid="v", containers=first.containers)
    other = PodOnNode(container("c", "true"), volume=host, uid="w", containers=first.containers, node="m")
    assert (same.file("/d/data/f"), other.file("/d/f")) == (b"a\n", None)
    first.contents.forget(first.pod)
    assert same.file("/d/data/f") == b"a\n"


async def test_a_claim_keeps_its_files_while_its_volume_lives() -> None:
    claim = Volume(name="d", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="c"))
    volume = PersistentVolume(metadata=ObjectMeta(name="pv", uid="pv"), spec=PersistentVolumeSpec())
    containers = Containers()
    containers.contents.volume_of = {("n", "c"): volume}.get
    first = PodOnNode(container("c", "echo a > /d/f"), volume=claim, containers=containers)
    await first.sync_at(0)
    containers.contents.forget(first.pod)
    second = PodOnNode(container("c", "test -f /d/f"), volume=claim, uid="v", containers=containers)
    await second.sync_at(0)
    assert second.exit_of("c") == (0, 0.0)
    containers.contents.forget_volume(volume)
    assert second.file("/d/f") is None


async def test_an_empty_dir_goes_with_its_pod() -> None:
    it = PodOnNode(container("c", "echo a > /d/f"))
    await it.sync_at(0)
    assert it.file("/d/f") == b"a\n"
    it.contents.forget(it.pod)
    assert (it.contents.store.used_bytes, len(it.contents.store)) == (0, 0)
    assert it.file("/d/f") is None


async def test_a_full_volume_is_reported_once() -> None:
    it = PodOnNode(container("c", "sleep 1000"))
    reported: list[str] = []
    it.contents.full = lambda _, name: reported.append(name)
    await it.sync_at(0)
    shared = it.contents.for_pod(it.pod)
    assert shared is not None
    assert it.pod.spec.containers is not None
    world = World("p", {}, lambda: NOW, files=shared.view(it.container, {}))
    assert world.put("/d/a", bytes(MOST_IN_VOLUME - 300))
    assert not world.put("/d/b", bytes(300))
    assert not world.put("/d/c", bytes(300))
    assert world.put("/b", bytes(300))
    assert reported == ["d"]


async def test_all_volumes_have_a_bound_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steersman.nodes.volume_store.MOST_IN_ALL", 1000)
    first = PodOnNode(container("c", "seq 1 150 > /d/f; sleep 1000"))
    second = PodOnNode(
        container("c", "seq 1 200 > /d/f || touch /d/full; sleep 1000"), uid="v", containers=first.containers
    )
    for it in (first, second):
        await it.sync_at(0)
        await it.sync_at(1)
    assert second.file("/d/f") in (None, b"")
    assert first.contents.store.used_bytes <= 1000


async def test_a_pod_that_writes_more_than_a_volume_may_hold_is_evicted() -> None:
    volume = Volume(name="d", empty_dir=EmptyDirVolumeSource(size_limit="1Ki"))
    it = PodOnNode(container("c", "seq 1 400 > /d/f; sleep 1000"), volume=volume)
    await it.sync_at(0)
    await it.sync_at(1)
    shared = it.contents.for_pod(it.pod)
    assert shared is not None
    assert shared.size_limit_error() == 'Usage of EmptyDir volume "d" exceeds the limit "1Ki". '


def with_variable(key: str = "DB", path: str = "env", *, optional: bool = False) -> list[EnvVar]:
    selector = FileKeySelector(volume_name="d", path=path, key=key, optional=optional)
    return [EnvVar(name="DB", value_from=EnvVarSource(file_key_ref=selector)), EnvVar(name="URL", value="db://$(DB)")]


@pytest.mark.parametrize(
    ("file", "env", "wrong"),
    [
        ("DB='10.1.2.3'", with_variable(), ""),
        ("OTHER='1'", with_variable(optional=True), ""),
        (
            "OTHER='1'",
            with_variable(),
            'environment variable key "DB" not found in file '
            '"/var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/d/env"',
        ),
        ("DB=1", with_variable(), "couldn't parse env file"),
        ("DB='1'", with_variable(path="none"), "couldn't parse env file"),
        ("DB='1'", with_variable(path="../env"), ""),
    ],
)
async def test_variables_are_read_from_files(file: str, env: list[EnvVar], wrong: str) -> None:
    it = PodOnNode(
        container("c", 'test "$URL" = db://10.1.2.3 || exit 9; sleep 1000', env=env, volume_mounts=[]),
        init=(container("i", f'echo "{file}" > /d/env'),),
        restart="Always",
    )
    await it.sync_at(0)
    waiting = it.pod.status.container_statuses[0].state.waiting
    assert ("" if waiting is None or waiting.reason == "CrashLoopBackOff" else waiting.message) == wrong
    if wrong:
        assert waiting is not None
        assert waiting.reason == "CreateContainerConfigError"


async def test_a_file_of_variables_is_read_once_per_sync() -> None:
    text = "".join(f"K{number}='v'\n" for number in range(300))

    async def read(variables: int) -> int:
        env = [
            EnvVar(
                name=f"V{each}",
                value_from=EnvVarSource(file_key_ref=FileKeySelector(volume_name="d", path="env", key=f"K{each}")),
            )
            for each in range(variables)
        ]
        it = PodOnNode(container("c", "sleep 1000", env=env))
        it.contents.store.files(VolumeKey("pod", "u", "d"))["env"] = text.encode()
        shared = it.contents.for_pod(it.pod)
        assert shared is not None
        assert shared.config_error(it.container) == ""
        return calls(lambda: shared.config_error(it.container)) + calls(
            lambda: it.contents.for_pod(it.pod).config_error(it.container)  # type: ignore[union-attr]
        )

    assert await read(150) < 10 * await read(1)


async def test_a_file_of_variables_that_is_too_large_is_not_read() -> None:
    it = PodOnNode(container("c", "sleep 1000", env=with_variable()))
    it.contents.store.files(VolumeKey("pod", "u", "d"))["env"] = b"A='1'\n" * 30_000
    shared = it.contents.for_pod(it.pod)
    assert shared is not None
    assert shared.config_error(it.container) == "couldn't parse env file"


async def test_a_container_keeps_the_variables_with_which_it_began() -> None:
    it = PodOnNode(
        container("c", "sleep 1000", env=with_variable()), init=(container("i", "echo \"DB='1'\" > /d/env"),)
    )
    await it.sync_at(0)
    shared = it.contents.for_pod(it.pod)
    assert shared is not None
    name = it.pod.status.container_statuses[0].container_id
    assert it.pod.spec.containers is not None
    shared.view(it.container, {})["/d/env"] = b"DB='2'"
    start = shared.known_start(name)
    assert start is not None
    assert start.variables == {"DB": "1"}


async def test_the_log_of_a_container_tells_what_it_has_seen_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    it = PodOnNode(
        container("r", "until [ -f /d/go ]; do echo waits; sleep 2; done; echo goes; sleep 1000"),
        container("w", "sleep 3; touch /d/go; sleep 1000"),
    )
    await it.sync_at(0)
    await it.sync_at(10)
    shared = it.contents.for_pod(it.pod)
    assert shared is not None
    monkeypatch.setattr("steersman.machinery.values.times.unix_now", lambda: NOW + 10)
    log = shared.log_of(it.pod.status.container_statuses[0].container_id)
    assert log is not None
    found = [next(log) for _ in range(4)]
    assert [each.data for each in found if not isinstance(each, float)] == [b"waits\n", b"waits\n", b"goes\n"]
    assert found[-1] == NOW + 1004
    it.contents.stop_commands(it.pod)
    assert list(log) == []


@pytest.mark.parametrize("command", ["tail -n+1 -F /d/log", "until [ -f /d/log ]; do sleep 1; done; tail -f /d/log"])
async def test_a_log_that_another_container_writes_is_followed(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    it = PodOnNode(
        container("r", command), container("w", "i=0; while true; do sleep 2; i=$((i+1)); echo $i >> /d/log; done")
    )
    await it.sync_at(0)
    await it.sync_at(9)
    shared = it.contents.for_pod(it.pod)
    assert shared is not None
    monkeypatch.setattr("steersman.machinery.values.times.unix_now", lambda: NOW + 9)
    log = shared.log_of(it.pod.status.container_statuses[0].container_id)
    assert log is not None
    printed = b""
    for each in log:
        if isinstance(each, float):
            break
        if each.stream == 1:
            printed += each.data
    assert printed == b"1\n2\n3\n4\n"
    assert it.exit_of("r") is None


async def test_of_what_a_command_prints_the_end_is_kept() -> None:
    it = PodOnNode(container("c", "while true; do seq 1 3000; sleep 1; touch /d/f; done"))
    await it.sync_at(0)
    for seconds in range(12):
        await it.sync_at(seconds)
    shared = it.contents.for_pod(it.pod)
    assert shared is not None
    execution = shared._state.logs[it.pod.status.container_statuses[0].container_id]
    assert 50_000 < sum(len(each.data) for each in execution.output.since(0)) <= 64 << 10


async def test_nothing_is_left_of_pods_that_are_gone() -> None:
    containers = Containers()
    contents = containers.contents
    for number in range(20):
        it = PodOnNode(
            container("c", "while true; do echo a >> /d/f; sleep 1; done"), uid=str(number), containers=containers
        )
        await it.sync_at(0)
        await it.sync_at(5)
        shared = contents.for_pod(it.pod)
        assert shared is not None
        contents.forget(it.pod)
        await shared.start_and_run({}, it._world, NOW + 9)  # a sync that was in progress
        shared.start_container(it.container if it.pod.spec.containers else it.pod.spec.init_containers[0], "x", NOW)
        contents.forget(it.pod)
    assert (contents._pods, contents._writers, contents._found, contents.followed) == ({}, {}, 0, 0)
    assert (contents.store.used_bytes, len(contents.store)) == (0, 0)


async def test_servers_of_files_are_remembered_as_long_as_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steersman.nodes.contents.MOST_SERVERS", 2)
    containers = Containers()
    for number, lines in ((0, 1), (1, 1), (2, 1), (1, 2)):
        volume = Volume(name="d", nfs=NFSVolumeSource(server=f"s{number}", path="/a"))
        it = PodOnNode(container("c", "echo a >> /d/f"), volume=volume, uid=f"u{number}", containers=containers)
        await it.sync_at(0)
        assert it.file("/d/f") == b"a\n" * lines
        containers.contents.forget(it.pod)
    assert len(containers.contents.store) == 2


async def test_many_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steersman.nodes.contents.MOST_FOLLOWED", 1)
    it = PodOnNode(container("a", "touch /d/a; sleep 1000"), container("b", "touch /d/b; sleep 1000"))
    await it.sync_at(0)
    await it.sync_at(1)
    assert (it.file("/d/a"), it.file("/d/b"), it.pod.status.phase) == (b"", None, "Running")


def test_files_in_sight_are_found_in_a_time_by_their_number() -> None:
    """The time must not depend on the number of mounts, as many mounts may show the same files."""
    store = VolumeStore()
    volume = store.files(VolumeKey("pod", "u", "d"))
    for number in range(4000):
        volume[f"{number}"] = b""

    def listed(mounts: int) -> int:
        view = MountedFiles({}, [Mount(f"/{number}", volume) for number in range(mounts)])
        return calls(lambda: len(view))

    assert listed(5000) < 8 * listed(1)


def test_a_mount_within_another_hides_what_is_there() -> None:
    store = VolumeStore()
    outer, inner = (store.files(VolumeKey("pod", "u", name)) for name in ("outer", "inner"))
    outer["f"], outer["in/hidden"], inner["seen"] = b"1", b"2", b"3"
    own = {"/etc/hosts": b"", "/d/hidden": b""}
    view = MountedFiles(own, [Mount("/d", outer), Mount("/d/in", inner), Mount("/d/conf", None)])
    assert sorted(view) == ["/d/f", "/d/in/seen", "/etc/hosts"]
    view["/d/conf/a"] = b"4"
    assert own["/d/conf/a"] == b"4"
    assert sorted(view) == ["/d/conf/a", "/d/f", "/d/in/seen", "/etc/hosts"]
    del view["/d/f"]
    assert list(outer) == ["in/hidden"]
    single = MountedFiles({}, [Mount("/etc/app.conf", outer, "in/hidden")])
    assert dict(single) == {"/etc/app.conf": b"2"}


@pytest.mark.parametrize(
    "script",
    [
        'while true; do x=$(seq 1 900); echo "$x" >> /d/f; sleep 0.01; done',
        "while true; do cat /d/f >> /d/f; echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa >> /d/f; sleep 0.01; done",
        "i=0; while true; do i=$((i+1)); touch /d/$i; sleep 0.001; done",
        "until [ -f /d/x ]; do sleep 0.001; done",
    ],
)
async def test_a_sync_of_containers_that_do_much_is_short(script: str) -> None:
    it = PodOnNode(container("a", script), container("b", script))
    await it.sync_at(0)
    for seconds in (1, 10, 100, 1000):
        shared = it.contents.for_pod(it.pod)
        started_at = time.thread_time()
        sync_pod(it.pod, replace(it.context, shared=shared), NOW + seconds)
        assert time.thread_time() - started_at < 0.1  # some 6 ms


async def test_what_an_ended_container_has_still_to_do_is_done_later(monkeypatch: pytest.MonkeyPatch) -> None:
    it = PodOnNode(container("c", "for i in 1 2 3; do echo $i >> /d/f; sleep 1; done"), container("d", "sleep 1000"))
    await it.sync_at(0)
    monkeypatch.setattr("steersman.nodes.contents.SECONDS_IN_SYNC", -1)
    it.pod.metadata.deletion_timestamp, it.pod.metadata.deletion_grace_period_seconds = status_time(NOW + 40), 30
    shared = it.contents.for_pod(it.pod)
    it.pod.status = sync_pod(it.pod, replace(it.context, shared=shared), NOW + 10).status
    assert it.exit_of("c") is not None
    await it.sync_at(11)
    assert it.file("/d/f") == b"1\n2\n3\n"
    assert it.contents.followed == 0
