"""The filters that every request passes, outermost first, in upstream's order (DefaultBuildHandlerChain).

`reception` and `lifetime` combine several of upstream's filters. Filters for unsupported features (tracing) are
missing.
"""

from __future__ import annotations

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
from steersman.endpoints.request import Filter
from steersman.server.config import CompletedConfig
from steersman.server.lifecycle import Lifecycle


def filters(
    config: CompletedConfig, lifecycle: Lifecycle, requests: WaitGroup, arrival: ConsistencyWait | None = None
) -> tuple[Filter, ...]:
    """Return the filters for a configuration, without those that would have no effect."""
    metrics = config.metrics
    chain: tuple[Filter | None, ...] = (
        with_reception(lifecycle),
        with_http_logging if config.log_requests else None,
        with_observation(config.observe) if config.observe is not None else None,
        with_retry_after(lambda: lifecycle.not_accepting) if config.shutdown_send_retry_after else None,
        with_hsts(config.strict_transport_security) if config.strict_transport_security else None,
        with_probabilistic_goaway(config.goaway_chance) if config.goaway_chance else None,
        with_lifetime(lifecycle, requests, config.request_timeout, metrics, config.auditor),
        with_cors(config.cors_allowed_origins) if config.cors_allowed_origins else None,
        with_consistency_wait(arrival) if arrival is not None else None,
        with_authentication(config.authenticator, metrics, config.proxy_headers, config.auditor),
        with_audit(config.auditor) if config.auditor is not None else None,
        with_impersonation(config.authorizer, metrics),
        _with_seats(config),
        with_authorization(config.authorizer, metrics, arrival),
        with_origin if config.records_origins else None,
    )
    return tuple(each for each in chain if each is not None)


def _with_seats(config: CompletedConfig) -> Filter:
    """Return the filter that limits concurrent requests."""
    metrics = config.metrics
    if config.fairness is None:
        return with_max_in_flight(config.max_requests_in_flight, config.max_mutating_requests_in_flight, metrics)
    stored = config.stored_objects or _nothing_is_stored
    return with_priority_and_fairness(config.fairness, stored, metrics, config.request_timeout / 4)


def _nothing_is_stored(group: str, plural: str) -> None:
    """Return None for every resource: its lists count as small."""
