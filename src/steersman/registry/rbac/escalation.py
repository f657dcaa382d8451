"""The escalation check for roles and bindings: users can only grant permissions that they hold.

Follows pkg/registry/rbac (`policybased`, `escalation_check.go`). Members of system:masters may grant anything. So may
users with the verb `escalate` on a role, or `bind` on the role to which a binding refers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

import msgspec

from steersman.api.rbac.v1 import PolicyRule, RoleRef
from steersman.authentication.user import SYSTEM_MASTERS
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import decide
from steersman.authorization.rbac import RoleNotFound
from steersman.authorization.rbac_rules import escalation
from steersman.machinery.errors.status import forbidden, not_found, plain_internal
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupResource
from steersman.registry.services import Services
from steersman.rest.context import Context
from steersman.work.offloading import offload_if

GROUP: Final = "rbac.authorization.k8s.io"
_ROLE_RESOURCES: Final = {"ClusterRole": "clusterroles", "Role": "roles"}
_GARBAGE_COLLECTED: Final = ("owner_references", "finalizers", "self_link", "managed_fields")
"""Metadata that may change without granting anything."""


class EscalationCheck:
    """Checks writes of roles and bindings against the stored roles, whatever authorizers the server uses."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def confirm_role(self, ctx: Context, resource: str, name: str, rules: Sequence[PolicyRule]) -> None:
        """Raise StatusError Forbidden if the request user may not write a role with these rules."""
        if not self.exempt(ctx) and not await self._may_escalate(ctx, resource):
            await self.confirm(ctx, resource, name, rules)

    async def confirm_binding(self, ctx: Context, resource: str, name: str, ref: RoleRef) -> None:
        """Raise StatusError Forbidden if the request user may not bind the role, NotFound if there is none."""
        if self.exempt(ctx) or await self._may_bind(ctx, ref):
            return
        await self.confirm(ctx, resource, name, await self._rules_of(ctx, resource, ref))

    def exempt(self, ctx: Context) -> bool:
        """Return True if the check does not apply to the request user."""
        return SYSTEM_MASTERS in ctx.user.groups

    async def may_escalate(self, ctx: Context, resource: str) -> bool:
        """Return True if the request user may write any role."""
        return self.exempt(ctx) or await self._may_escalate(ctx, resource)

    async def confirm(self, ctx: Context, resource: str, name: str, rules: Sequence[PolicyRule]) -> None:
        """Raise StatusError Forbidden unless the user holds all of `rules` in the scope of the request."""
        if reason := await self.escalation(ctx, rules):
            raise forbidden(GroupResource(GROUP, resource), name, reason)

    async def escalation(self, ctx: Context, rules: Sequence[PolicyRule]) -> str:
        """Return a description of the permissions in `rules` that the user lacks, "" if there are none.

        A short rule stands for many combinations, so rules are compared in the worker threads.
        """
        held, error = await self._services.roles.policy_rules_for(ctx.user, ctx.action.namespace)
        return await offload_if(True, escalation, ctx.user, chain.from_iterable(held), rules, error)

    async def _rules_of(self, ctx: Context, resource: str, ref: RoleRef) -> Sequence[PolicyRule]:
        try:
            return await self._services.roles.rules_of(ref, ctx.action.namespace)
        except RoleNotFound as error:
            raise not_found(GroupResource(GROUP, resource), error.name) from error
        except ValueError as error:
            raise plain_internal(str(error)) from error

    async def _may_escalate(self, ctx: Context, resource: str) -> bool:
        if (ctx.action.group, ctx.action.resource) != (GROUP, resource):
            return False
        return await self._allowed(ctx, "escalate", resource, ctx.action.name)

    async def _may_bind(self, ctx: Context, ref: RoleRef) -> bool:
        resource = _ROLE_RESOURCES.get(ref.kind)
        return resource is not None and await self._allowed(ctx, "bind", resource, ref.name, group=ref.api_group)

    async def _allowed(self, ctx: Context, verb: str, resource: str, name: str, *, group: str = GROUP) -> bool:
        action = Action(verb, group, "*", resource, namespace=ctx.action.namespace, name=name)
        return (await decide(self._services.authorizer, Attributes(ctx.user, action))).allowed


def only_garbage_collection_changes(new: Any, old: Any) -> bool:
    """Return True if an update changes only owner references and finalizers, as for garbage collection."""
    metadata = {name: getattr(old.metadata, name) for name in _GARBAGE_COLLECTED}
    return bool(msgspec.structs.replace(new, metadata=msgspec.structs.replace(new.metadata, **metadata)) == old)
