"""The filters that every request passes, outermost first, in upstream's order (DefaultBuildHandlerChain).

`reception` and `lifetime` combine several of upstream's filters. Traced requests pass the same filters, and steps
around them.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from steersman.endpoints.filters.audit import with_audit
from steersman.endpoints.filters.authentication import with_authentication
from steersman.endpoints.filters.authorization import note_verdict, with_authorization
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
from steersman.endpoints.filters.tracing import Note, entering, leaving, note_flow, note_id, note_user, with_tracing
from steersman.endpoints.request import Filter, Handler, Request
from steersman.net.message import Response
from steersman.server.config import CompletedConfig
from steersman.server.lifecycle import Lifecycle


class Layer(NamedTuple):
    """A filter of the chain, with the name of its step in traces and the facts that it adds to the step."""

    name: str
    filter: Filter
    note: Note | None = None


def layers(
    config: CompletedConfig, lifecycle: Lifecycle, requests: WaitGroup, arrival: ConsistencyWait | None = None
) -> tuple[Layer, ...]:
    """Return the layers for a configuration, without those that would have no effect."""
    metrics = config.metrics
    goaway, hsts, cors = config.goaway_chance, config.strict_transport_security, config.cors_allowed_origins
    given: tuple[tuple[str, Filter | None, Note | None], ...] = (
        ("reception", with_reception(lifecycle), note_id),
        ("logging", with_http_logging if config.log_requests else None, None),
        ("observation", with_observation(config.observe) if config.observe is not None else None, None),
        (
            "retryafter",
            with_retry_after(lambda: lifecycle.not_accepting) if config.shutdown_send_retry_after else None,
            None,
        ),
        ("hsts", with_hsts(hsts) if hsts else None, None),
        ("goaway", with_probabilistic_goaway(goaway) if goaway else None, None),
        ("lifetime", with_lifetime(lifecycle, requests, config.request_timeout, metrics, config.auditor), None),
        ("cors", with_cors(cors) if cors else None, None),
        ("consistency", with_consistency_wait(arrival) if arrival is not None else None, None),
        (
            "authentication",
            with_authentication(config.authenticator, metrics, config.proxy_headers, config.auditor),
            note_user,
        ),
        ("audit", with_audit(config.auditor) if config.auditor is not None else None, None),
        ("constrainedimpersonation", with_impersonation(config.authorizer, metrics), note_user),
        (
            "priorityandfairness" if config.fairness is not None else "maxinflight",
            _with_seats(config),
            partial(note_flow, config.fairness),
        ),
        ("authorization", with_authorization(config.authorizer, metrics, arrival), note_verdict),
        ("origin", with_origin if config.records_origins else None, None),
    )
    return tuple(Layer(name, each, note) for name, each, note in given if each is not None)


def plain(stack: tuple[Layer, ...]) -> tuple[Filter, ...]:
    """Return the filters of requests that are not traced."""
    return tuple(layer.filter for layer in stack)


def traced(stack: tuple[Layer, ...]) -> tuple[Filter, ...]:
    """Return the filters of traced requests: the same ones, each in a step of its own."""
    if not any(layer.name == "audit" for layer in stack):
        # kube-apiserver has this filter, and its span, without a policy too
        at = next(index for index, layer in enumerate(stack) if layer.name == "authentication") + 1
        stack = (*stack[:at], Layer("audit", _pass), *stack[at:])
    notes = (None, *(None if layer.name == "authentication" else layer.note for layer in stack))
    steps = [entering(note, layer.name) for note, layer in zip(notes, stack, strict=False)]
    filters: list[Filter] = []
    for opening, layer in zip(steps, stack, strict=True):
        filters += (opening, layer.filter)
        if layer.name == "authentication":
            filters += (leaving(layer.note), with_tracing)
    return (*filters, leaving(notes[-1]))


async def _pass(request: Request, next_: Handler) -> Response:
    """Pass a request on."""
    return await next_(request)


def _with_seats(config: CompletedConfig) -> Filter:
    """Return the filter that limits concurrent requests."""
    metrics = config.metrics
    if config.fairness is None:
        return with_max_in_flight(config.max_requests_in_flight, config.max_mutating_requests_in_flight, metrics)
    stored = config.stored_objects or _nothing_is_stored
    return with_priority_and_fairness(config.fairness, stored, metrics, config.request_timeout / 4)


def _nothing_is_stored(group: str, plural: str) -> None:
    """Return None for every resource: its lists count as small."""
