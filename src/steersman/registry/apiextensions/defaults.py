"""Defaults of CustomResourceDefinitions (apiextensions.k8s.io `apis/apiextensions/v1`)."""

from __future__ import annotations

from typing import Final

from steersman.api.apiextensions.v1 import CustomResourceConversion, CustomResourceDefinition
from steersman.machinery.go.strings import to_lower

HTTPS_PORT: Final = 443


def set_defaults(definition: CustomResourceDefinition) -> None:
    """Derive missing names from the kind, default the conversion to none, and set the first stored version.

    An empty webhook becomes None, as it is lost in the conversion through upstream's internal type.
    """
    spec = definition.spec
    names = spec.names
    names.singular = names.singular or to_lower(names.kind)
    if not names.list_kind and names.kind:
        names.list_kind = f"{names.kind}List"
    if spec.conversion is None:
        spec.conversion = CustomResourceConversion(strategy="None")
    webhook = spec.conversion.webhook
    if webhook is not None and webhook.client_config is None and not webhook.conversion_review_versions:
        spec.conversion.webhook = webhook = None
    service = webhook.client_config.service if webhook is not None and webhook.client_config is not None else None
    if service is not None and service.port is None:
        service.port = HTTPS_PORT
    if not definition.status.stored_versions:
        definition.status.stored_versions = storage_version(definition)


def storage_version(definition: CustomResourceDefinition) -> list[str] | None:
    """Return the name of the first version with `storage: true` as a list, None if there is none."""
    return next(([version.name] for version in definition.spec.versions or () if version.storage), None)
