"""A fault: the requests that it meets, how often, and what happens to them."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from steersman.faults.fault_index import Key, keys_of_lists, keys_of_match
from steersman.faults.patterns import CompiledMatch, Patterns, ResourcePatterns
from steersman.faults.stale_reads import Read, Timeline
from steersman.machinery.identity.action import PATH_VERBS, RESOURCE_VERBS, Action
from steersman.machinery.suggestions import explain_validation_error, known_names_hint
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.net.ascii import lower

MOST_PATTERNS: Final = 64
"""Patterns of one kind in a fault."""
MOST_PATTERN: Final = 253
"""Characters of a pattern."""
LONGEST: Final = 3600.0
"""Seconds of a delay at most."""
GARBAGE: Final = b"<html><body><h1>It works!</h1></body></html>\n"
"""Answer of an effect `garbage`, as that of another server on the way."""
_LONGEST_TIME: Final = 365 * 86400.0
_MOST_TEXT: Final = 1024
_MOST_COUNT: Final = 10**9
_KEPT: Final = 10
"""Last injections that a fault remembers."""
_MOST_NAME: Final = 253
"""Characters of each text of an injection: paths of requests have texts of any length, objects a bounded size."""
_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
"""Usual reasons of status codes."""


class InvalidFault(ValueError):
    """A fault that cannot be injected; the message says why."""


class TooManyFaults(InvalidFault):
    """A fault that can be injected once there are fewer others."""


class _Part(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Part of a fault."""


class Match(_Part, frozen=True):
    """Requests that a fault meets: those that fit each list that is not empty. `*` in a pattern stands for any text.

    Resources are written as in RBAC rules (`pods`, `pods/status`, `*/scale`), also with their group
    (`deployments.apps`); `*` stands for all resources and subresources.

    With one of the lists of CALLS the fault meets calls of back ends instead: of admission webhooks
    (`CONFIGURATION`, `WEBHOOK` or `CONFIGURATION/WEBHOOK`), of the conversion webhooks of definitions, and of the
    servers of APIServices. `authentication_webhooks` and `authorization_webhooks` are those that flags and the
    configuration of authorization name, `default` if they give no name. With `nodes` it meets the kubelets of simulated nodes.
    """

    users: list[str] = []
    groups: list[str] = []
    user_agents: list[str] = []
    verbs: list[str] = []
    resources: list[str] = []
    namespaces: list[str] = []
    names: list[str] = []
    webhooks: list[str] = []
    conversions: list[str] = []
    api_services: list[str] = []
    authentication_webhooks: list[str] = []
    authorization_webhooks: list[str] = []
    nodes: list[str] = []


CALL_NAMES: Final = {
    "webhooks": "webhooks",
    "conversions": "conversions",
    "api_services": "apiservices",
    "authentication_webhooks": "tokenreviews",
    "authorization_webhooks": "subjectaccessreviews",
}
"""Kinds of calls as a status names them, by members of Match."""
CALLS: Final = tuple(CALL_NAMES)
"""Members of Match for the calls that the server makes, in place of requests that it gets."""
NODES: Final = "nodes"
"""Member of Match for kubelets."""
_LISTS_OF_CALLS: Final = "webhooks, conversions, apiServices, authenticationWebhooks and authorizationWebhooks"
DEFAULT_WEBHOOK: Final = "default"
"""Name of a webhook of authentication, and of one of authorization without a name of its own."""


class When(_Part, frozen=True):
    """Choice among the requests that match: `skip` of them pass, then up to `times` are hit (0: all).

    With `probability` chance decides, the same way each time for a `seed`. The fault ends after the duration `for_`.
    """

    skip: int = 0
    times: int = 0
    probability: float = 1.0
    seed: int = 0
    for_: str = msgspec.field(name="for", default="")


class Status(_Part, frozen=True):
    """Error that a request gets in place of its answer; `reason` and `message` are the usual ones by default."""

    code: int
    reason: str = ""
    message: str = ""
    retry_after_seconds: int = 0


class Delay(_Part, frozen=True):
    """Durations for which a request waits before it is carried out, and its answer afterwards."""

    before: str = ""
    after: str = ""


class WatchEffect(_Part, frozen=True):
    """Faults of an open watch.

    It is closed after a duration, or after a number of events; with `expire` its last event is the error 410 Expired
    then. With `delay` events come later, with `hold` none come while the fault lasts, and with `withhold_bookmarks` no
    bookmarks do.
    """

    close_after: str = ""
    close_after_events: int | None = None
    expire: bool = False
    delay: str = ""
    hold: bool = False
    withhold_bookmarks: bool = False


class NodeEffect(_Part, frozen=True):
    """Faults of a kubelet: it is silent, or it sees each change of a pod later by a duration."""

    silent: bool = False
    delay: str = ""


class ClockEffect(_Part, frozen=True):
    """Leap of the cluster's clock by a duration, at each request that is hit."""

    advance: str = ""


class StaleEffect(_Part, frozen=True):
    """Reads from an older state, as a cache that lags behind answers them.

    The state is `by` revisions old, or as old as the duration `for_`, or with `hold` that of the fault's beginning. It
    is never behind a requested resourceVersion, nor unless `even_behind_shown` behind the state that the connection may
    have been shown. Reads without a resourceVersion, which are consistent, are left alone unless `even_consistent`.
    """

    by: int = 0
    for_: str = msgspec.field(name="for", default="")
    hold: bool = False
    even_behind_shown: bool = False
    even_consistent: bool = False


class Effect(_Part, frozen=True):
    """Effects of a fault on a request.

    `cut` cuts the connection before the request is carried out, `lose_answer` afterwards. With `hang` the request waits
    as long as the fault lasts; with `garbage` its answer is no JSON. `refuse` is for calls of back ends: the connection
    is refused.
    """

    status: Status | None = None
    delay: Delay = Delay()
    cut: bool = False
    lose_answer: bool = False
    hang: bool = False
    garbage: bool = False
    refuse: bool = False
    watch: WatchEffect = WatchEffect()
    node: NodeEffect = NodeEffect()
    clock: ClockEffect = ClockEffect()
    stale: StaleEffect = StaleEffect()


class FaultSpec(_Part, frozen=True):
    """Specification of a fault."""

    match: Match = Match()
    when: When = When()
    effect: Effect = Effect()


def spec_of(plain: Any) -> FaultSpec:
    """Return the specification in plain data. Raises InvalidFault."""
    try:
        spec = msgspec.convert(plain, FaultSpec)
    except msgspec.ValidationError as error:
        raise InvalidFault(explain_validation_error(error, FaultSpec)) from None
    _check(spec)
    return spec


def _check(spec: FaultSpec) -> None:
    """Raise InvalidFault for a specification that breaks a bound."""
    for name in Match.__struct_fields__:
        patterns: list[str] = getattr(spec.match, name)
        if len(patterns) > MOST_PATTERNS:
            raise InvalidFault(f"match.{name}: more than {MOST_PATTERNS} patterns")
        for each in patterns:
            if len(each) > MOST_PATTERN:
                raise InvalidFault(f"match.{name}: a pattern has at most {MOST_PATTERN} characters")
    _check_words(spec.match)
    when, effect = spec.when, spec.effect
    if not 0 <= when.skip <= _MOST_COUNT or not 0 <= when.times <= _MOST_COUNT:
        raise InvalidFault(f"when: skip and times are from 0 to {_MOST_COUNT}")
    if not 0.0 <= when.probability <= 1.0:
        raise InvalidFault("when.probability: not between 0 and 1")
    _seconds("when.for", when.for_, _LONGEST_TIME)
    for name, text in (
        ("delay.before", effect.delay.before),
        ("delay.after", effect.delay.after),
        ("watch.closeAfter", effect.watch.close_after),
        ("watch.delay", effect.watch.delay),
        ("node.delay", effect.node.delay),
    ):
        _seconds(f"effect.{name}", text, LONGEST)
    _seconds("effect.clock.advance", effect.clock.advance, _LONGEST_TIME)
    if effect.clock.advance and not when.times:
        raise InvalidFault("effect.clock: needs when.times, as each request that is hit moves the clock")
    _check_effect(effect)
    _check_stale(effect.stale)
    _check_calls(spec)
    _check_nodes(spec)


def _check_stale(stale: StaleEffect) -> None:
    """Raise InvalidFault for an effect on reads that is not clear."""
    if stale == StaleEffect():
        return
    if bool(stale.by) + bool(stale.for_) + stale.hold != 1:
        raise InvalidFault("effect.stale: needs one of by, for and hold")
    if not 0 <= stale.by <= _MOST_COUNT:
        raise InvalidFault(f"effect.stale.by: not between 0 and {_MOST_COUNT}")
    if stale.for_ and not _seconds("effect.stale.for", stale.for_, LONGEST):
        raise InvalidFault("effect.stale.for: 0s is no time")


def _check_nodes(spec: FaultSpec) -> None:
    """Raise InvalidFault for a mixture of kubelets and requests."""
    match, effect, when = spec.match, spec.effect, spec.when
    if not match.nodes:
        if effect.node != NodeEffect():
            raise InvalidFault("effect.node: needs match.nodes")
        return
    if match != Match(nodes=match.nodes):
        raise InvalidFault("match.nodes: goes with no other list")
    if effect != Effect(node=effect.node):
        raise InvalidFault("match.nodes: the effect of a fault of nodes is effect.node")
    if when != When(for_=when.for_):
        raise InvalidFault("match.nodes: a fault of nodes lasts, and has only when.for")


def _check_calls(spec: FaultSpec) -> None:
    """Raise InvalidFault for a mixture of requests and calls."""
    match, effect = spec.match, spec.effect
    if not any(getattr(match, name) for name in CALLS):
        if effect.refuse:
            raise InvalidFault(
                f"effect.refuse: is for calls, which one of these lists of match names: {_LISTS_OF_CALLS}"
            )
        return
    if any(getattr(match, name) for name in Match.__struct_fields__ if name not in CALLS):
        raise InvalidFault(f"match: {_LISTS_OF_CALLS} go with no other list")
    for name, none in (("watch", WatchEffect()), ("clock", ClockEffect()), ("stale", StaleEffect())):
        if getattr(effect, name) != none:
            raise InvalidFault(f"effect.{name}: is for requests, not for calls of back ends")


def _check_words(match: Match) -> None:
    """Raise InvalidFault for verbs and resources that no request has."""
    verbs = RESOURCE_VERBS if match.resources else RESOURCE_VERBS | PATH_VERBS
    for each in match.verbs:
        if "*" not in each and each not in verbs:
            raise InvalidFault(f"match.verbs: no verb {each!r}{known_names_hint(each, RESOURCE_VERBS)}")
    for each in match.resources:
        if each != lower(each):
            raise InvalidFault(f"match.resources: {each!r} is no name of resources, such as pods or deployments.apps")


def _check_effect(effect: Effect) -> None:
    status, watch = effect.status, effect.watch
    if status is not None:
        if not 400 <= status.code <= 599:
            raise InvalidFault("effect.status.code: not between 400 and 599")
        if not 0 <= status.retry_after_seconds <= LONGEST:
            raise InvalidFault(f"effect.status.retryAfterSeconds: not between 0 and {LONGEST:.0f}")
        if max(len(status.message), len(status.reason)) > _MOST_TEXT:
            raise InvalidFault(f"effect.status: reason and message have at most {_MOST_TEXT} characters")
    if watch.close_after_events is not None and not 0 <= watch.close_after_events <= _MOST_COUNT:
        raise InvalidFault(f"effect.watch.closeAfterEvents: not between 0 and {_MOST_COUNT}")
    if watch.expire and not watch.close_after and watch.close_after_events is None:
        raise InvalidFault("effect.watch.expire: needs closeAfter or closeAfterEvents")
    ends = (status is not None, effect.cut, effect.lose_answer, effect.hang, effect.garbage, effect.refuse)
    if sum(ends) > 1:
        raise InvalidFault("effect: only one of status, cut, loseAnswer, hang, garbage and refuse")
    if effect == Effect():
        raise InvalidFault("effect: empty, nothing would happen")


def _seconds(name: str, text: str, longest: float) -> float:
    """Return the seconds of a duration, 0 for "". Raises InvalidFault."""
    if not text:
        return 0.0
    try:
        seconds = parse_duration(text) / 1e9
    except DurationError as error:
        raise InvalidFault(f"{name}: {error}") from None
    if not 0.0 <= seconds <= longest:
        raise InvalidFault(f"{name}: not between 0s and {longest:.0f}s")
    return seconds


class Met(NamedTuple):
    """Facts about a request that faults look at.

    `name` is the object's name, also for a create; "" for a collection and for an object that the server is to name.
    """

    action: Action
    user: str
    groups: Sequence[str]
    user_agent: str
    name: str
    read: Read | None = None
    """The request as a read that may be answered from the past; None for others, and while no fault does that."""
    body: bytes = b""
    """Body of a create; of every write if the server has an interceptor; b"" if it was not read."""


class Call(NamedTuple):
    """A call of a back end: its kind, one of CALLS, and the names by which a fault may mean it, the shown one first."""

    kind: str
    names: tuple[str, ...]


class Injection(msgspec.Struct, frozen=True, rename="camel"):
    """A request that a fault has hit, with its time as the API writes it. Calls of back ends have the verb `call`."""

    time: str
    user: str
    verb: str
    resource: str
    namespace: str
    name: str


class Fault:
    """A fault while it is active, with its counts."""

    def __init__(self, name: str, spec: FaultSpec, now: float) -> None:
        """`now` is the monotonic time, from which `when.for` counts. Raises InvalidFault."""
        _check(spec)
        self.name = name
        self.spec = spec
        self.matched = 0
        self.injected = 0
        self.last: deque[Injection] = deque(maxlen=_KEPT)
        effect, when, match = spec.effect, spec.when, spec.match
        self._patterns = CompiledMatch(
            Patterns(match.users),
            Patterns(match.groups),
            Patterns(match.user_agents),
            Patterns(match.verbs),
            ResourcePatterns(match.resources),
            Patterns(match.namespaces),
            Patterns(match.names),
        )
        self._calls = {name: Patterns(found) for name in CALLS if (found := getattr(match, name))}
        self.is_of_calls = bool(self._calls)
        """True if the fault meets calls of back ends, and no requests."""
        self._nodes = Patterns(match.nodes)
        self._silenced: set[str] = set()
        self.is_of_nodes = bool(match.nodes)
        """True if the fault meets kubelets, and no requests."""
        self.wild = self._patterns.wild + self._nodes.wild + sum(each.wild for each in self._calls.values())
        """Number of its patterns with `*`."""
        self.keys = self._find_keys()
        """Keys of the fault in an index of requests, calls or kubelets."""
        self.before = _seconds("", effect.delay.before, LONGEST)
        self.after = _seconds("", effect.delay.after, LONGEST)
        self.close_after = _seconds("", effect.watch.close_after, LONGEST) if effect.watch.close_after else None
        self.sync_delay = _seconds("", effect.node.delay, LONGEST)
        self.clock_advance = _seconds("", effect.clock.advance, _LONGEST_TIME)
        self.watch_delay = _seconds("", effect.watch.delay, LONGEST)
        self.ends_at = now + _seconds("", when.for_, _LONGEST_TIME) if when.for_ else None
        self.is_stale = effect.stale != StaleEffect()
        """True if the fault answers reads from the past."""
        self._timeline = Timeline(_seconds("", effect.stale.for_, LONGEST)) if effect.stale.for_ else None
        self._began_at = 0
        self._chance = random.Random(when.seed)
        self._when_over: dict[Callable[[], None], None] = {}
        self._is_over = False

    def _find_keys(self) -> list[Key]:
        if self.is_of_nodes:
            return keys_of_lists({NODES: self._nodes})
        if self.is_of_calls:
            return keys_of_lists(self._calls)
        return keys_of_match(self._patterns.resources, self._patterns.verbs)

    @property
    def needs_names(self) -> bool:
        """True if the fault looks at names of objects."""
        return bool(self.spec.match.names)

    @property
    def affects_watches(self) -> bool:
        """True if the fault changes the events of a watch."""
        return self.spec.effect.watch != WatchEffect()

    @property
    def is_over(self) -> bool:
        """True once the fault was removed, or its time has passed."""
        return self._is_over

    @property
    def is_exhausted(self) -> bool:
        """True once the fault has hit as many requests as it may."""
        return 0 < self.spec.when.times <= self.injected

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the fault ends; at once if it has ended."""
        if self._is_over:
            callback()
        else:
            self._when_over[callback] = None

    def forget(self, callback: Callable[[], None]) -> None:
        """Do not call `callback` when the fault ends."""
        self._when_over.pop(callback, None)

    async def wait(self, seconds: float) -> None:
        """Wait for a time, or until the fault ends."""
        if self._is_over or not seconds:
            return
        over = asyncio.Event()
        self.on_end(over.set)
        try:
            async with asyncio.timeout(seconds):
                await over.wait()
        except TimeoutError:
            return
        finally:
            self.forget(over.set)

    def end(self) -> None:
        """End the fault, so that requests and events that it holds back go on."""
        self._is_over = True
        callbacks, self._when_over = self._when_over, {}
        for each in callbacks:
            each()

    def hits(self, met: Met, now: float) -> bool:
        """Return True if the fault is injected into a request, and count it."""
        return not self._has_ended(now) and self._matches(met) and self._is_next()

    def hits_call(self, call: Call, now: float) -> bool:
        """Return True if the fault is injected into a call, and count it."""
        if self._has_ended(now):
            return False
        patterns = self._calls.get(call.kind)
        return patterns is not None and any(map(patterns.fit, call.names)) and self._is_next()

    def begin_reads(self, revision: int) -> None:
        """Note the revision at the beginning of the fault."""
        self._began_at = revision
        self.note_revision(revision)

    def note_revision(self, revision: int) -> None:
        """Note the present revision, for later reads from the present."""
        if self._timeline is not None:
            self._timeline.note(revision)

    def past(self, revision: int) -> int:
        """Return the revision at which the fault answers a read when `revision` is the present one."""
        stale = self.spec.effect.stale
        if stale.hold:
            return self._began_at
        return revision - stale.by if self._timeline is None else self._timeline.then()

    def silences(self, node: str, now: str) -> bool:
        """Return True if the fault silences the kubelet of a node, and count the node the first time."""
        if not self.spec.effect.node.silent or not self._nodes.fit(node):
            return False
        if node not in self._silenced:
            self._silenced.add(node)
            self._count_of_node(now, "silence", "nodes", "", node)
        return True

    def delays_sync(self, node: str, namespace: str, pod: str, now: str) -> bool:
        """Return True if the fault delays the sync of a pod, and count it."""
        if not self.sync_delay or not self._nodes.fit(node):
            return False
        self._count_of_node(now, "delay", "pods", namespace, pod)
        return True

    def _count_of_node(self, now: str, *texts: str) -> None:
        self.matched += 1
        self.injected += 1
        self._remember(now, "", *texts)

    def _has_ended(self, now: float) -> bool:
        return self.ends_at is not None and now >= self.ends_at

    def _is_next(self) -> bool:
        """Count a match, and return True if it is one that is hit."""
        self.matched += 1
        when = self.spec.when
        if self.matched <= when.skip or self.is_exhausted:
            return False
        if when.probability < 1.0 and self._chance.random() >= when.probability:
            return False
        self.injected += 1
        return True

    def remember_call(self, call: Call, now: str) -> None:
        """Keep a call that was hit at the time `now`."""
        self._remember(now, "", "call", CALL_NAMES[call.kind], "", call.names[0])

    def remember(self, met: Met, now: str) -> None:
        """Keep a request that was hit at the time `now`."""
        action = met.action
        resource = f"{action.resource}/{action.subresource}" if action.subresource else action.resource
        self._remember(now, met.user, action.verb, resource, action.namespace, met.name)

    def _remember(self, now: str, *texts: str) -> None:
        """Keep an injection: user, verb, resource, namespace and name."""
        user, verb, resource, namespace, name = (each[:_MOST_NAME] for each in texts)
        self.last.append(Injection(now, user, verb, resource, namespace, name))

    def _matches(self, met: Met) -> bool:
        match, action = self._patterns, met.action
        return (
            match.verbs.fit(action.verb)
            and match.namespaces.fit(action.namespace)
            and match.names.fit(met.name)
            and match.users.fit(met.user)
            and match.user_agents.fit(met.user_agent)
            and (not match.groups or any(map(match.groups.fit, met.groups)))
            and match.resources.fit(action)
        )


def usual_reason(code: int) -> str:
    """Return the usual reason of a status code."""
    return _REASONS.get(code, "InternalError" if code >= 500 else "BadRequest")
