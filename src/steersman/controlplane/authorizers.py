"""How a control plane judges who may do what (`--authorization-mode`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from steersman.authorization.always_allow import AlwaysAllowAuthorizer
from steersman.authorization.always_deny import AlwaysDenyAuthorizer
from steersman.authorization.interface import Authorizer, RuleResolver
from steersman.authorization.rbac import RbacAuthorizer
from steersman.authorization.system_masters import PrivilegedGroupAuthorizer
from steersman.authorization.union import UnionAuthorizer, UnionRuleResolver
from steersman.controlplane.options import Options
from steersman.machinery.large_work.slow_lane import SlowLane


@dataclass(frozen=True, slots=True)
class Judges:
    """`authorizer` judges requests, `rule_resolver` lists what a user may do, `roles` are the stored roles and
    bindings, also where RBAC judges nothing."""

    authorizer: Authorizer
    rule_resolver: RuleResolver
    roles: RbacAuthorizer


def judges(options: Options, lane: SlowLane) -> Judges:
    """Those of the modes, in their order, after the one that lets administrators do everything."""
    rbac = RbacAuthorizer(lane)
    kinds: dict[str, Callable[[], Authorizer]] = {
        "RBAC": lambda: rbac,
        "AlwaysAllow": AlwaysAllowAuthorizer,
        "AlwaysDeny": AlwaysDenyAuthorizer,
    }
    modes = options.authorization_mode
    return Judges(
        UnionAuthorizer((PrivilegedGroupAuthorizer(), *(kinds[mode]() for mode in modes))),
        UnionRuleResolver((rbac,) if "RBAC" in modes else ()),
        rbac,
    )
