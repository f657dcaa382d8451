"""ValidatingWebhookConfigurations: external servers that accept or reject objects before they are stored."""

from __future__ import annotations

from steersman.api.admissionregistration.v1 import ValidatingWebhookConfiguration
from steersman.kinds.built_in import built_in
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.admissionregistration.defaults import set_webhook_defaults
from steersman.registry.admissionregistration.webhook_configuration import WEBHOOKS, WebhookConfigurationStrategy
from steersman.rest.resource import AGE, Resource


def set_defaults(configuration: ValidatingWebhookConfiguration) -> None:
    """Set the defaults of every webhook."""
    for webhook in configuration.webhooks:
        set_webhook_defaults(webhook)


VALIDATING_WEBHOOK_CONFIGURATIONS = Resource(
    kind=built_in(ValidatingWebhookConfiguration, default=set_defaults),
    plural="validatingwebhookconfigurations",
    namespaced=False,
    categories=("api-extensions",),
    strategy=WebhookConfigurationStrategy[ValidatingWebhookConfiguration](),
    name_validator=name_is_dns_subdomain,
    takes_long=True,
    columns=(WEBHOOKS, AGE),
    storage_version_hash="B0wHjQmsGNk=",
)
