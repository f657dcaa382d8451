"""Impersonation: checks that a user may act as another, and builds the impersonated user.

Follows KEP-5284 (constrained impersonation) and k8s.io/apiserver `endpoints/filters/impersonation`. There are five
modes. Four are constrained: besides the right to be the other user (`impersonate:MODE`) they require the right to
perform the action as that user (`impersonate-on:MODE:VERB`). The last is the legacy mode, whose right `impersonate`
covers all actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import msgspec
from msgspec import Struct

from steersman.authentication.aggregate import aggregate
from steersman.authentication.service_account_claims import NODE_NAME
from steersman.authentication.user import (
    ALL_AUTHENTICATED,
    ALL_UNAUTHENTICATED,
    ANONYMOUS,
    NODES,
    SERVICE_ACCOUNT_PREFIX,
    SYSTEM_MASTERS,
    UserInfo,
    service_account_groups,
)
from steersman.authorization.attributes import Attributes
from steersman.authorization.forbidden import forbidden_error, refusal
from steersman.authorization.interface import Authorizer, decide
from steersman.machinery.errors.field import Path, quote
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action
from steersman.machinery.validation.domains import is_domain_prefixed_path
from steersman.machinery.validation.formats import is_dns1123_label, is_dns1123_subdomain
from steersman.work.bounded_cache import BoundedCache

_ASSOCIATED_NODE_KEYS: Final = "authentication.kubernetes.io/associated-node-keys"
_NODE_PREFIX: Final = "system:node:"
_AUTHENTICATION: Final = "authentication.k8s.io"
_MANY: Final = 4
"""Number of groups or extra values from which a right to all of them ("*") is checked first."""
_REMEMBERED: Final = 10_000
"""Limit of users for whom the mode that worked last is cached."""


class Impersonated(Struct, frozen=True):
    """The impersonated user, and the right that allowed it (`constraint`; empty in the legacy mode)."""

    user: UserInfo
    constraint: str = ""


class Impersonation:
    """Checks impersonation in all modes.

    The modes are tried in upstream's order, but the mode that worked last for a user comes first. If several refuse,
    the first refusal is raised. No verdict is cached, so a revoked right has effect at once (upstream caches for 10 s).
    """

    def __init__(self, authorizer: Authorizer) -> None:
        self._modes = (
            _Mode(authorizer, "associated-node", _is_own_node, asked_as=_of_any_node),
            _Mode(authorizer, "arbitrary-node", _is_node_alone),
            _Mode(authorizer, "serviceaccount", _is_service_account_alone),
            _Mode(authorizer, "user-info", _is_other_user),
            _Mode(authorizer, "", lambda wanted, requestor: True),
        )
        self._last: BoundedCache[str, _Mode] = BoundedCache(_REMEMBERED)

    async def impersonate(self, wanted: UserInfo, attributes: Attributes) -> Impersonated:
        """Return the impersonated user. `attributes` is the action and its request user. Raises StatusError 403."""
        requestor = attributes.user.name
        last = self._last[requestor]
        refusals = []
        for mode in sorted(self._modes, key=lambda each: each is not last):
            if not mode.applies(wanted, attributes.user):
                continue
            try:
                impersonated = await mode.impersonate(wanted, attributes)
            except StatusError as refusal:
                refusals.append(refusal)
            else:
                self._last.keep(requestor, mode)
                return impersonated
        raise refusals[0]  # not empty, as the legacy mode applies to every user


def _as_it_is(attributes: Attributes) -> Attributes:
    return attributes


class _Mode:
    """One mode of impersonation; the legacy mode has the name "" and does not check the action.

    `applies(wanted, requestor)` returns True if the mode covers the two users. `asked_as` changes the attributes before
    they are passed to the authorizer. Each part of the user needs a right of its own: name, uid, each group, and each
    value of `extra`.
    """

    def __init__(
        self,
        authorizer: Authorizer,
        name: str,
        applies: Callable[[UserInfo, UserInfo], bool],
        asked_as: Callable[[Attributes], Attributes] = _as_it_is,
    ) -> None:
        self.applies = applies
        self._authorizer = authorizer
        self._name = name
        self._verb = f"impersonate:{name}" if name else "impersonate"
        self._group = _AUTHENTICATION if name else ""
        self._asked_as = asked_as

    async def impersonate(self, wanted: UserInfo, attributes: Attributes) -> Impersonated:
        """Return the wanted user with the groups that its name implies. Raises StatusError 403."""
        requestor = attributes.user
        if self._name:
            await self._check(_with_action(attributes, verb=f"impersonate-on:{self._name}:{attributes.action.verb}"))
        groups = await self._check_name(wanted, requestor)
        if wanted.uid:
            await self._check(self._right(requestor, _AUTHENTICATION, "uids", wanted.uid))
        if wanted.groups:
            await self._check_groups(wanted.groups, requestor)
        if wanted.extra:
            await self._check_extra(wanted.extra, requestor)
        if wanted.name == ANONYMOUS:
            groups = _with_group(groups, ALL_UNAUTHENTICATED)
        elif ALL_UNAUTHENTICATED not in groups:
            groups = _with_group(groups, ALL_AUTHENTICATED)
        return Impersonated(replace(wanted, groups=groups), self._verb if self._name else "")

    async def _check_name(self, wanted: UserInfo, requestor: UserInfo) -> tuple[str, ...]:
        """Check the right to the name, and return the user's groups. Raises StatusError 403."""
        groups = wanted.groups
        right = self._right(requestor, self._group, "users", wanted.name)
        node = node_name(wanted.name) if self._name else ""
        account = service_account(wanted.name)
        if node:
            right = _with_action(right, resource="nodes", name=node)
            groups = (NODES,)
        elif account is not None:
            namespace, name = account
            right = _with_action(right, resource="serviceaccounts", namespace=namespace, name=name)
            groups = groups or service_account_groups(namespace)
        await self._check(right)
        return groups

    async def _check_groups(self, groups: tuple[str, ...], requestor: UserInfo) -> None:
        right = self._right(requestor, self._group, "groups", "")
        if self._name:
            if "" in groups:
                raise forbidden_error(right, "impersonating the empty string group is not allowed")
            if SYSTEM_MASTERS in groups:
                right = _with_action(right, name=SYSTEM_MASTERS)
                raise forbidden_error(right, "impersonating the system:masters group is not allowed")
            if len(groups) >= _MANY and await self._allows(_with_action(right, name="*")):
                return
        for group in groups:
            await self._check(_with_action(right, name=group))

    async def _check_extra(self, extra: Mapping[str, tuple[str, ...]], requestor: UserInfo) -> None:
        right = self._right(requestor, _AUTHENTICATION, "userextras", "")
        if self._name:
            for problem in _extra_problems(extra):
                raise forbidden_error(right, problem)
            many = sum(len(values) for values in extra.values()) >= _MANY
            if many and await self._allows(_with_action(right, subresource="*", name="*")):
                return
        for key, values in extra.items():
            for value in values:
                await self._check(_with_action(right, subresource=key, name=value))

    def _right(self, requestor: UserInfo, group: str, resource: str, name: str) -> Attributes:
        return Attributes(requestor, Action(self._verb, group, "v1", resource, name=name))

    async def _allows(self, attributes: Attributes) -> bool:
        return (await decide(self._authorizer, self._asked_as(attributes))).allowed

    async def _check(self, attributes: Attributes) -> None:
        asked = self._asked_as(attributes)
        verdict = await decide(self._authorizer, asked)
        if not verdict.allowed:
            raise refusal(asked, verdict)


def _with_action(attributes: Attributes, **changes: str) -> Attributes:
    """Return a copy of `attributes` with some fields of the action changed."""
    return msgspec.structs.replace(attributes, action=msgspec.structs.replace(attributes.action, **changes))


def node_name(username: str) -> str:
    """Return the node name of a user name `system:node:NAME`; "" for other users."""
    name = username.removeprefix(_NODE_PREFIX)
    return "" if name == username or is_dns1123_subdomain(name) else name


def service_account(username: str) -> tuple[str, str] | None:
    """Return namespace and name of the service account that a user name denotes, or None."""
    parts = username.removeprefix(SERVICE_ACCOUNT_PREFIX).split(":")
    if not username.startswith(SERVICE_ACCOUNT_PREFIX) or len(parts) != 2:
        return None
    namespace, name = parts
    return None if is_dns1123_label(namespace) or is_dns1123_subdomain(name) else (namespace, name)


def runs_on(user: UserInfo, node: str) -> bool:
    """Return True if `user` is a service account whose token is bound to a pod on `node`; False for ""."""
    is_account = service_account(user.name) is not None
    return is_account and user.extra.get(NODE_NAME) == (node,) and not is_dns1123_subdomain(node)


def _is_own_node(wanted: UserInfo, requestor: UserInfo) -> bool:
    return _is_name_alone(wanted) and runs_on(requestor, node_name(wanted.name))


def _is_node_alone(wanted: UserInfo, requestor: UserInfo) -> bool:
    return _is_name_alone(wanted) and node_name(wanted.name) != ""


def _is_service_account_alone(wanted: UserInfo, requestor: UserInfo) -> bool:
    return _is_name_alone(wanted) and service_account(wanted.name) is not None


def _is_other_user(wanted: UserInfo, requestor: UserInfo) -> bool:
    return node_name(wanted.name) == "" and service_account(wanted.name) is None


def _is_name_alone(wanted: UserInfo) -> bool:
    return not (wanted.uid or wanted.groups or wanted.extra)


def _of_any_node(attributes: Attributes) -> Attributes:
    """Return the attributes without the pod and node of the user, since all pods of a daemon have the same right."""
    user = replace(attributes.user, extra={_ASSOCIATED_NODE_KEYS: tuple(sorted(attributes.user.extra))})
    attributes = msgspec.structs.replace(attributes, user=user)
    return _with_action(attributes, name="*") if attributes.action.verb == "impersonate:associated-node" else attributes


def _extra_problems(extra: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for key, values in extra.items():
        errors = list(is_domain_prefixed_path(key, Path("extra").child("key"))) if key else []
        if not key:
            yield "impersonating the empty string key in extra is not allowed"
        elif errors:
            text = aggregate(str(error) for error in errors)
            yield f"impersonating an invalid key in extra is not allowed: {text}"
        elif key != key.lower():
            yield f"impersonating a non-lowercase key in extra is not allowed: {quote(key)}"
        elif "" in values:
            yield "impersonating the empty string value in extra is not allowed"


def _with_group(groups: tuple[str, ...], group: str) -> tuple[str, ...]:
    return groups if group in groups else (*groups, group)
