"""ABAC: policies in a file, one a line, that allow users and groups things (kubernetes `pkg/auth/authorizer/abac`)."""

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
    """One line: whoever is `user`, and in `group`, may do this. What is empty is not asked for; with neither the policy
    is for nobody. In what is done "*" stands for anything, at the end of a path for its rest."""

    user: str = ""
    group: str = ""
    readonly: bool = False
    api_group: str = ""
    resource: str = ""
    namespace: str = ""
    non_resource_path: str = ""

    def is_for(self, user: UserInfo) -> bool:
        """Whether it is about this user."""
        if self.user and self.user != user.name:
            return False
        if self.group and self.group not in user.groups:
            return False
        return bool(self.user or self.group)

    def allows(self, attributes: Attributes) -> bool:
        """Whether it allows an action of somebody whom it is for."""
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
        """What it allows to do."""
        return ["get", "list", "watch"] if self.readonly else [_ANY]


class AbacAuthorizer:
    """Allows what any policy allows. Policies are found by whom they name, so that many for others cost nothing."""

    def __init__(self, policies: Iterable[Policy]) -> None:
        self._by_user: dict[str, list[tuple[int, Policy]]] = {}
        self._by_group: dict[str, list[tuple[int, Policy]]] = {}
        for place, policy in enumerate(policies):
            by, key = (self._by_user, policy.user) if policy.user else (self._by_group, policy.group)
            by.setdefault(key, []).append((place, policy))

    def authorize(self, attributes: Attributes) -> Verdict:
        """Follows the Authorizer contract."""
        user = attributes.user
        for _, policy in self._named(user):
            if policy.is_for(user) and policy.allows(attributes):
                return _ALLOWED
        return _NO_POLICY

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        """Follows the RuleResolver contract, in the order of the file."""
        held = [
            policy
            for _, policy in sorted(self._named(user), key=lambda placed: placed[0])
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

    def _named(self, user: UserInfo) -> Iterator[tuple[int, Policy]]:
        """The policies that name the user, or a group and no user, with their places in the file."""
        yield from self._by_user.get(user.name, ())
        for group in dict.fromkeys(user.groups):
            yield from self._by_group.get(group, ())
