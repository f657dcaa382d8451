"""One run: a server in its first state, the programs on it, the faults of a plan, and the end state."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol

from steersman.client.client import Client
from steersman.cluster.initial_objects import apply_manifests, read_manifests
from steersman.faults.fault import Met
from steersman.machinery.values.times import monotonic
from steersman.storage.memory import Snapshot
from steersman.stress.drop_in import FOLDER, Task, is_of_clients, read_hits, read_points, write_task
from steersman.stress.masking import Masker
from steersman.stress.output_files import OutputFiles
from steersman.stress.point import PlannedFault
from steersman.stress.processes import Operator, Program
from steersman.stress.state import LEADER, Difference, Expectation, State, changed, state_of
from steersman.stress.tap import Seen, Tap
from steersman.stress.touch import client_of, touch
from steersman.testing.environment import Environment
from steersman.testing.users import User
from steersman.work.offloading import begin_task

OPERATOR: Final = User("operator", ("system:masters",))
TEST: Final = User("test", ("system:masters",))
_DEFINING: Final = ("Namespace", "CustomResourceDefinition")
_HIDDEN: Final = frozenset(
    ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "TEST_ASSET_KUBE_APISERVER", "TEST_ASSET_ETCD")
)
"""Environment variables that would lead programs to another server."""
_LOOK: Final = 0.05
"""Seconds between two looks at the state."""
_READY: Final = 60.0
"""Seconds in which an operator sends its first requests."""
_IDLE: Final = 0.3
"""Seconds without a request after which an operator that watches nothing counts as ready."""
_GRACE: Final = 2.0
"""Seconds in which a command ends that is asked to."""
_TIMES: Final = 3
_MORE: Final = 30.0
"""Seconds that a command may take beyond _TIMES the longest run without faults."""
_SCREENED: Final = 3
"""Times the seconds of rest after which an unexpected state counts, before it is confirmed with more patience."""
NUMBER: Final = "STEERSMAN_STRESS_NUMBER"
"""Environment variable with the number of a run among those in parallel, from 0."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of all runs.

    `settle` are the seconds without a change after which a run has come to rest, and `patience` the seconds in which
    that happens after the test has ended. `limit` are the seconds of a test. `ignored` are patterns of differences.
    """

    operator: str = ""
    test: str = ""
    command: tuple[str, ...] = ()
    manifests: tuple[Path, ...] = ()
    nodes: int = 0
    controllers: bool = False
    settle: float = 1.0
    patience: float = 15.0
    limit: float = 600.0
    hold: float = 0.5
    clients: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


@dataclass(slots=True)
class Run:
    """Result of a run."""

    seen: list[Seen] = field(default_factory=list)
    hits: list[PlannedFault] = field(default_factory=list)
    exit_code: int | None = 0
    """Exit code of the test; None if it did not end in time."""
    output: str = ""
    """End of the output of the test, or of the operator if that is to blame."""
    state: State = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    """Differences of the end state from the expected one."""
    restless: list[str] = field(default_factory=list)
    """Objects that were still written when patience ended."""
    operator_exits: list[int] = field(default_factory=list)
    problem: str = ""
    """Reason why the run failed that is neither the test's nor the state's."""
    seconds: float = 0.0

    @property
    def failure(self) -> str:
        """One line that says why the run failed, "" if it did not."""
        if self.problem:
            return self.problem
        if self.exit_code is None:
            return "the test did not end in time"
        if self.exit_code:
            return f"the test failed with exit code {self.exit_code}"
        if self.differences:
            first = self.differences[0]
            more = len(self.differences) - 1
            return f"the end state differs: {first}" + (f" (and {more} more)" if more else "")
        if self.restless:
            return f"it never came to rest: {', '.join(self.restless[:3])} written again and again"
        return ""


class Runner(Protocol):
    """Maker of runs, one at a time."""

    async def run(
        self,
        faults: list[PlannedFault],
        expected: Expectation | None,
        *,
        delay: float = 0.0,
        is_patient: bool = False,
    ) -> Run:
        """Make a run, in which each request of the operator first waits `delay` seconds.

        Unless `is_patient`, it ends soon after it has come to rest in an unexpected state.
        """
        ...


class Stand:
    """A server that is reset before each run: `async with Stand(...) as stand`."""

    def __init__(self, settings: Settings, number: int = 0) -> None:
        self.settings = settings
        self.number = number
        self._temporary = tempfile.TemporaryDirectory(prefix="steersman-stress-")
        self.folder = Path(self._temporary.name)
        self.environment = Environment(
            users=(OPERATOR, TEST),
            controllers=settings.controllers,
            nodes=settings.nodes,
            listen=True,
        )
        self._start: Snapshot | None = None

    async def __aenter__(self) -> Stand:
        """Start the server, and apply the manifests. Raises OSError, OptionsError, ConfigurationError."""
        try:
            await self.environment.start()
            await self._apply_manifests()
            await self.environment.settle()
            self._start = self.environment.snapshot()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        await self.environment.stop()
        self._temporary.cleanup()

    @property
    def start(self) -> Snapshot:
        """State before each run."""
        assert self._start is not None
        return self._start

    async def reset(self) -> None:
        """Reset the server, on a new port."""
        self.environment.fault_set.interceptor = None
        await self.environment.renew(self.start)

    async def _apply_manifests(self) -> None:
        if not self.settings.manifests:
            return
        found = read_manifests(self.settings.manifests)
        found.sort(key=lambda each: each[1]["kind"] not in _DEFINING)
        await apply_manifests(self.client(), found)

    def client(self) -> Client:
        """Return a client of the server in this process."""
        return client_of(self.environment.plane)

    def variables(self, user: User) -> dict[str, str]:
        """Return the environment of a program."""
        inherited = {key: value for key, value in os.environ.items() if key not in _HIDDEN}
        kubeconfig = str(self.environment.kubeconfig(user.name))
        return {**inherited, "KUBECONFIG": kubeconfig, NUMBER: str(self.number)}

    def values(self) -> Mapping[str, Any]:
        """Return all stored values."""
        return self.environment.snapshot().values

    def state(self, masker: Masker) -> State:
        """Return the state now."""
        return state_of(self.start.values, self.values(), masker)

    async def release(self, tap: Tap) -> None:
        """Let the leases of an operator have no holder, as after the time that a killed holder would keep them."""
        client = self.environment.client(TEST.name)
        for namespace, name in tap.leases:
            target = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
            await client.patch(target, {"spec": {"holderIdentity": ""}})
        for resource, namespace, name in tap.locks:
            target = f"/api/v1/namespaces/{namespace}/{resource}/{name}"
            annotations = (await client.get(target)).json().get("metadata", {}).get("annotations") or {}
            if LEADER in annotations:
                value = json.dumps({**json.loads(annotations[LEADER]), "holderIdentity": ""})
                await client.patch(target, {"metadata": {"annotations": {LEADER: value}}})


class OperatorRunner:
    """Runs of an operator beside a test."""

    def __init__(self, stand: Stand) -> None:
        self._stand = stand
        self._settings = stand.settings
        self._releasing: set[asyncio.Task[None]] = set()
        self._longest = 0.0

    async def run(
        self,
        faults: list[PlannedFault],
        expected: Expectation | None,
        *,
        delay: float = 0.0,
        is_patient: bool = False,
    ) -> Run:
        """Make a run, in which each request of the operator first waits `delay` seconds.

        Unless `is_patient`, it ends soon after it has come to rest in an unexpected state.
        """
        began = monotonic()
        stand, settings = self._stand, self._settings
        await stand.reset()
        outputs = [stand.folder / "operator.log", stand.folder / "test.log"]
        operator = Operator(settings.operator, stand.variables(OPERATOR), outputs[0])
        test = Program(settings.test, stand.variables(TEST), outputs[1])

        def crash() -> None:
            operator.crash()
            task = begin_task(stand.release(tap))
            self._releasing.add(task)
            task.add_done_callback(self._releasing.discard)

        tap = Tap(
            faults,
            is_subject=_is_operator,
            crash=crash,
            touch=partial(touch, stand.client()),
            delay=delay,
            hold=settings.hold,
        )
        stand.environment.fault_set.interceptor = tap
        run = Run()
        try:
            async with OutputFiles(outputs):
                await operator.start()
                if not await _ready(operator, tap):
                    run.problem = operator.why_given_up or "the operator sends no requests"
                    run.output = operator.last_output()
                    return run
                await test.start()
                await self._follow(run, operator, test, tap, expected, is_patient=is_patient)
        finally:
            stand.environment.fault_set.interceptor = None
            await test.end(0.0)
            await operator.end()
            for task in [*self._releasing]:
                await asyncio.gather(task, return_exceptions=True)
            run.seen, run.hits, run.operator_exits = tap.seen, tap.hits, operator.exit_codes
            run.seconds = monotonic() - began
        if not faults and not run.failure:
            self._longest = max(self._longest, run.seconds)
        return run

    async def _follow(
        self, run: Run, operator: Operator, test: Program, tap: Tap, expected: Expectation | None, *, is_patient: bool
    ) -> None:
        """Wait until the test has ended and everything has come to rest."""
        run.exit_code = await _exit_code(test, _limit(self._settings, self._longest))
        if run.exit_code != 0:
            run.output = test.last_output()
            return
        rest = _Rest(self._stand, operator, tap)
        until = monotonic() + self._settings.patience
        while True:
            now = monotonic()
            rest.look(now)
            if operator.gives_up:
                run.problem = operator.why_given_up
                run.output = operator.last_output()
                return
            is_at_rest = now - rest.since >= self._settings.settle
            if is_at_rest or now >= until:
                run.state = self._stand.state(tap.masker)
                run.differences = [] if expected is None else expected.differences(run.state)
                if is_at_rest and not run.differences:
                    return
                is_hopeless = not is_patient and now - rest.since >= _SCREENED * self._settings.settle
                if is_hopeless or now >= max(until, tap.last_hit + self._settings.patience):
                    run.restless = [] if is_at_rest else rest.written()
                    run.output = operator.last_output()
                    return
            await asyncio.sleep(_LOOK)


class CommandRunner:
    """Runs of a command that starts servers of `steersman envtest`, or uses the server in KUBECONFIG."""

    def __init__(self, stand: Stand, assets: Path) -> None:
        """`assets` is the folder with the programs of `steersman envtest`."""
        self._stand = stand
        self._settings = stand.settings
        self._assets = assets
        self._longest = 0.0
        self._number = 0

    async def run(
        self,
        faults: list[PlannedFault],
        expected: Expectation | None,
        *,
        delay: float = 0.0,
        is_patient: bool = False,
    ) -> Run:
        """Make a run, whose only result is the exit code. `expected` and `is_patient` have no effect."""
        began = monotonic()
        stand, settings = self._stand, self._settings
        await stand.reset()
        self._number += 1
        folder = stand.folder / str(self._number)
        folder.mkdir()
        write_task(folder, Task(faults, delay, settings.hold))
        tap = Tap(
            faults, is_subject=is_of_clients, touch=partial(touch, stand.client()), delay=delay, hold=settings.hold
        )
        stand.environment.fault_set.interceptor = tap
        home = self._assets.parent.parent
        places = {"KUBEBUILDER_ASSETS": self._assets, "JENVTEST_DIR": home, "KUBE_API_TEST_DIR": home, FOLDER: folder}
        variables = {**stand.variables(TEST), **{key: str(value) for key, value in places.items()}}
        output = folder / "output.log"
        command = Program(settings.command, variables, output)
        limit = _limit(settings, self._longest)
        run = Run()
        try:
            async with OutputFiles([output]):
                await command.start()
                run.exit_code = await _exit_code(command, limit)
                run.output = command.last_output()
        finally:
            stand.environment.fault_set.interceptor = None
            await command.end(_GRACE)
        run.seen = [*tap.seen, *read_points(folder)]
        run.hits = list(dict.fromkeys((*tap.hits, *read_hits(folder))))  # once, as several servers may reach a point
        run.seconds = monotonic() - began
        if not faults and not run.failure:
            self._longest = max(self._longest, run.seconds)
        shutil.rmtree(folder)
        return run


class _Rest:
    """Time since which nothing has happened that may lead to another state."""

    def __init__(self, stand: Stand, operator: Operator, tap: Tap) -> None:
        self._stand = stand
        self._operator = operator
        self._tap = tap
        self._values = stand.values()
        self._seen = (0, 0, 0)
        self._starts = operator.starts
        self._requests_at_start = 0
        self._recent: list[tuple[float, str]] = []
        self.since = monotonic()

    def look(self, now: float) -> None:
        """Compare the present with the last look."""
        values = self._stand.values()
        different = [key for key, value in changed(self._values, values).items() if not _elects(value)]
        self._values = values
        self._recent += [(now, key) for key in different]
        del self._recent[:-1000]
        if self._operator.starts != self._starts:
            self._starts, self._requests_at_start = self._operator.starts, self._tap.requests
            self.since = now
        has_begun = self._starts < 2 or self._tap.requests > self._requests_at_start
        seen = (self._tap.watches, len(self._tap.hits), self._starts)
        if different or seen != self._seen or not has_begun:
            self._seen = seen
            self.since = now

    def written(self) -> list[str]:
        """Return the objects that were written lately."""
        return sorted({key.removeprefix("/registry/") for when, key in self._recent if when >= self.since - 1.0})


def _elects(value: bytes | None) -> bool:
    """Return True for an object by which processes elect a leader, who writes it again and again."""
    return value is not None and LEADER.encode() in value


def _limit(settings: Settings, longest: float) -> float:
    """Return the seconds that a test may take if the longest run without faults took so many."""
    return min(settings.limit, _TIMES * longest + _MORE) if longest else settings.limit


async def _exit_code(test: Program, limit: float) -> int | None:
    """Return the exit code of a test, None if it takes longer than `limit` seconds."""
    try:
        async with asyncio.timeout(limit):
            return await test.wait()
    except TimeoutError:
        return None


async def _ready(operator: Operator, tap: Tap) -> bool:
    """Wait until the operator watches something, or has nothing more to request. Return False if it requests nothing."""
    until = monotonic() + _READY
    while monotonic() < until and not operator.gives_up:
        is_idle = tap.requests > 0 and monotonic() - tap.last_request > _IDLE
        if is_idle or (tap.watches and monotonic() - tap.last_request > _LOOK):
            return True
        await asyncio.sleep(_LOOK)
    return tap.requests > 0 and not operator.gives_up


def _is_operator(met: Met) -> bool:
    return met.user == OPERATOR.name
