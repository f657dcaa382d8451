"""ValidatingWebhookConfigurations: external servers that accept or reject objects before they are stored."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.admissionregistration.v1 import ValidatingWebhookConfiguration
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.admissionregistration.defaults import set_webhook_defaults
from steersman.registry.admissionregistration.names import name_warnings
from steersman.registry.admissionregistration.webhook_validation import (
    validate_configuration,
    validate_configuration_update,
)
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy


def set_defaults(configuration: ValidatingWebhookConfiguration) -> None:
    """Set the defaults of every webhook."""
    for webhook in configuration.webhooks:
        set_webhook_defaults(webhook)


class ValidatingWebhookConfigurationStrategy(Strategy[ValidatingWebhookConfiguration]):
    allow_unconditional_update = False
    bumps_generation_on = ("webhooks",)

    def validate(self, ctx: Context, configuration: ValidatingWebhookConfiguration) -> Iterator[FieldError]:
        return validate_configuration(configuration)

    def validate_update(
        self, ctx: Context, new: ValidatingWebhookConfiguration, old: ValidatingWebhookConfiguration
    ) -> Iterator[FieldError]:
        return validate_configuration_update(new, old)

    def warnings_on_create(self, ctx: Context, configuration: ValidatingWebhookConfiguration) -> Iterator[str]:
        return name_warnings(configuration.metadata.name)

    def warnings_on_update(
        self, ctx: Context, new: ValidatingWebhookConfiguration, old: ValidatingWebhookConfiguration
    ) -> Iterator[str]:
        return name_warnings(new.metadata.name)


VALIDATING_WEBHOOK_CONFIGURATIONS = Resource(
    kind=built_in(ValidatingWebhookConfiguration, default=set_defaults),
    plural="validatingwebhookconfigurations",
    namespaced=False,
    categories=("api-extensions",),
    strategy=ValidatingWebhookConfigurationStrategy(),
    name_validator=name_is_dns_subdomain,
    takes_long=True,
    columns=(
        Column(
            "Webhooks",
            lambda c: len(c.webhooks),
            type="integer",
            description="Webhooks indicates the number of webhooks registered in this configuration",
        ),
        AGE,
    ),
    storage_version_hash="B0wHjQmsGNk=",
)
