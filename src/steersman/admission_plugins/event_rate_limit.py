"""EventRateLimit: rate limits for events, of the server, by namespace, by user, and by source and object.

The limits are token buckets as in golang.org/x/time/rate: full at first, and filled at a constant rate.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Annotated, Final

from msgspec import Meta

from steersman.admission.interface import CREATE, UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import ConfiguredDeclaration, PluginDependencies
from steersman.api.core.v1 import Event
from steersman.api.scalars import Int32, Wire
from steersman.machinery.codec.configuration import Document
from steersman.machinery.codec.derived_types import GO_TYPE
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.values import times
from steersman.work.token_bucket import TokenBucket

_EVENTS: Final = GroupResource("", "events")
_LONGEST_KEY: Final = 256
_DEFAULT_CACHE_SIZE: Final = 4096


def _server_key(attributes: Attributes) -> str:
    return ""


def _namespace_key(attributes: Attributes) -> str:
    return attributes.action.namespace


def _user_key(attributes: Attributes) -> str:
    return attributes.user.name


def _source_and_object_key(attributes: Attributes) -> str:
    event: Event = attributes.obj
    source, about = event.source, event.involved_object
    parts = (source.component, source.host, about.kind, about.namespace, about.name, about.uid, about.api_version)
    return "".join(parts)


SERVER: Final = "Server"
KEYS: Final[dict[str, Callable[[Attributes], str]]] = {
    SERVER: _server_key,
    "Namespace": _namespace_key,
    "User": _user_key,
    "SourceAndObject": _source_and_object_key,
}
"""Types of limits, and for each the function that returns the bucket key of a write."""


class Limit(Wire):
    """A limit of eventratelimit.admission.k8s.io/v1alpha1: `qps` events per second, `burst` events at once.

    At most `cache_size` buckets are kept (0 for the default). A new bucket evicts the least recently used one and
    starts full.
    """

    type: Annotated[str, Meta(extra={GO_TYPE: "LimitType"})] = ""
    qps: Int32 = 0
    burst: Int32 = 0
    cache_size: Int32 = 0


class Configuration(Document):
    """Configuration of the plugin; at least one limit is required."""

    limits: list[Limit] | None = None


class EventRateLimit(Plugin):
    """Refuses events beyond the limits. `clock` returns the time in seconds."""

    name = "EventRateLimit"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({_EVENTS})
    validates = True

    def __init__(self, limits: Iterable[Limit], clock: Callable[[], float] = times.monotonic) -> None:
        self._buckets = tuple(_Buckets(each, clock) for each in limits)

    async def validate(self, attributes: Attributes) -> None:
        """Take a token from every bucket of the event. Raises StatusError 429 if one of them is empty."""
        if attributes.dry_run:
            return
        full = []
        for buckets in self._buckets:
            key = KEYS[buckets.type](attributes)
            if not buckets.acquire(key):
                full.append(f"limit reached on type {buckets.type} for key {key}")
        if full:
            texts = list(dict.fromkeys(full))
            text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
            raise StatusError(429, "TooManyRequests", f"Too many requests: {text}", details_present=False)


class _Buckets:
    """Token buckets of one limit by key."""

    def __init__(self, limit: Limit, clock: Callable[[], float]) -> None:
        self.type = limit.type
        self._limit = limit
        self._most = limit.cache_size or _DEFAULT_CACHE_SIZE
        self._clock = clock
        self._buckets_by_key: OrderedDict[str, TokenBucket] = OrderedDict()

    def acquire(self, key: str) -> bool:
        """Take a token. Return False if the bucket is empty."""
        if len(key) > _LONGEST_KEY:  # clients choose the text, so a digest bounds the memory
            key = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        bucket = self._buckets_by_key.pop(key, None) or TokenBucket(self._limit.burst, self._limit.qps, self._clock)
        self._buckets_by_key[key] = bucket  # at the end: the most recently used
        if len(self._buckets_by_key) > self._most:
            self._buckets_by_key.popitem(last=False)
        return not bucket.take()


def _make(dependencies: PluginDependencies, limits: tuple[Limit, ...]) -> EventRateLimit:
    return EventRateLimit(limits)


EVENT_RATE_LIMIT: Final = ConfiguredDeclaration(EventRateLimit, on_by_default=False, make=_make)
