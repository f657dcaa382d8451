"""Observer of an operator's requests: records points, and lets the faults of a plan happen at theirs."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import msgspec

from steersman.client.transport import Unreachable
from steersman.faults.body_names import name_in
from steersman.faults.fault import Met, Status
from steersman.faults.interception import CUT, Instead, OpenWatch
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action
from steersman.machinery.values.times import monotonic
from steersman.stress.masking import Masker
from steersman.stress.objects import WatchedEvent
from steersman.stress.point import CRASHES, OF_WATCHES, WRITES, Kind, PlannedFault, Point
from steersman.stress.state import LEADER
from steersman.stress.tapped_watch import TappedWatch

logger = logging.getLogger(__name__)

MOST_POINTS: Final = 50_000
"""Points of a run that are recorded."""
_IGNORED: Final = frozenset(
    {
        ("", "events"),
        ("events.k8s.io", "events"),
        ("coordination.k8s.io", "leases"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
    }
)
"""Groups and resources whose requests are no points: they do not belong to the state that an operator works on."""
_STATUSES: Final = {
    Kind.ERROR: Status(500, message="etcdserver: request timed out"),
    Kind.THROTTLED: Status(429, retry_after_seconds=1),
    Kind.UNAVAILABLE: Status(503),
}
"""Answers in place of the request."""
_QUOTA: Final = Status(
    409,
    "Conflict",
    'Operation cannot be fulfilled on resourcequotas "quota": the object has been modified; please apply your changes to '
    "the latest version and try again",
)
"""Answer to a create whose quota somebody else has changed at the same time."""
_TIMED_OUT: Final = Status(504, "Timeout", "Timeout: request did not complete within the allotted timeout")


class Seen(msgspec.Struct):
    """A point that a run has passed."""

    point: Point
    code: int = 0
    """Status code of the answer; 0 for events of watches, and until there is an answer."""
    is_lock: bool = False
    """True for a request for an object by which a leader is elected."""
    has_version: bool = False
    """True for a write that states the resourceVersion that it changes."""


class Tap:
    """Interceptor of one run.

    `is_subject` selects the requests, by default all. `crash` kills the operator. `touch` changes an object on behalf of
    somebody else. Each request first waits `delay` seconds. `reported` is called for each point once it has passed, and
    `happened` for each fault at once, as a program may end because of it.
    """

    def __init__(
        self,
        faults: Iterable[PlannedFault] = (),
        *,
        is_subject: Callable[[Met], bool] = lambda _: True,
        crash: Callable[[], None] | None = None,
        touch: Callable[[Action, str], Awaitable[None]] | None = None,
        delay: float = 0.0,
        hold: float = 0.5,
        reported: Callable[[Seen], None] | None = None,
        happened: Callable[[PlannedFault], None] | None = None,
    ) -> None:
        self._planned: dict[Point, list[Kind]] = {}
        for each in faults:
            self._planned.setdefault(each.at, []).append(each.kind)
        self._is_subject = is_subject
        self._crash = crash
        self.touch = touch
        """Function that changes an object, None without one."""
        self.delay = delay
        """Seconds that each request first waits."""
        self.hold = hold
        """Seconds without a request after which a watch that is held back goes on."""
        self._reported = reported
        self._happened = happened
        self._counts: Counter[Point] = Counter()
        self.masker = Masker()
        self._seen: list[Seen] = []
        self.leases: set[tuple[str, str]] = set()
        """Namespaces and names of Leases that were written."""
        self.locks: set[tuple[str, str, str]] = set()
        """Resource, namespace and name of objects by which leaders are elected."""
        self.hits: list[PlannedFault] = []
        """Faults that have happened."""
        self.last_request = monotonic()
        self.last_hit = 0.0
        self.requests = 0
        self.watches = 0
        """Watches that were opened."""

    def begin(self, met: Met) -> Call | None:
        """Return the observer of a request, None for one that is no point."""
        action = met.action
        if not self._is_subject(met):
            return None
        if (action.group, action.resource) in _IGNORED:
            if action.resource == "leases" and action.verb in WRITES:
                self.leases.add((action.namespace, met.name))
            return None
        self.requests += 1
        self.last_request = monotonic()
        if action.verb == "create" and not met.name:
            prefix = name_in(met.body).generate_name
            self.masker.learn(prefix)
            name = self.masker.generated(prefix) if prefix else ""
        else:
            name = self.masker.name(met.name)
        resource = f"{action.resource}.{action.group}" if action.group else action.resource
        if action.subresource:
            resource += f"/{action.subresource}"
        point = Point(client_of(met.user_agent), action.verb, resource, self.masker.name(action.namespace), name)
        if LEADER.encode() in met.body:
            self.locks.add((resource, point.namespace, name))
        if action.verb == "watch":
            self.watches += 1
            return Call(self, met, Seen(point), [])
        seen = self._note(point)
        seen.is_lock = (resource, point.namespace, name) in self.locks
        seen.has_version = action.verb in WRITES and b"resourceVersion" in met.body
        return Call(self, met, seen, self._planned.get(seen.point, []))

    def event(self, watch: Point, event: WatchedEvent) -> Kind | None:
        """Record an event of a watch, and return the fault that happens to it."""
        self.masker.learn(event.generate_name)
        name = self.masker.name(event.name)
        point = Point(watch.client, "watch", watch.resource, self.masker.name(event.namespace), name, event.type)
        seen = self._note(point)
        self.passed(seen)
        for kind in self._planned.get(seen.point, ()):
            if kind in OF_WATCHES:
                self.hit(kind, seen.point)
                return kind
        return None

    @property
    def seen(self) -> list[Seen]:
        """Points so far, without those of objects by which leaders are elected."""
        return without_locks(self._seen)

    def _note(self, point: Point) -> Seen:
        if len(self._counts) < MOST_POINTS or point in self._counts:
            self._counts[point] += 1
        seen = Seen(msgspec.structs.replace(point, nth=max(self._counts[point], 1)))
        if len(self._seen) < MOST_POINTS:
            self._seen.append(seen)
        return seen

    def passed(self, seen: Seen) -> None:
        """Report a point that has passed."""
        if self._reported is not None:
            self._reported(seen)

    def hit(self, kind: Kind, point: Point) -> None:
        """Record a fault that happens, and kill the operator if it is a crash."""
        self.last_hit = monotonic()
        fault = PlannedFault(kind, point)
        self.hits.append(fault)
        if self._happened is not None:
            self._happened(fault)
        if kind in CRASHES and self._crash is not None:
            self._crash()


class Call:
    """Observer of one request."""

    def __init__(self, tap: Tap, met: Met, seen: Seen, kinds: list[Kind]) -> None:
        self._tap = tap
        self._met = met
        self._seen = seen
        self._kinds = kinds

    async def before(self) -> Instead:
        """Return the answer of a fault that keeps the request from its effect."""
        if self._tap.delay:
            await asyncio.sleep(self._tap.delay)
        for kind in self._kinds:
            status = _STATUSES.get(kind)
            if status is not None:
                self._tap.hit(kind, self._seen.point)
                self._end(status.code)
                return status
            if kind is Kind.CRASH_BEFORE:
                self._tap.hit(kind, self._seen.point)
                return CUT
            if kind is Kind.CONFLICT:
                return await self._conflict()
        return None

    async def _conflict(self) -> Instead:
        """Let somebody else change the object, so that the server refuses an update; refuse a create."""
        if self._met.action.verb == "create":
            self._tap.hit(Kind.CONFLICT, self._seen.point)
            self._end(_QUOTA.code)
            return _QUOTA
        if self._tap.touch is not None:
            try:
                await self._tap.touch(self._met.action, self._met.name)
            except (StatusError, Unreachable) as error:
                logger.info("%s: not changed before the update: %s", self._seen.point, error)
            else:
                self._tap.hit(Kind.CONFLICT, self._seen.point)
        return None

    async def after(self, code: int) -> Instead:
        """Return the answer of a fault after the request took effect."""
        self._end(code)
        for kind in self._kinds:
            if kind is Kind.CRASH_AFTER:
                self._tap.hit(kind, self._seen.point)
                return CUT
            if kind is Kind.LOST and code < 400:
                self._tap.hit(kind, self._seen.point)
                return _TIMED_OUT
        return None

    def watch(self, body: OpenWatch) -> TappedWatch:
        """Return the body of a watch whose events are points."""
        return TappedWatch(self._tap, self._seen.point, body)

    def _end(self, code: int) -> None:
        if self._seen.point.verb != "watch":
            self._seen.code = code
            self._tap.passed(self._seen)


def without_locks(seen: list[Seen]) -> list[Seen]:
    """Return points without those of objects by which leaders are elected."""
    locks = {_object_of(each) for each in seen if each.is_lock}
    return [each for each in seen if _object_of(each) not in locks]


def _object_of(seen: Seen) -> tuple[str, str, str]:
    return seen.point.resource, seen.point.namespace, seen.point.name


def client_of(user_agent: str) -> str:
    """Return the name of the program in a user agent."""
    return user_agent.partition("/")[0].partition(" ")[0][:100] or "-"
