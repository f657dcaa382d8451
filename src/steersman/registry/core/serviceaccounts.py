"""Service accounts: identities of pods and other programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.authentication.v1 import TokenRequest
from steersman.api.core.v1 import ObjectReference, ServiceAccount
from steersman.kinds.built_in import built_in
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.core.token_requests import create_token, set_defaults
from steersman.rest.context import Context
from steersman.rest.resource import Resource, Subresource
from steersman.rest.strategy import Strategy

MOUNTABLE_SECRETS: Final = "kubernetes.io/enforce-mountable-secrets"
_MOUNTABLE_SECRETS_WARNING: Final = (
    f"metadata.annotations[{MOUNTABLE_SECRETS}]: deprecated in v1.32+; "
    "prefer separate namespaces to isolate access to mounted secrets"
)


class ServiceAccountStrategy(Strategy[ServiceAccount]):
    def prepare_for_create(self, ctx: Context, obj: ServiceAccount) -> None:
        obj.secrets = [ObjectReference(name=secret.name) for secret in obj.secrets]

    def warnings_on_create(self, ctx: Context, obj: ServiceAccount) -> Iterator[str]:
        if MOUNTABLE_SECRETS in obj.metadata.annotations:
            yield _MOUNTABLE_SECRETS_WARNING

    def prepare_for_update(self, ctx: Context, new: ServiceAccount, old: ServiceAccount) -> None:
        self.prepare_for_create(ctx, new)

    def warnings_on_update(self, ctx: Context, new: ServiceAccount, old: ServiceAccount) -> Iterator[str]:
        if MOUNTABLE_SECRETS not in old.metadata.annotations:
            yield from self.warnings_on_create(ctx, new)


SERVICE_ACCOUNTS: Final = Resource(
    kind=built_in(ServiceAccount),
    plural="serviceaccounts",
    short_names=("sa",),
    strategy=ServiceAccountStrategy(),
    name_validator=name_is_dns_subdomain,
    revalidates_metadata=True,
    subresources=(
        Subresource(
            name="token",
            verbs=("create",),
            kind=built_in(TokenRequest, default=set_defaults),
            create=create_token,
        ),
    ),
    storage_version_hash="pbx9ZvyFpBE=",
    returns_deleted_object=True,
)
