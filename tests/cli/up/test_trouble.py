"""Pods with problems, their reasons, and the last warnings in the view of a cluster, in colour."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from steersman.api.core.v1 import Container, Event, ObjectReference, Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.cli.up.figures import Figures, LiveFigures, measure
from steersman.cli.up.screen import GREEN, RED, YELLOW, Line, Screen
from steersman.cli.up.shown import view
from steersman.cli.up.trouble import PodPart, Trouble, plain, trouble_of
from steersman.client.resources import EVENTS, PODS, SERVICE_ACCOUNTS
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration, NodeGroup
from steersman.controlplane.options import Options
from tests.controllers.waiting import eventually

ADDRESS: Any = SimpleNamespace(url="https://127.0.0.1:1")
UNSCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}


def waiting(reason: str, message: str = "") -> list[dict[str, Any]]:
    return [{"name": "c", "state": {"waiting": {"reason": reason, "message": message}}}]


@pytest.mark.parametrize(
    ("status", "kind", "why"),
    [
        ({"phase": "Running"}, "", ""),
        ({"phase": "Succeeded"}, "", ""),
        ({"phase": "Pending"}, "Pending", "not assigned to a node yet"),
        ({"phase": "Pending", "conditions": [UNSCHEDULED]}, "Pending", "Unschedulable: 0/1 nodes"),
        ({"phase": "Pending", "containerStatuses": waiting("ContainerCreating")}, "Pending", "ContainerCreating"),
        (
            {"phase": "Pending", "containerStatuses": waiting("ImagePullBackOff", "no\nsuch \x1b[2J")},
            "Failed",
            "c: ImagePullBackOff: no such ?[2J",
        ),
        ({"phase": "Running", "containerStatuses": waiting("CrashLoopBackOff")}, "Failed", "c: CrashLoopBackOff"),
        ({"phase": "Pending", "initContainerStatuses": waiting("CrashLoopBackOff")}, "Failed", "c: CrashLoopBackOff"),
        ({"phase": "Failed", "reason": "Evicted", "message": "memory"}, "Failed", "Evicted: memory"),
        (
            {
                "phase": "Failed",
                "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}],
            },
            "Failed",
            "c: Error, exit code 3",
        ),
        ({"phase": "Failed"}, "Failed", "no reason given"),
    ],
)
def test_the_reason_of_a_pod(status: dict[str, Any], kind: str, why: str) -> None:
    assert trouble_of(msgspec.convert({"status": status}, PodPart)) == (kind, why)


def test_text_of_users_has_no_escape_codes_and_no_length() -> None:
    assert plain("a\x1b]0;b\x07\tü\n" + "c" * 1_000_000) == "a?]0;b? ? " + "c" * 290


def a_pod(name: str, **selector: str) -> Pod:
    spec = PodSpec(containers=[Container(name="c", image="a")], node_selector=selector, restart_policy="Never")
    return Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


async def test_pods_and_warnings_are_followed(keys_folder: Path) -> None:
    options = Options(data_dir=keys_folder, storage="memory", listen=False)
    cluster = Cluster(options, Configuration((NodeGroup(count=1),)))
    await cluster.start()
    client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
    followed = LiveFigures(client, lambda: 0.0)
    trouble = followed.trouble
    followed.start()

    async def account() -> list[Any]:
        return [each async for each in client.iterate(SERVICE_ACCOUNTS, "default")]

    try:
        await eventually(account)
        fails = a_pod("fails")
        fails.metadata.annotations = {"simulation.steersman.dev/exit-code": "3"}
        for each in (*(a_pod(f"waits-{number}", nothing="here") for number in range(7)), fails, a_pod("runs")):
            await client.create(PODS, each)
        for number in range(7):
            event = Event(
                metadata=ObjectMeta(name=f"e{number}", namespace="default"),
                type="Warning" if number else "Normal",
                reason=f"R{number}",
                message="m",
                last_timestamp=f"2036-01-01T00:00:0{number}Z",
                involved_object=ObjectReference(kind="Pod", namespace="default", name="p"),
            )
            await client.create(EVENTS, event)

        async def told() -> bool:
            return (
                trouble.failed() == ["default/fails: c: Error, exit code 3"]
                and len(trouble.pending()) == 6
                and trouble.warnings()[0] == "00:00:06 Pod default/p: R6: m"
            )

        await eventually(told)
        assert trouble.pending()[0].startswith("default/waits-0: Unschedulable: 0/1 nodes are available")
        assert trouble.pending()[-1] == "and 2 more"
        listed = Trouble()
        await measure(client, 0.05, listed)
        assert listed.failed() == trouble.failed()
        assert set(listed.pending()) == set(trouble.pending())
        assert listed.warnings() == trouble.warnings()
        assert [each[:8] for each in trouble.warnings()] == [f"00:00:0{number}" for number in (6, 5, 4, 3, 2)]
        await client.delete(PODS, "fails", "default")

        async def gone() -> bool:
            return trouble.failed() == []

        await eventually(gone)
    finally:
        await followed.stop()
        await cluster.stop()


class _Trouble:
    def failed(self) -> list[str]:
        return ["default/a: c: Error, exit code 3"]

    def pending(self) -> list[str]:
        return ["default/b: Unschedulable", "and 3 more"]

    def warnings(self) -> list[str]:
        return []


def test_the_view_has_a_part_for_each_that_there_is() -> None:
    trouble: Any = _Trouble()
    assert view(Figures(2, 1, {"Failed": 1}), ADDRESS, 61, trouble) == [
        Line("steersman  https://127.0.0.1:1, up 1m1s, 0 requests a second", "", 11),
        Line("nodes      1 of 2 ready", YELLOW, 11),
        Line("pods       1 failed", "", 11),
        Line("failed     default/a: c: Error, exit code 3", RED, 11),
        Line("pending    default/b: Unschedulable", YELLOW, 11),
        Line("           and 3 more", YELLOW, 11),
        Line("ctrl-c     ends the cluster", "", 11),
    ]


def test_colours_take_no_columns() -> None:
    out = io.StringIO()
    screen = Screen(out, lambda _: (16, 10))
    screen.show([Line("nodes      3 ready", GREEN, 11), "plain"])
    assert out.getvalue() == "\x1b[Jnodes      \x1b[32m3 re\x1b[0m\nplain\n"
    out.truncate(out.seek(0))
    screen.show([Line("nodes", GREEN, 11)])
    assert out.getvalue() == "\x1b[2F\x1b[Jnodes\n"
