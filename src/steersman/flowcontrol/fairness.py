"""Priority and fairness as a whole: which flow a request is of, which levels there are, and how they share the seats.

Follows k8s.io/apiserver `util/flowcontrol/apf_controller.go`. It is given the configuration by `digest` whenever that
has changed, and is asked to `share_out` every ten seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from steersman.api.flowcontrol.v1 import FlowSchema, FlowSchemaCondition, PriorityLevelConfiguration
from steersman.flowcontrol.allocation import Claim, Unsolvable, share_out
from steersman.flowcontrol.bootstrap_configuration import mandatory
from steersman.flowcontrol.counts import SchemaCounts
from steersman.flowcontrol.level import CATCH_ALL, EXEMPT, Level, limits_of, queuing_of, shares_of
from steersman.flowcontrol.matching import Digest, Matcher, Matchers
from steersman.flowcontrol.queue_set import Later, QueueSet
from steersman.flowcontrol.retry_after import RefusedRequests
from steersman.flowcontrol.shuffle_sharding import deal, flow_hash
from steersman.flowcontrol.watch_tracker import WatchTracker
from steersman.machinery.identity.action import Action
from steersman.work.bounded_cache import BoundedCache

logger = logging.getLogger(__name__)

DANGLING: Final = "Dangling"
LEVEL_UID: Final = "x-kubernetes-pf-prioritylevel-uid"
SCHEMA_UID: Final = "x-kubernetes-pf-flowschema-uid"
_KEPT: Final = 8192
_LONGEST: Final = 512
"""Characters of a path that is remembered."""
_LONGEST_KEY: Final = 2048
"""Characters of all that a flow is remembered by: names of users and groups, and what a path says, may be as long as a
head."""
_MOST_GROUPS: Final = 64
"""Groups of a user that is remembered."""


class Flow:
    """Where requests alike belong: of a flow schema, told apart by user or namespace as that says, at a level."""

    __slots__ = ("counts", "distinguisher", "hand", "headers", "is_exempt", "level", "schema", "seats")

    def __init__(self, level: Level, schema: FlowSchema, distinguisher: str) -> None:
        name, queuing = schema.metadata.name, level.queuing
        self.level: Final = level
        self.schema: Final = name
        self.seats: Final[QueueSet] = level.seats
        self.is_exempt: Final = queuing.exempt
        self.distinguisher: Final = distinguisher if queuing.queues > 1 else ""
        self.counts: Final[SchemaCounts] = level.counts_of(name)
        self.headers: Final = ((SCHEMA_UID, schema.metadata.uid), (LEVEL_UID, level.configuration.metadata.uid))
        self.hand: Final[tuple[int, ...]] = (
            deal(queuing.queues, queuing.hand, flow_hash(name, self.distinguisher)) if queuing.queues else ()
        )


FlowKey = tuple[str, tuple[str, ...], str, str, str, str, str, str | None]
"""User, groups, verb, resource, namespace, API group, subresource, and the path of a request that is about no resource:
what a request's flow depends on."""


def _is_short(key: FlowKey) -> bool:
    user, groups, *action, path = key
    if len(groups) > _MOST_GROUPS or (path is not None and len(path) > _LONGEST):
        return False
    return len(user) + sum(map(len, groups)) + sum(len(each) for each in action if each) <= _LONGEST_KEY


class Finding(NamedTuple):
    """What is to be said of a flow schema whose status does not say it yet."""

    schema: str
    condition: FlowSchemaCondition


class Schema(NamedTuple):
    """A flow schema with its rules compiled."""

    schema: FlowSchema
    matcher: Matcher

    @property
    def name(self) -> str:
        return self.schema.metadata.name

    @property
    def level(self) -> str:
        """The name of the level that it leads to."""
        return self.schema.spec.priority_level_configuration.name


class Fairness:
    """See the module. `seats` is how many the server has, `clock` tells seconds that only grow, `wall_clock` those
    since 1970.

    `reload` is called when a level that is not configured any more has nothing left to do, for somebody to `digest`.
    """

    def __init__(
        self, seats: int, *, clock: Callable[[], float], wall_clock: Callable[[], float], later: Later
    ) -> None:
        self._seats = seats
        self.clock = clock
        self._later = later
        self.levels: dict[str, Level] = {}
        self._schemas: list[Schema] = []
        self._matchers = Matchers(())
        self.flows: BoundedCache[FlowKey, Flow] = BoundedCache(_KEPT)
        """Those of the requests of late."""
        self.watches = WatchTracker()
        self.refused = RefusedRequests(wall_clock)
        self.fair_fraction = 0.0
        self.reload: Callable[[], None] = _nothing
        self.running = [0, 0]
        """Requests that are worked on: such as read, and such as write."""
        self.digest((), ())

    # Requests

    def flow(self, user: str, groups: tuple[str, ...], action: Action, path: str | None) -> Flow:
        """The flow of a request; `path` is that of one that is about no resource, else None."""
        key = (user, groups, action.verb, action.resource, action.namespace, action.group, action.subresource, path)
        return self.flows[key] or self.find(key, Digest(user, groups, action, path))

    def find(self, key: FlowKey, digest: Digest) -> Flow:
        """The flow of a request of which it is not remembered, under its key."""
        found = self._match(digest)
        if _is_short(key):
            self.flows.keep(key, found)
        return found

    def _match(self, digest: Digest) -> Flow:
        number = self._matchers.first(digest)
        if number is not None:
            found = self._schemas[number]
        else:  # neither authenticated nor not: never so behind authentication
            found = next(each for each in self._schemas if each.name == CATCH_ALL)
        method = found.schema.spec.distinguisher_method
        distinguisher = ""
        if method is not None:
            distinguisher = digest.user if method.type == "ByUser" else digest.action.namespace
        return Flow(self.levels[found.level], found.schema, distinguisher)

    def left(self, flow: Flow) -> None:
        """A request of the flow is over, or was refused, at a level that is not configured any more."""
        if flow.level.is_quiescing and flow.level.seats.is_idle:
            self.reload()

    # Configuration

    def digest(self, levels: Iterable[PriorityLevelConfiguration], schemas: Iterable[Schema]) -> list[Finding]:
        """Takes the configuration that there is now; what is to be said of the schemas.

        Levels that are gone stay while they have requests. Mandatory levels and schemas that are not there count as if
        they were.
        """
        imagined_levels, imagined_schemas = mandatory()
        kept: dict[str, Level] = {}
        for each in levels:
            self._take_level(kept, each)
        findings = self._take_schemas(kept, schemas, imagined_schemas)
        for name, level in self.levels.items():
            if name not in kept and (name in (EXEMPT, CATCH_ALL) or not level.seats.is_idle):
                level.is_quiescing = name not in (EXEMPT, CATCH_ALL)
                kept[name] = level
            elif name not in kept:
                self.refused.forget(name)
        for each in imagined_levels:
            if each.metadata.name not in kept:
                self._take_level(kept, each)
        self.levels = kept
        shares = sum(shares_of(level.configuration.spec) for level in kept.values())
        for level in kept.values():
            level.set_limits(limits_of(level.configuration.spec, self._seats, shares))
        self.flows.forget()
        self.share_out()
        return findings

    def _take_level(self, kept: dict[str, Level], configuration: PriorityLevelConfiguration) -> None:
        name = configuration.metadata.name
        queuing = queuing_of(name, configuration.spec)
        if queuing is None:
            logger.warning("Ignoring PriorityLevelConfiguration object %s because its spec is broken", name)
            return
        level = self.levels.get(name)
        if level is None:
            level = Level(configuration, self.clock, self._later)
        level.take(configuration, queuing)
        kept[name] = level

    def _take_schemas(
        self, levels: dict[str, Level], schemas: Iterable[Schema], imagined: Sequence[FlowSchema]
    ) -> list[Finding]:
        findings: list[Finding] = []
        good: list[Schema] = []
        for each in schemas:
            finding = _finding(each, is_there=each.level in levels)
            if finding is not None:
                findings.append(finding)
            if each.level in levels:
                good.append(each)
        good.sort(key=lambda each: (each.schema.spec.matching_precedence, each.name))
        names = {each.name for each in good}
        exempt, catch_all = (Schema(each, Matcher(each.spec)) for each in imagined)
        if EXEMPT not in names:
            good.insert(0, exempt)
        if CATCH_ALL not in names:
            good.append(catch_all)
        self._schemas = good
        self._matchers = Matchers([each.matcher for each in good])
        return findings

    # Seats

    def share_out(self) -> None:
        """Gives every level the seats that it has until next time, by what it has needed of late."""
        for level in self.levels.values():
            level.end_period()
        self.allocate()

    def allocate(self) -> None:
        """Gives every level its seats by the demand that is known of it."""
        all_seats = sum(level.limits.nominal for level in self.levels.values())
        left, least, needed = all_seats, 0, 0
        claims: dict[str, Claim] = {}
        for name, level in self.levels.items():
            limits, highest = level.limits, level.demand.highest
            if level.is_exempt:
                level.target = float(max(limits.least, highest))
                left -= max(limits.least, highest)
                continue
            lower = max(limits.least, min(limits.nominal, highest))
            level.target = max(float(lower), level.demand.smoothed)
            claims[name] = Claim(level.target, float(lower), float(limits.most))
            least += limits.least
            needed += lower
        given = self._given(all_seats, left, least, needed, claims)
        for name, level in self.levels.items():
            seats = given.get(name, int(level.target))
            level.set_current(seats, seats or max(1, (self._seats + 5) // 10))

    def _given(self, all_seats: int, left: int, least: int, needed: int, claims: dict[str, Claim]) -> dict[str, int]:
        """What each level gets that is not exempt; if exempt ones take too much, less than it needs."""
        self.fair_fraction = 0.0
        if left <= least:
            return {name: self.levels[name].limits.least for name in claims}
        if left <= needed:
            share = (left - least) / (needed - least)
            return {
                name: _between(self.levels[name].limits.least, claim.lower, share) for name, claim in claims.items()
            }
        try:
            got, self.fair_fraction = share_out(all_seats, list(claims.values()))
        except Unsolvable as error:
            logger.error("the seats of priority levels stay as they are: %s", error)
            return {name: self.levels[name].current for name in claims}
        return {name: int(seats + 0.5) for name, seats in zip(claims, got, strict=True)}


def _between(least: int, lower: float, share: float) -> int:
    return least + int((lower - least) * share + 0.5)


def _finding(schema: Schema, *, is_there: bool) -> Finding | None:
    """What is to be said of whether a schema's level is there, unless its status says that."""
    about = f'This FlowSchema references the PriorityLevelConfiguration object named "{schema.level}"'
    if is_there:
        status, reason, message = "False", "Found", f"{about} and it exists"
    else:
        status, reason, message = "True", "NotFound", f"{about} but there is no such object"
    for each in schema.schema.status.conditions:
        if each.type == DANGLING:
            if (each.status, each.reason, each.message) == (status, reason, message):
                return None
            break
    return Finding(schema.name, FlowSchemaCondition(DANGLING, status, None, reason, message))


def _nothing() -> None:
    """What is done as long as nobody has said what."""
