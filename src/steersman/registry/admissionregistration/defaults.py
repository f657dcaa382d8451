"""Defaults of webhooks and of the match resources of admission policies (admissionregistration v1)."""

from __future__ import annotations

from typing import Final

from steersman.api.admissionregistration.v1 import (
    MatchResources,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    MutatingWebhook,
    NamedRuleWithOperations,
    RuleWithOperations,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingWebhook,
)
from steersman.api.meta.v1 import LabelSelector

HTTPS_PORT: Final = 443


def set_webhook_defaults(webhook: MutatingWebhook | ValidatingWebhook) -> None:
    """Set the defaults of a webhook: it fails closed, matches resources in any version, and has ten seconds to answer."""
    if webhook.failure_policy is None:
        webhook.failure_policy = "Fail"
    if webhook.match_policy is None:
        webhook.match_policy = "Equivalent"
    if webhook.namespace_selector is None:
        webhook.namespace_selector = LabelSelector()
    if webhook.object_selector is None:
        webhook.object_selector = LabelSelector()
    if webhook.timeout_seconds is None:
        webhook.timeout_seconds = 10
    service = webhook.client_config.service
    if service is not None and service.port is None:
        service.port = HTTPS_PORT
    for rule in webhook.rules:
        _set_rule_defaults(rule)


def set_policy_defaults(policy: MutatingAdmissionPolicy | ValidatingAdmissionPolicy) -> None:
    """Set the defaults of a policy, which fails closed."""
    if policy.spec.failure_policy is None:
        policy.spec.failure_policy = "Fail"
    _set_match_defaults(policy.spec.match_constraints)


def set_binding_defaults(binding: MutatingAdmissionPolicyBinding | ValidatingAdmissionPolicyBinding) -> None:
    """Set the defaults of the match resources of a binding."""
    _set_match_defaults(binding.spec.match_resources)


def _set_match_defaults(match: MatchResources | None) -> None:
    """Set the defaults of match resources: all objects that the rules match, in any version."""
    if match is None:
        return
    if match.match_policy is None:
        match.match_policy = "Equivalent"
    if match.namespace_selector is None:
        match.namespace_selector = LabelSelector()
    if match.object_selector is None:
        match.object_selector = LabelSelector()
    for rule in (*match.resource_rules, *match.exclude_resource_rules):
        _set_rule_defaults(rule)


def _set_rule_defaults(rule: RuleWithOperations | NamedRuleWithOperations) -> None:
    if rule.scope is None:
        rule.scope = "*"
