"""Metrics of authorization, with upstream's names; durations are in seconds.

Follows k8s.io/apiserver `authorization/metrics`, `authorization/cel` and `authorizer/webhook/metrics`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import Final

from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Authorizer, Decision, Verdict
from steersman.machinery.metrics import Computed, Counter, Histogram, Labels, Registry

_OF_CONDITIONS: Final = (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25)
_OF_CALLS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ALLOW: Final = Decision.ALLOW  # a module constant, since reading an enum member costs more than the comparison
_DENY: Final = Decision.DENY
_NAMES: Final = ("name", "result")
_TYPES: Final = ("type", "name")


class Tally:
    """Numbers of allowed and denied requests of one authorizer: plain integers, as every request increments one."""

    __slots__ = ("allowed", "denied")

    def __init__(self) -> None:
        self.allowed = 0
        self.denied = 0


class AuthorizationMetrics:
    """Metrics of all authorizers."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._tallies: dict[tuple[str, str], Tally] = {}
        decisions = Computed(
            "counter",
            "apiserver_authorization_decisions_total",
            "[ALPHA] Total number of terminal decisions made by an authorizer split by authorizer type, name, and "
            "decision.",
            ("type", "name", "decision"),
            self._decisions,
        )
        registry.add(decisions)
        self._webhooks: WebhookMetrics | None = None

    def tally(self, type: str, name: str) -> Tally:
        """Return the tally of an authorizer by type and name; creates it if missing."""
        return self._tallies.setdefault((type, name), Tally())

    def _decisions(self) -> Iterator[tuple[Labels, float]]:
        for labels, tally in self._tallies.items():
            if tally.allowed:
                yield (*labels, "allowed"), tally.allowed
            if tally.denied:
                yield (*labels, "denied"), tally.denied

    @property
    def webhooks(self) -> WebhookMetrics:
        """The metrics of webhooks, registered at the first access."""
        if self._webhooks is None:
            self._webhooks = WebhookMetrics(self._registry)
        return self._webhooks


class WebhookMetrics:
    """Metrics of webhook calls and of their match conditions."""

    def __init__(self, registry: Registry) -> None:
        self.evaluations: Final = Counter(
            "apiserver_authorization_webhook_evaluations_total",
            "[ALPHA] Round-trips to authorization webhooks.",
            _NAMES,
        )
        self.durations: Final = Histogram(
            "apiserver_authorization_webhook_duration_seconds", "[ALPHA] Request latency in seconds.", _OF_CALLS, _NAMES
        )
        self.failed_open: Final = Counter(
            "apiserver_authorization_webhook_evaluations_fail_open_total",
            "[ALPHA] NoOpinion results due to webhook timeout or error.",
            _NAMES,
        )
        self.condition_errors: Final = Counter(
            "apiserver_authorization_match_condition_evaluation_errors_total",
            "[ALPHA] Total number of errors when an authorization webhook encounters a match condition error split by "
            "authorizer type and name.",
            _TYPES,
        )
        self.exclusions: Final = Counter(
            "apiserver_authorization_match_condition_exclusions_total",
            "[ALPHA] Total number of exclusions when an authorization webhook is skipped because match conditions "
            "exclude it.",
            _TYPES,
        )
        self.condition_durations: Final = Histogram(
            "apiserver_authorization_match_condition_evaluation_seconds",
            "[ALPHA] Authorization match condition evaluation time in seconds, split by authorizer type and name.",
            _OF_CONDITIONS,
            _TYPES,
        )
        registry.add(
            self.evaluations,
            self.durations,
            self.failed_open,
            self.condition_errors,
            self.exclusions,
            self.condition_durations,
        )


class CountingAuthorizer:
    """Wrapper of an authorizer that counts its decisions."""

    def __init__(self, authorizer: Authorizer, tally: Tally) -> None:
        self._authorize = authorizer.authorize
        self.name: Final = type(authorizer).__name__
        """Name of the wrapped authorizer, for traces."""
        self._tally = tally

    def authorize(self, attributes: Attributes) -> Verdict | Awaitable[Verdict]:
        """Decide about an action and count the decision, see Authorizer."""
        verdict = self._authorize(attributes)
        if not isinstance(verdict, Verdict):
            return self._waited(verdict)
        if verdict.decision is _ALLOW:
            self._tally.allowed += 1
        elif verdict.decision is _DENY:
            self._tally.denied += 1
        return verdict

    async def _waited(self, pending: Awaitable[Verdict]) -> Verdict:
        verdict = await pending
        if verdict.decision is _ALLOW:
            self._tally.allowed += 1
        elif verdict.decision is _DENY:
            self._tally.denied += 1
        return verdict
