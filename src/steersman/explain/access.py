"""Rights: the binding and rule that allow a request, or the near misses and the least role that would allow it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from steersman.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject
from steersman.authentication.user import SERVICE_ACCOUNT_PREFIX, SYSTEM_MASTERS, UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Verdict
from steersman.authorization.rbac import RbacAuthorizer, allowed_names
from steersman.authorization.rbac_bindings import Binding, RoleRules
from steersman.client.api_resource import APIResource
from steersman.client.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from steersman.explain.finding import Evidence, Finding, at_field, error, note, reference, warning
from steersman.explain.world import World
from steersman.machinery.identity.action import Action
from steersman.machinery.suggestions import did_you_mean

_MOST: Final = 5
"""Most findings of one kind."""
_ANY: Final = "*"


class Grant(NamedTuple):
    """A rule that a binding gives to a user; `number` is its position in the role."""

    binding: RoleBinding | ClusterRoleBinding
    role: Role | ClusterRole
    number: int
    rule: PolicyRule

    @property
    def names(self) -> tuple[str, str]:
        """Return binding and role as `kind name`."""
        role = f"{self.binding.role_ref.kind} {self.role.metadata.name}"
        return f"{kind_of(self.binding)} {self.binding.metadata.name}", role

    def evidence(self) -> tuple[Evidence, Evidence]:
        """Return evidence from the rule, and from the subjects of the binding."""
        of_role = reference(resource_of(self.role), self.role)
        of_binding = reference(resource_of(self.binding), self.binding)
        return (
            at_field(of_role, f".rules[{self.number}]", self.rule),
            at_field(of_binding, ".subjects", [subject_text(each) for each in self.binding.subjects[:_MOST]]),
        )


def kind_of(obj: Role | ClusterRole | RoleBinding | ClusterRoleBinding) -> str:
    """Return the kind of an object of RBAC."""
    return type(obj).__name__


def resource_of(obj: Role | ClusterRole | RoleBinding | ClusterRoleBinding) -> APIResource[Any]:
    """Return the resource of an object of RBAC."""
    found: dict[type, APIResource[Any]] = {
        Role: ROLES,
        ClusterRole: CLUSTER_ROLES,
        RoleBinding: ROLE_BINDINGS,
        ClusterRoleBinding: CLUSTER_ROLE_BINDINGS,
    }
    return found[type(obj)]


def subject_text(subject: Subject) -> str:
    """Return a subject as `Kind name`, with the namespace of a service account."""
    name = f"{subject.namespace}/{subject.name}" if subject.kind == "ServiceAccount" else subject.name
    return f"{subject.kind} {name}"


class Policy(Struct):
    """Roles and bindings of a cluster, as far as they concern one namespace and the others' bindings."""

    cluster_roles: Sequence[ClusterRole]
    cluster_role_bindings: Sequence[ClusterRoleBinding]
    roles: Sequence[Role]
    role_bindings: Sequence[RoleBinding]

    @property
    def every_role(self) -> Sequence[Role | ClusterRole]:
        """Return all roles, cluster-wide ones first."""
        return [*self.cluster_roles, *self.roles]

    @property
    def bindings(self) -> Sequence[RoleBinding | ClusterRoleBinding]:
        """Return all bindings, cluster-wide ones first."""
        return [*self.cluster_role_bindings, *self.role_bindings]

    def role_of(self, binding: RoleBinding | ClusterRoleBinding) -> Role | ClusterRole | None:
        """Return the role that a binding refers to, None if it does not exist."""
        ref = binding.role_ref
        if ref.kind == "ClusterRole":
            return next((each for each in self.cluster_roles if each.metadata.name == ref.name), None)
        place = binding.metadata.namespace, ref.name
        return next((each for each in self.roles if (each.metadata.namespace, each.metadata.name) == place), None)

    def bindings_of(self, user: UserInfo) -> Iterator[RoleBinding | ClusterRoleBinding]:
        """Yield the bindings of a user or its groups, in all namespaces."""
        keys = {("User", user.name), *(("Group", each) for each in user.groups)}
        for each in self.bindings:
            if not keys.isdisjoint(_parsed(each).keys):
                yield each

    def authorizer(self) -> RbacAuthorizer:
        """Return the server's RBAC authorizer with these roles and bindings."""
        rbac_authorizer = RbacAuthorizer()
        for role in self.every_role:
            rbac_authorizer.put_role(role.metadata.namespace, role.metadata.name, RoleRules(role.rules or ()))
        for binding in self.bindings:
            rbac_authorizer.put_binding(binding.metadata.namespace, binding.metadata.name, _parsed(binding))
        return rbac_authorizer


def _parsed(binding: RoleBinding | ClusterRoleBinding) -> Binding:
    return Binding(binding.metadata.namespace, binding.metadata.name, binding.role_ref, binding.subjects)


async def read_policy(world: World) -> Policy:
    """Return the roles and bindings of a cluster. Raises Unreadable."""
    return Policy(
        await world.list(CLUSTER_ROLES),
        await world.list(CLUSTER_ROLE_BINDINGS),
        await world.list(ROLES),
        await world.list(ROLE_BINDINGS),
    )


async def verdict_of(policy: Policy, attributes: Attributes) -> Verdict:
    """Return the RBAC authorizer's verdict on a request."""
    verdict = policy.authorizer().authorize(attributes)
    return verdict if isinstance(verdict, Verdict) else await verdict


def grants_of(policy: Policy, user: UserInfo, namespace: str) -> Iterator[Grant]:
    """Yield the rules that a user has in a namespace ("" for the whole cluster)."""
    for binding in policy.bindings_of(user):
        if binding.metadata.namespace in ("", namespace):
            yield from _rules_of(policy, binding)


def _rules_of(policy: Policy, binding: RoleBinding | ClusterRoleBinding) -> Iterator[Grant]:
    role = policy.role_of(binding)
    for number, rule in enumerate((role.rules if role is not None else None) or ()):
        assert role is not None
        yield Grant(binding, role, number, rule)


def allows(rule: PolicyRule, attributes: Attributes) -> bool:
    """Return True if a rule alone allows a request, by the authorizer's own matching."""
    found = allowed_names(RoleRules((rule,)), attributes)
    return any(names is None or attributes.action.name in names for names in found)


def allowing(policy: Policy, attributes: Attributes) -> list[Finding]:
    """Return a finding for each binding and rule that allow a request."""
    findings: list[Finding] = []
    if SYSTEM_MASTERS in attributes.user.groups:
        text = f"the group {SYSTEM_MASTERS} may do everything, whatever roles and bindings say"
        findings.append(note("PrivilegedGroup", text))
    matching = [each for each in _in_reach(policy, attributes) if allows(each.rule, attributes)]
    for each in matching[:_MOST]:
        binding, role = each.names
        findings.append(note("AllowedBy", f"{binding} of {role} allows it (rule {each.number})", *each.evidence()))
    if len(matching) > _MOST:
        findings.append(note("AllowedByMore", f"{len(matching) - _MOST} more rules allow it"))
    return findings


def _in_reach(policy: Policy, attributes: Attributes) -> Iterator[Grant]:
    yield from grants_of(policy, attributes.user, attributes.action.namespace)


def near_misses(policy: Policy, attributes: Attributes) -> list[Finding]:
    """Return findings about rules and bindings of a user that would allow a request but for one part of it."""
    findings: list[Finding] = []
    for grant in _in_reach(policy, attributes):
        part = _only_differs_in(grant.rule, attributes)
        if part:
            binding, role = grant.names
            text = f"{binding} of {role} would allow it (rule {grant.number}), but {part}"
            findings.append(warning("NearMiss", text, *grant.evidence()))
    return [
        *findings[:_MOST],
        *_in_other_namespaces(policy, attributes)[:_MOST],
        *_missing_roles(policy, attributes)[:_MOST],
        *_similar_subjects(policy, attributes)[:_MOST],
    ]


def _only_differs_in(rule: PolicyRule, wanted: Attributes) -> str:
    """Return the one part of a request that a rule does not allow, "" if it allows it or differs in more parts."""
    if allows(rule, wanted):
        return ""
    action = wanted.action
    if wanted.path is not None:
        verbs = [each for each in rule.verbs or () if allows(rule, _with(wanted, verb=each))]
        return f"its verbs are {', '.join(verbs)}, not {action.verb}" if verbs else ""
    for verb in rule.verbs or ():
        if verb != action.verb and allows(rule, _with(wanted, verb=verb)):
            return f"its verbs are {', '.join((rule.verbs or ())[:10])}, not {action.verb}"
    for name in rule.resource_names:
        if allows(rule, _with(wanted, name=name)):
            shown = ", ".join(rule.resource_names[:_MOST])
            return f"it is limited to the names {shown}" + (f", not {action.name}" if action.name else "")
    for resource in rule.resources:
        plain, _, subresource = resource.partition("/")
        is_near = plain == action.resource or did_you_mean(action.resource, [plain])
        if is_near and allows(rule, _with(wanted, resource=plain, subresource=subresource)):
            asked = f"{action.resource}/{action.subresource}" if action.subresource else action.resource
            return f"its resource is {resource}, not {asked}"
    for group in rule.api_groups:
        if group != action.group and allows(rule, _with(wanted, group=group)):
            return f"its API group is {group or 'core'}, not {action.group or 'core'}"
    return ""


def _with(wanted: Attributes, **changes: str) -> Attributes:
    action = wanted.action
    parts = {
        "verb": action.verb,
        "group": action.group,
        "version": action.version,
        "resource": action.resource,
        "subresource": action.subresource,
        "namespace": action.namespace,
        "name": action.name,
    }
    return Attributes(wanted.user, Action(**{**parts, **changes}), wanted.path)


def _in_other_namespaces(policy: Policy, attributes: Attributes) -> list[Finding]:
    """Return findings about RoleBindings of other namespaces that allow the request there."""
    in_other_namespaces = []
    for binding in policy.bindings_of(attributes.user):
        namespace = binding.metadata.namespace
        if not namespace or namespace == attributes.action.namespace or attributes.path is not None:
            continue
        for grant in _rules_of(policy, binding):
            if allows(grant.rule, attributes):
                where = attributes.action.namespace
                asked = f"not in {where}" if where else "not for all namespaces or cluster-scoped objects"
                text = f"{grant.names[0]} of {grant.names[1]} allows it in namespace {namespace}, {asked}"
                in_other_namespaces.append(warning("OtherNamespace", text, *grant.evidence()))
                break
    return in_other_namespaces


def _missing_roles(policy: Policy, attributes: Attributes) -> list[Finding]:
    missing_roles = []
    for binding in policy.bindings_of(attributes.user):
        if binding.metadata.namespace in ("", attributes.action.namespace) and policy.role_of(binding) is None:
            ref, subject = binding.role_ref, reference(resource_of(binding), binding)
            known = [each.metadata.name for each in policy.every_role]
            text = (
                f"{kind_of(binding)} {binding.metadata.name} refers to {ref.kind} {ref.name}, which does not exist"
                f"{did_you_mean(ref.name, known)}"
            )
            missing_roles.append(error("RoleMissing", text, at_field(subject, ".roleRef", ref)))
    return missing_roles


def _similar_subjects(policy: Policy, attributes: Attributes) -> list[Finding]:
    """Return findings about bindings that would allow the request to a subject of nearly the user's name."""
    similar_subjects = []
    user, action = attributes.user, attributes.action
    for binding in policy.bindings:
        if binding.metadata.namespace not in ("", action.namespace):
            continue
        near = next((each for each in binding.subjects if _is_similar(each, user)), None)
        if near is None or not any(allows(each.rule, attributes) for each in _rules_of(policy, binding)):
            continue
        subject = reference(resource_of(binding), binding)
        text = f"{kind_of(binding)} {binding.metadata.name} allows it to {subject_text(near)}, not to {user_text(user)}"
        similar_subjects.append(warning("SimilarSubject", text, at_field(subject, ".subjects", near)))
    return similar_subjects


def _is_similar(subject: Subject, user: UserInfo) -> bool:
    """Return True for a subject of another kind or spelling than the user that has nearly its name."""
    account = user.name.removeprefix(SERVICE_ACCOUNT_PREFIX)
    if account != user.name:
        namespace, _, name = account.partition(":")
        if subject.kind == "ServiceAccount":
            return subject.name == name and subject.namespace != namespace
        return subject.kind == "User" and subject.name in (name, account, f"{namespace}/{name}")
    if subject.kind == "User":
        return subject.name != user.name and bool(did_you_mean(user.name, [subject.name]))
    return subject.name == user.name


def user_text(user: UserInfo) -> str:
    """Return the user's kind and name, as subjects are printed."""
    account = user.name.removeprefix(SERVICE_ACCOUNT_PREFIX)
    return f"ServiceAccount {account.replace(':', '/', 1)}" if account != user.name else f"User {user.name}"


def roles_that_allow(policy: Policy, attributes: Attributes) -> list[Role | ClusterRole]:
    """Return the existing roles of which a binding would allow the request, the smallest first."""
    namespace = attributes.action.namespace
    candidates: Iterable[Role | ClusterRole] = (
        *policy.cluster_roles,
        *(each for each in policy.roles if namespace and each.metadata.namespace == namespace),
    )
    allowing_roles = [each for each in candidates if any(allows(rule, attributes) for rule in each.rules or ())]
    return sorted(allowing_roles, key=lambda each: (each.metadata.name.startswith("system:"), _size(each)))


def _size(role: Role | ClusterRole) -> int:
    """Return a measure of the rights in a role; a wildcard counts as many."""
    total = 0
    for rule in role.rules or ():
        sizes = [
            1000 if _ANY in values else len(values)
            for values in (rule.verbs or [], rule.resources or rule.non_resource_urls, rule.api_groups or [""])
        ]
        total += sizes[0] * sizes[1] * sizes[2]
    return total
