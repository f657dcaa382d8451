"""Controller of service account tokens in secrets: it fills secrets, and deletes those of deleted accounts.

Follows pkg/controller/serviceaccount/tokens_controller.go.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from steersman.api.core.v1 import Secret, ServiceAccount
from steersman.api.meta.v1 import DeleteOptions, Preconditions
from steersman.client.errors import ignoring, is_conflict, is_not_found
from steersman.client.informer import new_or_old
from steersman.client.resources import SECRETS, SERVICE_ACCOUNTS
from steersman.controllers.controller import Controller, ControllerDependencies, Settings
from steersman.machinery.built_in.token_secrets import ACCOUNT_NAME, ACCOUNT_UID, ISSUER, SECRET_TYPE

_CA: Final = "ca.crt"
_NAMESPACE: Final = "namespace"
_TOKEN: Final = "token"
_BY_ACCOUNT: Final = "account of a token"


class AccountKey(NamedTuple):
    """Key of a service account that may have been deleted."""

    namespace: str
    name: str
    uid: str


class SecretKey(NamedTuple):
    """Key of a secret and the account in its annotations; `account_uid` is "" if the annotation is missing."""

    namespace: str
    name: str
    uid: str
    account: str
    account_uid: str


class ServiceAccountTokenController(Controller[AccountKey | SecretKey]):
    """Keeps service account tokens. A key is a token secret, or an account whose secrets may have to be deleted."""

    name = "serviceaccount-token-controller"
    account = ""

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        assert dependencies.settings.sign_token is not None
        self._sign = dependencies.settings.sign_token
        self._root_ca = dependencies.settings.root_ca.encode()
        self._accounts = self.informers.for_resource(SERVICE_ACCOUNTS)
        self._secrets = self.informers.for_resource(SECRETS, field_selector=f"type={SECRET_TYPE}")
        self._secrets.add_index(_BY_ACCOUNT, lambda secret: [secret.metadata.annotations.get(ACCOUNT_NAME, "")])
        self._accounts.on_change(self._account_changed)
        self._secrets.on_change(self._secret_changed)

    @classmethod
    def can_run(cls, settings: Settings) -> bool:
        return settings.sign_token is not None

    def _account_changed(self, old: ServiceAccount | None, new: ServiceAccount | None) -> None:
        if new is None and old is not None:
            metadata = old.metadata
            self.queue.add(AccountKey(metadata.namespace, metadata.name, metadata.uid))

    def _secret_changed(self, old: Secret | None, new: Secret | None) -> None:
        secret = new_or_old(old, new)
        metadata = secret.metadata
        name, uid = metadata.annotations.get(ACCOUNT_NAME, ""), metadata.annotations.get(ACCOUNT_UID, "")
        if name:
            self.queue.add(SecretKey(metadata.namespace, metadata.name, metadata.uid, name, uid))

    async def sync(self, key: AccountKey | SecretKey) -> None:
        if isinstance(key, AccountKey):
            await self._delete_tokens_of(key)
            return
        secret = self._secrets.get(key.namespace, key.name)
        if secret is None or secret.metadata.uid != key.uid:
            await self._remove_reference(key)
            return
        account = self._known_account(key) or await self._live_account(key)
        if account is None:
            await self._delete(secret)
        elif any(self._missing(secret)):
            await self._fill(secret, account)

    def _known_account(self, key: SecretKey) -> ServiceAccount | None:
        account = self._accounts.get(key.namespace, key.account)
        return account if account is not None and key.account_uid in ("", account.metadata.uid) else None

    async def _live_account(self, key: SecretKey) -> ServiceAccount | None:
        account = await self.client.find(SERVICE_ACCOUNTS, key.account, key.namespace)
        return account if account is not None and key.account_uid in ("", account.metadata.uid) else None

    async def _delete_tokens_of(self, key: AccountKey) -> None:
        """Delete the token secrets of a deleted account."""
        account = self._accounts.get(key.namespace, key.name)
        if account is not None and account.metadata.uid == key.uid:
            return
        for secret in self._secrets.indexed(_BY_ACCOUNT, key.name):
            same = secret.metadata.annotations.get(ACCOUNT_UID, "") in ("", key.uid)
            if secret.metadata.namespace == key.namespace and same:
                await self._delete(secret)

    async def _delete(self, secret: Secret) -> None:
        metadata = secret.metadata
        options = DeleteOptions(preconditions=Preconditions(uid=metadata.uid))
        with ignoring(is_not_found, is_conflict):
            await self.client.delete(SECRETS, metadata.name, metadata.namespace, options)

    def _missing(self, secret: Secret) -> tuple[bool, bool, bool]:
        """Return True for each missing part of a secret: the CA certificate, the namespace, the token."""
        data = secret.data
        lacks_ca = bool(self._root_ca) and data.get(_CA) != self._root_ca
        return lacks_ca, not data.get(_NAMESPACE), not data.get(_TOKEN)

    async def _fill(self, cached: Secret, account: ServiceAccount) -> None:
        """Add the missing parts to a secret, unless it has changed since: the change queues it again."""
        with ignoring(is_not_found, is_conflict):
            secret = await self.client.get(SECRETS, cached.metadata.name, cached.metadata.namespace)
            if secret.metadata.resource_version != cached.metadata.resource_version:
                return
            lacks_ca, lacks_namespace, lacks_token = self._missing(secret)
            if lacks_ca:
                secret.data[_CA] = self._root_ca
            if lacks_namespace:
                secret.data[_NAMESPACE] = secret.metadata.namespace.encode()
            if lacks_token:
                secret.data[_TOKEN] = self._sign(legacy_claims(account, secret)).encode()
            secret.metadata.annotations[ACCOUNT_NAME] = account.metadata.name
            secret.metadata.annotations[ACCOUNT_UID] = account.metadata.uid
            await self.client.update(SECRETS, secret)

    async def _remove_reference(self, key: SecretKey) -> None:
        """Remove the reference to a deleted secret from its account. Raises StatusError Conflict to be retried."""
        if self._known_account(key) is None:
            return
        account = await self._live_account(key)
        if account is None:
            return
        left = [each for each in account.secrets if each.name != key.name]
        if len(left) < len(account.secrets):
            account.secrets = left
            with ignoring(is_not_found):
                await self.client.update(SERVICE_ACCOUNTS, account)


def legacy_claims(account: ServiceAccount, secret: Secret) -> dict[str, Any]:
    """Return the claims of a token in a secret; such a token does not expire."""
    namespace = account.metadata.namespace
    return {
        "iss": ISSUER,
        "kubernetes.io/serviceaccount/namespace": namespace,
        "kubernetes.io/serviceaccount/secret.name": secret.metadata.name,
        "kubernetes.io/serviceaccount/service-account.name": account.metadata.name,
        "kubernetes.io/serviceaccount/service-account.uid": account.metadata.uid,
        "sub": f"system:serviceaccount:{namespace}:{account.metadata.name}",
    }
