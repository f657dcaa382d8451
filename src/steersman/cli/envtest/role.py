"""A role in place of all rights, for clients of envtest's server: shows that the role is enough for a test suite."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

from steersman.api.meta.v1 import ObjectMeta
from steersman.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from steersman.authentication.interface import Authenticator, Credentials
from steersman.authentication.user import SYSTEM_MASTERS, UserInfo
from steersman.cli.role_files import RoleFileError, rules_of
from steersman.controlplane.initial_objects import ensure, remove
from steersman.controlplane.options import OptionsError
from steersman.controlplane.parts.identity import Authentication
from steersman.controlplane.parts.keeping import InitialObjects
from steersman.controlplane.parts.serving import GenericServer
from steersman.controlplane.parts.storing import ObjectStores
from steersman.machinery.codec.serializer import from_plain
from steersman.work.parts import Part

GROUP: Final = "steersman:envtest-role"
_RBAC: Final = "rbac.authorization.k8s.io"
_NAME: Final = "steersman-envtest-role"


Adapt = Callable[[Sequence[type[Part]]], Sequence[type[Part]]]
"""Function that returns the parts of a control plane in place of given ones."""


def restriction(file: Path) -> Adapt:
    """Return a function that restricts the administrators of a control plane to the roles in a file.

    Raises OptionsError.
    """
    try:
        rules = [from_plain(PolicyRule, each) for each in rules_of(file)]
    except (RoleFileError, TypeError, ValueError) as error:
        raise OptionsError(f"the role for clients: {error}") from None

    class RoleOfFile(RoleObjects):
        """The objects of the role in the file."""

        granted = rules

    return partial(_restricted, RoleOfFile)


def _restricted(role: type[Part], parts: Sequence[type[Part]]) -> Sequence[type[Part]]:
    found: list[type[Part]] = []
    for each in parts:
        found.append(RestrictedAuthentication if each is Authentication else each)
        if each is InitialObjects:
            found.append(role)
    return found


class Restricted:
    """An authenticator whose users of system:masters with client certificates are in GROUP instead."""

    def __init__(self, inner: Authenticator) -> None:
        self._inner = inner

    def authenticate(self, credentials: Credentials) -> UserInfo | Awaitable[UserInfo | None] | None:
        """See authentication.interface.Authenticator."""
        found = self._inner.authenticate(credentials)
        if credentials.client_certificate is None:
            return found
        if found is None or isinstance(found, UserInfo):
            return _restrict(found)
        return _restrict_later(found)


async def _restrict_later(found: Awaitable[UserInfo | None]) -> UserInfo | None:
    return _restrict(await found)


def _restrict(user: UserInfo | None) -> UserInfo | None:
    if user is None or SYSTEM_MASTERS not in user.groups:
        return user
    groups = tuple(GROUP if each == SYSTEM_MASTERS else each for each in user.groups)
    return UserInfo(user.name, user.uid, groups, user.extra)


class RestrictedAuthentication(Authentication):
    """The authenticator of requests, with restricted administrators."""

    async def start(self, ending: AsyncExitStack) -> None:
        await super().start(ending)
        self.authenticator = Restricted(self.authenticator)


class RoleObjects(Part):
    """The ClusterRole with the granted rules and its binding to GROUP, which exist before the server is ready."""

    objects: ObjectStores
    generic: GenericServer
    granted: list[PolicyRule] = []

    async def start(self, ending: AsyncExitStack) -> None:
        self.generic.server.add_post_start_hook(_NAME, self._write)

    async def _write(self) -> None:
        role = ClusterRole(metadata=ObjectMeta(name=_NAME), rules=self.granted)
        binding = ClusterRoleBinding(
            metadata=ObjectMeta(name=_NAME),
            role_ref=RoleRef(api_group=_RBAC, kind="ClusterRole", name=_NAME),
            subjects=[Subject(kind="Group", api_group=_RBAC, name=GROUP)],
        )
        for plural, obj in (("clusterroles", role), ("clusterrolebindings", binding)):
            objects = self.objects.stores.objects(_RBAC, plural)
            await remove(objects, _NAME)  # of an earlier start, maybe with other rules
            await ensure(objects, obj)
