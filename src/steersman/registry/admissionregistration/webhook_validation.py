"""Validation of webhook configurations (pkg/apis/admissionregistration/validation).

Stored configurations that satisfy only older, weaker rules may stay so: an update is held only to the rules that the
old object satisfied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from steersman.api.admissionregistration.v1 import (
    MutatingWebhook,
    MutatingWebhookConfiguration,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
)
from steersman.machinery.errors.field import FieldError, Path, invalid, not_supported, required
from steersman.machinery.validation.domains import is_fully_qualified_name
from steersman.machinery.validation.leaves import validate_unique
from steersman.machinery.validation.selectors import LabelSelectorOptions, validate_label_selector
from steersman.registry.admissionregistration.defaults import HTTPS_PORT
from steersman.registry.admissionregistration.rule_validation import validate_rule
from steersman.registry.validation.webhook_clients import (
    REVIEW_VERSIONS,
    are_supported,
    validate_review_versions,
    validate_webhook_service,
    validate_webhook_url,
)
from steersman.work.threads import paced

Configuration = MutatingWebhookConfiguration | ValidatingWebhookConfiguration
Webhook = MutatingWebhook | ValidatingWebhook

_FAILURE_POLICIES: Final = ("Fail", "Ignore")
_MATCH_POLICIES: Final = ("Equivalent", "Exact")
_REINVOCATION_POLICIES: Final = ("IfNeeded", "Never")
_NO_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")
_MISSING: Final = f"must specify one of {', '.join(REVIEW_VERSIONS)}"
_MOST_SECONDS: Final = 30
_STRICT: Final = LabelSelectorOptions()


class _Rules(Struct, frozen=True):
    """The rules to which a configuration is held."""

    match_conditions: bool = True
    no_side_effects: bool = True
    known_version: bool = True
    unique_names: bool = True
    selectors: LabelSelectorOptions = _STRICT


_RULES_FOR_NEW: Final = _Rules()


def validate_configuration(configuration: Configuration) -> Iterator[FieldError]:
    """Validate a new configuration without its metadata."""
    return _validate(configuration.webhooks, _RULES_FOR_NEW)


def validate_configuration_update(new: Configuration, old: Configuration) -> Iterator[FieldError]:
    """Validate the replacement of a configuration by another of the same kind."""
    before = old.webhooks
    rules = _Rules(
        match_conditions=[each.match_conditions for each in new.webhooks] != [each.match_conditions for each in before],
        no_side_effects=all(each.side_effects in _NO_SIDE_EFFECTS for each in before),
        known_version=all(are_supported(each.admission_review_versions or []) for each in before),
        unique_names=len({each.name for each in before}) == len(before),
        selectors=LabelSelectorOptions(allow_invalid_label_value=any(_has_invalid_selector(each) for each in before)),
    )
    return _validate(new.webhooks, rules)


def _has_invalid_selector(webhook: Webhook) -> bool:
    return any(
        each is not None and next(validate_label_selector(each, Path()), None) is not None
        for each in (webhook.namespace_selector, webhook.object_selector)
    )


def _validate(webhooks: Sequence[Webhook], rules: _Rules) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, webhook in enumerate(paced(webhooks)):
        path = Path("webhooks")[index]
        yield from _validate_webhook(webhook, rules, path)
        versions = webhook.admission_review_versions or []
        where = path / "admissionReviewVersions"
        yield from validate_review_versions(versions, where, missing=_MISSING, any_version=not rules.known_version)
        if rules.unique_names and webhook.name:
            yield from validate_unique(webhook.name, names, path / "name")


def _validate_webhook(webhook: Webhook, rules: _Rules, path: Path) -> Iterator[FieldError]:
    yield from is_fully_qualified_name(webhook.name, path / "name")
    for index, rule in enumerate(webhook.rules):
        yield from validate_rule(rule, (path / "rules")[index])
    yield from _check_supported(webhook.failure_policy, _FAILURE_POLICIES, path / "failurePolicy")
    yield from _check_supported(webhook.match_policy, _MATCH_POLICIES, path / "matchPolicy")
    effects = _NO_SIDE_EFFECTS if rules.no_side_effects else _SIDE_EFFECTS
    if webhook.side_effects is None:
        yield required(path / "sideEffects", f"must specify one of {', '.join(effects)}")
    yield from _check_supported(webhook.side_effects, effects, path / "sideEffects")
    seconds = webhook.timeout_seconds
    if seconds is not None and not 1 <= seconds <= _MOST_SECONDS:
        yield invalid(path / "timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")
    for name, selector in (
        ("namespaceSelector", webhook.namespace_selector),
        ("objectSelector", webhook.object_selector),
    ):
        yield from validate_label_selector(selector, path / name, rules.selectors)
    if isinstance(webhook, MutatingWebhook):
        yield from _check_supported(webhook.reinvocation_policy, _REINVOCATION_POLICIES, path / "reinvocationPolicy")
    yield from _validate_client(webhook, path / "clientConfig")
    if rules.match_conditions and webhook.match_conditions:
        from steersman.admission_rules.match_conditions import match_condition_errors  # slow to import, and rare

        yield from match_condition_errors(webhook.match_conditions, path / "matchConditions")


def _check_supported(given: str | None, supported: Sequence[str], path: Path) -> Iterator[FieldError]:
    if given is not None and given not in supported:
        yield not_supported(path, given, supported)


def _validate_client(webhook: Webhook, path: Path) -> Iterator[FieldError]:
    url, service = webhook.client_config.url, webhook.client_config.service
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from validate_webhook_url(url, path / "url")
    elif service is not None:
        port = HTTPS_PORT if service.port is None else service.port
        yield from validate_webhook_service(service.namespace, service.name, service.path, port, path / "service")
