"""Webhook configurations whose webhooks fail or cannot be reached, and the writes that they block."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from steersman.api.admissionregistration.v1 import (
    MutatingWebhook,
    MutatingWebhookConfiguration,
    RuleWithOperations,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
)
from steersman.api.core.v1 import Event
from steersman.client.api_resource import APIResource
from steersman.client.resources import (
    EVENTS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from steersman.explain.certificates import bundle_problem
from steersman.explain.commands import kubectl
from steersman.explain.explainer import Explainer
from steersman.explain.finding import (
    Finding,
    Reference,
    Suggestion,
    at_event,
    at_field,
    error,
    last_seen,
    note,
    reference,
    warning,
)
from steersman.explain.services import backend_finding
from steersman.explain.world import World
from steersman.machinery.go.strings import to_lower
from steersman.machinery.selectors.labels import SelectorError, from_label_selector

Webhook = MutatingWebhook | ValidatingWebhook
Configuration = MutatingWebhookConfiguration | ValidatingWebhookConfiguration

_SLOW: Final = 10
"""Timeout in seconds above which a webhook that must succeed holds writes up noticeably."""


def _summarize(configuration: Configuration) -> str:
    webhooks = configuration.webhooks or ()
    failing_closed = sum(each.failure_policy != "Ignore" for each in webhooks)
    return f"{len(webhooks)} webhooks, {failing_closed} of which must succeed (failurePolicy Fail)"


async def _check_webhooks(world: World, resource: APIResource[Any], obj: Configuration) -> AsyncIterator[Finding]:
    subject = reference(resource, obj)
    webhooks: Sequence[Webhook] = [*(obj.webhooks or ())]
    for number, webhook in enumerate(webhooks):
        for each in await webhook_findings(world, subject, number, webhook):
            yield each


async def webhook_findings(world: World, subject: Reference, number: int, webhook: Webhook) -> list[Finding]:
    """Return the findings about one webhook of a configuration. Raises Unreadable."""
    path = f".webhooks[{number}]"
    causes = [*await _unreachable(world, subject, path, webhook), *await _failed_calls(world, webhook.name)]
    policy = at_field(subject, f"{path}.failurePolicy", webhook.failure_policy or "Fail")
    if not causes:
        return _slow(subject, path, webhook)
    rules = at_field(subject, f"{path}.rules", webhook.rules)
    if webhook.failure_policy == "Ignore":
        text = f"webhook {webhook.name} cannot be called; {blocked_text(webhook)} skips it (failurePolicy Ignore)"
        return [warning("WebhookSkipped", text, policy, rules, because=tuple(causes))]
    text = f"webhook {webhook.name} cannot be called, so {blocked_text(webhook)} is refused (failurePolicy Fail)"
    kind = to_lower(subject.kind)
    change = f'[{{"op":"replace","path":"/webhooks/{number}/failurePolicy","value":"Ignore"}}]'
    ignore = kubectl("patch", kind, subject.name, "--type=json", "-p", change)
    suggestions = (
        Suggestion("repair its server; until then let writes pass without it", ignore),
        Suggestion("or remove the configuration", kubectl("delete", kind, subject.name)),
    )
    deadlock = await _deadlock(world, subject, path, webhook)
    return [
        error("WebhookFails", text, policy, rules, because=(*causes, *deadlock), suggestions=suggestions),
    ]


async def _unreachable(world: World, subject: Reference, path: str, webhook: Webhook) -> list[Finding]:
    """Return the reasons why a webhook's server cannot be reached or trusted."""
    config = webhook.client_config
    findings: list[Finding] = []
    if config.service is not None:
        evidence = at_field(subject, f"{path}.clientConfig.service", config.service)
        behind = config.service
        backend = await backend_finding(world, behind.namespace, behind.name, behind.port or 443, evidence)
        if backend is not None:
            findings.append(backend)
    problem = bundle_problem(config.ca_bundle, world.now)
    if problem:
        findings.append(
            error("CABundle", f"caBundle: {problem}", at_field(subject, f"{path}.clientConfig.caBundle", problem))
        )
    elif not config.ca_bundle and config.service is not None:
        text = "caBundle is empty: the server's certificate must be of a CA that the API server's system trusts"
        findings += (
            [warning("NoCABundle", text, at_field(subject, f"{path}.clientConfig.caBundle", None))] if findings else []
        )
    return findings


async def _failed_calls(world: World, name: str) -> list[Finding]:
    """Return the finding about the last refused write of which an event tells that the call of a webhook failed."""
    beginning = f'failed calling webhook "{name}"'
    failed: list[Event] = [each for each in await world.list(EVENTS) if beginning in each.message]
    if not failed:
        return []
    newest = max(failed, key=last_seen)
    return [error("CallFailed", f"a call failed: {newest.message}", at_event(newest))]


def _slow(subject: Reference, path: str, webhook: Webhook) -> list[Finding]:
    timeout = webhook.timeout_seconds
    if timeout is None or timeout <= _SLOW or webhook.failure_policy == "Ignore":
        return []
    text = f"webhook {webhook.name} may hold {blocked_text(webhook)} up for {timeout} s"
    return [note("LongTimeout", text, at_field(subject, f"{path}.timeoutSeconds", timeout))]


async def _deadlock(world: World, subject: Reference, path: str, webhook: Webhook) -> list[Finding]:
    """Return the finding that a webhook refuses the pods of its own server, so that it cannot come back by itself."""
    service = webhook.client_config.service
    if service is None or not any(_concerns_pods(each) for each in webhook.rules):
        return []
    namespace = await world.get(NAMESPACES, service.namespace)
    try:
        selector = webhook.namespace_selector
        labels = {} if namespace is None else namespace.metadata.labels
        excluded = selector is not None and not from_label_selector(selector).matches(labels)
    except SelectorError:
        return []
    if excluded or webhook.object_selector is not None:
        return []
    text = (
        f"it also refuses new pods of its own server in namespace {service.namespace}, so it cannot recover by itself"
    )
    return [error("WebhookDeadlock", text, at_field(subject, f"{path}.namespaceSelector", selector))]


def _concerns_pods(rule: RuleWithOperations) -> bool:
    in_group = "" in rule.api_groups or "*" in rule.api_groups
    resources = {"*", "pods", "*/*"} & set(rule.resources)
    return in_group and bool(resources) and bool({"*", "CREATE"} & set(rule.operations))


def blocked_text(webhook: Webhook) -> str:
    """Return the writes that a webhook is called for, in a few words."""
    parts = [_rule_text(each) for each in webhook.rules[:3]]
    where = " in selected namespaces" if _selects(webhook.namespace_selector) else ""
    return (" and ".join(parts) or "nothing") + (" and more" if len(webhook.rules) > 3 else "") + where


def _selects(selector: Any) -> bool:
    return selector is not None and bool(selector.match_labels or selector.match_expressions)


def _rule_text(rule: RuleWithOperations) -> str:
    operations = "every write" if "*" in rule.operations else "/".join(rule.operations)
    return f"{operations} of {_words(rule.resources)}" + (
        f" of {_words(rule.api_groups)}" if any(rule.api_groups) else ""
    )


def _words(names: Sequence[str]) -> str:
    return "all" if "*" in names or "*/*" in names else ", ".join(each or "core" for each in names[:5])


VALIDATING: Final = Explainer(VALIDATING_WEBHOOK_CONFIGURATIONS, _summarize, (_check_webhooks,))
MUTATING: Final = Explainer(MUTATING_WEBHOOK_CONFIGURATIONS, _summarize, (_check_webhooks,))
