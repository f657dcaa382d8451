"""Nodes: the machines that pods run on, as their kubelets report them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from steersman.api.core.v1 import Node, NodeProxyOptions, Taint
from steersman.kinds.built_in import built_in
from steersman.machinery.built_in.pod_resources import round_up_to_milli
from steersman.machinery.errors.field import (
    FieldError,
    Path,
    duplicate,
    forbidden,
    internal,
    invalid,
    quote,
)
from steersman.machinery.validation.formats import is_valid_label_value
from steersman.machinery.validation.ip import is_valid_cidr_for_legacy_field, parse_cidr_sloppy, warnings_for_cidr
from steersman.machinery.validation.leaves import validate_choice
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.validation.resource_names import validate_quantity
from steersman.machinery.validation.selectors import validate_label_name
from steersman.registry.core.node_annotations import validate_node_annotations
from steersman.registry.printing.go_struct import go_struct
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import Strategy
from steersman.work.first_use import on_first_use

TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE_LABEL: Final = "kubernetes.io/role"
_METADATA: Final = Path("metadata")
_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")
_MAX_FEATURE_NAME: Final = 253
_is_feature_name: Final = re.compile("[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*", re.ASCII).fullmatch


def validate_taints(taints: Sequence[Taint], path: Path) -> Iterator[FieldError]:
    """Validate the keys, values and effects of taints, and that no taint occurs twice."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        item = path[index]
        yield from validate_label_name(taint.key, item / "key")
        if messages := is_valid_label_value(taint.value):
            yield invalid(item / "value", taint.value, ";".join(messages))
        yield from validate_choice(taint.effect, TAINT_EFFECTS, item / "effect")
        if (taint.key, taint.effect) in seen:
            value = go_struct(Key=taint.key, Value=taint.value, Effect=taint.effect, TimeAdded=taint.time_added)
            found = duplicate(item, value)
            yield FieldError(found.type, found.field, value, "taints must be unique by key and effect pair")
        seen.add((taint.key, taint.effect))


def _validate_resources(node: Node) -> Iterator[FieldError]:
    for member, quantities in (("capacity", node.status.capacity), ("allocatable", node.status.allocatable)):
        for name, quantity in quantities.items():
            yield from validate_quantity(name, quantity, _STATUS.child(member, name))


def _validate_declared_features(names: Sequence[str]) -> Iterator[FieldError]:
    path = _STATUS / "declaredFeatures"
    for index, name in enumerate(names):
        if len(name.encode()) > _MAX_FEATURE_NAME:
            detail = f"invalid feature name {quote(name)}: must be no more than {_MAX_FEATURE_NAME} characters"
            yield invalid(path[index], name, detail)
        elif not _is_feature_name(name):
            detail = (
                f"invalid feature name {quote(name)}: must start with an UpperCamelCase segment, with subsequent "
                "segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric "
                "characters and slashes"
            )
            yield invalid(path[index], name, detail)
        if index + 1 < len(names):
            following = names[index + 1]
            if name == following:
                yield duplicate(path[index + 1], following)
            elif name > following:
                yield invalid(path[index + 1], following, "list must be sorted alphabetically")


def _validate_pod_cidrs(cidrs: Sequence[str]) -> Iterator[FieldError]:
    path = _SPEC / "podCIDRs"
    for index, cidr in enumerate(cidrs):
        yield from is_valid_cidr_for_legacy_field(cidr, path[index])
    if len(cidrs) > 1:
        parsed = [parse_cidr_sloppy(cidr) for cidr in cidrs]
        if None in parsed:
            index = parsed.index(None)
            why = f"error:invalid CIDR[{index}]: <nil> (invalid CIDR address: {cidrs[index]})"
            yield internal(path, f"invalid PodCIDRs. failed to check with dual stack with {why}")
        families = {each[1].version for each in parsed if each is not None}
        if len(families) < 2 or len(cidrs) > 2:
            yield invalid(path, list(cidrs), "may specify no more than one CIDR for each IP family")


def _validate(node: Node) -> Iterator[FieldError]:
    yield from validate_node_annotations(node.metadata.annotations, _METADATA / "annotations", validate_taints)
    yield from validate_taints(node.spec.taints, _METADATA / "taints")
    yield from _validate_resources(node)
    swap = node.status.node_info.swap
    if swap is not None and swap.capacity is not None and swap.capacity <= 0:
        yield invalid(_METADATA.child("nodeSwapStatus", "capacity"), swap.capacity, "must be greater than zero")
    yield from _validate_declared_features(node.status.declared_features)
    yield from _validate_pod_cidrs(node.spec.pod_cidrs)


def _validate_addresses(node: Node) -> Iterator[FieldError]:
    seen: set[tuple[str, str]] = set()
    for index, address in enumerate(node.status.addresses):
        key = (address.type, address.address)
        if key in seen:
            yield duplicate(_STATUS.child("addresses")[index], go_struct(Type=address.type, Address=address.address))
        seen.add(key)


def _validate_assigned(new: Node, old: Node) -> Iterator[FieldError]:
    """Yield errors of changes to fields that are assigned to a node once."""
    path = _SPEC / "podCIDRs"
    text = 'node updates may not change podCIDR except from "" to valid'
    if old.spec.pod_cidrs:
        if len(old.spec.pod_cidrs) != len(new.spec.pod_cidrs):
            yield forbidden(path, text)
        else:
            for before, after in zip(old.spec.pod_cidrs, new.spec.pod_cidrs, strict=True):
                if before != after:
                    yield forbidden(path, text)
    if old.spec.provider_id and old.spec.provider_id != new.spec.provider_id:
        yield forbidden(_SPEC / "providerID", 'node updates may not change providerID except from "" to valid')


def _validate_update(new: Node, old: Node) -> Iterator[FieldError]:
    yield from validate_node_annotations(new.metadata.annotations, _METADATA / "annotations", validate_taints)
    yield from _validate_resources(new)
    yield from _validate_declared_features(new.status.declared_features)
    yield from _validate_addresses(new)
    yield from _validate_assigned(new, old)
    yield from validate_taints(new.spec.taints, _METADATA / "taints")
    if new.spec.external_id != old.spec.external_id:
        yield forbidden(_SPEC / "externalID", "may not be updated")


class NodeStrategy(Strategy[Node]):
    """The strategy of nodes. Unlike other kinds, a node may be created with a status.

    `configSource` and `status.config` belong to a feature that was removed, so clients cannot set them.
    """

    resets = ("status",)

    def prepare_for_create(self, ctx: Context, obj: Node) -> None:
        obj.spec.config_source = None
        obj.status.config = None

    def validate(self, ctx: Context, obj: Node) -> Iterator[FieldError]:
        return _validate(obj)

    def warnings(self, ctx: Context, obj: Node) -> Iterator[str]:
        if obj.spec.external_id:
            yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
        for index, cidr in enumerate(obj.spec.pod_cidrs):
            yield from warnings_for_cidr(cidr, _SPEC.child("podCIDRs")[index])

    def prepare_for_update(self, ctx: Context, new: Node, old: Node) -> None:
        super().prepare_for_update(ctx, new, old)
        new.spec.config_source = old.spec.config_source

    def validate_update(self, ctx: Context, new: Node, old: Node) -> Iterator[FieldError]:
        yield from _validate(new)
        yield from _validate_update(new, old)


class NodeStatusStrategy(NodeStrategy):
    resets = ("spec",)

    def prepare_for_update(self, ctx: Context, new: Node, old: Node) -> None:
        super().prepare_for_update(ctx, new, old)
        new.status.config = old.status.config

    def validate_update(self, ctx: Context, new: Node, old: Node) -> Iterator[FieldError]:
        return _validate_update(new, old)

    def warnings_on_update(self, ctx: Context, new: Node, old: Node) -> Iterator[str]:
        return iter(())


def default_node(node: Node) -> None:
    """Set the defaults of SetDefaults_NodeStatus, and keep `podCIDR` equal to the first of `podCIDRs`, as conversion
    does.
    """
    spec, status = node.spec, node.status
    if spec.pod_cidr and (not spec.pod_cidrs or spec.pod_cidrs[0] != spec.pod_cidr):
        spec.pod_cidrs = [spec.pod_cidr]
    spec.pod_cidr = spec.pod_cidrs[0] if spec.pod_cidrs else ""
    if not status.allocatable and status.capacity:
        status.allocatable = dict(status.capacity)
    round_up_to_milli(status.capacity)
    round_up_to_milli(status.allocatable)


def _status_text(node: Node) -> str:
    ready = [condition.status for condition in node.status.conditions if condition.type == "Ready"]
    text = "Unknown" if not ready else "Ready" if ready[-1] == "True" else "NotReady"
    return f"{text},SchedulingDisabled" if node.spec.unschedulable else text


def _roles(node: Node) -> str:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in node.metadata.labels if key.startswith(_ROLE_PREFIX)}
    roles.add(node.metadata.labels.get(_ROLE_LABEL, ""))
    return ",".join(sorted(roles - {""})) or "<none>"


def _address(node: Node, type_: str) -> str:
    return next((each.address for each in node.status.addresses if each.type == type_), "<none>")


def _kernel(node: Node) -> str:
    info = node.status.node_info
    kernel = info.kernel_version or "<unknown>"
    return f"{kernel} ({info.architecture})" if info.architecture else kernel


NODES: Final = Resource(
    kind=built_in(Node, default=default_node),
    plural="nodes",
    namespaced=False,
    short_names=("no",),
    strategy=NodeStrategy(),
    name_validator=name_is_dns_subdomain,
    revalidates_metadata=True,
    columns=(
        Column("Status", _status_text, description="The status of the node"),
        Column("Roles", _roles, description="The roles of the node"),
        AGE,
        Column("Version", lambda n: n.status.node_info.kubelet_version),
        Column("Internal-IP", lambda n: _address(n, "InternalIP"), priority=1),
        Column("External-IP", lambda n: _address(n, "ExternalIP"), priority=1),
        Column("OS-Image", lambda n: n.status.node_info.os_image or "<unknown>", priority=1),
        Column("Kernel-Version", _kernel, priority=1),
        Column("Container-Runtime", lambda n: n.status.node_info.container_runtime_version or "<unknown>", priority=1),
    ),
    selectable_fields={"spec.unschedulable": lambda n: "true" if n.spec.unschedulable else "false"},
    subresources=(
        Subresource(
            name="proxy",
            kind=built_in(NodeProxyOptions),
            verbs=("create", "delete", "get", "patch", "update"),
            connect=on_first_use("steersman.registry.core.node_proxy", "proxy_to_node"),
            connect_path=True,
            connect_methods=("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"),
            tables=False,
        ),
        Subresource(name="status", strategy=NodeStatusStrategy()),
    ),
    storage_prefix="minions",
    storage_version_hash="XwShjMxG9Fs=",
)
