"""The user of a request (k8s.io/apiserver `authentication/user.Info`), and well-known names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

ANONYMOUS: Final = "system:anonymous"
API_SERVER: Final = "system:apiserver"
ALL_AUTHENTICATED: Final = "system:authenticated"
ALL_UNAUTHENTICATED: Final = "system:unauthenticated"
SYSTEM_MASTERS: Final = "system:masters"
NODES: Final = "system:nodes"
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"
SERVICE_ACCOUNT_PREFIX: Final = "system:serviceaccount:"

COMPONENTS: Final = (
    API_SERVER,
    "system:kube-controller-manager",
    "system:kube-scheduler",
    "system:serviceaccount:kube-system:",
    "steersman:",
)
"""Prefixes of the user names of the cluster's own components, nodes aside."""

CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
"""Key in `extra` with the id of the credential, by which audit logs distinguish the credentials of one user."""

NO_EXTRA: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class UserInfo:
    """A user: authorizers use `name` and `groups`; `uid` and `extra` are passed on unchanged."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: NO_EXTRA, hash=False)


def authenticated(user: UserInfo) -> UserInfo:
    """Return `user` in the group of authenticated users, unless it is anonymous or in one of the two groups already."""
    groups = user.groups
    if ALL_AUTHENTICATED in groups or ALL_UNAUTHENTICATED in groups or user.name == ANONYMOUS:
        return user
    return UserInfo(user.name, user.uid, (*groups, ALL_AUTHENTICATED), user.extra)


def service_account_username(namespace: str, name: str) -> str:
    """Return the user name of a service account: `system:serviceaccount:NAMESPACE:NAME`."""
    return f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups of every service account in `namespace`."""
    return (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}")
