"""Counting of objects for quotas, and the names of the counted resources.

Follows k8s.io/apiserver `quota/v1`. Kinds of which more than the number is limited have modules of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

from steersman.api.core.v1 import ResourceQuota, ScopedResourceSelectorRequirement
from steersman.machinery.built_in.pod_resources import Amounts
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.selectors.labels import Predicate, SelectorError, new_requirement
from steersman.machinery.values.quantity import Quantity

T = TypeVar("T")

ONE: Final = Quantity(1)
IGNORED: Final = frozenset(
    {
        GroupResource("", "bindings"),
        GroupResource("", "componentstatuses"),
        GroupResource("", "events"),
        GroupResource("events.k8s.io", "events"),
        GroupResource("authentication.k8s.io", "tokenreviews"),
        GroupResource("authentication.k8s.io", "selfsubjectreviews"),
        GroupResource("authorization.k8s.io", "subjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "localsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectrulesreviews"),
    }
)
"""Resources that no quota counts."""
ALIASES: Final = ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
"""Core resources that quotas also count under their plain names."""

_OPERATORS: Final = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def count_of(resource: GroupResource) -> str:
    """Return the name under which quotas count the objects of any resource."""
    return f"count/{resource}"


class Measure(Generic[T]):
    """The usage of quotas by objects of one resource.

    This base class counts objects, also under an older name (`alias`).
    """

    def __init__(self, resource: GroupResource, alias: str = "") -> None:
        self.resource: Final = resource
        self.count: Final = count_of(resource)
        self.names = frozenset({self.count, alias} if alias else {self.count})

    def matching(self, names: Iterable[str]) -> set[str]:
        """Return the names among a quota's resources that objects of this kind use."""
        return {name for name in names if name in self.names}

    def in_scope(self, selector: ScopedResourceSelectorRequirement, obj: T) -> bool:
        """Return True if a quota with this scope applies to the object. Raises SelectorError."""
        return False

    def usage(self, obj: T) -> Amounts:
        """Return the amounts that the object uses, by the name of the quota's resource."""
        return dict.fromkeys(self.names, ONE)


def counting(resource: GroupResource) -> Measure[Any]:
    """Return the measure that only counts the objects of a resource."""
    old = not resource.group and resource.resource in ALIASES
    return Measure(resource, alias=resource.resource if old else "")


def scopes_of(quota: ResourceQuota) -> tuple[ScopedResourceSelectorRequirement, ...]:
    """Return the distinct scopes of a quota in the form of scope selectors.

    A quota applies to an object only if all its scopes do.
    """
    plain = (ScopedResourceSelectorRequirement(scope_name=scope, operator="Exists") for scope in quota.spec.scopes)
    selector = quota.spec.scope_selector
    every = (*plain, *(selector.match_expressions if selector is not None else ()))
    return tuple({(each.scope_name, each.operator, *each.values): each for each in every}.values())


def select_name(selector: ScopedResourceSelectorRequirement, names: Collection[str]) -> bool:
    """Return True if a scope selector on names (of a priority class, of volume attributes classes) selects one of
    `names`.

    Without names it returns True if the selector selects objects without a name. Raises SelectorError.
    """
    values = tuple(selector.values)
    is_short = sum(map(len, values)) + len(selector.scope_name) <= _LONGEST_KEPT
    selects = (_predicate if is_short else _predicate.__wrapped__)(selector.scope_name, selector.operator, values)
    return any(selects({selector.scope_name: name}) for name in names) if names else selects({})


_LONGEST_KEPT: Final = 1024
"""Characters of the longest scope selector that is cached."""


@lru_cache(maxsize=256)
def _predicate(scope: str, operator: str, values: tuple[str, ...]) -> Predicate:
    if operator not in _OPERATORS:
        raise SelectorError(f'"{operator}" is not a valid scope selector operator')
    return new_requirement(scope, _OPERATORS[operator], values).compile()
