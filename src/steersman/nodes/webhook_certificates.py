"""Simulation of kube-webhook-certgen, by which charts create the certificates of their webhooks.

`create` creates a Secret with a key, its certificate and the authority's; `patch` puts the authority into webhook
configurations and APIServices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from steersman.api.core.v1 import Secret
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_already_exists, is_not_found
from steersman.client.resources import (
    API_SERVICES,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    SECRETS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.nodes.container_status import MOST_IMAGE
from steersman.nodes.initial_world import unexpanded_command_of
from steersman.work.patterns import late_pattern

_IMAGE: Final = late_pattern(r"(^|/)kube-webhook-certgen([:@]|$)")
_COMMANDS: Final = frozenset({"create", "patch"})
_BOOLEAN_FLAGS: Final = frozenset({"patch-mutating", "patch-validating"})
_POLICIES: Final = frozenset({"", "Ignore", "Fail"})
_MOST_HOSTS: Final = 100


def is_certificate_maker(container: AnyContainer) -> bool:
    """Return True for a container of kube-webhook-certgen with a known command."""
    is_maker = _IMAGE.search(container.image[:MOST_IMAGE]) is not None
    return is_maker and not _COMMANDS.isdisjoint(unexpanded_command_of(container))


async def make_certificates(client: Client, namespace: str, words: list[str]) -> None:
    """Do the work of a command. Raises StatusError, ValueError."""
    command, flags = _flags(words)
    flags.setdefault("namespace", namespace)
    await (_create if command == "create" else _patch)(client, flags)


def _flags(words: list[str]) -> tuple[str, dict[str, str]]:
    """Return the command and the values of flags.

    A flag's value follows after `=`, or as the next word; a boolean flag alone is true.
    """
    command, flags = "", dict[str, str]()
    rest = iter(words)
    for word in rest:
        if word.startswith("-"):
            name, equals, value = word.lstrip("-").partition("=")
            flags[name] = value if equals else "true" if name in _BOOLEAN_FLAGS else next(rest, "")
        elif word in _COMMANDS:
            command = command or word
    return command, flags


async def _create(client: Client, flags: Mapping[str, str]) -> None:
    """Create the Secret unless it exists. Raises StatusError, ValueError."""
    name, namespace = flags.get("secret-name", ""), flags["namespace"]
    hosts = [each for each in flags.get("host", "").split(",") if each]
    if not name or not hosts or len(hosts) > _MOST_HOSTS:
        raise ValueError("flags --secret-name and --host are wanted")
    with ignoring(is_not_found):
        if not (await client.get(SECRETS, name, namespace)).data.get(flags.get("ca-name", "ca")):
            raise ValueError("got secret, but it did not contain a 'ca' key")
        return
    from steersman.nodes.certificates import certificates_of  # imported here, as most clusters never need it

    authority, certificate, key = certificates_of(hosts)
    data = {
        flags.get("ca-name", "ca"): authority,
        flags.get("cert-name", "cert"): certificate,
        flags.get("key-name", "key"): key,
    }
    made = Secret(
        metadata=ObjectMeta(name=name, namespace=namespace), data=data, type=flags.get("secret-type", "Opaque")
    )
    with ignoring(is_already_exists):
        await client.create(SECRETS, made)


async def _patch(client: Client, flags: Mapping[str, str]) -> None:
    """Put the Secret's authority into webhook configurations and APIServices. Raises StatusError, ValueError."""
    name, policy = flags.get("webhook-name", ""), flags.get("patch-failure-policy", "")
    kinds = [each for each in ("validating", "mutating") if flags.get(f"patch-{each}", "true") == "true"]
    api_service = flags.get("apiservice-name", "")
    if not kinds and not api_service:
        raise ValueError(
            "patch-validating=false, patch-mutating=false. You must patch at least one kind of webhook, otherwise this "
            "command is a no-op"
        )
    if policy not in _POLICIES:
        raise ValueError(f"patch-failure-policy {policy} is not valid")
    if policy and not (name and kinds):
        raise ValueError("failurePolicy specified, but no webhook will be patched")
    secret = await client.get(SECRETS, flags.get("secret-name", ""), flags["namespace"])
    authority = secret.data.get(flags.get("ca-name", "ca"), b"")
    if not authority:
        raise ValueError("got secret, but it did not contain a 'ca' key")
    if api_service:
        stored = await client.get(API_SERVICES, api_service)
        stored.spec.ca_bundle, stored.spec.insecure_skip_tls_verify = authority, False
        await client.update(API_SERVICES, stored)
    if name and "validating" in kinds:
        validating = await client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, name)
        for each in validating.webhooks:
            each.client_config.ca_bundle, each.failure_policy = authority, policy or each.failure_policy
        await client.update(VALIDATING_WEBHOOK_CONFIGURATIONS, validating)
    if name and "mutating" in kinds:
        mutating = await client.get(MUTATING_WEBHOOK_CONFIGURATIONS, name)
        for one in mutating.webhooks:
            one.client_config.ca_bundle, one.failure_policy = authority, policy or one.failure_policy
        await client.update(MUTATING_WEBHOOK_CONFIGURATIONS, mutating)
