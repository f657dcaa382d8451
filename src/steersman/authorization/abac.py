"""ABAC: policies that allow users and groups certain actions (kubernetes `pkg/auth/authorizer/abac`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from steersman.api.rbac.v1 import PolicyRule
from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, ResolvedRules, Verdict

_ANY: Final = "*"
_ALLOWED: Final = Verdict(Decision.ALLOW)
_NO_POLICY: Final = Verdict(Decision.NO_OPINION, "No policy matched.")


@dataclass(frozen=True, slots=True)
class Policy:
    """One line of a policy file: allows users that match `user` and `group` these actions.

    An empty `user` or `group` matches all users, but a policy with neither applies to nobody. In the other fields "*"
    matches anything; at the end of a path it matches the rest.
    """

    user: str = ""
    group: str = ""
    readonly: bool = False
    api_group: str = ""
    resource: str = ""
    namespace: str = ""
    non_resource_path: str = ""

    def is_for(self, user: UserInfo) -> bool:
        """Return True if the policy applies to `user`."""
        if self.user and self.user != user.name:
            return False
        if self.group and self.group not in user.groups:
            return False
        return bool(self.user or self.group)

    def allows(self, attributes: Attributes) -> bool:
        """Return True if the policy allows the action, given that it applies to the user."""
        if self.readonly and not attributes.read_only:
            return False
        path = attributes.path
        if path is not None:
            wanted = self.non_resource_path
            return wanted in (_ANY, path) or (wanted.endswith(_ANY) and path.startswith(wanted.rstrip(_ANY)))
        action = attributes.action
        return (
            self.namespace in (_ANY, action.namespace)
            and self.resource in (_ANY, action.resource)
            and self.api_group in (_ANY, action.group)
        )

    @property
    def verbs(self) -> list[str]:
        """The verbs that the policy allows, or ["*"]."""
        return ["get", "list", "watch"] if self.readonly else [_ANY]


class AbacAuthorizer:
    """Authorizer that allows an action if any policy does.

    Policies are indexed by user and group, so that policies for others cost nothing.
    """

    def __init__(self, policies: Iterable[Policy]) -> None:
        self._by_user: dict[str, list[tuple[int, Policy]]] = {}
        self._by_group: dict[str, list[tuple[int, Policy]]] = {}
        for position, policy in enumerate(policies):
            by, key = (self._by_user, policy.user) if policy.user else (self._by_group, policy.group)
            by.setdefault(key, []).append((position, policy))

    def authorize(self, attributes: Attributes) -> Verdict:
        """Decide about an action, see Authorizer."""
        user = attributes.user
        for _, policy in self.policies_naming(user):
            if policy.is_for(user) and policy.allows(attributes):
                return _ALLOWED
        return _NO_POLICY

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        """Return the user's rules in the order of the file, see RuleResolver."""
        held = [
            policy
            for _, policy in sorted(self.policies_naming(user), key=lambda placed: placed[0])
            if policy.namespace in (_ANY, namespace) and policy.is_for(user)
        ]
        return ResolvedRules(
            tuple(
                PolicyRule(verbs=each.verbs, api_groups=[each.api_group], resources=[each.resource])
                for each in held
                if each.resource
            ),
            tuple(
                PolicyRule(verbs=each.verbs, non_resource_urls=[each.non_resource_path])
                for each in held
                if each.non_resource_path
            ),
        )

    def policies_naming(self, user: UserInfo) -> Iterator[tuple[int, Policy]]:
        """Yield the policies for the user's name or (without a user) for one of its groups, with their positions in the
        file.
        """
        yield from self._by_user.get(user.name, ())
        for group in dict.fromkeys(user.groups):
            yield from self._by_group.get(group, ())
