"""The clock of a running cluster: simulated time that stands still, runs faster, or is moved forward.

Controllers, scheduler, nodes, the expiry of Events and the stamps of objects follow it (`work.simulated_time`,
`machinery.values.times`). Connections and time limits of requests keep the real time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from math import inf
from typing import Any, Final

import msgspec

from steersman.machinery.values import times
from steersman.work import simulated_time
from steersman.work.stepped_time import Due, SteppedTime

logger = logging.getLogger(__name__)

FASTEST: Final = 3600.0
"""Highest speed."""
FURTHEST: Final = 180 * 86400.0
"""Seconds that the clock may be ahead of the real time: the certificates of a cluster are valid for a year."""
SHORT: Final = 1.0
"""Seconds of waits that are real while the clock stands still, so that retries and starts of containers go on."""
_TICK: Final = 0.02
"""Real seconds between two steps of a faster clock."""
_LONGEST_TICK: Final = 0.25
"""Real seconds that a step makes up for at most: on a busy machine the clock is slower rather than rough."""
LONGEST_LEAP: Final = 600.0
"""Real seconds after which a leap ends before its time, as stages may make objects for ever."""
_CATCH_UPS: Final = 2
"""Steps after a leap for the real time that passes during it."""
_RESERVE: Final = 5.0
"""Real seconds between two records of a clock that is moved; each has the time until the next one."""
_FEW: Final = 100
"""Cancelled timers that are kept in the heap in any case."""


class ClockState(msgspec.Struct, rename="camel"):
    """State of the clock."""

    time: str
    """Time by which objects are stamped."""
    ahead_seconds: float
    """Seconds that it is ahead of the real time."""
    speed: float
    """Simulated seconds in a real one; 0 while it stands still."""
    advancing_seconds: float
    """Seconds of a leap that are still to come."""
    missed_seconds: float = 0.0
    """Seconds by which the last leap ended too early, as it took too long."""


class OutOfRange(ValueError):
    """The clock cannot be moved so far, or run so fast. The text says how far it can."""


class _Timer:
    """Call that is due at a time of the clock."""

    __slots__ = ("_callback", "_clock", "context", "real")

    def __init__(self, clock: ClusterClock, callback: Callable[[], object]) -> None:
        self._clock = clock
        self._callback: Callable[[], object] | None = callback
        self.context: Context = copy_context()
        self.real: asyncio.TimerHandle | None = None
        """Timer of the event loop, if the wait is real."""

    def cancel(self) -> None:
        """Do not make the call."""
        if self._callback is not None:
            self._callback = None
            if self.real is None:
                self._clock.cancelled_one()
            else:
                self.real.cancel()

    def cancelled(self) -> bool:
        """Return True if the call was cancelled or made."""
        return self._callback is None

    def run(self) -> None:
        """Make the call."""
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


class ClusterClock(SteppedTime[_Timer]):
    """Clock of the cluster that owns this process: `start`, then `await stop()`.

    While it is not at the real speed, time stands still between steps of its task, each of which ends when the cluster
    has settled: it is slower than asked for rather than ahead of heartbeats and controllers.
    """

    def __init__(
        self,
        settle: Callable[[], Awaitable[object]],
        record: Callable[[float], None] = lambda ahead: None,
        *,
        longest_leap: float = LONGEST_LEAP,
    ) -> None:
        """Create a clock.

        `settle` waits until the cluster has reacted to a step, for a limited time. `record` keeps the seconds that the
        clock is ahead, for the next start; it is called in a thread, with the time that the clock will soon have, so
        that time never goes back. A leap ends after `longest_leap` real seconds.
        """
        super().__init__()
        self._settle = settle
        self._record = record
        self._recorded = -inf
        self._loop: asyncio.AbstractEventLoop
        self._ahead = 0.0
        """Seconds ahead of the event loop's time while the clock runs at the real speed."""
        self._stands_at: float | None = None
        self._speed = 1.0
        self._target: float | None = None
        """Time at which a leap ends."""
        self._longest_leap = longest_leap
        self._leap_ends = inf
        """Time of the event loop at which the leap ends that is in progress."""
        self._missed = 0.0
        self._is_interrupted = False
        self._armed: tuple[float, asyncio.TimerHandle] | None = None
        self._cancelled = 0
        self._driver: asyncio.Task[None] | None = None

    def start(self, ahead: float = 0.0) -> None:
        """Take over the time of the running event loop's simulation, `ahead` seconds before the real one."""
        self._loop = asyncio.get_running_loop()
        self._ahead = ahead
        times.move(ahead)
        self._calm_since = self.time()
        simulated_time.use(self)

    async def stop(self) -> None:
        """Give the event loop its own time back; timers that wait are dropped."""
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.cancel()
            await asyncio.gather(driver, return_exceptions=True)
        self._disarm()
        if self._stands_at is not None:
            self._go()
            self._disarm()
        if self._recorded != -inf:
            self._record(self._ahead)
        times.move(-self._ahead)
        simulated_time.use(None)

    # As timers of an event loop

    def time(self) -> float:
        """Return the present on the event loop's clock, moved as this one."""
        return self._loop.time() + self._ahead if self._stands_at is None else self._stands_at

    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> _Timer:
        """Call `callback` at a time."""
        timer = _Timer(self, (lambda: callback(*args)) if args else callback)
        delay = when - self.time()
        if self._stands_at is not None and self._driver is None and delay <= SHORT:
            timer.real = self._loop.call_later(max(delay, 0.0), timer.run)
            return timer
        self._push(when, timer)
        if self._stands_at is None:
            self._arm()
        return timer

    def cancelled_one(self) -> None:
        """Drop cancelled timers from the heap if they are many."""
        self._cancelled += 1
        if self._cancelled > max(_FEW, len(self._due) // 2):
            self._drop_cancelled()
            self._cancelled = 0

    def _arm(self) -> None:
        """Set the event loop's timer for the first one of the heap."""
        first = self._first(self._due)
        if first is None or (self._armed is not None and self._armed[0] <= first.when):
            return
        self._disarm()
        self._armed = first.when, self._loop.call_at(first.when - self._ahead, self._fire)

    def _disarm(self) -> None:
        if self._armed is not None:
            self._armed[1].cancel()
            self._armed = None

    def _fire(self) -> None:
        self._armed = None
        self._came_due(self._pop_due())
        self._arm()

    # State

    @property
    def ahead(self) -> float:
        """Seconds that the clock is ahead of the real time."""
        return self._ahead if self._stands_at is None else self._stands_at - self._loop.time()

    @property
    def is_moving(self) -> bool:
        """True while a task moves the clock."""
        return self._driver is not None

    @property
    def waiting(self) -> int:
        """Number of timers."""
        return len(self._due)

    @property
    def state(self) -> ClockState:
        """The state of the clock."""
        left = 0.0 if self._target is None else max(0.0, self._target - self.time())
        return ClockState(times.now(), round(self.ahead, 3), self._speed, round(left, 3), round(self._missed, 3))

    def set_speed(self, speed: float) -> None:
        """Run at so many simulated seconds in a real one; 0 stops the clock. Ends a leap. Raises OutOfRange."""
        self.change(speed, None)

    def advance(self, seconds: float) -> None:
        """Begin to move the clock forward, by as much more if it is being moved. Raises OutOfRange."""
        self.change(None, seconds)

    def change(self, speed: float | None, seconds: float | None) -> None:
        """Set the speed, which ends a leap, then begin a leap of so many seconds. None changes nothing.

        Raises OutOfRange, without a change.
        """
        if speed is not None and not 0 <= speed <= FASTEST:
            raise OutOfRange(f"speed {speed:g}: from 0 to {FASTEST:g}")
        target = self._target if speed is None else None
        if seconds is not None:
            left = 0.0 if target is None else max(0.0, target - self.time())
            _check_leap(seconds, self.ahead + left)
            target = (self.time() if target is None else target) + seconds
            self._calm_since = self.time()
        if speed is not None:
            self._speed = abs(speed)  # no minus zero
        self._target = target
        if speed is not None or seconds is not None:
            self._missed = 0.0
            self._drive()

    # Steps

    def _drive(self) -> None:
        self._is_interrupted = True
        if self._driver is None:
            self._stand()
            self._driver = asyncio.create_task(self._run(), name="clock of the cluster")

    async def _run(self) -> None:
        try:
            await self._step()
            await self._keep(self.ahead)
        finally:
            self._driver = self._target = None
            if self._speed != 0:
                self._speed = 1.0
                self._go()
            else:
                self._release_short()

    async def _step(self) -> None:
        """Move the clock until it can go on alone, at the real speed or standing still."""
        last = self._loop.time()
        while self._target is not None or self._speed not in (0.0, 1.0):
            self._is_interrupted = False
            if self._target is not None:
                await self._keep(self.ahead + self.state.advancing_seconds)
                await self._leap(self._target)
                last = self._loop.time()
                continue
            await asyncio.sleep(_TICK)
            now = self._loop.time()
            if now - self._recorded > _RESERVE:
                await self._keep(self.ahead + 2 * _RESERVE * self._speed)
            passed, last = min(now - last, _LONGEST_TICK), now
            if self.ahead >= FURTHEST:
                logger.warning("the clock goes on at the real speed, as it is %d days ahead", FURTHEST // 86400)
                return
            await self.step_to(self.time() + passed * self._speed)

    async def _leap(self, target: float) -> None:
        """Move the clock to `target`, and while it is not stopped by the real time that this has taken, too."""
        began = self._loop.time()
        self._leap_ends = began + self._longest_leap
        await self.step_to(target)
        for _ in range(_CATCH_UPS if self._speed else 0):
            if self._target == target and self._loop.time() < self._leap_ends:
                await self.step_to(target + self._loop.time() - began)
        self._leap_ends = inf
        if self._target == target:
            self._missed, self._target = max(target - self.time(), 0.0), None
            if self._missed:
                logger.warning("a leap took too long, and has ended %.0f s too early", self._missed)

    async def _keep(self, ahead: float) -> None:
        self._recorded = self._loop.time()
        await asyncio.to_thread(self._record, ahead)

    async def settle(self) -> None:
        """Wait until the cluster has reacted."""
        await self._settle()

    def _goes_on(self) -> bool:
        return not self._is_interrupted and self._loop.time() < self._leap_ends

    def _shift(self, seconds: float) -> None:
        assert self._stands_at is not None
        self._stands_at += seconds
        times.move(seconds)

    def _reschedule(self, timers: list[tuple[_Timer, float]]) -> None:
        """Do nothing, as timers do not know their time."""

    def _came_due(self, timers: list[Due[_Timer]]) -> None:
        for each in timers:
            if not each.timer.cancelled():
                self._loop.call_soon(each.timer.run, context=each.timer.context)

    def _stand(self) -> None:
        if self._stands_at is None:
            self._stands_at = self.time()
            times.stop()
            self._disarm()

    def _go(self) -> None:
        if self._stands_at is not None:
            self._ahead, self._stands_at = self._stands_at - self._loop.time(), None
            times.go_on()
            self._arm()

    def _release_short(self) -> None:
        """Let short waits end in real time, now that the clock stands still."""
        now = self.time()
        for each in self._due:
            if not each.timer.cancelled() and each.when - now <= SHORT:
                each.timer.real = self._loop.call_later(
                    max(each.when - now, 0.0), each.timer.run, context=each.timer.context
                )
        self._due = [each for each in self._due if each.timer.real is None]
        self._other = [each for each in self._other if each.timer.real is None]
        self._drop_cancelled()


def _check_leap(seconds: float, ahead: float) -> None:
    """Raise OutOfRange for a leap of so many seconds by a clock that will be so far ahead of the real time."""
    if seconds < 0:
        raise OutOfRange("the time of a cluster cannot go back")
    if ahead + seconds > FURTHEST:
        most = int(FURTHEST // 86400)
        raise OutOfRange(f"the clock can be at most {most} days ahead of the real time, as certificates are")
