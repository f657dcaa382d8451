"""The filters that every request passes, outermost first, in upstream's order (DefaultBuildHandlerChain).

`reception` and `lifetime` combine several of upstream's filters. Traced requests pass the same filters, and steps
around them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from steersman.endpoints.filters.audit import with_audit
from steersman.endpoints.filters.authentication import with_authentication
from steersman.endpoints.filters.authorization import with_authorization
from steersman.endpoints.filters.consistency import ConsistencyWait, with_consistency_wait
from steersman.endpoints.filters.cors import with_cors
from steersman.endpoints.filters.goaway import with_probabilistic_goaway
from steersman.endpoints.filters.hsts import with_hsts
from steersman.endpoints.filters.http_logging import with_http_logging
from steersman.endpoints.filters.impersonation import with_impersonation
from steersman.endpoints.filters.lifetime import WaitGroup, with_lifetime
from steersman.endpoints.filters.max_in_flight import with_max_in_flight
from steersman.endpoints.filters.observation import with_observation
from steersman.endpoints.filters.origin import with_origin
from steersman.endpoints.filters.priority_and_fairness import with_priority_and_fairness
from steersman.endpoints.filters.reception import with_reception
from steersman.endpoints.filters.retry_after import with_retry_after
from steersman.endpoints.filters.tracing import enter, enter_with_user, kind_of_filter
from steersman.endpoints.request import Filter
from steersman.server.config import CompletedConfig
from steersman.server.lifecycle import Lifecycle
from steersman.tracing.trace import StepKind

if TYPE_CHECKING:
    from steersman.faults.fault_set import FaultSet


class Layer(NamedTuple):
    """A filter of the chain, with the name of its step in traces."""

    name: str
    filter: Filter


def layers(
    config: CompletedConfig, lifecycle: Lifecycle, requests: WaitGroup, arrival: ConsistencyWait | None = None
) -> tuple[Layer, ...]:
    """Return the layers for a configuration, without those that would have no effect."""
    metrics = config.metrics
    goaway, hsts, cors = config.goaway_chance, config.strict_transport_security, config.cors_allowed_origins
    given: tuple[tuple[str, Filter | None], ...] = (
        ("reception", with_reception(lifecycle)),
        ("logging", with_http_logging if config.log_requests else None),
        ("observation", with_observation(config.observe) if config.observe is not None else None),
        ("retryafter", with_retry_after(lambda: lifecycle.not_accepting) if config.shutdown_send_retry_after else None),
        ("hsts", with_hsts(hsts) if hsts else None),
        ("goaway", with_probabilistic_goaway(goaway) if goaway else None),
        ("lifetime", with_lifetime(lifecycle, requests, config.request_timeout, metrics, config.auditor)),
        ("cors", with_cors(cors) if cors else None),
        ("consistency", with_consistency_wait(arrival) if arrival is not None else None),
        ("authentication", with_authentication(config.authenticator, metrics, config.proxy_headers, config.auditor)),
        ("audit", with_audit(config.auditor) if config.auditor is not None else None),
        ("constrainedimpersonation", with_impersonation(config.authorizer, metrics)),
        ("priorityandfairness" if config.fairness is not None else "maxinflight", _with_seats(config)),
        ("authorization", with_authorization(config.authorizer, metrics, arrival)),
        ("origin", with_origin if config.records_origins else None),
        ("faults", _with_faults(config.faults) if config.faults is not None else None),
    )
    return tuple(Layer(name, each) for name, each in given if each is not None)


def plain(stack: tuple[Layer, ...]) -> tuple[Filter, ...]:
    """Return the filters of requests that are not traced."""
    return tuple(layer.filter for layer in stack)


_QUICK: Final = frozenset(
    {"logging", "observation", "retryafter", "hsts", "goaway", "lifetime", "cors", "audit", "origin", "faults"}
)
"""Filters without a step of their own: their time belongs to the step before."""


def traced(stack: tuple[Layer, ...]) -> tuple[tuple[Filter, ...], tuple[tuple[StepKind, ...], ...]]:
    """Return the filters of traced requests, with functions between them that note times, and the steps that begin at
    each of these times.

    kube-apiserver has a span of the audit filter without an audit policy too; it begins with the next filter then.
    """
    filters: list[Filter] = []
    kinds: list[tuple[StepKind, ...]] = []
    for layer in stack:
        if layer.name not in _QUICK:
            kind = kind_of_filter(layer.name)
            if filters and filters[-1] is enter_with_user:
                kinds[-1] += (kind,)
            else:
                kinds.append((kind,))
                filters += [enter] if len(kinds) > 1 else []  # the first one begins with the trace
        filters.append(layer.filter)
        if layer.name == "authentication":
            kinds.append((kind_of_filter("audit"),))
            filters.append(enter_with_user)
    return (*filters, enter), tuple(kinds)


def _with_faults(faults: FaultSet) -> Filter:
    """Return the filter of faults, whose code most servers never need."""
    from steersman.endpoints.filters.faults import with_faults

    return with_faults(faults)


def _with_seats(config: CompletedConfig) -> Filter:
    """Return the filter that limits concurrent requests."""
    metrics = config.metrics
    if config.fairness is None:
        return with_max_in_flight(config.max_requests_in_flight, config.max_mutating_requests_in_flight, metrics)
    stored = config.stored_objects or _nothing_is_stored
    return with_priority_and_fairness(config.fairness, stored, metrics, config.request_timeout / 4)


def _nothing_is_stored(group: str, plural: str) -> None:
    """Return None for every resource: its lists count as small."""
