"""Users of a case, whom the administrator impersonates, and a service account with its own token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tools.differential.case import NAME, NAMESPACE, TOKEN

from . import policy_file

_GROUPS: Final = (
    f"{NAME}-g0",
    f"{NAME}-g1",
    "system:masters",
    "system:nodes",
    "system:authenticated",
    "system:unauthenticated",
)
_EXTRA: Final = (("scopes", ("a",)), ("example.com%2fkey", ("x", "y")), ("Upper", ("z",)))
"""One of them only: upstream asks about several in the order of a map."""
SERVICE_ACCOUNTS: Final = "system:serviceaccount"


@dataclass(frozen=True)
class Subject:
    """Somebody with a name, groups and extra values."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def headers(self) -> dict[str, str | tuple[str, ...] | None]:
        """Return the headers by which an administrator impersonates this user."""
        found: dict[str, str | tuple[str, ...] | None] = {"Impersonate-User": self.name}
        if self.groups:
            found["Impersonate-Group"] = self.groups
        if self.uid:
            found["Impersonate-Uid"] = self.uid
        for name, values in self.extra.items():
            found[f"Impersonate-Extra-{name}"] = values
        return found

    @property
    def headers_by_account(self) -> dict[str, str | tuple[str, ...] | None]:
        """Return the headers of a request by the case's service account, whose token was issued before."""
        return {**self.headers, "Authorization": f"Bearer {TOKEN}"}

    def as_review(self, random: Random) -> dict[str, Any]:
        """The members of a review; now and then something is left out."""
        found: dict[str, Any] = {"user": self.name, "groups": [*self.groups]}
        if random.random() < 0.5:
            found["groups"].append("system:authenticated")
        if self.uid:
            found["uid"] = self.uid
        if self.extra:
            found["extra"] = {name: list(values) for name, values in self.extra.items()}
        if random.random() < 0.05:
            del found[random.choice(("user", "groups"))]
        return found


ACCOUNT: Final = Subject(
    f"{SERVICE_ACCOUNTS}:{NAMESPACE}:{NAME}-s0", (f"{SERVICE_ACCOUNTS}s", f"{SERVICE_ACCOUNTS}s:{NAMESPACE}")
)


def of_case(random: Random) -> Subject:
    """A user whom the roles of the case may be about."""
    if random.random() < 0.15:
        return ACCOUNT
    groups = tuple(f"{NAME}-g{number}" for number in range(2) if random.random() < 0.4)
    extra = {"scopes": ("a", "b")} if random.random() < 0.1 else {}
    return Subject(f"{NAME}-u{random.randint(0, 2)}", groups, "u-1" if random.random() < 0.1 else "", extra)


def of_policies(random: Random) -> Subject:
    """A user whom the policies of the file may be about."""
    groups = tuple(group for group in policy_file.GROUPS if random.random() < 0.2)
    return Subject(random.choice(policy_file.USERS), groups)


def wanted(random: Random) -> Subject:
    """Return a user whom a service account tries to impersonate."""
    name = random.choice(
        (
            f"{NAME}-u0",
            f"{NAME}-u1",
            ACCOUNT.name,
            f"{SERVICE_ACCOUNTS}:default:other",
            f"system:node:{NAME}-n0",
            "system:anonymous",
            "system:admin",
            f"{SERVICE_ACCOUNTS}:a",
            "system:node:",
        )
    )
    groups = tuple(group for group in _GROUPS if random.random() < 0.15)
    extra = dict([random.choice(_EXTRA)] if random.random() < 0.25 else [])
    return Subject(name, groups, "u-1" if random.random() < 0.1 else "", extra)
