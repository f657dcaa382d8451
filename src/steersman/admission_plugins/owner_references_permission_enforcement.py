"""OwnerReferencesPermissionEnforcement: changing owner references requires permission to delete the dependent object.

Setting `blockOwnerDeletion` also requires permission to update the owner's finalizers, because it delays the owner's
deletion (kubernetes `plugin/pkg/admission/gc`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from steersman.admission.interface import CREATE, UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration, PluginDependencies
from steersman.authorization.attributes import Attributes as Question
from steersman.authorization.interface import Authorizer, Verdict, decide
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupResource, GroupVersionKind
from steersman.work.yielding import time_sliced

_PODS: Final = GroupResource("", "pods")


class Mapping(NamedTuple):
    """A resource that serves a kind, as upstream's RESTMapping."""

    resource: str
    namespaced: bool


class OwnerReferencesPermissionEnforcement(Plugin):
    """Checks owner references. `resources_of` returns the resources of a kind, given (group, version, kind)."""

    name = "OwnerReferencesPermissionEnforcement"
    operations = frozenset({CREATE, UPDATE})
    validates = True

    def __init__(self, authorizer: Authorizer, resources_of: Callable[[str, str, str], Sequence[Mapping]]) -> None:
        self._authorizer = authorizer
        self._resources_of = resources_of

    async def validate(self, attributes: Attributes) -> None:
        # Kubelets write the status of pods, but may not change anything else of them.
        if attributes.action.subresource == "status" and attributes.action.group_resource == _PODS:
            return
        new, old = _owners(attributes.obj), _owners(attributes.old)
        if new == old:
            return
        if attributes.operation != CREATE:
            verdict = await decide(self._authorizer, _deletion(attributes))
            if not verdict.allowed:
                raise attributes.forbid(
                    f"cannot set an ownerRef on a resource you can't delete: {_denial_text(verdict)}"
                )
        blocked = {each.uid for each in old if each.block_owner_deletion}
        blocking = [each for each in new if each.block_owner_deletion and each.uid not in blocked]
        if not blocking or (await decide(self._authorizer, _finalizing_anything(attributes))).allowed:
            return
        async for owner in time_sliced(blocking):
            await self._check_owner(attributes, owner)

    async def _check_owner(self, attributes: Attributes, owner: Any) -> None:
        group, slash, version = owner.api_version.partition("/")
        if not slash:
            group, version = "", group
        resources = self._resources_of(group, version, owner.kind)
        if not resources:
            missing = f'no matches for kind "{owner.kind}" in version "{owner.api_version}"'
            raise attributes.forbid(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion "
                f"{owner.api_version} Kind {owner.kind}: {missing}"
            )
        for mapping in resources:
            namespace = attributes.action.namespace if mapping.namespaced else ""
            action = Action("update", group, version, mapping.resource, "finalizers", namespace, owner.name)
            verdict = await decide(self._authorizer, Question(attributes.user, action))
            if not verdict.allowed:
                raise attributes.forbid(
                    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers "
                    f"on: {_denial_text(verdict)}"
                )


def _owners(obj: Any) -> Sequence[Any]:
    """Return the owner references of an object; objects of some subresources have no metadata."""
    metadata = getattr(obj, "metadata", None)
    return () if metadata is None else metadata.owner_references or ()


def _deletion(attributes: Attributes) -> Question:
    action = msgspec.structs.replace(attributes.action, verb="delete", name=attributes.name)
    return Question(attributes.user, action)


def _finalizing_anything(attributes: Attributes) -> Question:
    return Question(attributes.user, Action("update", "*", "*", "*", "finalizers", name="*"))


def _denial_text(verdict: Verdict) -> str:
    """Return the reason and the error of a refusal, as Go prints them."""
    return f"{verdict.reason}, {verdict.error or '<nil>'}"


def _make(dependencies: PluginDependencies) -> OwnerReferencesPermissionEnforcement:
    def resources_of(group: str, version: str, kind: str) -> list[Mapping]:
        found = dependencies.mapper.resources_for(GroupVersionKind(group, version, kind))
        return [Mapping(each.resource.plural, each.resource.namespaced) for each in found]

    return OwnerReferencesPermissionEnforcement(dependencies.authorizer, resources_of)


OWNER_REFERENCES_PERMISSION_ENFORCEMENT: Final = Declaration(
    OwnerReferencesPermissionEnforcement, on_by_default=False, make=_make
)
