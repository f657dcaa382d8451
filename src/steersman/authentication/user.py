"""Who makes a request, as every later decision sees them (k8s.io/apiserver `authentication/user.Info`)."""

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

CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
"""The key in `extra` that names the credential used, so that audit logs can tell two of one user apart."""

NO_EXTRA: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class UserInfo:
    """A user: `name` and `groups` are what authorizers judge; `uid` and `extra` are passed on as they are."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: NO_EXTRA, hash=False)


def authenticated(user: UserInfo) -> UserInfo:
    """`user` in the group of all authenticated users, unless it is anonymous or in one of the two groups already."""
    groups = user.groups
    if ALL_AUTHENTICATED in groups or ALL_UNAUTHENTICATED in groups or user.name == ANONYMOUS:
        return user
    return UserInfo(user.name, user.uid, (*groups, ALL_AUTHENTICATED), user.extra)


def service_account_username(namespace: str, name: str) -> str:
    """The user name of a service account: `system:serviceaccount:NAMESPACE:NAME`."""
    return f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """The groups that every service account of `namespace` is in."""
    return (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}")
