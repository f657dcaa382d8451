"""Simulation of containers by which charts create Secrets that their pods wait for, although no program runs.

These are kube-webhook-certgen, Envoy Gateway's certgen, and the creation of Argo CD's initial password for Redis. Each
acts with the rights of its pod's service account.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from steersman.api.core.v1 import Pod, Secret
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_already_exists
from steersman.client.resources import MUTATING_WEBHOOK_CONFIGURATIONS, SECRETS
from steersman.machinery.built_in.pod_resources import AnyContainer, all_containers
from steersman.machinery.errors.status import StatusError
from steersman.nodes.container_status import all_statuses
from steersman.nodes.initial_world import offloaded_command_of, unexpanded_command_of
from steersman.nodes.webhook_certificates import is_certificate_maker, make_certificates

ClientOf = Callable[[str, str], Client]
"""Returns a client with the rights of a service account, given its namespace and name."""
VariablesOf = Callable[[AnyContainer], Awaitable[Mapping[str, str]]]
"""Returns the variables of a container."""
_Make = Callable[[Client, str, list[str]], Awaitable[None]]
"""Creates Secrets in a namespace as the words of a command ask. Raises StatusError, ValueError."""
_MOST_CONTAINERS: Final = 16
_ENVOY_LABELS: Final = {"control-plane": "envoy-gateway"}
_PASSWORD_LENGTH: Final = 16


async def create_secrets(client_of: ClientOf, pod: Pod, variables_of: VariablesOf) -> dict[str, str]:
    """Create the Secrets of a pod's containers that would create some and have not ended.

    Returns the error of each such container by name, "" for success. Raises Unreachable.
    """
    makers = [(each, make) for each in all_containers(pod.spec) if (make := _maker_of(each)) is not None]
    if not makers:
        return {}
    ended = {each.name for each in all_statuses(pod.status) if each.state.terminated is not None}
    namespace = pod.metadata.namespace
    client = client_of(namespace, pod.spec.service_account_name or "default")
    messages: dict[str, str] = {}
    for container, make in makers[:_MOST_CONTAINERS]:
        messages[container.name] = ""
        if container.name in ended:
            continue
        try:
            words = await offloaded_command_of(container, await variables_of(container))
            await make(client, namespace, words)
        except StatusError as error:
            messages[container.name] = error.message
        except ValueError as error:
            messages[container.name] = str(error)
    return messages


def _maker_of(container: AnyContainer) -> _Make | None:
    """Return the function that does the work of a container; None for a container that creates no Secrets."""
    if is_certificate_maker(container):
        return make_certificates
    match unexpanded_command_of(container)[:3]:
        case ["envoy-gateway", "certgen", *_]:
            return _make_certificates_of_envoy
        case ["argocd", "admin", "redis-initial-password"]:
            return _make_password_of_redis
    return None


async def _make_certificates_of_envoy(client: Client, namespace: str, words: list[str]) -> None:
    """Create the missing Secrets for the controller, the proxies, rate limits and OIDC.

    Unless it is disabled, also put the certificate authority into the webhook configuration of the topology injector.
    """
    from steersman.nodes.certificates import signed_certificates  # imported here, as most clusters never need it

    gateway = [
        each.format(namespace)
        for each in ("envoy-gateway", "envoy-gateway.{}", "envoy-gateway.{}.svc", "envoy-gateway.{}.svc.cluster.local")
    ]
    authority, signed = signed_certificates([gateway, [f"*.{namespace}"], [f"*.{namespace}"]])
    for name, (certificate, key) in zip(("envoy-gateway", "envoy", "envoy-rate-limit"), signed, strict=True):
        data = {"ca.crt": authority, "tls.crt": certificate, "tls.key": key}
        await _create_secret(client, namespace, name, data, type_="kubernetes.io/tls", labels=_ENVOY_LABELS)
    hmac = {"hmac-secret": secrets.token_bytes(32)}
    await _create_secret(client, namespace, "envoy-oidc-hmac", hmac, labels=_ENVOY_LABELS)
    if "--disable-topology-injector" in words:
        return
    authority = (await client.get(SECRETS, "envoy-gateway", namespace)).data.get("ca.crt", b"")
    webhooks = await client.get(MUTATING_WEBHOOK_CONFIGURATIONS, f"envoy-gateway-topology-injector.{namespace}")
    if any(each.client_config.ca_bundle != authority for each in webhooks.webhooks):
        for each in webhooks.webhooks:
            each.client_config.ca_bundle = authority
        await client.update(MUTATING_WEBHOOK_CONFIGURATIONS, webhooks)


async def _make_password_of_redis(client: Client, namespace: str, words: list[str]) -> None:
    del words
    letters = string.ascii_letters + string.digits
    password = "".join(secrets.choice(letters) for _ in range(_PASSWORD_LENGTH))
    await _create_secret(client, namespace, "argocd-redis", {"auth": password.encode()})
    if "auth" not in (await client.get(SECRETS, "argocd-redis", namespace)).data:
        raise ValueError("key auth doesn't exist in secret argocd-redis")


async def _create_secret(
    client: Client,
    namespace: str,
    name: str,
    data: Mapping[str, bytes],
    *,
    type_: str = "Opaque",
    labels: Mapping[str, str] | None = None,
) -> None:
    """Create a Secret unless it exists. Raises StatusError."""
    metadata = ObjectMeta(name=name, namespace=namespace, labels=dict(labels or {}))
    with ignoring(is_already_exists):
        await client.create(SECRETS, Secret(metadata=metadata, data=dict(data), type=type_))
