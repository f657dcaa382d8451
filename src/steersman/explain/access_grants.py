"""The least role and binding that allow a request, as manifests, verified by the RBAC authorizer."""

from __future__ import annotations

from typing import Any, Final

from steersman.api.meta.v1 import ObjectMeta
from steersman.api.rbac.v1 import (
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from steersman.authentication.user import SERVICE_ACCOUNT_PREFIX, UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.rbac_bindings import GROUP
from steersman.explain.access import Policy, kind_of, resource_of, roles_that_allow, verdict_of
from steersman.explain.commands import kubectl
from steersman.explain.finding import Suggestion
from steersman.machinery.codec.serializer import encode_in_order, to_plain
from steersman.machinery.codec.yaml import from_json
from steersman.machinery.go.strings import to_lower
from steersman.work.patterns import late_pattern

_WITHOUT_NAME: Final = frozenset({"create", "list", "watch", "deletecollection"})
"""Verbs whose requests name no object in a way that a rule could be limited to."""
_NOT_IN_NAMES: Final = late_pattern("[^a-z0-9]+")


async def suggestions_for(policy: Policy, attributes: Attributes) -> tuple[Suggestion, ...]:
    """Return the changes that would allow a request, the least right first."""
    grants = [await least_grant(policy, attributes)]
    smallest = next(iter(roles_that_allow(policy, attributes)), None)
    if smallest is not None:
        grants.append(await _bind(policy, attributes, smallest))
    return tuple(grants)


async def least_grant(policy: Policy, attributes: Attributes) -> Suggestion:
    """Return a role with one rule for the request alone, and its binding, as YAML."""
    namespace, name = attributes.action.namespace, _name_of(attributes)
    rule = least_rule(attributes)
    role: Role | ClusterRole
    if namespace:
        role = Role(metadata=ObjectMeta(name=name, namespace=namespace), rules=[rule])
    else:
        role = ClusterRole(metadata=ObjectMeta(name=name), rules=[rule])
    binding = _binding(role, attributes.user, namespace, name)
    verified = await _is_allowed_with(policy, attributes, role, binding)
    manifest = "---\n".join(from_json(encode_in_order(_manifest(each))).decode() for each in (role, binding))
    text = f"allow it alone: a {kind_of(role)} with one rule, and its {kind_of(binding)}"
    return Suggestion(text, manifest=manifest, verified=verified)


def least_rule(attributes: Attributes) -> PolicyRule:
    """Return the rule that allows a request and nothing else."""
    action = attributes.action
    if attributes.path is not None:
        return PolicyRule(verbs=[action.verb], non_resource_urls=[attributes.path])
    resource = f"{action.resource}/{action.subresource}" if action.subresource else action.resource
    names = [action.name] if action.name and action.verb not in _WITHOUT_NAME else []
    return PolicyRule(verbs=[action.verb], api_groups=[action.group], resources=[resource], resource_names=names)


async def _bind(policy: Policy, attributes: Attributes, role: Role | ClusterRole) -> Suggestion:
    """Return the suggestion to bind an existing role."""
    namespace, user = attributes.action.namespace, attributes.user
    name = f"{_name_of(attributes)}-{_words(role.metadata.name)}"[:63].rstrip("-")
    binding = _binding(role, user, namespace, name)
    account = user.name.removeprefix(SERVICE_ACCOUNT_PREFIX)
    whom = f"--serviceaccount={account}" if account != user.name else f"--user={user.name}"
    kind = "rolebinding" if namespace else "clusterrolebinding"
    of_role = f"--{to_lower(kind_of(role))}={role.metadata.name}"
    line = kubectl("create", kind, name, of_role, whom, namespace=namespace)
    rights = sum(len(each.verbs or ()) for each in role.rules or ())
    text = f"or bind the existing {kind_of(role)} {role.metadata.name}, which allows more ({rights} verbs in its rules)"
    return Suggestion(text, line, verified=await _is_allowed_with(policy, attributes, role, binding))


def _binding(role: Role | ClusterRole, user: UserInfo, namespace: str, name: str) -> RoleBinding | ClusterRoleBinding:
    ref = RoleRef(api_group=GROUP, kind=kind_of(role), name=role.metadata.name)
    subjects = [_subject(user)]
    if namespace:
        return RoleBinding(metadata=ObjectMeta(name=name, namespace=namespace), subjects=subjects, role_ref=ref)
    return ClusterRoleBinding(metadata=ObjectMeta(name=name), subjects=subjects, role_ref=ref)


def _subject(user: UserInfo) -> Subject:
    account = user.name.removeprefix(SERVICE_ACCOUNT_PREFIX)
    if account != user.name and account.count(":") == 1:
        namespace, _, name = account.partition(":")
        return Subject(kind="ServiceAccount", namespace=namespace, name=name)
    return Subject(kind="User", api_group=GROUP, name=user.name)


async def _is_allowed_with(
    policy: Policy, attributes: Attributes, role: Role | ClusterRole, binding: RoleBinding | ClusterRoleBinding
) -> bool:
    """Return True if the authorizer allows the request once the role and the binding exist."""
    changed = Policy(
        [*policy.cluster_roles, *([role] if isinstance(role, ClusterRole) else [])],
        [*policy.cluster_role_bindings, *([binding] if isinstance(binding, ClusterRoleBinding) else [])],
        [*policy.roles, *([role] if isinstance(role, Role) else [])],
        [*policy.role_bindings, *([binding] if isinstance(binding, RoleBinding) else [])],
    )
    return (await verdict_of(changed, attributes)).allowed


def _name_of(attributes: Attributes) -> str:
    action = attributes.action
    what = attributes.path or "-".join(filter(None, (action.resource, action.subresource)))
    return f"{_words(attributes.user.name.rpartition(':')[2])}-{_words(action.verb)}-{_words(what)}"[:60].strip("-")


def _words(text: str) -> str:
    """Return text as part of an object's name."""
    return _NOT_IN_NAMES.sub("-", to_lower(text[:60])).strip("-") or "x"


def _manifest(obj: Role | ClusterRole | RoleBinding | ClusterRoleBinding) -> Any:
    plain = to_plain(obj)
    head = {"apiVersion": resource_of(obj).api_version, "kind": kind_of(obj)}
    metadata = {key: value for key, value in plain.pop("metadata").items() if value}
    plain.pop("kind", None)
    plain.pop("apiVersion", None)
    return {**head, "metadata": metadata, **plain}
