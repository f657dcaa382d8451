"""Which class stands for a kind, and how objects get from one version of it to another.

The modules of a group version are imported when something of it is looked up first. A conversion is a plain function
from one version's object to another's; versions meet in a hub, the version a group is stored in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from steersman import api
from steersman.machinery.schema import GroupVersion, GroupVersionKind

META_KINDS = (
    "CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent",
)  # fmt: skip
"""Kinds of meta/v1 that every group version has."""
UNVERSIONED_KINDS = ("APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status")
"""Kinds of meta/v1 that are of the version "v1" besides."""

SCHEME_NAME = "pkg/api/legacyscheme/scheme.go:30"
"""What upstream's messages call the scheme of the built-in types."""


class NotRegisteredError(LookupError):
    """There is no such kind or version; the message is upstream's."""

    def __init__(self, gvk: GroupVersionKind, name: str = SCHEME_NAME) -> None:
        version = str(gvk.group_version)
        text = (
            f'no kind "{gvk.kind}" is registered for version "{version}" in scheme "{name}"'
            if gvk.kind
            else f'no version "{version}" has been registered in scheme "{name}"'
        )
        super().__init__(text)
        self.gvk = gvk


class Conversion(NamedTuple):
    """A way from one version of a kind to another: `convert` makes a new object, its apiVersion and kind left to the
    caller, and may share parts with the old one but does not change it."""

    source: type[msgspec.Struct]
    target: type[msgspec.Struct]
    convert: Callable[[Any], Any]


@lru_cache(maxsize=256)
def kinds_of(group: str, version: str) -> Mapping[str, type[msgspec.Struct]]:
    """The classes of a built-in group version by kind, those of meta/v1 with them. Raises KeyError for another."""
    kinds = api.load(group, version)
    meta = api.load("meta.k8s.io", "v1")
    names = META_KINDS + (UNVERSIONED_KINDS if (group, version) == ("", "v1") else ())
    return kinds | {name: meta[name] for name in names}


def kind_of(cls: type[Any]) -> GroupVersionKind:
    """The version and kind of a built-in class that is a kind. Raises LookupError for any other class."""
    return _kind_of(cls)  # type: ignore[arg-type]  # a class is hashable


@lru_cache(maxsize=4096)
def _kind_of(cls: type[msgspec.Struct]) -> GroupVersionKind:
    module = cls.__module__.removeprefix("steersman.api.")
    for (group, version), name in api.MODULES.items():
        if name == module:
            for kind, each in api.load(group, version).items():
                if each is cls:
                    return GroupVersionKind("" if group == "meta.k8s.io" else group, version, kind)
    raise LookupError(f"{cls.__qualname__} is not a kind")


class Scheme:
    """The built-in kinds, and conversions among their versions.

    `hubs` gives the version that a group's kinds are stored in where that is not the only one there is.
    """

    def __init__(
        self, conversions: Iterable[Conversion] = (), hubs: Mapping[GroupVersion, GroupVersion] | None = None
    ) -> None:
        self._conversions = {(each.source, each.target): each.convert for each in conversions}
        self._hubs = dict(hubs or {})

    def lookup(self, gvk: GroupVersionKind) -> type[msgspec.Struct]:
        """The class of a kind. Raises NotRegisteredError."""
        if not self.recognizes(gvk):
            raise NotRegisteredError(gvk)
        return kinds_of(gvk.group, gvk.version)[gvk.kind]

    def recognizes(self, gvk: GroupVersionKind) -> bool:
        """Whether there is such a kind."""
        return (gvk.group, gvk.version) in api.MODULES and gvk.kind in kinds_of(gvk.group, gvk.version)

    def recognizes_in_group(self, group: str, kind: str) -> bool:
        """Whether any version of the group has such a kind."""
        return any(kind in kinds_of(each, version) for each, version in api.MODULES if each == group)

    def list_class(self, gvk: GroupVersionKind) -> type[msgspec.Struct]:
        """The class of the lists of a kind. Raises NotRegisteredError."""
        return self.lookup(gvk._replace(kind=f"{gvk.kind}List"))

    def new(self, gvk: GroupVersionKind) -> Any:
        """An empty object of a kind, with its kind and apiVersion. Raises NotRegisteredError."""
        return self.lookup(gvk)(kind=gvk.kind, api_version=str(gvk.group_version))

    def hub(self, group_version: GroupVersion) -> GroupVersion:
        """The version in which the kinds of `group_version` are stored and handled."""
        return self._hubs.get(group_version, group_version)

    def convert(self, obj: Any, target: type[msgspec.Struct]) -> Any:
        """`obj` as an object of `target`, kind and apiVersion set; `obj` itself if it is one already.

        Raises LookupError if there is no way. A list is converted item by item.
        """
        source = type(obj)
        if source is target:
            return obj
        convert = self._conversions.get((source, target))
        if convert is not None:
            return _stamped(convert(obj), kind_of(target))
        gvk = kind_of(target)
        if gvk.kind.endswith("List") and hasattr(obj, "items"):
            item = self.lookup(gvk._replace(kind=gvk.kind.removesuffix("List")))
            items = None if obj.items is None else [self.convert(each, item) for each in obj.items]
            return _stamped(target(metadata=obj.metadata, items=items), gvk)
        raise LookupError(f"{source.__module__}.{source.__name__} cannot be converted to {gvk}")


def _stamped(obj: Any, gvk: GroupVersionKind) -> Any:
    obj.kind = gvk.kind
    obj.api_version = str(gvk.group_version)
    return obj
