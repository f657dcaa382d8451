"""Containers of kube-webhook-certgen, by which charts make the certificates of their webhooks: `create` leaves a Secret
with a key, its certificate and the authority's, `patch` puts the authority into webhook configurations.

A container does so with the rights of its pod's service account.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from steersman.api.core.v1 import Pod, Secret
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.errors import is_already_exists, is_not_found
from steersman.client.resources import MUTATING_WEBHOOK_CONFIGURATIONS, SECRETS, VALIDATING_WEBHOOK_CONFIGURATIONS
from steersman.machinery.built_in.pod_resources import AnyContainer, all_containers
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.nodes.container_status import MOST_IMAGE, all_statuses
from steersman.nodes.surroundings import unexpanded_command_of

ClientOf = Callable[[str, str], Client]
"""Gives a client of a service account, by its namespace and name."""
_IMAGE: Final = re.compile(r"(^|/)kube-webhook-certgen([:@]|$)")
_COMMANDS: Final = frozenset({"create", "patch"})
_MOST_HOSTS: Final = 100
_MOST_CONTAINERS: Final = 16
_YEARS: Final = timedelta(days=36500)


def is_certificate_maker(container: AnyContainer) -> bool:
    """Return True for a container of kube-webhook-certgen that has something to do."""
    return bool(_IMAGE.search(container.image[:MOST_IMAGE])) and bool(
        _COMMANDS & {*unexpanded_command_of(container)[:2]}
    )


async def made_certificates(client_of: ClientOf, pod: Pod) -> dict[str, str]:
    """Have the containers of a pod that make certificates do so, unless they have ended. Return what went wrong with
    each by name, "" for nothing. Raises Unreachable."""
    makers = [each for each in all_containers(pod.spec) if is_certificate_maker(each)][:_MOST_CONTAINERS]
    if not makers:
        return {}
    ended = {each.name for each in all_statuses(pod.status) if each.state.terminated is not None}
    client = client_of(pod.metadata.namespace, pod.spec.service_account_name or "default")
    found: dict[str, str] = {}
    for each in makers:
        found[each.name] = ""
        if each.name in ended:
            continue
        command, flags = _flags(unexpanded_command_of(each))
        flags.setdefault("namespace", pod.metadata.namespace)
        try:
            await (_create if command == "create" else _patch)(client, flags)
        except StatusError as error:
            found[each.name] = error.message
        except ValueError as error:
            found[each.name] = str(error)
    return found


def _flags(words: list[str]) -> tuple[str, dict[str, str]]:
    """The command, and the values of flags; a flag alone is true."""
    command = next(each for each in words if each in _COMMANDS)
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            found[name] = value if equals else "true"
    return command, found


async def _create(client: Client, flags: Mapping[str, str]) -> None:
    """Make the Secret, unless it is there. Raises StatusError, ValueError."""
    name, namespace = flags.get("secret-name", ""), flags["namespace"]
    hosts = [each for each in flags.get("host", "").split(",") if each]
    if not name or not hosts or len(hosts) > _MOST_HOSTS:
        raise ValueError("flags --secret-name and --host are wanted")
    try:
        await client.get(SECRETS, name, namespace)
        return
    except StatusError as error:
        if not is_not_found(error):
            raise
    authority, certificate, key = certificates_of(hosts)
    data = {
        flags.get("ca-name", "ca"): authority, flags.get("cert-name", "cert"): certificate,
        flags.get("key-name", "key"): key,
    }  # fmt: skip
    made = Secret(
        metadata=ObjectMeta(name=name, namespace=namespace), data=data, type=flags.get("secret-type", "Opaque")
    )
    try:
        await client.create(SECRETS, made)
    except StatusError as error:
        if not is_already_exists(error):
            raise


async def _patch(client: Client, flags: Mapping[str, str]) -> None:
    """Put the authority of the Secret into webhook configurations. Raises StatusError, ValueError."""
    secret = await client.get(SECRETS, flags.get("secret-name", ""), flags["namespace"])
    authority = secret.data.get(flags.get("ca-name", "ca"), b"")
    name, policy = flags.get("webhook-name", ""), flags.get("patch-failure-policy", "")
    if not name:
        raise ValueError("flag --webhook-name is wanted")
    if flags.get("patch-validating", "true") == "true":
        validating = await client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, name)
        for each in validating.webhooks:
            each.client_config.ca_bundle, each.failure_policy = authority, policy or each.failure_policy
        await client.update(VALIDATING_WEBHOOK_CONFIGURATIONS, validating)
    if flags.get("patch-mutating", "true") == "true":
        mutating = await client.get(MUTATING_WEBHOOK_CONFIGURATIONS, name)
        for one in mutating.webhooks:
            one.client_config.ca_bundle, one.failure_policy = authority, policy or one.failure_policy
        await client.update(MUTATING_WEBHOOK_CONFIGURATIONS, mutating)


def certificates_of(hosts: list[str]) -> tuple[bytes, bytes, bytes]:
    """Make an authority and a certificate for host names: the certificate of the authority, the one for the hosts and
    its key, in PEM. Raises ValueError."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    begins = datetime.fromtimestamp(times.moment(), UTC) - timedelta(hours=1)
    names = {
        who: x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, who)]) for who in ("nil1", "nil2")
    }  # fmt: skip
    keys = {who: ec.generate_private_key(ec.SECP256R1()) for who in names}
    alternatives: list[x509.GeneralName] = []
    for host in hosts:
        try:
            alternatives.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            alternatives.append(x509.DNSName(host))
    found: list[bytes] = []
    extensions: Mapping[str, Sequence[tuple[x509.ExtensionType, bool]]] = {
        "nil1": [(x509.BasicConstraints(ca=True, path_length=None), True)],
        "nil2": [
            (x509.SubjectAlternativeName(alternatives), False),
            (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        ],
    }
    for who, those in extensions.items():
        builder = x509.CertificateBuilder().subject_name(names[who]).issuer_name(names["nil1"])
        builder = builder.public_key(keys[who].public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(begins).not_valid_after(begins + _YEARS)
        for extension, is_critical in those:
            builder = builder.add_extension(extension, critical=is_critical)
        made = builder.sign(keys["nil1"], hashes.SHA256())
        found.append(made.public_bytes(serialization.Encoding.PEM))
    key = keys["nil2"].private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return found[0], found[1], key
