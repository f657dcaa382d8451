"""What is kept of one configured webhook, ready to be asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from steersman.admission_plugins.matching.rules import Entry, Rule
from steersman.admission_plugins.matching.selectors import Compiled, compiled
from steersman.admission_plugins.webhook.review import KNOWN_VERSIONS
from steersman.api.admissionregistration.v1 import MatchCondition, MutatingWebhook, ValidatingWebhook
from steersman.rest.objects import Reading
from steersman.webhooks.client_config import ClientConfig, client_config_of

if TYPE_CHECKING:
    from steersman.admission_rules.match_conditions import MatchConditions

_TIMEOUT: Final = 10.0
"""Seconds, where nothing is said."""
_WITHOUT_SIDE_EFFECTS: Final = frozenset({"None", "NoneOnDryRun"})


class Conditions:
    """The matchConditions of a webhook, compiled when they are first asked."""

    __slots__ = ("_given", "_ignores_failures", "compiled")

    def __init__(self, given: Sequence[MatchCondition], *, ignores_failures: bool) -> None:
        self._given: Final = tuple(given)
        self._ignores_failures: Final = ignores_failures
        self.compiled: MatchConditions | None = None

    def compile(self) -> MatchConditions:
        """Takes some hundred microseconds for each, and longer where no other has been before: to be done beside the
        loop."""
        from steersman.admission_rules.match_conditions import MatchConditions  # which most servers never need

        policy = "Ignore" if self._ignores_failures else "Fail"
        found = self.compiled = MatchConditions(self._given, failure_policy=policy)
        return found


class Hook(Struct, frozen=True, eq=False):
    """One webhook of a configuration; two of the same content are two."""

    name: str
    configuration: str
    uid: str
    """Its configuration, its name and its number among those of that name."""
    review_version: str
    """In which version it is asked, "" for none that this server knows."""
    client: ClientConfig | None
    """Where it is; None if nothing says that."""
    timeout: float
    """Seconds."""
    ignores_failures: bool
    takes_dry_runs: bool
    side_effects_given: bool
    reinvoked: bool
    """Whether it is asked again when the object was changed after it."""
    namespace_selector: Compiled
    object_selector: Compiled
    conditions: Conditions | None
    """None where there are none."""


def _hooks_of(configuration: Any) -> tuple[Entry[Hook], ...]:
    found: list[Entry[Hook]] = []
    seen: dict[str, int] = {}
    for webhook in configuration.webhooks:
        number = seen[webhook.name] = seen.get(webhook.name, -1) + 1
        found.append(_entry(configuration.metadata.name, number, webhook))
    return tuple(found)


def _entry(configuration: str, number: int, webhook: MutatingWebhook | ValidatingWebhook) -> Entry[Hook]:
    effects = webhook.side_effects
    hook = Hook(
        name=webhook.name,
        configuration=configuration,
        uid=f"{configuration}/{webhook.name}/{number}",
        review_version=next((each for each in webhook.admission_review_versions or () if each in KNOWN_VERSIONS), ""),
        client=_client(webhook),
        timeout=_TIMEOUT if webhook.timeout_seconds is None else float(webhook.timeout_seconds),
        ignores_failures=webhook.failure_policy == "Ignore",
        takes_dry_runs=effects in _WITHOUT_SIDE_EFFECTS,
        side_effects_given=effects is not None,
        reinvoked=isinstance(webhook, MutatingWebhook) and webhook.reinvocation_policy == "IfNeeded",
        namespace_selector=compiled(webhook.namespace_selector),
        object_selector=compiled(webhook.object_selector),
        conditions=_conditions(webhook),
    )
    rules: tuple[Rule, ...] = tuple(webhook.rules)
    return Entry(hook, rules, equivalent=webhook.match_policy == "Equivalent")


def _conditions(webhook: MutatingWebhook | ValidatingWebhook) -> Conditions | None:
    given = webhook.match_conditions
    return Conditions(given, ignores_failures=webhook.failure_policy == "Ignore") if given else None


def _client(webhook: MutatingWebhook | ValidatingWebhook) -> ClientConfig | None:
    given = webhook.client_config
    return client_config_of(given) if given.service is not None or given.url else None


HOOKS: Final[Reading[tuple[Entry[Hook], ...]]] = Reading(_hooks_of, "metadata.name", "webhooks")
"""The webhooks of a configuration."""
