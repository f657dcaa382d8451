"""Validation of NetworkPolicies (kubernetes `pkg/apis/networking/validation`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from steersman.api.networking.v1 import IPBlock, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, not_supported, required
from steersman.machinery.validation.formats import is_valid_port_name, is_valid_port_num
from steersman.machinery.validation.ip import (
    is_valid_cidr_for_legacy_field,
    parse_cidr_sloppy,
    warnings_for_cidr,
)
from steersman.machinery.validation.leaves import validate_supported, validate_with
from steersman.machinery.validation.selectors import LabelSelectorOptions, validate_label_selector

PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
POLICY_TYPES: Final = ("Ingress", "Egress")


def peers(spec: NetworkPolicySpec) -> Iterator[tuple[NetworkPolicyPeer, Path]]:
    """Yield every peer of a policy with its path."""
    for index, ingress in enumerate(spec.ingress):
        for place, peer in enumerate(ingress.from_):
            yield peer, (Path("spec", "ingress")[index] / "from")[place]
    for index, egress in enumerate(spec.egress):
        for place, peer in enumerate(egress.to):
            yield peer, (Path("spec", "egress")[index] / "to")[place]


def network_policy_warnings(spec: NetworkPolicySpec) -> Iterator[str]:
    """Yield warnings about CIDRs in non-canonical form."""
    for peer, path in peers(spec):
        if (block := peer.ip_block) is not None:
            yield from warnings_for_cidr(block.cidr, path.child("ipBlock", "cidr"))
            for index, cidr in enumerate(block.except_):
                yield from warnings_for_cidr(cidr, path.child("ipBlock", "except")[index])


def validate_network_policy(spec: NetworkPolicySpec, old: NetworkPolicySpec | None) -> Iterator[FieldError]:
    """Validate a spec that replaces `old`, which may keep values that older servers accepted."""
    path, known = Path("spec"), _blocks(old)
    tolerant = old is not None and any(True for _ in validate_label_selector(old.pod_selector, Path()))
    options = LabelSelectorOptions(allow_invalid_label_value=tolerant)
    yield from validate_label_selector(spec.pod_selector, path / "podSelector", options)
    for index, ingress in enumerate(spec.ingress):
        at = (path / "ingress")[index]
        for place, port in enumerate(ingress.ports):
            yield from _validate_port(port, (at / "ports")[place])
        for place, peer in enumerate(ingress.from_):
            yield from _validate_peer(peer, (at / "from")[place], options, known)
    for index, egress in enumerate(spec.egress):
        at = (path / "egress")[index]
        for place, port in enumerate(egress.ports):
            yield from _validate_port(port, (at / "ports")[place])
        for place, peer in enumerate(egress.to):
            yield from _validate_peer(peer, (at / "to")[place], options, known)
    if len(spec.policy_types) > len(POLICY_TYPES):
        yield invalid(path / "policyTypes", spec.policy_types, "may not specify more than two policyTypes")
        return
    for index, policy_type in enumerate(spec.policy_types):
        yield from validate_supported(policy_type, POLICY_TYPES, (path / "policyTypes")[index])


def _blocks(spec: NetworkPolicySpec | None) -> set[str]:
    blocks: set[str] = set()
    for peer, _ in () if spec is None else peers(spec):
        if peer.ip_block is not None:
            blocks.update((peer.ip_block.cidr, *peer.ip_block.except_))
    return blocks


def _validate_port(port: NetworkPolicyPort, path: Path) -> Iterator[FieldError]:
    if port.protocol is not None and port.protocol not in PROTOCOLS:
        yield not_supported(path / "protocol", port.protocol, PROTOCOLS)
    number, end = port.port, port.end_port
    if number is None:
        if end is not None:
            yield invalid(path / "endPort", end, "may not be specified when `port` is not specified")
    elif isinstance(number, int):
        yield from validate_with(is_valid_port_num, number, path / "port")
        if end is not None:
            if end < number:
                yield invalid(path / "endPort", number, "must be greater than or equal to `port`")
            yield from validate_with(is_valid_port_num, end, path / "endPort")
    else:
        if end is not None:
            yield invalid(path / "endPort", end, "may not be specified when `port` is non-numeric")
        yield from validate_with(is_valid_port_name, number, path / "port")


def _validate_peer(
    peer: NetworkPolicyPeer, path: Path, options: LabelSelectorOptions, known: Collection[str]
) -> Iterator[FieldError]:
    yield from validate_label_selector(peer.pod_selector, path / "podSelector", options)
    yield from validate_label_selector(peer.namespace_selector, path / "namespaceSelector", options)
    if peer.ip_block is not None:
        yield from _validate_block(peer.ip_block, path / "ipBlock", known)
    selects = peer.pod_selector is not None or peer.namespace_selector is not None
    if peer.ip_block is None and not selects:
        yield required(path, "must specify a peer")
    elif peer.ip_block is not None and selects:
        yield forbidden(path, "may not specify both ipBlock and another peer")


def _validate_block(block: IPBlock, path: Path, known: Collection[str]) -> Iterator[FieldError]:
    if not block.cidr:
        yield required(path / "cidr")
        return
    yield from is_valid_cidr_for_legacy_field(block.cidr, path / "cidr", valid_old=known)
    if (parsed := parse_cidr_sloppy(block.cidr)) is None:
        return
    _, network = parsed
    for index, cidr in enumerate(block.except_):
        at = (path / "except")[index]
        yield from is_valid_cidr_for_legacy_field(cidr, at, valid_old=known)
        if (parsed := parse_cidr_sloppy(cidr)) is None:
            continue
        _, hole = parsed
        inside = hole.version == network.version and hole.network_address in network
        if not inside or network.prefixlen >= hole.prefixlen:
            yield invalid(at, cidr, "must be a strict subset of `cidr`")
