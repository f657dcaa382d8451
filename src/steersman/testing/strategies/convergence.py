"""One run of a plan: each step is carried out, then the operator has to come to rest in a state that fits the objects."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from steersman.machinery.codec.yaml import json_as_yaml
from steersman.testing.blocking_client import BlockingClient
from steersman.testing.threaded_environment import BlockingClock, ThreadedEnvironment
from steersman.testing.users import ADMIN, User
from steersman.testing.waiting import find_resource

from .plans import Advance, Apply, ApplyAgain, Body, Delete, Fault, Plan, Restart, Step
from .world import Stored, World, comparable, differences, left_behind, read_world

MACHINE: Final = User("steersman:check-operator", ("system:masters",))
"""The user of the plan's own requests, which faults do not hit."""
_APPLY: Final = {"Content-Type": "application/apply-patch+yaml"}
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_LOOK: Final = 0.01
_SHOWN: Final = 5


class NotConverged(AssertionError):
    """An operator did not come to rest, or left a state that does not fit the objects."""


@dataclass(frozen=True)
class Expectations:
    """Bounds and exceptions for the checks of an operator."""

    quiet: float = 0.2
    """Seconds without a write after which the operator is at rest."""
    timeout: float = 10.0
    """Seconds that it may take to come to rest."""
    until: Callable[[Body], bool] | None = None
    """Has to become true for each object."""
    ignored: tuple[str, ...] = ()
    """Fields that need not be the same for the same spec, such as `status.attempts`."""
    operator: str = ADMIN.name
    """The user of the operator, whose requests faults hit."""
    same_outcome: bool = True
    """The end state has to be that of objects which were created as they are at last."""


@dataclass
class Run:
    """A plan that is carried out on a server."""

    environment: ThreadedEnvironment
    expected: Expectations
    clock: BlockingClock | None = None
    restart: Callable[[], None] | None = None
    steps: int = 0
    """Steps that were carried out without a failure."""
    longest_wait: float = 0.0
    """Seconds of the longest wait for rest that was successful."""
    _applied: dict[str, Body] = field(default_factory=dict)
    _faults: list[Any] = field(default_factory=list)

    def carry_out(self, plan: Plan) -> None:
        """Carry out a plan. Raises NotConverged."""
        before = read_world(self.environment)
        with self.environment.client(MACHINE) as client:
            try:
                for number, step in enumerate(plan):
                    with _named(plan, number):
                        self._step(client, step, before)
                    self.steps += 1
                with _named(plan, len(plan)):
                    self._check_end(client, before, len(plan))
            finally:
                self._end_faults()
                self._clean(client, before)

    # Steps

    def _step(self, client: BlockingClient, step: Step, before: World) -> None:
        match step:
            case Apply():
                self._apply(client, step.object)
                self._check_rest(client)
            case ApplyAgain(name) if name in self._applied:
                self._check_second_apply(client, name)
            case Delete(name) if name in self._applied:
                self._delete(client, [self._applied.pop(name)], before)
            case Fault(arguments):
                user = self.expected.operator
                self._faults.append(self.environment.faults.add(user=user, times=1, **arguments))
            case Restart() if self.restart is not None:
                self.restart()
                self._check_rest(client)
            case Advance(seconds) if self.clock is not None:
                self.clock.advance(seconds=seconds)
                self._check_rest(client)

    def _apply(self, client: BlockingClient, obj: Body) -> Body | None:
        """Apply an object, and return it as it is stored; None if the server refuses a change, which is no fault."""
        target = f"{self._path(obj)}?fieldManager=check-operator&force=true"
        status, data = client.request("PATCH", target, json_as_yaml(obj), _APPLY)
        answer = json.loads(data)
        name = obj["metadata"]["name"]
        if status in (200, 201):
            self._applied[name] = obj
            found: Body = answer
            return found
        if name in self._applied and status == 422:
            return None
        raise NotConverged(f"the server refuses the object: {status} {answer.get('message', '')}")

    def _delete(self, client: BlockingClient, objects: list[Body], before: World) -> None:
        """Delete objects with what they own. Raises NotConverged if they stay."""
        there = {each.uid for each in left_behind(before, read_world(self.environment)).values()}
        for each in objects:
            client.request("DELETE", self._path(each))
        deadline = time.monotonic() + self.expected.timeout
        for each in objects:
            while (found := self._get(client, each)) is not None:
                if time.monotonic() > deadline:
                    held = found["metadata"].get("finalizers")
                    raise NotConverged(
                        f"{_title(each)} is not gone {self._limit} after its deletion; finalizers: {held}"
                    )
                time.sleep(_LOOK)
        self._settle()
        self._collect(client, before, there)

    # Checks

    def _check_rest(self, client: BlockingClient) -> None:
        """Wait until the operator is at rest and the objects' status fits. Raises NotConverged."""
        began = time.monotonic()
        deadline = began + self.expected.timeout
        self._settle()
        while wrong := next(self._wrong(client), ""):
            if time.monotonic() > deadline:
                raise NotConverged(f"{wrong}, {self._limit} after the last step")
            time.sleep(_LOOK)
        self.longest_wait = max(self.longest_wait, time.monotonic() - began)
        self._end_faults()

    def _wrong(self, client: BlockingClient) -> Iterator[str]:
        for obj in self._applied.values():
            found = self._get(client, obj)
            if found is None:
                yield f"{_title(obj)} is gone, and nothing has deleted it"
                continue
            status = found.get("status") or {}
            observed, generation = status.get("observedGeneration"), found["metadata"].get("generation")
            if observed is not None and observed != generation:
                yield f"{_title(obj)}: status.observedGeneration is {observed}, metadata.generation {generation}"
            if self.expected.until is not None and not self.expected.until(found):
                yield f"{_title(obj)} is not as `until` wants it"

    def _check_second_apply(self, client: BlockingClient, name: str) -> None:
        self._settle()
        before = read_world(self.environment)
        self._apply(client, self._applied[name])
        self._settle()
        changed = _changes(before, read_world(self.environment))
        if changed:
            raise NotConverged(f"applying {name} again, unchanged, changed {_listed(changed)}")

    def _check_end(self, client: BlockingClient, before: World, steps: int) -> None:
        """Check the outcome, then that deletions end and leave nothing behind. Raises NotConverged."""
        self._end_faults()
        self._check_rest(client)
        objects = list(self._applied.values())
        if objects and steps > 1 and self.expected.same_outcome:
            outcome = self._outcome(before)
            self._delete_all(client, objects, before)
            for each in objects:
                self._apply(client, each)
            self._check_rest(client)
            afresh = self._outcome(before)
            if outcome != afresh:
                lines = "\n".join(list(differences(outcome, afresh))[: 2 * _SHOWN])
                raise NotConverged(
                    f"the end state depends on the way there: `-` is left by the steps, `+` is made for the same objects "
                    f"when they are created\n{lines}"
                )
        self._delete_all(client, objects, before)

    def _outcome(self, before: World) -> list[bytes]:
        return comparable(left_behind(before, read_world(self.environment)), self.expected.ignored)

    def _delete_all(self, client: BlockingClient, objects: list[Body], before: World) -> None:
        """Delete all objects. Raises NotConverged if they stay, or if anything else is left."""
        self._delete(client, objects, before)
        self._applied.clear()
        left = left_behind(before, read_world(self.environment))
        if left:
            raise NotConverged(f"left behind after all objects were deleted: {_listed(list(left.values()))}")

    def _collect(self, client: BlockingClient, before: World, uids: set[str]) -> None:
        """Delete what has lost its owners, as the garbage collector does, which not every server has."""
        while True:
            left = left_behind(before, read_world(self.environment))
            there = {each.uid for each in left.values()}
            lost = [each for each in left.values() if each.owners & uids and not each.owners & there]
            if not lost:
                return
            for each in lost:
                client.request("DELETE", self._path(each.body))
            self._settle()
            still = left_behind(before, read_world(self.environment))
            if still.keys() >= left.keys():
                return

    def _settle(self) -> None:
        """Wait until nothing is written for a while. Raises NotConverged."""
        expected = self.expected
        deadline = time.monotonic() + expected.timeout
        storage = self.environment.environment.plane.storage
        assert storage is not None
        self.environment.settle(expected.timeout)
        seen, since = storage.revision, time.monotonic()
        before = read_world(self.environment)
        while time.monotonic() - since < expected.quiet:
            if time.monotonic() > deadline:
                busy = _changes(before, read_world(self.environment))
                raise NotConverged(f"there is no rest after {self._limit}: still written is {_listed(busy)}")
            time.sleep(_LOOK)
            if storage.revision != seen:
                seen, since = storage.revision, time.monotonic()

    # Requests

    @property
    def _limit(self) -> str:
        return f"{self.expected.timeout:g} s"

    def _path(self, obj: Body) -> str:
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        served = find_resource(self.environment.environment.plane, f"{obj['kind']}.{group}" if group else obj["kind"])
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        namespace = obj["metadata"].get("namespace")
        of = f"/namespaces/{namespace}" if served.resource.namespaced and namespace else ""
        return f"{root}{of}/{served.resource.plural}/{obj['metadata']['name']}"

    def _get(self, client: BlockingClient, obj: Body) -> Body | None:
        status, found = client.json("GET", self._path(obj))
        return found if status == 200 else None

    def _end_faults(self) -> None:
        faults, self._faults = self._faults, []
        for each in faults:
            each.remove()

    def _clean(self, client: BlockingClient, before: World) -> None:
        """Remove everything that is new, whatever holds it."""
        self._applied.clear()
        for each in left_behind(before, read_world(self.environment)).values():
            path = self._path(each.body)
            client.request("DELETE", path)
            client.request("PATCH", path, {"metadata": {"finalizers": None}}, _MERGE)
        with suppress(NotConverged):
            self._settle()


class _named:
    """Adds the plan, with a mark at the step, to an error."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._plan = plan
        self._number = number

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, NotConverged):
            raise NotConverged(f"{error}\n\n{shown_plan(self._plan, self._number)}") from None


def shown_plan(plan: Plan, at: int) -> str:
    """Return a plan for people, with a mark at the step that failed, or behind the last one."""
    lines = [f"{'>' if number == at else ' '} {_shown_step(step)}" for number, step in enumerate(plan)]
    if at == len(plan):
        lines.append("> (end of the plan)")
    return "\n".join(["the plan:", *lines])


def _shown_step(step: Step) -> str:
    match step:
        case Apply(obj):
            body = deepcopy(obj)
            rest = {name: value for name, value in body.items() if name not in ("apiVersion", "kind", "metadata")}
            return f"apply {_title(obj)} {json.dumps(rest, ensure_ascii=False)}"
        case ApplyAgain(name):
            return f"apply {name} again"
        case Delete(name):
            return f"delete {name}"
        case Fault(arguments):
            return f"fault {', '.join(f'{name}={value!r}' for name, value in arguments.items())}"
        case Restart():
            return "restart the operator"
        case Advance(seconds):
            return f"advance time by {seconds} s"


def _title(obj: Body) -> str:
    return f"{obj['kind']} {obj['metadata']['name']}"


def _changes(before: World, after: World) -> list[Stored]:
    """Return the objects that were written."""
    return [each for key, each in after.items() if key not in before or before[key].revision != each.revision] + [
        each for key, each in before.items() if key not in after
    ]


def _listed(objects: list[Stored]) -> str:
    found = ", ".join(each.title for each in objects[:_SHOWN])
    return f"{found} and {len(objects) - _SHOWN} more" if len(objects) > _SHOWN else found or "an object that is gone"
