"""Flow schemas and priority levels of a whole server: followed, restored, and reported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.flow_control import GROUP, LEVELS, SCHEMAS
from steersman.controlplane.flow_control_configuration import FlowControlConfiguration, revised
from steersman.controlplane.options import Options, OptionsError
from steersman.flowcontrol.bootstrap_configuration import AUTO_UPDATE, mandatory, suggested
from steersman.net.in_process import InProcessClient
from steersman.rest.context import LOOPBACK, loopback
from tests.cached_objects import cached

pytestmark = pytest.mark.usefixtures("from_nothing")


async def until(condition: Callable[[], Any]) -> None:
    """Wait until a condition holds."""
    for _ in range(2_000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came to be")


@pytest.fixture
async def plane(keys_folder: Path) -> AsyncIterator[ControlPlane]:
    plane = ControlPlane(Options(data_dir=keys_folder, listen=False, advertise_address="192.0.2.10", storage="memory"))
    await plane.start()
    yield plane
    await plane.stop()


def fairness(plane: ControlPlane) -> Any:
    assert plane.server is not None
    return plane.server.config.fairness


async def ask(plane: ControlPlane, path: str) -> tuple[int, dict[str, str], str]:
    assert plane.server is not None
    client = InProcessClient(plane.server.handler)
    answer = await client.request("GET", path, [("authorization", f"Bearer {plane.token_of(LOOPBACK)}")])
    return answer.status, dict(answer.headers), (await answer.read()).decode()


def condition(plane: ControlPlane, name: str) -> str:
    found = next(each for each in plane.objects(GROUP, SCHEMAS).list() if each.metadata.name == name)
    return next((each.status for each in found.status.conditions if each.type == "Dangling"), "?")


async def test_a_fresh_server_has_what_is_shipped_and_uses_it(plane: ControlPlane) -> None:
    levels, schemas = mandatory()
    more_levels, more_schemas = suggested()
    names = {name for _, name in plane.objects(GROUP, LEVELS).names()}
    assert names == {each.metadata.name for each in [*levels, *more_levels]}
    await until(lambda: set(fairness(plane).levels) == names)
    await until(lambda: all(condition(plane, each.metadata.name) == "False" for each in [*schemas, *more_schemas]))
    exempt = await cached(plane, GROUP, LEVELS, "", "exempt")
    _, headers, _ = await ask(plane, "/api/v1/namespaces")
    assert headers["x-kubernetes-pf-prioritylevel-uid"] == exempt.metadata.uid


async def test_a_schema_whose_level_goes_is_said_to_dangle(plane: ControlPlane) -> None:
    await until(lambda: condition(plane, "probes") == "False")
    levels = plane.objects(GROUP, LEVELS)
    await levels.delete(loopback(name="workload-low"), "workload-low")
    await until(lambda: condition(plane, "service-accounts") == "True")
    assert "workload-low" not in fairness(plane).levels


async def test_what_was_taken_away_is_made_again_and_mandatory_ones_are_corrected(plane: ControlPlane) -> None:
    levels, schemas = plane.objects(GROUP, LEVELS), plane.objects(GROUP, SCHEMAS)
    await levels.delete(loopback(name="system"), "system")
    await schemas.delete(loopback(name="catch-all"), "catch-all")

    def marked(old: Any) -> Any:
        old.metadata.annotations = {}
        return old

    await levels.update(loopback(name="catch-all"), "catch-all", marked)
    await FlowControlConfiguration(plane.objects).ensure()
    assert levels.is_cached("", "system")
    assert schemas.is_cached("", "catch-all")
    catch_all = await cached(plane, GROUP, LEVELS, "", "catch-all")
    assert catch_all.metadata.annotations == {AUTO_UPDATE: "true"}


async def test_what_an_older_version_had_made_goes_and_what_users_made_stays(plane: ControlPlane) -> None:
    levels = plane.objects(GROUP, LEVELS)
    system = await cached(plane, GROUP, LEVELS, "", "system")
    for name, marks in (("old", {AUTO_UPDATE: "true"}), ("kept", {AUTO_UPDATE: "false"}), ("own", {})):
        metadata = type(system.metadata)(name=name, annotations=marks)
        await levels.create(loopback(), type(system)(metadata=metadata, spec=system.spec))
    await FlowControlConfiguration(plane.objects).ensure()
    assert not levels.is_cached("", "old")
    assert levels.is_cached("", "kept")
    assert levels.is_cached("", "own")


def test_a_suggested_one_that_somebody_has_changed_stays_as_it_is() -> None:
    wanted = suggested()[0][0]
    limited = wanted.spec.limited
    assert limited is not None
    changed = replace(wanted.spec, limited=replace(limited, nominal_concurrency_shares=7))

    def current(annotation: str | None, generation: int, *, spec: Any = changed) -> Any:
        annotations = {} if annotation is None else {AUTO_UPDATE: annotation}
        return replace(
            wanted, metadata=replace(wanted.metadata, annotations=annotations, generation=generation), spec=spec
        )

    def outcome(found: Any) -> tuple[str, bool] | None:
        made = revised(found, wanted, is_mandatory=False)
        return None if made is None else (made.metadata.annotations[AUTO_UPDATE], made.spec == wanted.spec)

    assert outcome(current("true", 2)) == ("true", True)
    assert outcome(current("false", 2)) is None
    assert outcome(current(None, 2)) == ("false", False)
    assert outcome(current(None, 1)) == ("true", True)
    assert outcome(current("maybe", 2)) == ("false", False)
    assert outcome(current("true", 1, spec=wanted.spec)) is None
    made = revised(current("false", 5), wanted, is_mandatory=True)
    assert made is not None
    assert (made.metadata.annotations[AUTO_UPDATE], made.spec) == ("true", wanted.spec)


def test_the_seats_of_the_exempt_level_are_its_owners_to_choose() -> None:
    wanted = next(each for each in mandatory()[0] if each.metadata.name == "exempt")
    exempt = wanted.spec.exempt
    assert exempt is not None
    chosen = replace(wanted, spec=replace(wanted.spec, exempt=replace(exempt, nominal_concurrency_shares=5)))
    assert revised(chosen, wanted, is_mandatory=True) is None


async def test_the_dumps_tell_what_waits_and_what_is_worked_on(plane: ControlPlane) -> None:
    await until(lambda: len(fairness(plane).levels) == 8)
    status, headers, text = await ask(plane, "/debug/api_priority_and_fairness/dump_priority_levels")
    assert (status, headers["content-type"]) == (200, "text/plain; charset=utf-8")
    lines = text.splitlines()
    assert lines[0].startswith("PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing,")
    assert [line.partition(",")[0] for line in lines[1:]] == sorted(fairness(plane).levels)
    _, _, text = await ask(plane, "/debug/api_priority_and_fairness/dump_queues")
    assert len(text.splitlines()) == 1 + 128 * 3 + 64 * 2 + 16
    path = "/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1"
    _, _, text = await ask(plane, path)
    _, row = text.splitlines()
    cells = [cell.strip() for cell in row.split(",")]
    assert cells[:5] == ["exempt", "exempt", "-1", "-1", ""]
    assert cells[10:13] == ["system:apiserver", "get", path.partition("?")[0]]


async def test_metrics_tell_of_levels_and_requests(plane: ControlPlane) -> None:
    await until(lambda: len(fairness(plane).levels) == 8)
    await ask(plane, "/api/v1/namespaces")
    _, _, text = await ask(plane, "/metrics")
    assert 'apiserver_flowcontrol_nominal_limit_seats{priority_level="workload-low"} 245' in text
    assert 'apiserver_flowcontrol_current_executing_requests{priority_level="exempt",flow_schema="exempt"} 1' in text
    assert 'apiserver_flowcontrol_dispatched_requests_total{priority_level="exempt",flow_schema="exempt"} 2' in text
    assert "apiserver_flowcontrol_request_wait_duration_seconds_count" not in text
    assert 'apiserver_flowcontrol_work_estimated_seats_count{priority_level="exempt",flow_schema="exempt"} 2' in text


async def test_without_it_requests_are_only_counted(keys_folder: Path) -> None:
    options = Options(data_dir=keys_folder, listen=False, storage="memory", enable_priority_and_fairness=False)
    plane = ControlPlane(options)
    await plane.start()
    try:
        _, headers, _ = await ask(plane, "/api/v1/namespaces")
        assert "x-kubernetes-pf-flowschema-uid" not in headers
        _, _, text = await ask(plane, "/healthz?verbose")
        assert "poststarthook/max-in-flight-filter ok" in text
        assert "poststarthook/priority-and-fairness-config-producer ok" in text
        assert "config-consumer" not in text
    finally:
        await plane.stop()


async def test_without_seats_there_is_no_start(tmp_path: Path) -> None:
    options = Options(data_dir=tmp_path, listen=False, max_requests_inflight=0, max_mutating_requests_inflight=0)
    with pytest.raises(OptionsError, match="they must add up to something positive"):
        await ControlPlane(options).start()
