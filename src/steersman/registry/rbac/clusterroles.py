"""ClusterRoles: permissions in the whole cluster or, through RoleBindings, in one namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.meta.v1 import LabelSelector
from steersman.api.rbac.v1 import AggregationRule, ClusterRole
from steersman.authorization.rbac_rules import FULL_AUTHORITY
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, invalid, required
from steersman.machinery.errors.status import forbidden
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.selectors.labels import SelectorError, from_label_selector
from steersman.machinery.validation.selectors import (
    STRICT,
    LabelSelectorOptions,
    label_selector_has_invalid_label_value,
    validate_label_selector,
)
from steersman.registry.columns import CREATED_AT
from steersman.registry.rbac.escalation import EscalationCheck, only_garbage_collection_changes
from steersman.registry.rbac.validation import GROUP, rbac_name, validate_rules
from steersman.registry.services import Services
from steersman.rest.allocator import Inquiry
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.rest.strategy import Strategy

_SELECTORS: Final = Path("aggregationRule", "clusterRoleSelectors")
_AGGREGATION_REFUSED: Final = "must have cluster-admin privileges to use the aggregationRule"


def _selectors(role: ClusterRole) -> list[LabelSelector]:
    return role.aggregation_rule.cluster_role_selectors if role.aggregation_rule is not None else []


class ClusterRoleInquiry(Inquiry[ClusterRole]):
    """The escalation check of ClusterRoles: a user who writes a role must hold its permissions."""

    def __init__(self, services: Services) -> None:
        self._check = EscalationCheck(services)

    async def look_up(self, ctx: Context, new: ClusterRole, old: ClusterRole | None) -> None:
        if old is None:
            await self._confirm(ctx, new, aggregates=bool(_selectors(new)))
        elif not only_garbage_collection_changes(new, old):
            await self._confirm(ctx, new, aggregates=bool(_selectors(new) or _selectors(old)))

    async def _confirm(self, ctx: Context, role: ClusterRole, *, aggregates: bool) -> None:
        """Check the rules, and require full authority of a user who writes an aggregation rule.

        An aggregation rule can collect any permission.
        """
        check = self._check
        if await check.may_escalate(ctx, "clusterroles"):
            return
        await check.confirm(ctx, "clusterroles", role.metadata.name, role.rules or ())
        if aggregates and await check.escalation(ctx, FULL_AUTHORITY):
            raise forbidden(GroupResource(GROUP, "clusterroles"), role.metadata.name, _AGGREGATION_REFUSED)


class ClusterRoleStrategy(Strategy[ClusterRole]):
    allow_create_on_update = True

    def validate(self, ctx: Context, obj: ClusterRole) -> Iterator[FieldError]:
        return self._validate(obj, STRICT)

    def validate_update(self, ctx: Context, new: ClusterRole, old: ClusterRole) -> Iterator[FieldError]:
        lenient = any(map(label_selector_has_invalid_label_value, _selectors(old)))
        return self._validate(new, LabelSelectorOptions(allow_invalid_label_value=True) if lenient else STRICT)

    def _validate(self, role: ClusterRole, options: LabelSelectorOptions) -> Iterator[FieldError]:
        yield from validate_rules(role.rules or (), namespaced=False)
        if role.aggregation_rule is not None:
            yield from _validate_aggregation(role.aggregation_rule, options)


def _validate_aggregation(rule: AggregationRule, options: LabelSelectorOptions) -> Iterator[FieldError]:
    if not rule.cluster_role_selectors:
        yield required(_SELECTORS, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, selector in enumerate(rule.cluster_role_selectors):
        path = _SELECTORS[index]
        yield from validate_label_selector(selector, path, options)
        try:
            from_label_selector(selector)
        except SelectorError:
            yield invalid(path, None, "invalid label selector.")


CLUSTER_ROLES: Final = Resource(
    kind=built_in(ClusterRole),
    plural="clusterroles",
    namespaced=False,
    strategy=ClusterRoleStrategy(),
    inquiry=ClusterRoleInquiry,
    name_validator=rbac_name,
    revalidates_metadata=True,
    columns=(CREATED_AT,),
    storage_version_hash="bYE5ZWDrJ44=",
)
