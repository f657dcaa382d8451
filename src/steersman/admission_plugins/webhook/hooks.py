"""One configured webhook, in the form that calls use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from steersman.admission_plugins.matching.rules import Entry, Rule
from steersman.admission_plugins.matching.selectors import ParsedSelector, parse_selector
from steersman.admission_plugins.webhook.review import KNOWN_VERSIONS
from steersman.api.admissionregistration.v1 import MatchCondition, MutatingWebhook, ValidatingWebhook
from steersman.rest.objects import Reading
from steersman.webhooks.client_config import ClientConfig, client_config_of

if TYPE_CHECKING:
    from steersman.admission_rules.match_conditions import MatchConditions

_TIMEOUT: Final = 10.0
"""Default timeout in seconds."""
_WITHOUT_SIDE_EFFECTS: Final = frozenset({"None", "NoneOnDryRun"})


class Conditions:
    """The matchConditions of a webhook, compiled at their first evaluation."""

    __slots__ = ("_conditions", "_ignores_failures", "compiled")

    def __init__(self, conditions: Sequence[MatchCondition], *, ignores_failures: bool) -> None:
        self._conditions: Final = tuple(conditions)
        self._ignores_failures: Final = ignores_failures
        self.compiled: MatchConditions | None = None

    def compile(self) -> MatchConditions:
        """Compile the conditions, and return them. Call it in a worker thread.

        It takes several hundred microseconds for each condition, and longer for the first one of the process.
        """
        from steersman.admission_rules.match_conditions import MatchConditions  # most servers never need this import

        policy = "Ignore" if self._ignores_failures else "Fail"
        match_conditions = self.compiled = MatchConditions(self._conditions, failure_policy=policy)
        return match_conditions


class Hook(Struct, frozen=True, eq=False):
    """One webhook of a configuration. Webhooks are compared by identity."""

    name: str
    configuration: str
    uid: str
    """The configuration's name, the webhook's name, and its number among webhooks of the same name."""
    review_version: str
    """Version of its AdmissionReviews, "" if this server supports none of its versions."""
    client: ClientConfig | None
    """Endpoint; None if the configuration has neither a service nor a URL."""
    timeout: float
    """Timeout of a call in seconds."""
    ignores_failures: bool
    supports_dry_run: bool
    side_effects_given: bool
    is_reinvocable: bool
    """True if the webhook is called again when the object was changed after its first call."""
    namespace_selector: ParsedSelector
    object_selector: ParsedSelector
    conditions: Conditions | None
    """Match conditions, None if there are none."""


def _hooks_of(configuration: Any) -> tuple[Entry[Hook], ...]:
    found: list[Entry[Hook]] = []
    seen: dict[str, int] = {}
    for webhook in configuration.webhooks:
        number = seen[webhook.name] = seen.get(webhook.name, -1) + 1
        found.append(_hook_entry(configuration.metadata.name, number, webhook))
    return tuple(found)


def _hook_entry(configuration: str, number: int, webhook: MutatingWebhook | ValidatingWebhook) -> Entry[Hook]:
    effects = webhook.side_effects
    hook = Hook(
        name=webhook.name,
        configuration=configuration,
        uid=f"{configuration}/{webhook.name}/{number}",
        review_version=next((each for each in webhook.admission_review_versions or () if each in KNOWN_VERSIONS), ""),
        client=_client(webhook),
        timeout=_TIMEOUT if webhook.timeout_seconds is None else float(webhook.timeout_seconds),
        ignores_failures=webhook.failure_policy == "Ignore",
        supports_dry_run=effects in _WITHOUT_SIDE_EFFECTS,
        side_effects_given=effects is not None,
        is_reinvocable=isinstance(webhook, MutatingWebhook) and webhook.reinvocation_policy == "IfNeeded",
        namespace_selector=parse_selector(webhook.namespace_selector),
        object_selector=parse_selector(webhook.object_selector),
        conditions=_conditions(webhook),
    )
    rules: tuple[Rule, ...] = tuple(webhook.rules)
    return Entry(hook, rules, equivalent=webhook.match_policy == "Equivalent")


def _conditions(webhook: MutatingWebhook | ValidatingWebhook) -> Conditions | None:
    conditions = webhook.match_conditions
    return Conditions(conditions, ignores_failures=webhook.failure_policy == "Ignore") if conditions else None


def _client(webhook: MutatingWebhook | ValidatingWebhook) -> ClientConfig | None:
    config = webhook.client_config
    return client_config_of(config) if config.service is not None or config.url else None


HOOKS: Final[Reading[tuple[Entry[Hook], ...]]] = Reading(_hooks_of, "metadata.name", "webhooks")
"""Parser of the webhooks in a configuration."""
