"""RBAC authorizer: allows the actions of the roles that are bound to a user or its groups
(rbac.authorization.k8s.io/v1).

The index receives every role and binding and answers from memory. It finds a user's bindings by the user's name and
groups, so that the total number of bindings does not slow a decision down. Results are cached until the next change.
Users with many bindings or large roles are evaluated in worker threads.
"""

from __future__ import annotations

from asyncio import Event
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from msgspec import Struct

from steersman.api.rbac.v1 import PolicyRule, RoleRef
from steersman.authentication.aggregate import aggregate
from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, ResolvedRules, Verdict
from steersman.authorization.rbac_bindings import (
    GROUP,
    Binding,
    Bindings,
    Grant,
    Role,
    RoleNotFound,
    RoleRules,
    UserBindings,
    role_error,
    values_of,
)
from steersman.authorization.rule_index import Names
from steersman.machinery.large_work.sizes import MAX_VALUES
from steersman.work.bounded_cache import BoundedCache
from steersman.work.offloading import offload_if
from steersman.work.yielding import time_sliced

__all__ = ("GROUP", "RbacAuthorizer", "RoleNotFound", "allowed_names")

T = TypeVar("T")

_MAX_KEY: Final = 512
"""Limit of a cached key in characters."""
_MAX_REMEMBERED: Final = 32_768
"""Limit of the total weight of cached judgements; an ordinary judgement weighs 1.

If the limit is exceeded, all are dropped, since recomputing one takes microseconds.
"""
_MANY_GROUPS: Final = 2_000
"""Number of groups whose bindings are looked up in one time slice."""
_FEW_BINDINGS: Final = 100
"""Limit of a user's bindings for evaluation on the event loop."""
_FEW_VALUES: Final = 4_000
"""Limit of the values in a user's roles for evaluation on the event loop: some 5 ms for the first request."""
_MAX_ERRORS: Final = 64 << 10
"""Limit of error texts in a verdict, in characters."""
_MAX_LISTED: Final = 4 << 20
"""Limit of listed rules in characters; their values are limited by MAX_VALUES."""
_TOO_MANY_RULES: Final = (
    f"rbac authorizer does not list rules of more than {MAX_VALUES} values or {_MAX_LISTED} characters"
)

_NO_OPINION: Final = Verdict(Decision.NO_OPINION)

_ALLOWED_BY: Final = "RBAC: allowed by "

_Key = tuple[str | tuple[str, ...], ...]


class _Allowance(Struct, frozen=True):
    """The object names for which a grant allows a kind of request; None for all names."""

    names: Names
    verdict: Verdict
    grant: Grant


class _Judgement(Struct, frozen=True):
    """Cached result for one kind of request: the allowances, and the verdict for objects without an allowance."""

    allowances: tuple[_Allowance, ...]
    refusal: Verdict

    def allowance(self, name: str) -> _Allowance | None:
        """Return the first allowance that covers an object name, or None."""
        for allowance in self.allowances:
            if allowance.names is None or name in allowance.names:
                return allowance
        return None

    @property
    def weight(self) -> int:
        """Memory usage in units of an ordinary judgement."""
        names = sum(1 + len(each.names or ()) // 8 for each in self.allowances)
        return 1 + names // 2 + len(self.refusal.reason) // 512


class RbacAuthorizer:
    """RBAC authorizer. The `set_` and `put_` methods keep its roles and bindings current (None: deleted).

    A request is evaluated on the event loop if its user has at most `few_bindings` bindings, whose roles have at most
    `few_values` values.
    """

    def __init__(self, *, few_bindings: int = _FEW_BINDINGS, few_values: int = _FEW_VALUES) -> None:
        self._few_bindings = few_bindings
        self._few_values = few_values
        self._roles: dict[tuple[str, str], Role] = {}
        self._bindings: dict[tuple[str, str], Binding] = {}
        self._by_namespace: dict[str, Bindings] = {}
        self.judgements: BoundedCache[_Key, _Judgement] = BoundedCache(_MAX_REMEMBERED, _MAX_REMEMBERED)
        """Cached judgements of users' requests."""
        self._generation = 0
        """Counter that every change increments."""

    # Updates

    def put_role(self, namespace: str, name: str, rules: RoleRules | None, unparsed: Event | None = None) -> None:
        """Set a role; `namespace` is "" for a ClusterRole.

        `unparsed` is given if a newer version of the role exists but is not parsed yet; the event is set when it is.
        """
        role = self._role(namespace, name)
        role.rules = rules
        role.unparsed = unparsed
        self._release(namespace, name, role)
        self._forget()

    def put_binding(self, namespace: str, name: str, binding: Binding | None, unparsed: Event | None = None) -> None:
        """Set a binding. See `put_role` for `unparsed`."""
        bindings = self._by_namespace.setdefault(namespace, Bindings())
        previous = self._bindings.pop((namespace, name), None)
        if previous is not None:
            previous.counts = False
            bindings.remove(previous)
            self._refer(previous, -1)
        if binding is not None:
            binding.unparsed = unparsed
            self._bindings[namespace, name] = binding
            self._refer(binding, 1)
            bindings.add(binding)
        if unparsed is None:
            bindings.unparsed.pop(name, None)
        else:
            bindings.unparsed[name] = unparsed
        if not bindings:
            del self._by_namespace[namespace]
        self._forget()

    def mark_role_unparsed(self, namespace: str, name: str, unparsed: Event) -> None:
        """Mark a role as changed: it grants nothing until the new version is parsed and `unparsed` is set."""
        self._role(namespace, name).unparsed = unparsed
        self._forget()

    def mark_binding_unparsed(self, namespace: str, name: str, unparsed: Event) -> None:
        """Mark a binding as changed: it grants nothing until the new version is parsed and `unparsed` is set."""
        self._by_namespace.setdefault(namespace, Bindings()).unparsed[name] = unparsed
        binding = self._bindings.get((namespace, name))
        if binding is not None:
            binding.unparsed = unparsed
        self._forget()

    def _role(self, namespace: str, name: str) -> Role:
        return self._roles.setdefault((namespace, name), Role())

    def _release(self, namespace: str, name: str, role: Role) -> None:
        """Remove the entry of a role that does not exist and has no bindings."""
        if role.rules is None and role.unparsed is None and not role.bindings:
            del self._roles[namespace, name]

    def _refer(self, binding: Binding, change: int) -> None:
        ref = binding.role_ref
        if ref.kind != "ClusterRole" and (ref.kind != "Role" or not binding.namespace):
            return
        namespace = binding.namespace if ref.kind == "Role" else ""
        binding.role = role = self._role(namespace, ref.name)
        role.bindings += change
        self._release(namespace, ref.name, role)

    def _forget(self) -> None:
        self._generation += 1
        self.judgements.forget()

    # Decisions

    def authorize(self, attributes: Attributes) -> Verdict | Awaitable[Verdict]:
        """Return the verdict from roles and bindings: allowed, or no opinion.

        Returns an awaitable if the user's grants are so many that a worker thread evaluates them.
        """
        user, action, path = attributes.user, attributes.action, attributes.path
        if path is None:
            key: _Key = (
                action.namespace,
                user.name,
                user.groups,
                action.verb,
                action.group,
                action.resource,
                action.subresource,
            )
        else:
            key = (action.namespace, user.name, user.groups, action.verb, path)
        judgement = self.judgements[key]
        if judgement is None:
            grants = self._few_grants(user, action.namespace)
            if grants is None:
                return self._decide_offloaded(key, attributes)
            judgement = evaluate(grants, attributes)
            self._remember(key, judgement)
        for allowance in judgement.allowances:
            if allowance.names is None or action.name in allowance.names:
                return allowance.verdict
        return judgement.refusal

    async def _decide_offloaded(self, key: _Key, attributes: Attributes) -> Verdict:
        """Decide with offloaded work, for many bindings, large roles, or bindings and roles that are not parsed yet.

        A right that is revoked meanwhile does not count. The method waits for unparsed bindings and roles only if
        nothing else allows the request.
        """

        def judged(grants: Iterable[Grant]) -> _Judgement:
            return evaluate(grants, attributes)

        while True:
            generation = self._generation
            held = await self._all_bindings_of(attributes.user, attributes.action.namespace)
            judgement, unparsed = await offload_if(True, _find_parsed, held, judged)
            allowance = judgement.allowance(attributes.action.name)
            if allowance is None and unparsed:
                await _wait_for_all(unparsed)
                held = await self._all_bindings_of(attributes.user, attributes.action.namespace)
                judgement = await offload_if(True, lambda held: judged(held.grants()), held)
                allowance = judgement.allowance(attributes.action.name)
            elif generation == self._generation and not unparsed:
                self._remember(key, judgement)
            if allowance is None:
                return judgement.refusal
            if allowance.grant.holds():
                return allowance.verdict

    def _remember(self, key: _Key, judgement: _Judgement) -> None:
        if sum(map(len, key)) > _MAX_KEY:  # client-supplied URLs must not fill the memory
            return
        self.judgements.keep(key, judgement, judgement.weight)

    def _bindings_of(self, user: UserInfo, namespace: str) -> UserBindings:
        held = self._no_bindings(namespace)
        held.find([("User", user.name), *(("Group", group) for group in user.groups)])
        return held

    async def _all_bindings_of(self, user: UserInfo, namespace: str) -> UserBindings:
        """Return the bindings of a user with any number of groups, in time slices; reviews may name tens of
        thousands.
        """
        if len(user.groups) <= _MANY_GROUPS:
            return self._bindings_of(user, namespace)
        held = self._no_bindings(namespace)
        held.find([("User", user.name)])
        async for start in time_sliced(range(0, len(user.groups), _MANY_GROUPS)):
            held.find([("Group", group) for group in islice(user.groups, start, start + _MANY_GROUPS)])
        return held

    def _no_bindings(self, namespace: str) -> UserBindings:
        cluster = self._by_namespace.get("")
        return UserBindings((cluster, self._by_namespace.get(namespace)) if namespace else (cluster,))

    def _few_grants(self, user: UserInfo, namespace: str) -> list[Grant] | None:
        """Return the grants of a user if all are parsed and there are few; otherwise None."""
        if len(user.groups) > _MANY_GROUPS:
            return None
        held = self._bindings_of(user, namespace)
        if held.unparsed or held.effort > self._few_bindings:
            return None
        grants = list(held.grants())
        values = 0
        for grant in grants:
            if grant.unparsed is not None:
                return None
            if grant.rules is not None:
                values += grant.rules.values
        return grants if values <= self._few_values else None

    # Listing

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        """Return the rules of a user in a namespace ("" for cluster-wide rules only), see RuleResolver."""
        return await self._search(user, namespace, list_rules)

    async def rule_behind(self, attributes: Attributes, reason: str) -> tuple[int, PolicyRule] | None:
        """Return the rule for which a request was allowed with `reason`, and its position in the role.

        Returns None for a reason of another authorizer, and if the user no longer has the right by that binding.
        """
        if not reason.startswith(_ALLOWED_BY):
            return None
        return await self._search(
            attributes.user, attributes.action.namespace, lambda grants: _rule_behind(grants, attributes, reason)
        )

    async def policy_rules_for(self, user: UserInfo, namespace: str) -> tuple[list[tuple[PolicyRule, ...]], str]:
        """Return the rules of every role that is bound to `user` in `namespace`, and the text of errors."""
        return await self._search(user, namespace, _roles_of)

    async def _search(self, user: UserInfo, namespace: str, find: Callable[[Iterable[Grant]], T]) -> T:
        """Return the result of `find` for the grants of a user, after all of them have been parsed."""
        grants = self._few_grants(user, namespace)
        if grants is not None:
            return find(grants)
        found, unparsed = await offload_if(True, _find_parsed, await self._all_bindings_of(user, namespace), find)
        if unparsed:
            await _wait_for_all(unparsed)
            found = await offload_if(
                True, lambda held: find(held.grants()), await self._all_bindings_of(user, namespace)
            )
        return found

    async def rules_of(self, role_ref: RoleRef, namespace: str) -> tuple[PolicyRule, ...]:
        """Return the rules of the role that a binding in `namespace` ("" for a ClusterRoleBinding) refers to.

        Raises RoleNotFound, and ValueError for a reference to another kind.
        """
        key = ("", role_ref.name) if role_ref.kind == "ClusterRole" else (namespace, role_ref.name)
        role = self._roles.get(key)
        if role is not None and role.unparsed is not None:
            await role.unparsed.wait()
            role = self._roles.get(key)
        known = role_ref.kind == "ClusterRole" or (role_ref.kind == "Role" and namespace)
        if not known or role is None or role.rules is None:
            raise role_error(role_ref)
        return role.rules.rules


def _find_parsed(held: UserBindings, find: Callable[[Iterable[Grant]], T]) -> tuple[T, list[Event]]:
    """Return the result of `find` for the parsed grants, and the events that will be set when the others are parsed."""
    unparsed = list(held.unparsed)

    def read() -> Iterator[Grant]:
        for grant in held.grants():
            if (until := grant.unparsed) is None:
                yield grant
            else:
                unparsed.append(until)

    return find(read()), unparsed


async def _wait_for_all(events: Iterable[Event]) -> None:
    for event in events:
        await event.wait()


def evaluate(grants: Iterable[Grant], attributes: Attributes) -> _Judgement:
    """Evaluate a user's grants for one kind of request, cluster-wide grants first."""
    allowances: list[_Allowance] = []
    without_rules: list[Grant] = []
    for grant in grants:
        if grant.rules is None:
            without_rules.append(grant)
            continue
        verdict = None
        for names in allowed_names(grant.rules, attributes):
            if verdict is None:
                verdict = Verdict(Decision.ALLOW, _reason_of(grant))
            allowances.append(_Allowance(names, verdict, grant))
            if names is None:  # further grants cannot matter
                return _Judgement(tuple(allowances), _NO_OPINION)
    error = _error_of(without_rules)
    refusal = Verdict(Decision.NO_OPINION, f"RBAC: {error}") if error else _NO_OPINION
    return _Judgement(tuple(allowances), refusal)


def _reason_of(grant: Grant) -> str:
    return f"{_ALLOWED_BY}{grant.binding.describe(grant.subject_index)}"


def _rule_behind(grants: Iterable[Grant], attributes: Attributes, reason: str) -> tuple[int, PolicyRule] | None:
    """Return the first rule of the grant with a reason that allows the request, and its position."""
    for grant in grants:
        if grant.rules is None or _reason_of(grant) != reason:
            continue
        for number, rule in enumerate(grant.rules.rules):
            names = allowed_names(RoleRules((rule,)), attributes)
            if any(each is None or attributes.action.name in each for each in names):
                return number, rule
    return None


def allowed_names(rules: RoleRules, attributes: Attributes) -> Sequence[Names]:
    """Return the object names for which a role allows the request, as a few sets; (None,) for all names."""
    a = attributes.action
    if attributes.path is not None:
        return (None,) if any(True for _ in rules.index.on_url(a.verb, attributes.path)) else ()
    if a.subresource:
        return rules.index.on_resource(a.verb, a.group, f"{a.resource}/{a.subresource}", f"*/{a.subresource}")
    return rules.index.on_resource(a.verb, a.group, a.resource)


def _error_of(without_rules: Iterable[Grant], *more: str) -> str:
    """Return the text of errors for grants without rules, up to `_MAX_ERRORS` characters, and of `more`."""
    texts: dict[str, None] = {}
    size = 0
    for grant in without_rules:
        text = str(role_error(grant.binding.role_ref))
        size += len(text)
        if size > _MAX_ERRORS:
            break
        texts[text] = None
    return aggregate((*texts, *more))


def list_rules(grants: Iterable[Grant]) -> ResolvedRules:
    """Return the rules of all grants up to the limits; a rule that is granted several times is repeated."""
    on_resources: list[PolicyRule] = []
    on_urls: list[PolicyRule] = []
    without_rules: list[Grant] = []
    values = size = 0
    for grant in grants:
        if grant.rules is None:
            without_rules.append(grant)
            continue
        for rule in grant.rules.rules:
            values += values_of(rule)
            size += _size_of(rule)
            if values > MAX_VALUES or size > _MAX_LISTED:
                error = _error_of(without_rules, _TOO_MANY_RULES)
                return ResolvedRules(tuple(on_resources), tuple(on_urls), incomplete=True, error=error)
            if rule.resources:
                on_resources.append(rule)
            if rule.non_resource_urls:
                on_urls.append(rule)
    return ResolvedRules(tuple(on_resources), tuple(on_urls), error=_error_of(without_rules))


def _size_of(rule: PolicyRule) -> int:
    lists: tuple[Sequence[Any], ...] = (rule.verbs or (), rule.api_groups, rule.resources, rule.resource_names)
    return sum(sum(map(len, each)) for each in (*lists, rule.non_resource_urls))


def _roles_of(grants: Iterable[Grant]) -> tuple[list[tuple[PolicyRule, ...]], str]:
    """Return the rules of each granted role once, and the errors of the missing roles."""
    found: dict[RoleRules, None] = {}
    without_rules: list[Grant] = []
    for grant in grants:
        if grant.rules is None:
            without_rules.append(grant)
        else:
            found[grant.rules] = None
    return [each.rules for each in found], _error_of(without_rules)
