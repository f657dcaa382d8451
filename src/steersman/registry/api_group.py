"""The fact sheet of an API group: its resources, its versions, and its position in lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from steersman.registry.services import Services
from steersman.rest.resource import OtherVersion, Resource


class Version(Struct, frozen=True):
    """A version of a group. The version with the highest priority is listed first, as with an APIService."""

    name: str
    priority: int = 15


class OnRequest(Struct, frozen=True, kw_only=True):
    """Versions and resources of a group that only `--runtime-config` turns on."""

    older_versions: Mapping[str, tuple[OtherVersion, ...]] = field(default_factory=dict)
    """Additional versions of the group's resources, by plural."""
    resources: tuple[Resource[Any, Services], ...] = ()
    """Resources that have no version which is served by default."""


class APIGroup(Struct, frozen=True, kw_only=True):
    """A group as this server serves it. Groups of higher priority are listed first. Alpha and beta are off by default."""

    name: str
    priority: int
    versions: tuple[Version, ...]
    """All versions that can be served, the preferred version first."""
    empty_versions: tuple[str, ...] = ()
    """Versions that upstream knows, but serves no resource in with the default feature gates."""
    resources: tuple[Resource[Any, Services], ...] = ()
    on_request: Callable[[], OnRequest] = OnRequest
    """Imports and returns the parts that are off by default; called only if one of them is turned on."""
