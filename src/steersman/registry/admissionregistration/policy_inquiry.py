"""Inquiries before the validation of policies and bindings.

Expressions are compiled in a worker thread. The request user must be allowed to read the parameters
(`pkg/registry/admissionregistration`, authz.go): otherwise a user without access to objects could learn their content
through expressions.
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


class InquiryStrategy(Strategy[T], Generic[T]):
    """The base of the strategies of policies and bindings, whose errors an Inquiry has found."""

    allow_unconditional_update = False
    bumps_generation_on = ("spec",)

    def validate(self, ctx: Context, obj: T) -> Iterator[FieldError]:
        errors: Sequence[FieldError] = ctx.inquiry_result
        return iter(errors)

    def validate_update(self, ctx: Context, new: T, old: T) -> Iterator[FieldError]:
        return self.validate(ctx, new)

    def warnings(self, ctx: Context, obj: T) -> Iterator[str]:
        return name_warnings(obj.metadata.name)


class _ParamAuthorization:
    """Authorization of users to read parameters."""

    def __init__(self, services: Services) -> None:
        self._services: Final = services

    def is_exempt(self, user: UserInfo) -> bool:
        """Return True if the user needs no authorization."""
        return SYSTEM_MASTERS in user.groups

    def resource_of(self, api_version: str, kind: str) -> tuple[str, str, str] | None:
        """Return group, version and plural of a kind; "*" for an unknown plural, None for an invalid apiVersion."""
        group, _, version = api_version.rpartition("/")
        if "/" in group:
            return None
        served = self._services.resource_of(GroupVersionKind(group, version, kind))
        return group, version, served or _ANY

    async def authorize(
        self, user: UserInfo, verb: str, resource: tuple[str, str, str], namespace: str, name: str
    ) -> Verdict:
        """Return the authorizer's verdict."""
        group, version, plural = resource
        action = Action(verb=verb, group=group, version=version, resource=plural, namespace=namespace, name=name)
        return await decide(self._services.authorizer, Attributes(user, action))


def _message_form(user: UserInfo) -> str:
    """Return a user in the form in which Go prints it."""
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"


class PolicyInquiry(Inquiry[P], Generic[P]):
    """The Inquiry for policies of either kind."""

    def __init__(self, services: Services, load: Callable[[], Callable[[P, P | None], Iterator[FieldError]]]) -> None:
        """Create the inquiry; `load` imports the validation."""
        self._authorization: Final = _ParamAuthorization(services)
        self._load: Final = load

    async def look_up(self, ctx: Context, new: P, old: P | None) -> None:
        errors = await offload_if(True, self._validate, new, old)
        kind = new.spec.param_kind
        is_same = old is not None and old.spec.param_kind == kind
        if not errors and kind is not None and not is_same and (refusal := await self._refusal(ctx.user, kind)):
            errors = [forbidden(Path("spec", "paramKind"), refusal)]
        ctx.inquiry_result = errors

    def _validate(self, new: P, old: P | None) -> list[FieldError]:
        return list(self._load()(new, old))

    async def _refusal(self, user: UserInfo, kind: ParamKind) -> str:
        if self._authorization.is_exempt(user):
            return ""
        resource = self._authorization.resource_of(kind.api_version, kind.kind) or (_ANY, _ANY, _ANY)
        verdict = await self._authorization.authorize(user, "get", resource, _ANY, _ANY)
        if verdict.error and not verdict.allowed:
            return verdict.error
        if verdict.allowed:
            return ""
        return (
            f'user {_message_form(user)} must have "get" permission on all objects of the referenced paramKind '
            f"(kind={kind.kind}, apiVersion={kind.api_version})"
        )


class BindingInquiry(Inquiry[B], Generic[B]):
    """The Inquiry for bindings of either kind."""

    def __init__(self, services: Services, policies: str) -> None:
        """Create the inquiry; `policies` is the plural of the bound policies."""
        self._services: Final = services
        self._authorization: Final = _ParamAuthorization(services)
        self._policies: Final = policies

    async def look_up(self, ctx: Context, new: B, old: B | None) -> None:
        errors = list(validate_binding(new))
        # Upstream compares references by the pointers in them, so no reference equals the old one.
        if not errors and (refusal := await self._refusal(ctx.user, new)):
            errors = [forbidden(Path("spec", "paramRef"), refusal)]
        ctx.inquiry_result = errors

    async def _refusal(self, user: UserInfo, binding: B) -> str:
        ref = binding.spec.param_ref
        if ref is None or self._authorization.is_exempt(user):
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
            found = self._authorization.resource_of(*kind)
            resource = found or resource
            if found is None:
                unknown = f"parse paramKind {shown}"
            elif resource[2] == _ANY:
                unknown = f"resolve paramKind {shown}"
        verb = "get" if ref.name else "list"
        verdict = await self._authorization.authorize(user, verb, resource, ref.namespace, ref.name)
        if verdict.error and not verdict.allowed:
            return f"failed to authorize request: {verdict.error}"
        if verdict.allowed:
            return ""
        if unknown:
            return (
                f"unable to {unknown} to determine minimum required permissions and user {_message_form(user)} does not have "
                f'"{verb}" permission for all groups, versions and resources'
            )
        return f'user {_message_form(user)} does not have "{verb}" permission on the object referenced by paramRef'


def validating_policies(services: Services) -> Inquiry[ValidatingAdmissionPolicy]:
    """Return the inquiry for ValidatingAdmissionPolicies."""

    def load() -> Any:
        from steersman.registry.admissionregistration.policy_validation import validate_validating

        return validate_validating

    return PolicyInquiry(services, load)


def mutating_policies(services: Services) -> Inquiry[MutatingAdmissionPolicy]:
    """Return the inquiry for MutatingAdmissionPolicies."""

    def load() -> Any:
        from steersman.registry.admissionregistration.policy_validation import validate_mutating

        return validate_mutating

    return PolicyInquiry(services, load)


def validating_bindings(services: Services) -> Inquiry[ValidatingAdmissionPolicyBinding]:
    """Return the inquiry for ValidatingAdmissionPolicyBindings."""
    return BindingInquiry(services, "validatingadmissionpolicies")


def mutating_bindings(services: Services) -> Inquiry[MutatingAdmissionPolicyBinding]:
    """Return the inquiry for MutatingAdmissionPolicyBindings."""
    return BindingInquiry(services, "mutatingadmissionpolicies")
