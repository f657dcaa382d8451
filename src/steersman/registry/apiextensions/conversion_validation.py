"""Validation of the conversion between versions (apiextensions.k8s.io `validateCustomResourceConversion`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from steersman.api.apiextensions.v1 import CustomResourceConversion, CustomResourceDefinition, WebhookClientConfig
from steersman.machinery.errors.field import FieldError, Path, forbidden, required
from steersman.machinery.validation.leaves import validate_choice
from steersman.registry.apiextensions.defaults import HTTPS_PORT
from steersman.registry.validation.webhook_clients import (
    validate_ca_bundle,
    validate_review_versions,
    validate_webhook_service,
    validate_webhook_url,
)

NONE: Final = "None"
WEBHOOK: Final = "Webhook"
STRATEGIES: Final = (NONE, WEBHOOK)

_ONLY_WEBHOOK: Final = "should not be set when strategy is not set to Webhook"


def client_config(definition: CustomResourceDefinition) -> WebhookClientConfig | None:
    """Return the client configuration of the conversion webhook, None if there is none."""
    conversion = definition.spec.conversion
    return None if conversion is None or conversion.webhook is None else conversion.webhook.client_config


def review_versions(conversion: CustomResourceConversion | None) -> Sequence[str]:
    """Return the versions of ConversionReview that the webhook accepts."""
    webhook = None if conversion is None else conversion.webhook
    return (webhook.conversion_review_versions if webhook is not None else None) or ()


def validate_conversion(
    conversion: CustomResourceConversion | None, path: Path, *, any_review_version: bool, any_ca_bundle: bool
) -> Iterator[FieldError]:
    """Validate a conversion; `any_review_version` and `any_ca_bundle` each switch off one check."""
    if conversion is None:
        return
    strategy, versions = conversion.strategy, review_versions(conversion)
    config = conversion.webhook.client_config if conversion.webhook is not None else None
    yield from validate_choice(strategy, STRATEGIES, path / "strategy")
    here = path / "webhookClientConfig"
    if strategy != WEBHOOK:
        if config is not None:
            yield forbidden(here, _ONLY_WEBHOOK)
        if versions:
            yield forbidden(path / "conversionReviewVersions", _ONLY_WEBHOOK)
        return
    if config is None:
        yield required(here, "required when strategy is set to Webhook")
    else:
        yield from _validate_client_config(config, here, any_ca_bundle=any_ca_bundle)
    yield from validate_review_versions(versions, path / "conversionReviewVersions", any_version=any_review_version)


def _validate_client_config(config: WebhookClientConfig, path: Path, *, any_ca_bundle: bool) -> Iterator[FieldError]:
    service = config.service
    if (config.url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif config.url is not None:
        yield from validate_webhook_url(config.url, path / "url")
    elif service is not None:
        port = HTTPS_PORT if service.port is None else service.port
        # Upstream mixes up name and namespace here, so each error is reported for the other member.
        yield from validate_webhook_service(service.name, service.namespace, service.path, port, path / "service")
    if config.ca_bundle and not any_ca_bundle:
        yield from validate_ca_bundle(config.ca_bundle, path / "caBundle")
