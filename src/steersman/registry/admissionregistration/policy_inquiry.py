"""What is found out before a policy or a binding is validated: what its expressions come to, compiled beside the loop,
and whether its author may read the parameters (`pkg/registry/admissionregistration`, authz.go).

Who may not read objects must not learn from expressions what is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, TypeVar

from steersman.api.admissionregistration.v1 import (
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    ParamKind,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
from steersman.authentication.user import SYSTEM_MASTERS, UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Verdict, decide
from steersman.machinery.errors.field import FieldError, Path, forbidden
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.registry.admissionregistration.bindings_validation import validate_binding
from steersman.registry.admissionregistration.names import name_warnings
from steersman.registry.services import Services
from steersman.rest.allocator import Inquiry
from steersman.rest.context import Context
from steersman.rest.objects import Reading
from steersman.rest.strategy import Strategy
from steersman.work.offloading import offload_if

P = TypeVar("P", bound=ValidatingAdmissionPolicy | MutatingAdmissionPolicy)
B = TypeVar("B", bound=ValidatingAdmissionPolicyBinding | MutatingAdmissionPolicyBinding)

T = TypeVar(
    "T",
    bound=ValidatingAdmissionPolicy
    | MutatingAdmissionPolicy
    | ValidatingAdmissionPolicyBinding
    | MutatingAdmissionPolicyBinding,
)

_ANY: Final = "*"
_GROUP: Final = "admissionregistration.k8s.io"
_PARAM_KIND: Final[Reading[tuple[str, str] | None]] = Reading(
    lambda policy: (
        None if policy.spec.param_kind is None else (policy.spec.param_kind.api_version, policy.spec.param_kind.kind)
    ),
    "spec.paramKind",
)


class JudgedStrategy(Strategy[T], Generic[T]):
    """What policies and bindings have in common: an inquiry has found what is wrong with them."""

    allow_unconditional_update = False

    def validate(self, ctx: Context, obj: T) -> Iterator[FieldError]:
        errors: Sequence[FieldError] = ctx.inquiry_result
        return iter(errors)

    def validate_update(self, ctx: Context, new: T, old: T) -> Iterator[FieldError]:
        return self.validate(ctx, new)

    def warnings_on_create(self, ctx: Context, obj: T) -> Iterator[str]:
        return name_warnings(obj.metadata.name)

    def warnings_on_update(self, ctx: Context, new: T, old: T) -> Iterator[str]:
        return self.warnings_on_create(ctx, new)


class _Rights:
    """Judges whether users may read parameters."""

    def __init__(self, services: Services) -> None:
        self._services: Final = services

    def are_all(self, user: UserInfo) -> bool:
        """Whether nothing is asked of a user."""
        return SYSTEM_MASTERS in user.groups

    def resource_of(self, api_version: str, kind: str) -> tuple[str, str, str] | None:
        """Group, version and plural of a kind, "*" for a plural that is not known; None for what is no version."""
        group, _, version = api_version.rpartition("/")
        if "/" in group:
            return None
        served = self._services.resource_of(GroupVersionKind(group, version, kind))
        return group, version, served or _ANY

    async def may(
        self, user: UserInfo, verb: str, resource: tuple[str, str, str], namespace: str, name: str
    ) -> Verdict:
        """What the authorizer says."""
        group, version, plural = resource
        action = Action(verb=verb, group=group, version=version, resource=plural, namespace=namespace, name=name)
        return await decide(self._services.authorizer, Attributes(user, action))


def _shown(user: UserInfo) -> str:
    """A user as Go prints one."""
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"


class PolicyInquiry(Inquiry[P], Generic[P]):
    """Of a policy of one of both kinds."""

    def __init__(self, services: Services, load: Callable[[], Callable[[P, P | None], Iterator[FieldError]]]) -> None:
        """`load` imports what validates."""
        self._rights: Final = _Rights(services)
        self._load: Final = load

    async def look_up(self, ctx: Context, new: P, old: P | None) -> None:
        errors = await offload_if(True, self._judge, new, old)
        kind = new.spec.param_kind
        is_same = old is not None and old.spec.param_kind == kind
        if not errors and kind is not None and not is_same and (refusal := await self._refusal(ctx.user, kind)):
            errors = [forbidden(Path("spec", "paramKind"), refusal)]
        ctx.inquiry_result = errors

    def _judge(self, new: P, old: P | None) -> list[FieldError]:
        return list(self._load()(new, old))

    async def _refusal(self, user: UserInfo, kind: ParamKind) -> str:
        if self._rights.are_all(user):
            return ""
        resource = self._rights.resource_of(kind.api_version, kind.kind) or (_ANY, _ANY, _ANY)
        verdict = await self._rights.may(user, "get", resource, _ANY, _ANY)
        if verdict.error and not verdict.allowed:
            return verdict.error
        if verdict.allowed:
            return ""
        return (
            f'user {_shown(user)} must have "get" permission on all objects of the referenced paramKind '
            f"(kind={kind.kind}, apiVersion={kind.api_version})"
        )


class BindingInquiry(Inquiry[B], Generic[B]):
    """Of a binding of one of both kinds."""

    def __init__(self, services: Services, policies: str) -> None:
        """`policies` is the plural of what it binds."""
        self._services: Final = services
        self._rights: Final = _Rights(services)
        self._policies: Final = policies

    async def look_up(self, ctx: Context, new: B, old: B | None) -> None:
        errors = list(validate_binding(new))
        # upstream compares references by pointers in them, so that none is the same as before
        if not errors and (refusal := await self._refusal(ctx.user, new)):
            errors = [forbidden(Path("spec", "paramRef"), refusal)]
        ctx.inquiry_result = errors

    async def _refusal(self, user: UserInfo, binding: B) -> str:
        ref = binding.spec.param_ref
        if ref is None or self._rights.are_all(user):
            return ""
        policy = binding.spec.policy_name
        policies = self._services.objects(_GROUP, self._policies)
        unknown = ""
        resource = (_ANY, _ANY, _ANY)
        if not policies.is_cached("", policy):
            await policies.wait_until_current()
        if not policies.is_cached("", policy):
            unknown = f"get policy {policy}"
        elif (kind := policies.read_cached("", policy, _PARAM_KIND)) is not None:
            shown = f"&{{{kind[0]} {kind[1]}}}"
            found = self._rights.resource_of(*kind)
            resource = found or resource
            if found is None:
                unknown = f"parse paramKind {shown}"
            elif resource[2] == _ANY:
                unknown = f"resolve paramKind {shown}"
        verb = "get" if ref.name else "list"
        verdict = await self._rights.may(user, verb, resource, ref.namespace, ref.name)
        if verdict.error and not verdict.allowed:
            return f"failed to authorize request: {verdict.error}"
        if verdict.allowed:
            return ""
        if unknown:
            return (
                f"unable to {unknown} to determine minimum required permissions and user {_shown(user)} does not have "
                f'"{verb}" permission for all groups, versions and resources'
            )
        return f'user {_shown(user)} does not have "{verb}" permission on the object referenced by paramRef'


def validating_policies(services: Services) -> Inquiry[ValidatingAdmissionPolicy]:
    """The inquiry of ValidatingAdmissionPolicies."""

    def load() -> Any:
        from steersman.registry.admissionregistration.policy_validation import validate_validating

        return validate_validating

    return PolicyInquiry(services, load)


def mutating_policies(services: Services) -> Inquiry[MutatingAdmissionPolicy]:
    """The inquiry of MutatingAdmissionPolicies."""

    def load() -> Any:
        from steersman.registry.admissionregistration.policy_validation import validate_mutating

        return validate_mutating

    return PolicyInquiry(services, load)


def validating_bindings(services: Services) -> Inquiry[ValidatingAdmissionPolicyBinding]:
    """The inquiry of ValidatingAdmissionPolicyBindings."""
    return BindingInquiry(services, "validatingadmissionpolicies")


def mutating_bindings(services: Services) -> Inquiry[MutatingAdmissionPolicyBinding]:
    """The inquiry of MutatingAdmissionPolicyBindings."""
    return BindingInquiry(services, "mutatingadmissionpolicies")
