"""The strategy, inquiry and columns that RoleBindings and ClusterRoleBindings share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from steersman.api.rbac.v1 import ClusterRoleBinding, RoleBinding, Subject
from steersman.machinery.errors.field import FieldError
from steersman.registry.rbac.escalation import EscalationCheck, only_garbage_collection_changes
from steersman.registry.rbac.validation import default_binding, validate_binding, validate_role_ref_update
from steersman.registry.services import Services
from steersman.rest.allocator import Inquiry
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column
from steersman.rest.strategy import Strategy

Binding = RoleBinding | ClusterRoleBinding


class BindingInquiry(Inquiry[Any]):
    """The escalation check of bindings. `resource` is the plural of the kind.

    A user who binds a role must hold its permissions, or the permission to bind the role.
    """

    def __init__(self, resource: str, services: Services) -> None:
        self._resource = resource
        self._check = EscalationCheck(services)

    async def look_up(self, ctx: Context, new: Binding, old: Binding | None) -> None:
        if old is None or not only_garbage_collection_changes(new, old):
            await self._check.confirm_binding(ctx, self._resource, new.metadata.name, new.role_ref)


class BindingStrategy(Strategy[Any]):
    allow_create_on_update = True

    def __init__(self, *, namespaced: bool) -> None:
        self._namespaced = namespaced

    def validate(self, ctx: Context, obj: Binding) -> Iterator[FieldError]:
        return validate_binding(obj.role_ref, obj.subjects, namespaced=self._namespaced)

    def validate_update(self, ctx: Context, new: Binding, old: Binding) -> Iterator[FieldError]:
        yield from self.validate(ctx, new)
        yield from validate_role_ref_update(new.role_ref, old.role_ref)


def set_binding_defaults(binding: Binding) -> None:
    """Fill in the API groups of the role, users and groups."""
    default_binding(binding.role_ref, binding.subjects)


def _named(subjects: Sequence[Subject], kind: str) -> str:
    return ", ".join(subject.name for subject in subjects if subject.kind == kind)


def _service_accounts(subjects: Sequence[Subject]) -> str:
    return ", ".join(f"{each.namespace}/{each.name}" for each in subjects if each.kind == "ServiceAccount")


def binding_columns(binding: str) -> tuple[Column, ...]:
    """Return the columns; `binding` names the kind in their descriptions."""
    return (
        Column("Role", lambda b: f"{b.role_ref.kind}/{b.role_ref.name}"),
        AGE,
        Column("Users", lambda b: _named(b.subjects, "User"), priority=1, description=f"Users in the {binding}"),
        Column("Groups", lambda b: _named(b.subjects, "Group"), priority=1, description=f"Groups in the {binding}"),
        Column(
            "ServiceAccounts",
            lambda b: _service_accounts(b.subjects),
            priority=1,
            description=f"ServiceAccounts in the {binding}",
        ),
    )
