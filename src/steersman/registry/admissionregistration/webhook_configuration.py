"""Strategy and column common to MutatingWebhookConfigurations and ValidatingWebhookConfigurations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

from steersman.api.admissionregistration.v1 import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from steersman.machinery.errors.field import FieldError
from steersman.registry.admissionregistration.names import name_warnings
from steersman.registry.admissionregistration.webhook_validation import (
    validate_configuration,
    validate_configuration_update,
)
from steersman.rest.context import Context
from steersman.rest.resource import Column
from steersman.rest.strategy import Strategy

T = TypeVar("T", MutatingWebhookConfiguration, ValidatingWebhookConfiguration)

WEBHOOKS: Final = Column(
    "Webhooks",
    lambda c: len(c.webhooks),
    type="integer",
    description="Webhooks indicates the number of webhooks registered in this configuration",
)


class WebhookConfigurationStrategy(Strategy[T]):
    """Strategy of webhook configurations of both kinds."""

    allow_unconditional_update = False
    bumps_generation_on = ("webhooks",)

    def validate(self, ctx: Context, obj: T) -> Iterator[FieldError]:
        return validate_configuration(obj)

    def validate_update(self, ctx: Context, new: T, old: T) -> Iterator[FieldError]:
        return validate_configuration_update(new, old)

    def warnings(self, ctx: Context, obj: T) -> Iterator[str]:
        return name_warnings(obj.metadata.name)
