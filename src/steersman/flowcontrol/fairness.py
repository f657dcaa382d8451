"""Priority and fairness as a whole: classification of requests into flows, the levels, and sharing of seats.

Follows k8s.io/apiserver `util/flowcontrol/apf_controller.go`. The owner calls `digest` after each change of the
configuration, and `share_out` every ten seconds.
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
"""Limit of characters of a path in a cached key."""
_LONGEST_KEY: Final = 2048
"""Limit of characters of a cached key: names of users and groups, and parts of a path, may be as long as a head."""
_MOST_GROUPS: Final = 64
"""Limit of groups of a user in a cached key."""


class Flow:
    """A flow of similar requests: of one flow schema at one level, distinguished by user or namespace as the schema
    demands.
    """

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
"""Attributes that determine a request's flow: user, groups, verb, resource, namespace, API group, subresource, and the
path of a request that is not about a resource.
"""


def _is_short(key: FlowKey) -> bool:
    user, groups, *action, path = key
    if len(groups) > _MOST_GROUPS or (path is not None and len(path) > _LONGEST):
        return False
    return len(user) + sum(map(len, groups)) + sum(len(each) for each in action if each) <= _LONGEST_KEY


class Finding(NamedTuple):
    """A condition that is missing in the status of a flow schema."""

    schema: str
    condition: FlowSchemaCondition


class Schema(NamedTuple):
    """A flow schema with its compiled rules."""

    schema: FlowSchema
    matcher: Matcher

    @property
    def name(self) -> str:
        """Return the name of the FlowSchema."""
        return self.schema.metadata.name

    @property
    def level(self) -> str:
        """The name of the level that the schema refers to."""
        return self.schema.spec.priority_level_configuration.name


class Fairness:
    """Priority and fairness of a server.

    `seats` is the server's total number of seats. `clock` is monotonic, in seconds; `wall_clock` returns seconds since
    1970. `reload` is called when a level that is no longer configured has become idle; the owner should then call
    `digest`.
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
        """Cache of the flows of recent requests."""
        self.watches = WatchTracker()
        self.refused = RefusedRequests(wall_clock)
        self.fair_fraction = 0.0
        self.reload: Callable[[], None] = _nothing
        self.running = [0, 0]
        """Executing requests: [reading, writing]."""
        self.digest((), ())

    # Requests

    def flow(self, user: str, groups: tuple[str, ...], action: Action, path: str | None) -> Flow:
        """Return the flow of a request; `path` is the path of a request that is not about a resource, else None."""
        key = (user, groups, action.verb, action.resource, action.namespace, action.group, action.subresource, path)
        return self.flows[key] or self.find(key, Digest(user, groups, action, path))

    def find(self, key: FlowKey, digest: Digest) -> Flow:
        """Return the flow of a request that is not cached, and cache it under its key."""
        flow = self._match(digest)
        if _is_short(key):
            self.flows.keep(key, flow)
        return flow

    def _match(self, digest: Digest) -> Flow:
        number = self._matchers.first(digest)
        if number is not None:
            schema = self._schemas[number]
        else:  # the user is neither authenticated nor unauthenticated, which cannot happen behind authentication
            schema = next(each for each in self._schemas if each.name == CATCH_ALL)
        method = schema.schema.spec.distinguisher_method
        distinguisher = ""
        if method is not None:
            distinguisher = digest.user if method.type == "ByUser" else digest.action.namespace
        return Flow(self.levels[schema.level], schema.schema, distinguisher)

    def left(self, flow: Flow) -> None:
        """Handle the end or refusal of a request of `flow`: reload if its level is no longer configured and has become
        idle.
        """
        if flow.level.is_quiescing and flow.level.seats.is_idle:
            self.reload()

    # Configuration

    def digest(self, levels: Iterable[PriorityLevelConfiguration], schemas: Iterable[Schema]) -> list[Finding]:
        """Apply a configuration; return the conditions that are missing in the schemas' statuses.

        Removed levels stay while they have requests. Missing mandatory levels and schemas are added with their
        defaults.
        """
        imagined_levels, imagined_schemas = mandatory()
        kept: dict[str, Level] = {}
        for each in levels:
            self._apply_level(kept, each)
        findings = self._apply_schemas(kept, schemas, imagined_schemas)
        for name, level in self.levels.items():
            if name not in kept and (name in (EXEMPT, CATCH_ALL) or not level.seats.is_idle):
                level.is_quiescing = name not in (EXEMPT, CATCH_ALL)
                kept[name] = level
            elif name not in kept:
                self.refused.forget(name)
        for each in imagined_levels:
            if each.metadata.name not in kept:
                self._apply_level(kept, each)
        self.levels = kept
        shares = sum(shares_of(level.configuration.spec) for level in kept.values())
        for level in kept.values():
            level.set_limits(limits_of(level.configuration.spec, self._seats, shares))
        self.flows.forget()
        self.share_out()
        return findings

    def _apply_level(self, kept: dict[str, Level], configuration: PriorityLevelConfiguration) -> None:
        name = configuration.metadata.name
        queuing = queuing_of(name, configuration.spec)
        if queuing is None:
            logger.warning("Ignoring PriorityLevelConfiguration object %s because its spec is broken", name)
            return
        level = self.levels.get(name)
        if level is None:
            level = Level(configuration, self.clock, self._later)
        level.update(configuration, queuing)
        kept[name] = level

    def _apply_schemas(
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
        """End a period of demand, and allocate the seats of all levels for the next period."""
        for level in self.levels.values():
            level.end_period()
        self.allocate()

    def allocate(self) -> None:
        """Allocate the seats of all levels by their known demand."""
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
        given = self._allocate(all_seats, left, least, needed, claims)
        for name, level in self.levels.items():
            seats = given.get(name, int(level.target))
            level.set_current(seats, seats or max(1, (self._seats + 5) // 10))

    def _allocate(self, all_seats: int, left: int, least: int, needed: int, claims: dict[str, Claim]) -> dict[str, int]:
        """Return the seats of each level that is not exempt; less than needed if exempt levels use too many."""
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
            logger.error("keeping the present seats of priority levels: %s", error)
            return {name: self.levels[name].current for name in claims}
        return {name: int(seats + 0.5) for name, seats in zip(claims, got, strict=True)}


def _between(least: int, lower: float, share: float) -> int:
    return least + int((lower - least) * share + 0.5)


def _finding(schema: Schema, *, is_there: bool) -> Finding | None:
    """Return the condition about the existence of a schema's level, None if its status has it already."""
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
    """Do nothing: the default of `reload`."""
