"""A short recording, played on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steersman.api.core.v1 import Pod
from steersman.client.resources import DEPLOYMENTS, JOBS, NODES, PODS
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration
from steersman.cluster.replaying.plan import Planner
from steersman.cluster.replaying.player import Player
from steersman.cluster.replaying.recorded import load_recorded
from steersman.controlplane.options import Options
from steersman.dumps.recordings import Type, change_line, header_line
from steersman.machinery.values.times import unix
from tests.cluster.opening import real_objects as real
from tests.controllers.waiting import eventually

START = 1_795_900_000.0


def spec_of(name: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    return {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}


def recording(folder: Path) -> Path:
    web = {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": real.metadata("web", "default")}
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "command": ["work"]}]}}
    job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": real.metadata("job", "default")}
    pod = real.pod("job-x", ownerReferences=[real.owner("Job", "job", version="batch/v1")])
    ended = {"exitCode": 0, "startedAt": "2026-11-20T08:00:00Z", "finishedAt": "2026-11-20T08:10:00Z"}
    pod["status"]["containerStatuses"][0] = {"name": "c", "state": {"terminated": ended}}
    changes: list[tuple[float, Type, dict[str, Any]]] = [
        (0, "PRESENT", real.node()),
        (0, "PRESENT", {**web, "spec": spec_of("web")}),
        (600, "MODIFIED", {**web, "spec": {**spec_of("web"), "replicas": 3}}),
        (660, "ADDED", {**job, "spec": {"template": template}}),
        (1300, "MODIFIED", pod),
        (1800, "ADDED", {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "w"}}),
        (3600, "MODIFIED", {**web, "spec": {**spec_of("web"), "replicas": 2}}),
    ]
    file = folder / "day.rec"
    file.write_bytes(header_line() + b"".join(change_line(START + at, type_, obj) for at, type_, obj in changes))
    return file


@pytest.mark.slow
async def test_users_do_again_what_they_did_each_at_its_time(tmp_path: Path) -> None:
    recorded = load_recorded(recording(tmp_path))
    options = Options(data_dir=tmp_path / "data", listen=False, unsafe_no_fsync=True)
    cluster = Cluster(options, Configuration((), begins_with=recorded.beginning), owns_process=True)
    await cluster.start()
    try:
        client = cluster.administrator()
        assert [each.metadata.name for each in (await client.list(NODES)).items] == [real.NODE]
        cluster.set_speed(3600)
        player = Player(client, Planner(recorded.ends))
        played = await player.play(recorded.changes(), start=recorded.start, until=recorded.end)
        cluster.set_speed(1)
        assert (played.changes, played.actions, played.refused) == (7, {"create": 1, "patch": 2, "delete": 0}, 1)
        assert "nothing defines Widget" in played.problems[0]
        job = await client.get(JOBS, "job", "default")
        ran = _seconds(job.status.completion_time) - _seconds(job.status.start_time)
        assert 600 <= ran < 660
        assert (await client.get(DEPLOYMENTS, "web", "default")).spec.replicas == 2

        async def running() -> list[Pod]:
            found = [each for each in (await client.list(PODS)).items if each.metadata.labels.get("app") == "web"]
            return found if len(found) == 2 else []

        await eventually(running)
    finally:
        await cluster.stop()


def _seconds(time: str | None) -> int:
    assert time is not None
    return unix(time)


async def test_notes_on_a_recording_name_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "day.rec"
    file.write_bytes(header_line() + change_line(START, "PRESENT", real.pod("a")))
    options = Options(data_dir=tmp_path / "data", listen=False, storage="memory")
    cluster = Cluster(options, Configuration((), begins_with=load_recorded(file).beginning), owns_process=True)
    await cluster.start()
    await cluster.stop()
    assert "the recording: nodes that the dump lacks were made up for their pods: 1" in caplog.messages
