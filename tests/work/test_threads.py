"""Order of steps in the slow worker threads, and steps that yield there."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from steersman.api.core.v1 import Pod
from steersman.kinds.built_in import built_in
from steersman.machinery.codec import yaml
from steersman.machinery.codec.serializer import encode, from_plain, to_plain
from steersman.machinery.errors import status as errors
from steersman.machinery.errors.field import FieldError
from steersman.machinery.identity.schema import GroupKind
from steersman.machinery.managed_fields.fields_v1 import decode_fields, encode_fields
from steersman.machinery.managed_fields.typed_value import field_set, validate
from steersman.machinery.patch import merge_patch
from steersman.registry.pod_template.defaults import set_pod_defaults
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.pods import validate_pod_create
from steersman.work import threads as worker_threads
from steersman.work.offloading import Account
from steersman.work.threads import Interpreter, WorkerThreads, give_way, paced


@pytest.fixture
def threads() -> Iterator[WorkerThreads]:
    """Return worker threads that run one step at a time, however long it takes."""
    gc.enable()  # a thread of an earlier test may still hold it, and would not be disturbed
    made = WorkerThreads(patience=1000.0)
    yield made
    made.close()


@pytest.fixture
def impatient() -> Iterator[WorkerThreads]:
    """Return worker threads that run a second step beside any other."""
    made = WorkerThreads(patience=0.0)
    yield made
    made.close()


class Clock:
    """Fake processor time of the threads: a step takes as long as the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.done: list[str] = []
        monkeypatch.setattr(worker_threads, "thread_time", lambda: self.now)
        monkeypatch.setattr(worker_threads, "SLICE", -1.0)  # every call of give_way checks the order

    def step(self, name: str, seconds: float) -> None:
        self.now += seconds
        self.done.append(name)

    def long_step(self, name: str, slices: int, seconds: float) -> None:
        for number in range(slices):
            self.step(f"{name}{number}", seconds)
            give_way()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class PausedThreads:
    """Worker threads that run nothing until `go` is called."""

    def __init__(self, threads: WorkerThreads) -> None:
        self._over = threading.Event()
        self._held = asyncio.ensure_future(Account(threads).offload_if(True, self._over.wait))
        self.threads = threads
        self.counted_as_caller: list[asyncio.Future[Any]] = []

    async def ask(self, user: str, work: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        asked = asyncio.ensure_future(Account(self.threads, user).offload_if(True, work, *args))
        self.counted_as_caller.append(asked)
        await asyncio.sleep(0)
        return asked

    async def go(self) -> None:
        self._over.set()
        await asyncio.gather(self._held, *self.counted_as_caller, return_exceptions=True)


async def paused(threads: WorkerThreads) -> PausedThreads:
    made = PausedThreads(threads)
    await asyncio.sleep(0)
    return made


async def test_slices_are_shared_by_the_time_used(threads: WorkerThreads, clock: Clock) -> None:
    busy = await paused(threads)
    for number in range(4):
        await busy.ask("alice", clock.step, f"a{number}", 1.0)
    for number in range(40):
        await busy.ask("bob", clock.step, f"b{number}", 0.11)
    await busy.go()
    before = [clock.done[: clock.done.index(f"a{number}")] for number in range(4)]
    assert [sum(name[0] == "b" for name in each) for each in before] == [0, 10, 19, 28]


async def test_who_comes_later_has_saved_nothing_up(threads: WorkerThreads, clock: Clock) -> None:
    busy = await paused(threads)

    def bob_comes() -> None:
        for number in range(3):
            asked = asyncio.run_coroutine_threadsafe(busy.ask("bob", clock.step, f"b{number}", 60.0), loop)
            asked.result()
        clock.step("a1", 60.0)

    loop = asyncio.get_running_loop()
    await busy.ask("alice", clock.step, "a0", 100.0)
    await busy.ask("alice", bob_comes)
    last = await busy.ask("alice", clock.step, "a2", 60.0)
    await busy.go()
    await last
    await busy.go()
    assert clock.done == ["a0", "a1", "b0", "a2", "b1", "b2"]


async def test_a_long_step_yields_to_those_of_others(threads: WorkerThreads, clock: Clock) -> None:
    busy = await paused(threads)
    await busy.ask("alice", clock.long_step, "a", 4, 1.0)
    await busy.ask("alice", clock.step, "of the same user", 1.0)
    await busy.ask("bob", clock.step, "bob", 1.0)
    await busy.ask("carol", clock.long_step, "c", 2, 1.5)
    await busy.go()
    assert clock.done == ["a0", "bob", "c0", "a1", "c1", "a2", "a3", "of the same user"]


async def test_work_of_no_user_comes_first_and_never_yields(threads: WorkerThreads, clock: Clock) -> None:
    busy = await paused(threads)

    def alice() -> None:
        asyncio.run_coroutine_threadsafe(busy.ask("", clock.long_step, "s", 2, 50.0), loop).result()
        clock.long_step("a", 2, 1.0)

    loop = asyncio.get_running_loop()
    await busy.ask("alice", alice)
    bob = await busy.ask("bob", clock.step, "bob", 1.0)
    await busy.go()
    await bob
    await busy.go()
    assert clock.done == ["a0", "s0", "s1", "bob", "a1"]


async def test_no_user_has_both_threads(impatient: WorkerThreads) -> None:
    threads = impatient
    over = threading.Event()
    done: list[str] = []
    alice = Account(threads, "alice")
    first = asyncio.ensure_future(alice.offload_if(True, over.wait))
    second = asyncio.ensure_future(alice.offload_if(True, done.append, "alice"))
    await asyncio.sleep(0)
    for number in range(3):
        await Account(threads, "bob").offload_if(True, done.append, str(number))
    assert done == ["0", "1", "2"]
    over.set()
    await asyncio.gather(first, second)
    assert done[-1] == "alice"


async def test_an_abandoned_paused_step_is_not_resumed(threads: WorkerThreads, clock: Clock) -> None:
    begun, over = threading.Event(), threading.Event()
    ended = threading.Event()

    def alice() -> None:
        begun.set()
        over.wait()
        try:
            clock.long_step("a", 3, 1.0)
        finally:
            ended.set()

    asked = asyncio.ensure_future(Account(threads, "alice").offload_if(True, alice))
    await asyncio.to_thread(begun.wait)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    over.set()
    await asyncio.to_thread(ended.wait)
    await Account(threads, "bob").offload_if(True, clock.step, "bob", 1.0)
    assert clock.done == ["a0", "bob"]


async def test_steps_that_have_begun_end_where_they_give_way_when_the_threads_are_closed(
    threads: WorkerThreads, clock: Clock
) -> None:
    """Nobody waits for them any more: the server has answered or abandoned its requests."""
    busy = await paused(threads)
    closed, gave_way = threading.Event(), threading.Event()

    def bob() -> None:
        loop.call_soon_threadsafe(threads.close)
        closed.wait()
        try:
            give_way()
        except BaseException:
            gave_way.set()
            raise

    loop = asyncio.get_running_loop()
    alice = await busy.ask("alice", clock.long_step, "a", 3, 1.0)
    working = await busy.ask("bob", bob)
    never = await busy.ask("carol", clock.step, "never", 5.0)
    going = asyncio.ensure_future(busy.go())
    with pytest.raises(asyncio.CancelledError):
        await alice
    closed.set()
    for each in (working, never):
        with pytest.raises(asyncio.CancelledError):
            await each
    assert gave_way.is_set()
    assert clock.done == ["a0"]
    await going
    with pytest.raises(RuntimeError, match="closed"):
        await Account(threads).offload_if(True, int)


async def test_abandoned_steps_that_never_yield_block_no_others() -> None:
    """A request ends at its deadline, but what it has started may be in a call that cannot be interrupted."""
    threads = WorkerThreads()
    over = threading.Event()
    begun = [threading.Event() for _ in range(2)]

    def stuck(number: int) -> None:
        begun[number].set()
        over.wait()

    try:
        requests = [
            asyncio.ensure_future(Account(threads, f"u{number}").offload_if(True, stuck, number)) for number in range(2)
        ]
        for event in begun:
            await asyncio.to_thread(event.wait)
        for request in requests:
            request.cancel()
        await asyncio.gather(*requests, return_exceptions=True)
        assert await asyncio.wait_for(Account(threads, "other").offload_if(True, int, "7"), 30) == 7
    finally:
        over.set()
        threads.close()


async def test_so_many_steps_may_be_paused_as_there_are_threads(threads: WorkerThreads, clock: Clock) -> None:
    busy = await paused(threads)
    for number in range(100):
        await busy.ask(f"user{number}", clock.long_step, f"u{number} ", 3, 1.0)
    await busy.go()
    assert len(clock.done) == 300


async def test_users_are_forgotten(threads: WorkerThreads) -> None:
    for number in range(1000):
        await Account(threads, f"user{number}").offload_if(True, int)
    assert len(threads._users) < 200


async def test_threads_that_do_not_rest_collect_when_little_is_alive_or_at_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collected: list[int] = []
    interpreter = Interpreter(look_every=-1.0, few=0)
    threads = WorkerThreads(interpreter=interpreter)
    monkeypatch.setattr(gc, "collect", collected.append)
    await Account(threads).offload_if(True, int)
    assert not collected
    interpreter.few = 10**9
    await Account(threads).offload_if(True, int)
    assert collected == [0]
    interpreter.few, interpreter.at_last = 0, -1.0
    await Account(threads).offload_if(True, int)
    assert collected == [0, 0]
    threads.close()


# Steps that yield


class CountedStep:
    """Stands for a step in a worker thread, and counts how often it yielded."""

    def __init__(self) -> None:
        self.began = float("-inf")
        self.threads = self
        self.given = 0

    def give_way(self, _step: CountedStep) -> None:
        self.given += 1


@pytest.fixture
def counted_step(monkeypatch: pytest.MonkeyPatch) -> CountedStep:
    made = CountedStep()
    monkeypatch.setattr(worker_threads._thread, "step", made)
    return made


def test_a_few_items_are_not_worth_it(counted_step: CountedStep) -> None:
    assert list(paced(range(10))) == list(range(10))
    assert counted_step.given == 0
    assert list(paced(range(100))) == list(range(100))
    assert counted_step.given == 100


MANY = 1000


def pod() -> Pod:
    containers = [{"name": f"c{number}", "image": "i"} for number in range(MANY)]
    return from_plain(Pod, {"metadata": {"name": "a", "namespace": "b"}, "spec": {"containers": containers}})


def test_yaml_yields_at_each_value(counted_step: CountedStep) -> None:
    text = yaml.from_json(encode({"items": [{"key": "value"}] * MANY, "more": {f"a-{key}": 1 for key in range(MANY)}}))
    assert counted_step.given > 3 * MANY
    counted_step.given = 0
    yaml.load(text)
    assert counted_step.given > 3 * MANY


def test_defaulting_and_validating_a_pod_give_way_at_each_container(counted_step: CountedStep) -> None:
    made = pod()
    set_pod_defaults(made)
    assert counted_step.given >= MANY
    counted_step.given = 0
    assert not list(validate_pod_create(made, PodValidationOptions()))
    assert counted_step.given >= MANY - 10


def test_field_ownership_yields_at_each_item(counted_step: CountedStep) -> None:
    schema = built_in(Pod).schema
    assert schema is not None
    value = to_plain(pod())
    validate(schema.root, value)
    assert counted_step.given >= MANY
    counted_step.given = 0
    fields = field_set(schema.root, value)
    assert counted_step.given >= MANY
    counted_step.given = 0
    decode_fields(bytes(encode_fields(fields)))
    assert counted_step.given >= MANY


def test_patches_and_errors_give_way(counted_step: CountedStep) -> None:
    merge_patch.apply({}, {str(number): {} for number in range(MANY)})
    assert counted_step.given >= MANY
    counted_step.given = 0
    found = (FieldError("FieldValueInvalid", str(number)) for number in range(MANY))
    errors.invalid(GroupKind("", "Pod"), "a", found)
    assert counted_step.given >= MANY
