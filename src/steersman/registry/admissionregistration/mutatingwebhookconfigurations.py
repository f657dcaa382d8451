"""MutatingWebhookConfigurations: external servers that change objects before they are stored."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.admissionregistration.v1 import MutatingWebhookConfiguration
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


def set_defaults(configuration: MutatingWebhookConfiguration) -> None:
    """Set the defaults of every webhook; it is not invoked again by default."""
    for webhook in configuration.webhooks:
        set_webhook_defaults(webhook)
        if webhook.reinvocation_policy is None:
            webhook.reinvocation_policy = "Never"


class MutatingWebhookConfigurationStrategy(Strategy[MutatingWebhookConfiguration]):
    allow_unconditional_update = False
    bumps_generation_on = ("webhooks",)

    def validate(self, ctx: Context, configuration: MutatingWebhookConfiguration) -> Iterator[FieldError]:
        return validate_configuration(configuration)

    def validate_update(
        self, ctx: Context, new: MutatingWebhookConfiguration, old: MutatingWebhookConfiguration
    ) -> Iterator[FieldError]:
        return validate_configuration_update(new, old)

    def warnings_on_create(self, ctx: Context, configuration: MutatingWebhookConfiguration) -> Iterator[str]:
        return name_warnings(configuration.metadata.name)

    def warnings_on_update(
        self, ctx: Context, new: MutatingWebhookConfiguration, old: MutatingWebhookConfiguration
    ) -> Iterator[str]:
        return name_warnings(new.metadata.name)


MUTATING_WEBHOOK_CONFIGURATIONS = Resource(
    kind=built_in(MutatingWebhookConfiguration, default=set_defaults),
    plural="mutatingwebhookconfigurations",
    namespaced=False,
    categories=("api-extensions",),
    strategy=MutatingWebhookConfigurationStrategy(),
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
    storage_version_hash="Sqi0GUgDaX0=",
)
