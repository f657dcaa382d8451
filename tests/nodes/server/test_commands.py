"""Commands in simulated containers, over the kubelet's protocol."""

from __future__ import annotations

import asyncio
import json

import pytest

from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import DeleteOptions, ObjectMeta
from steersman.client.resources import CONFIG_MAPS, PODS
from steersman.nodes.server import commands
from tests.controllers.waiting import eventually
from tests.nodes.server.requests import Node


async def test_a_command_has_its_streams_and_its_exit_code(node: Node) -> None:
    await node.pod("p")
    assert await node.execute("p", "hostname") == ("p\n", "", {"metadata": {}, "status": "Success"})
    out, err, said = await node.execute("p", "sh", "-c", "cat; echo no >&2; exit 3", stdin=b"from here")
    assert (out, err) == ("from here", "no\n")
    assert said["reason"] == "NonZeroExitCode"
    assert said["details"] == {"causes": [{"reason": "ExitCode", "message": "3"}]}


async def test_a_program_that_is_not_there_is_an_error(node: Node) -> None:
    await node.pod("p")
    *_, said = await node.execute("p", "nosuch")
    assert said["reason"] == "InternalError"
    assert 'exec: "nosuch": executable file not found in $PATH: unknown' in said["message"]


async def test_a_terminal_shows_what_is_typed(node: Node) -> None:
    await node.pod("p")
    out, _, said = await node.execute("p", "sh", stdin=b"echo a\x7fbc\rexit 2\r", tty=True)
    assert "echo a\b \bbc\r\n" in out
    assert "bc\r\n/ # " in out
    assert said["details"]["causes"][0]["message"] == "2"
    *_, said = await node.execute("p", "sleep", "100", stdin=b"\x03", tty=True)
    assert said["details"]["causes"][0]["message"] == "130"


async def test_what_is_written_stays_in_the_container(node: Node) -> None:
    await node.pod("p")
    await node.execute("p", "sh", "-c", "echo kept > /tmp/f")
    assert (await node.execute("p", "cat", "/tmp/f"))[0] == "kept\n"
    await node.execute("p", "sh", "-c", "kill -9 1")

    async def restarted() -> bool:
        return (await node.client.get(PODS, "p", "default")).status.container_statuses[0].restart_count == 1

    await eventually(restarted)
    assert (await node.execute("p", "cat", "/tmp/f"))[1].endswith("No such file or directory\n")
    last = (await node.client.get(PODS, "p", "default")).status.container_statuses[0].last_state.terminated
    assert last is not None
    assert last.exit_code == 137


async def test_who_attaches_to_a_shell_ends_the_container_with_it(node: Node) -> None:
    await node.pod("p", "sh", stdin=True)
    out, _, said = await node.execute("p", stdin=b"hostname\nexit 7\n", what="attach")
    assert (out, said["status"]) == ("p\n", "Success")

    async def ended() -> int | None:
        last = (await node.client.get(PODS, "p", "default")).status.container_statuses[0].last_state.terminated
        return None if last is None else last.exit_code

    assert await eventually(ended) == 7


async def test_variables_and_files_are_those_of_the_pod(node: Node) -> None:
    metadata = ObjectMeta(name="m", namespace="default")
    await node.client.create(CONFIG_MAPS, ConfigMap(metadata=metadata, data={"KEY": "value"}))
    made = await node.pod("p")
    container = made.spec.containers or []
    assert container[0].volume_mounts[0].mount_path == "/var/run/secrets/kubernetes.io/serviceaccount"
    where = "/var/run/secrets/kubernetes.io/serviceaccount"
    out, *_ = await node.execute("p", "sh", "-c", f"cat {where}/namespace; cat {where}/token; env; cat /etc/hosts")
    assert out.startswith("defaultey")
    assert "HOSTNAME=p\n" in out
    assert f"{made.status.pod_ip}\tp\n" in out


async def test_run_answers_what_is_printed(node: Node) -> None:
    await node.pod("p")
    answer = await node.request("/run/default/p/c?cmd=hostname", method="POST")
    assert (answer.status, await answer.read(100)) == (200, b"p\n")
    answer = await node.request("/run/default/p/c?cmd=false", method="POST")
    assert answer.status == 500


async def test_what_is_no_upgrade_or_no_container_is_refused(node: Node) -> None:
    await node.pod("p", "true")
    answer = await node.request("/exec/default/p/c?command=x&output=1", method="POST")
    assert (answer.status, await answer.read(100)) == (500, b'container not found ("c")')
    answer = await node.request("/exec/default/p/c?command=x", method="POST")
    assert (answer.status, await answer.read(100)) == (400, b"you must specify at least 1 of stdin, stdout, stderr")
    await node.pod("q")
    answer = await node.request("/exec/default/q/c?command=x&output=1", method="POST")
    assert (answer.status, await answer.read(100)) == (400, b"Upgrade request required")
    answer = await node.request("/exec/default/q/d?command=x&output=1", method="POST")
    assert (answer.status, await answer.read(100)) == (500, b'container not found ("d")')
    answer = await node.request("/exec/default/nope/c?command=x&output=1", method="POST")
    assert answer.status == 404
    fields = [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1"), ("X-Stream-Protocol-Version", "v9.channel.k8s.io")]
    answer = await node.request("/exec/default/q/c?command=x&output=1", fields, method="POST")
    assert answer.status == 403


async def test_a_command_ends_with_its_pod(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "CHECK_INTERVAL", 0.01)
    await node.pod("p")
    query = "output=1&error=1&command=sh&command=-c&command=echo+begun%3B+sleep+1000"
    session = await node.spdy(f"/exec/default/p/c?{query}")
    running = asyncio.create_task(session.run())
    try:
        async with asyncio.timeout(10):
            errors, out, _ = [await session.open({"streamtype": each}, 5) for each in ("error", "stdout", "stderr")]
            assert await out.read() == b"begun\n"
            await node.client.delete(PODS, "p", "default", DeleteOptions(grace_period_seconds=0))
            assert json.loads(await errors.read_all(1000))["details"]["causes"] == [
                {"reason": "ExitCode", "message": "137"}
            ]
    finally:
        session.close()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_in_a_script_a_program_that_is_not_there_is_not_found_wherever_it_stands(node: Node) -> None:
    await node.pod("p")
    for script, out in (("nosuch; echo after", "after\n"), ("echo a; nosuch; echo after", "a\nafter\n")):
        printed, err, said = await node.execute("p", "sh", "-c", script)
        assert (printed, err, said["status"]) == (out, "sh: nosuch: not found\n", "Success")


async def test_a_container_for_debugging_sees_the_processes_of_its_target(node: Node) -> None:
    await node.pod("p", "sleep", "1000")
    debugger = {
        "name": "d",
        "image": "busybox",
        "command": ["sh", "-c", "echo before; ps; nosuch; echo after"],
        "targetContainerName": "c",
    }
    await node.client.patch_without_result(
        PODS,
        "p",
        "default",
        {"spec": {"ephemeralContainers": [debugger]}},
        subresource="ephemeralcontainers",
        media="application/strategic-merge-patch+json",
    )

    async def ended() -> bool:
        statuses = (await node.client.get(PODS, "p", "default")).status.ephemeral_container_statuses
        return bool(statuses and statuses[0].state.terminated is not None)

    await eventually(ended)
    log = await node.logs("p", "container=d")
    assert log.startswith("before\n")
    assert "    1 root     0:00 sleep 1000\n" in log
    assert log.endswith("after\n")


async def test_names_of_the_cluster_are_found(node: Node) -> None:
    await node.pod("p")
    out, *_ = await node.execute("p", "nslookup", "kubernetes.default")
    assert "Name:\tkubernetes.default.svc.cluster.local\nAddress: 10." in out
    _, _, said = await node.execute("p", "nslookup", "nosuch")
    assert said["details"]["causes"][0]["message"] == "1"


async def test_keys_that_are_typed_while_a_command_sleeps_are_bounded(node: Node) -> None:
    await node.pod("p")
    typed = b"\n" * 200_000 + b"\x03"
    *_, said = await node.execute("p", "sleep", "1000", stdin=typed, tty=True)
    assert said["details"]["causes"][0]["message"] == "130"


async def test_a_command_that_keeps_more_than_its_namespace_may_is_killed(node: Node) -> None:
    await node.pod("p")
    share = node.cluster.servers.containers.shares.for_namespace("default")
    assert share.reserve(63 << 20)
    *_, said = await node.execute("p", "sh", "-c", "read x; echo $x", stdin=b"x" * (2 << 20))
    assert said["details"]["causes"][0]["message"] == "137"
    share.release(63 << 20)
    *_, said = await node.execute("p", "sh", "-c", "read x", stdin=b"x\n")
    assert said["status"] == "Success"
    assert share.reserve(64 << 20)
    share.release(64 << 20)
