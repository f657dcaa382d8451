"""Tests of first states of servers in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import Options
from steersman.storage.interface import KeyValue
from steersman.storage.memory import MemoryStorage, Snapshot
from tests import first_states

StartControlPlane = Callable[..., Awaitable[ControlPlane]]


async def uids(plane: ControlPlane, group: str = "", plural: str = "namespaces") -> set[str]:
    return {each.metadata.uid async for each, _ in plane.objects(group, plural).iterate_cached()}


async def test_a_server_begins_with_what_an_equal_one_has_made(start_control_plane: StartControlPlane) -> None:
    first = await start_control_plane(request_timeout=61.0)
    equal = await start_control_plane(request_timeout=61.0)
    other = await start_control_plane(request_timeout=62.0)
    assert await uids(equal) == await uids(first)
    assert not await uids(other) & await uids(first)


async def test_where_a_server_writes_its_audit_log_changes_no_object(
    start_control_plane: StartControlPlane, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
    logs = [str(tmp_path / name) for name in ("first.log", "second.log")]
    first, equal = [
        await start_control_plane(audit_policy_file=str(policy), audit_log_path=log, request_timeout=61.0)
        for log in logs
    ]
    assert await uids(equal) == await uids(first)


async def test_the_lease_of_a_server_is_its_own(start_control_plane: StartControlPlane) -> None:
    first = await start_control_plane(request_timeout=61.0)
    equal = await start_control_plane(request_timeout=61.0)
    leases = [await uids(each, "coordination.k8s.io", "leases") for each in (first, equal)]
    assert len(leases[0] | leases[1]) == 2


@pytest.mark.usefixtures("from_nothing")
async def test_a_test_may_have_servers_that_begin_with_nothing(start_control_plane: StartControlPlane) -> None:
    assert not await uids(await start_control_plane()) & await uids(await start_control_plane())


async def test_a_server_with_another_authority_makes_its_own_objects(
    start_control_plane: StartControlPlane, tmp_path: Path
) -> None:
    first = await start_control_plane()
    other = await start_control_plane(data_dir=tmp_path / "data")  # which has keys of its own
    assert not await uids(other) & await uids(first)


async def test_the_least_recently_used_state_goes_first(tmp_path: Path) -> None:
    states = first_states.FirstStates()

    def options(number: int) -> Options:
        return Options(data_dir=tmp_path, storage="memory", request_timeout=float(number))

    def is_known(number: int) -> bool:
        storage = MemoryStorage()
        before = storage.revision
        states.begin(options(number), storage)
        return storage.revision > before

    for number in range(1, 200):
        values = {"/registry/a": KeyValue("/registry/a", b"{}", 1, 1)}
        plane: Any = SimpleNamespace(
            storage=MemoryStorage(), options=options(number), snapshot=lambda values=values: Snapshot(values, {}, {})
        )
        states.keep(plane)
        assert is_known(1)
    assert is_known(199)
    assert not is_known(2)
