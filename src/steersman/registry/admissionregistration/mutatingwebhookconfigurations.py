"""MutatingWebhookConfigurations: external servers that change objects before they are stored."""

from __future__ import annotations

from steersman.api.admissionregistration.v1 import MutatingWebhookConfiguration
from steersman.kinds.built_in import built_in
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.admissionregistration.defaults import set_webhook_defaults
from steersman.registry.admissionregistration.webhook_configuration import WEBHOOKS, WebhookConfigurationStrategy
from steersman.rest.resource import AGE, Resource


def set_defaults(configuration: MutatingWebhookConfiguration) -> None:
    """Set the defaults of every webhook; it is not invoked again by default."""
    for webhook in configuration.webhooks:
        set_webhook_defaults(webhook)
        if webhook.reinvocation_policy is None:
            webhook.reinvocation_policy = "Never"


MUTATING_WEBHOOK_CONFIGURATIONS = Resource(
    kind=built_in(MutatingWebhookConfiguration, default=set_defaults),
    plural="mutatingwebhookconfigurations",
    namespaced=False,
    categories=("api-extensions",),
    strategy=WebhookConfigurationStrategy[MutatingWebhookConfiguration](),
    name_validator=name_is_dns_subdomain,
    takes_long=True,
    columns=(WEBHOOKS, AGE),
    storage_version_hash="Sqi0GUgDaX0=",
)
