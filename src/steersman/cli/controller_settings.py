"""Flags of kube-controller-manager: settings of the controllers for the cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from steersman.cli.command import Option

if TYPE_CHECKING:
    from steersman.controllers.authority import Authority
    from steersman.controllers.controller import ClusterCIDR, Settings

F = TypeVar("F", bound=Callable[..., Any])

_File: Final = click.Path(path_type=Path, dir_okay=False)
_SIGNERS: Final = {
    "kubernetes.io/kubelet-serving": "kubelet-serving",
    "kubernetes.io/kube-apiserver-client-kubelet": "kubelet-client",
    "kubernetes.io/kube-apiserver-client": "kube-apiserver-client",
    "kubernetes.io/legacy-unknown": "legacy-unknown",
}
"""Names of the signers in flags, by signer."""
_accounts: Final = partial(click.option, cls=Option, section="Service account controller")
_signing: Final = partial(click.option, cls=Option, section="Certificate signing controller")
_addresses: Final = partial(click.option, cls=Option, section="Node IPAM controller")
_OPTIONS: Final = (
    _accounts("--root-ca-file", type=_File, help="CA certificates by which pods verify the API server."),
    _accounts("--service-account-private-key-file", type=_File, help="Key for tokens in service account secrets."),
    _accounts(
        "--legacy-service-account-token-clean-up-period",
        default="8760h0m0s",
        help="Time without use after which an auto-generated service account token is deleted.",
    ),
    _signing("--cluster-signing-cert-file", type=_File, help="CA certificate of all signers, PEM."),
    _signing("--cluster-signing-key-file", type=_File, help="Key of --cluster-signing-cert-file, PEM."),
    *(
        _signing(f"--cluster-signing-{flag}-{part}-file", type=_File, help=f"{what} of the signer {signer} alone, PEM.")
        for signer, flag in _SIGNERS.items()
        for part, what in (("cert", "Certificate"), ("key", "Key"))
    ),
    _signing(
        "--cluster-signing-duration",
        default="8760h0m0s",
        help="Validity of signed certificates, unless the request asks for less.",
    ),
    _addresses("--allocate-node-cidrs", is_flag=True, help="Allocate pod CIDRs to nodes."),
    _addresses("--cluster-cidr", default="", help="CIDRs of pods, comma-separated."),
    _addresses("--service-cluster-ip-range", default="", help="CIDRs of services, which are not allocated to nodes."),
    _addresses(
        "--node-cidr-mask-size",
        type=int,
        default=0,
        help="Prefix length of a node's CIDR.  [default: 24, or 64 for IPv6]",
    ),
    _addresses(
        "--node-cidr-mask-size-ipv4",
        type=int,
        default=0,
        help="Prefix length of a node's IPv4 CIDR in dual-stack clusters.",
    ),
    _addresses(
        "--node-cidr-mask-size-ipv6",
        type=int,
        default=0,
        help="Prefix length of a node's IPv6 CIDR in dual-stack clusters.",
    ),
)


class SettingsError(Exception):
    """Flags contradict each other or have invalid values."""


def settings_flags(command: F) -> F:
    """Add the flags to a command, which receives them as keyword arguments."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def settings_of(given: Mapping[str, Any]) -> Settings:
    """Convert the flags to settings. Raises SettingsError, OSError."""
    from steersman.controllers.controller import Settings

    root_ca: Path | None = given["root_ca_file"]
    return Settings(
        root_ca="" if root_ca is None else root_ca.read_text(),
        sign_token=_sign_token(given["service_account_private_key_file"]),
        legacy_token_clean_up_period=_seconds(given, "legacy_service_account_token_clean_up_period"),
        signers=_signers(given),
        cluster_cidrs=_cluster_cidrs(given) if given["allocate_node_cidrs"] else (),
        service_cidrs=_networks(given, "service_cluster_ip_range"),
    )


def _sign_token(file: Path | None) -> Callable[[dict[str, Any]], str] | None:
    if file is None:
        return None
    from steersman.authentication.service_account_keys import KeyFileError, ServiceAccountKeys
    from steersman.authentication.service_account_tokens import sign

    try:
        keys = ServiceAccountKeys.load(file)
    except KeyFileError as error:
        raise SettingsError(f"error reading key for service account token controller: {error}") from None
    return lambda claims: sign(keys, claims)


def _signers(given: Mapping[str, Any]) -> dict[str, Authority]:
    from steersman.controllers.authority import Authority

    lasts = _seconds(given, "cluster_signing_duration")
    of_all = _pair(given, "cluster_signing")
    own = {
        signer: pair
        for signer, flag in _SIGNERS.items()
        if (pair := _pair(given, f"cluster_signing_{flag.replace('-', '_')}")) is not None
    }
    if of_all is not None and own:
        raise SettingsError("cannot specify default and per controller certs at the same time")
    pairs = own if of_all is None else dict.fromkeys(_SIGNERS, of_all)
    return {signer: Authority(certificate, key, lasts) for signer, (certificate, key) in pairs.items()}


def _pair(given: Mapping[str, Any], prefix: str) -> tuple[Path, Path] | None:
    certificate, key = given[f"{prefix}_cert_file"], given[f"{prefix}_key_file"]
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        flag = f"--{prefix.replace('_', '-')}"
        raise SettingsError(f"{flag}-cert-file and {flag}-key-file belong together")
    return certificate, key


def _cluster_cidrs(given: Mapping[str, Any]) -> tuple[ClusterCIDR, ...]:
    from steersman.controllers.controller import ClusterCIDR
    from steersman.controllers.node_ipam.cidr_set import CIDRSet

    networks = _networks(given, "cluster_cidr")
    if not networks:
        raise SettingsError("Must specify --cluster-cidr if --allocate-node-cidrs is set")
    if len(networks) > 2 or len({each.version for each in networks}) < len(networks):
        raise SettingsError("--cluster-cidr: one range, or one of each IP family")
    sizes = _sizes(given, {each.version for each in networks})
    cluster_cidrs = tuple(ClusterCIDR(each, sizes[each.version]) for each in networks)
    for each in cluster_cidrs:
        try:
            CIDRSet(each.network, each.node_size)
        except ValueError as error:
            raise SettingsError(str(error)) from None
    return cluster_cidrs


def _sizes(given: Mapping[str, Any], versions: set[int]) -> dict[int, int]:
    """Return the prefix length of a node's network by IP version. Raises SettingsError."""
    both, ipv4, ipv6 = (given[f"node_cidr_mask_size{each}"] for each in ("", "_ipv4", "_ipv6"))
    if both and len(versions) > 1:
        raise SettingsError("usage of --node-cidr-mask-size is not allowed with dual-stack clusters")
    if both and (ipv4 or ipv6):
        raise SettingsError(
            "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if "
            "--node-cidr-mask-size is set. For dual-stack clusters please unset it and use IPFamily specific flags"
        )
    if ipv4 and versions == {6}:
        raise SettingsError("usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster")
    if ipv6 and versions == {4}:
        raise SettingsError("usage of --node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster")
    sizes = {4: both or ipv4 or 24, 6: both or ipv6 or 64}
    if any(not 0 < sizes[each] <= (32 if each == 4 else 128) for each in versions):
        raise SettingsError("--node-cidr-mask-size: not a valid prefix length")
    return sizes


def _networks(given: Mapping[str, Any], name: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(each.strip(" "), strict=False) for each in given[name].split(",") if each)
    except ValueError:
        raise SettingsError(f"--{name.replace('_', '-')}: invalid CIDR address: {given[name]}") from None


def _seconds(given: Mapping[str, Any], name: str) -> float:
    from steersman.machinery.values.durations import parse_duration

    try:
        seconds = parse_duration(given[name]) / 1e9
    except ValueError as error:
        raise SettingsError(f"--{name.replace('_', '-')}: {error}") from None
    if seconds <= 0:
        raise SettingsError(f"--{name.replace('_', '-')}: must be more than 0")
    return seconds
