"""ServiceAccounts and Secrets: tokens that are missing or that nobody accepts any more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from steersman.api.core.v1 import Secret, ServiceAccount
from steersman.client.api_resource import APIResource
from steersman.client.resources import PODS, SECRETS, SERVICE_ACCOUNTS
from steersman.explain.commands import kubectl
from steersman.explain.explainer import Explainer
from steersman.explain.finding import Finding, Suggestion, at_field, error, note, reference, warning
from steersman.explain.world import World
from steersman.machinery.built_in.pod_secrets import secret_names

_TOKEN: Final = "kubernetes.io/service-account-token"
_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
_ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
_REQUIRED: Final = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    _TOKEN: ("token", "ca.crt", "namespace"),
}
"""Keys that Secrets of each type must have."""


def _summarize(account: ServiceAccount) -> str:
    automount = "" if account.automount_service_account_token is not False else ", tokens are not mounted"
    return f"{len(account.secrets)} secrets, {len(account.image_pull_secrets)} image pull secrets{automount}"


async def _check_account(world: World, resource: APIResource[Any], account: ServiceAccount) -> AsyncIterator[Finding]:
    subject, namespace = reference(resource, account), account.metadata.namespace
    named = [(each.name, ".secrets") for each in account.secrets]
    named += [(each.name, ".imagePullSecrets") for each in account.image_pull_secrets]
    for name, field in named:
        if name and await world.get(SECRETS.metadata_only, name, namespace) is None:
            yield error("SecretMissing", f"Secret {name} does not exist", at_field(subject, f"{field}[*].name", name))
    if account.automount_service_account_token is False:
        text = "pods get no token unless they ask for one (automountServiceAccountToken is false)"
        yield note("NotMounted", text, at_field(subject, ".automountServiceAccountToken", value=False))
    if not account.secrets:
        line = kubectl("create", "token", account.metadata.name, namespace=namespace)
        text = "no Secret holds a token for it: pods get tokens that are renewed, and others ask for one"
        yield note(
            "TokensAreRequested",
            text,
            at_field(subject, ".secrets", None),
            suggestions=(Suggestion("get a token", line),),
        )


SERVICE_ACCOUNT: Final = Explainer(SERVICE_ACCOUNTS, _summarize, (_check_account,))


def _summarize_secret(secret: Secret) -> str:
    return f"type {secret.type or 'Opaque'}, keys {', '.join(sorted(secret.data)[:10]) or 'none'}"


async def _check_secret(world: World, resource: APIResource[Any], secret: Secret) -> AsyncIterator[Finding]:
    """Yield findings about keys that are missing, and the account of a token. Values are never shown."""
    subject = reference(resource, secret)
    lacking = [each for each in _REQUIRED.get(secret.type, ()) if not secret.data.get(each)]
    if lacking and secret.type != _TOKEN:
        text = f"a Secret of type {secret.type} needs the keys {', '.join(lacking)}"
        yield error("KeysMissing", text, at_field(subject, ".data", sorted(secret.data)))
    if secret.type != _TOKEN:
        return
    name = secret.metadata.annotations.get(_ACCOUNT_NAME, "")
    annotation = at_field(subject, f'.metadata.annotations["{_ACCOUNT_NAME}"]', name)
    accounts = await world.list(SERVICE_ACCOUNTS, secret.metadata.namespace)
    account = next((each for each in accounts if each.metadata.name == name), None)
    if account is None:
        text = f"ServiceAccount {name or '(no name given)'} does not exist, so nobody accepts the token"
        yield error("AccountMissing", text, annotation)
    elif secret.metadata.annotations.get(_ACCOUNT_UID, account.metadata.uid) != account.metadata.uid:
        uid = at_field(subject, f'.metadata.annotations["{_ACCOUNT_UID}"]', secret.metadata.annotations[_ACCOUNT_UID])
        text = f"it is of an earlier ServiceAccount {name}, which was deleted and made again: nobody accepts its token"
        yield error("AccountReplaced", text, annotation, uid)
    elif lacking:
        text = "the token controller has not filled it: it does not run, or has no key"
        yield warning("TokenMissing", text, at_field(subject, ".data", sorted(secret.data)))


async def _check_users(world: World, resource: APIResource[Any], secret: Secret) -> AsyncIterator[Finding]:
    pods = [
        each
        for each in await world.list(PODS, secret.metadata.namespace)
        if secret.metadata.name in set(secret_names(each.spec))
    ]
    if pods:
        names = ", ".join(each.metadata.name for each in pods[:5])
        text = f"{len(pods)} pods use it: {names}{', ...' if len(pods) > 5 else ''}"
        yield note("Users", text, at_field(reference(PODS, pods[0]), ".spec", secret.metadata.name))


SECRET: Final = Explainer(SECRETS, _summarize_secret, (_check_secret, _check_users))
