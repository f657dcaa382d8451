"""The built-in kinds: the classes of `steersman.api`, found by class or by name.

The module of a group version is imported on the first lookup in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

from steersman import api
from steersman.kinds.structs import StructKind
from steersman.machinery.identity.schema import GroupVersionKind

T = TypeVar("T", bound=msgspec.Struct)

META_KINDS: Final = (
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "ListOptions",
    "PatchOptions",
    "UpdateOptions",
    "WatchEvent",
)
"""Kinds of meta/v1 that every group version has."""
UNVERSIONED_KINDS: Final = ("APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status")
"""Kinds of meta/v1 that the group version "v1" has in addition."""


def built_in(
    cls: type[T],
    *,
    default: Callable[[T], None] | None = None,
    internal_error: Callable[[T], str] | None = None,
    keeps_raw_data: bool = False,
) -> StructKind[T]:
    """Return the kind of a class of `steersman.api`; see `StructKind`. Raises LookupError for any other class."""
    return StructKind(cls, gvk_of(cls), default=default, internal_error=internal_error, keeps_raw_data=keeps_raw_data)


@lru_cache(maxsize=256)
def classes_of(group: str, version: str) -> Mapping[str, type[msgspec.Struct]]:
    """Return the classes of a built-in group version by kind, with those of meta/v1. Raises KeyError if there is none."""
    kinds = api.load(group, version)
    meta = api.load("meta.k8s.io", "v1")
    names = META_KINDS + (UNVERSIONED_KINDS if (group, version) == ("", "v1") else ())
    return kinds | {name: meta[name] for name in names}


def gvk_of(cls: type[Any]) -> GroupVersionKind:
    """Return group, version and kind of a built-in class that is a kind. Raises LookupError for any other class."""
    return _gvk_of(cls)  # type: ignore[arg-type]  # a class is hashable


@lru_cache(maxsize=4096)
def _gvk_of(cls: type[msgspec.Struct]) -> GroupVersionKind:
    module = cls.__module__.removeprefix("steersman.api.")
    for (group, version), name in api.MODULES.items():
        if name == module and api.load(group, version).get(cls.__name__) is cls:
            return GroupVersionKind("" if group == "meta.k8s.io" else group, version, cls.__name__)
    raise LookupError(f"{cls.__qualname__} is not a kind")


def stamp(obj: Any) -> None:
    """Set kind and apiVersion of an object of a built-in class, for an answer."""
    gvk = gvk_of(type(obj))
    obj.kind, obj.api_version = gvk.kind, str(gvk.group_version)


def find_built_in(gvk: GroupVersionKind) -> StructKind[Any] | None:
    """Return the built-in kind `gvk` without defaults, None if there is none."""
    return _built_in_kind(gvk) if is_built_in(gvk) else None


@lru_cache(maxsize=64)
def _built_in_kind(gvk: GroupVersionKind) -> StructKind[Any]:
    return StructKind(classes_of(gvk.group, gvk.version)[gvk.kind], gvk)


def is_built_in(gvk: GroupVersionKind) -> bool:
    """Return True if `gvk` is a built-in kind."""
    return (gvk.group, gvk.version) in api.MODULES and gvk.kind in classes_of(gvk.group, gvk.version)


def is_built_in_group_kind(group: str, kind: str) -> bool:
    """Return True if any version of the group has such a built-in kind."""
    return any(kind in classes_of(each, version) for each, version in api.MODULES if each == group)
