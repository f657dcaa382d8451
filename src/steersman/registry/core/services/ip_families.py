"""The address families of a Service, derived from its policy, its addresses and the families of the cluster.

Follows pkg/registry/core/service/storage/alloc.go (`initIPFamilyFields`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steersman.api.core.v1 import Service
from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.machinery.errors.status import invalid as invalid_object
from steersman.machinery.identity.schema import GroupKind
from steersman.registry.core.services.fields import (
    EXTERNAL_NAME,
    NONE,
    PREFER_DUAL_STACK,
    REQUIRE_DUAL_STACK,
    SINGLE_STACK,
    family_of,
    other_family,
    same_cluster_ips,
)
from steersman.registry.core.services.validation import validate_cluster_ips

_KIND: Final = GroupKind("", "Service")
_POLICY: Final = Path("spec", "ipFamilyPolicy")
_FAMILIES: Final = Path("spec", "ipFamilies")
_ADDRESSES: Final = Path("spec", "clusterIPs")


def prefers_dual_stack_unchanged(new: Service, old: Service | None) -> bool:
    """Return True if a service that prefers dual-stack keeps its type, policy, families and addresses in an update."""
    return (
        old is not None
        and new.spec.type == old.spec.type != EXTERNAL_NAME
        and new.spec.ip_family_policy == PREFER_DUAL_STACK
        and old.spec.ip_family_policy in (None, PREFER_DUAL_STACK)
        and same_cluster_ips(old, new)
        and old.spec.ip_families == new.spec.ip_families
    )


def init_ip_families(new: Service, old: Service | None, configured: Sequence[str]) -> None:
    """Fill in `ipFamilyPolicy` and `ipFamilies`.

    `configured` has the families of the cluster, the primary family first. Raises StatusError 422 if the fields
    contradict each other or the cluster.
    """
    spec = new.spec
    if spec.type == EXTERNAL_NAME or prefers_dual_stack_unchanged(new, old):
        return
    selectorless = spec.cluster_ip == NONE and not spec.selector
    if spec.ip_family_policy is None:
        if old is not None and old.spec.ip_family_policy is not None:
            spec.ip_family_policy = old.spec.ip_family_policy
        else:
            spec.ip_family_policy = REQUIRE_DUAL_STACK if selectorless else SINGLE_STACK
    _refuse(new, list(validate_cluster_ips(new, old)))
    faults = _check_release(new, old) if old is not None else []
    faults += _check_single_stack(new)
    faults += _add_families_of_addresses(new, configured)
    _refuse(new, faults)
    if selectorless:
        spec.ip_families = spec.ip_families or [configured[0]]
        if len(spec.ip_families) < 2 and spec.ip_family_policy != SINGLE_STACK:
            spec.ip_families.append(other_family(spec.ip_families[0]))
        return
    _refuse(new, _check_configured(new, configured))
    spec.ip_families = spec.ip_families or [configured[0]]
    if spec.ip_family_policy != SINGLE_STACK and len(spec.ip_families) == 1 and len(configured) == 2:
        spec.ip_families.append(other_family(spec.ip_families[0]))


def _refuse(service: Service, faults: Sequence[FieldError]) -> None:
    if faults:
        raise invalid_object(_KIND, service.metadata.name, faults)


def _check_release(new: Service, old: Service) -> list[FieldError]:
    """Drop the second family and address on an update to SingleStack; refuse dropping them by other fields alone."""
    before, after = old.spec, new.spec
    policy = after.ip_family_policy
    if policy == SINGLE_STACK:
        if same_cluster_ips(old, new):
            after.cluster_ips = after.cluster_ips[:1]
        if before.ip_families == after.ip_families:
            after.ip_families = after.ip_families[:1]
        return []
    faults = []
    if after.cluster_ips and len(after.cluster_ips) < len(before.cluster_ips):
        faults.append(invalid(_POLICY, policy, "must be 'SingleStack' to release the secondary cluster IP"))
    if after.ip_families and len(after.ip_families) < len(before.ip_families):
        faults.append(invalid(_POLICY, policy, "must be 'SingleStack' to release the secondary IP family"))
    return faults


def _check_single_stack(service: Service) -> list[FieldError]:
    spec, faults = service.spec, []
    if spec.ip_family_policy == SINGLE_STACK:
        text = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
        if len(spec.cluster_ips) == 2:
            faults.append(invalid(_POLICY, SINGLE_STACK, text.format("cluster IPs")))
        if len(spec.ip_families) == 2:
            faults.append(invalid(_POLICY, SINGLE_STACK, text.format("IP families")))
    return faults


def _add_families_of_addresses(service: Service, configured: Sequence[str]) -> list[FieldError]:
    """Append the families of requested addresses."""
    spec, faults = service.spec, []
    for index, address in enumerate(spec.cluster_ips):
        if address == NONE:
            break
        family = family_of(address)
        if index >= len(spec.ip_families):
            if family in configured:
                spec.ip_families.append(family)
            else:
                detail = f"{family} is not configured on this cluster"
                faults.append(invalid(_ADDRESSES[index], spec.cluster_ips, detail))
    return faults


def _check_configured(service: Service, configured: Sequence[str]) -> list[FieldError]:
    spec, faults = service.spec, []
    if spec.ip_family_policy == REQUIRE_DUAL_STACK and len(configured) < 2:
        detail = "this cluster is not configured for dual-stack services"
        faults.append(invalid(_POLICY, spec.ip_family_policy, detail))
    for index, family in enumerate(spec.ip_families):
        if family not in configured:
            faults.append(invalid(_FAMILIES[index], family, "not configured on this cluster"))
    return faults
