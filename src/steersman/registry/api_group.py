"""The fact sheet of an API group: its resources and versions, and where they stand in lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from steersman.registry.services import Services
from steersman.rest.resource import OtherVersion, Resource


class Version(Struct, frozen=True):
    """A version of a group; of one group's the one of the highest priority comes first, as its APIService has it."""

    name: str
    priority: int = 15


class OnRequest(Struct, frozen=True, kw_only=True):
    """What `--runtime-config` can turn on in a group."""

    older_versions: Mapping[str, tuple[OtherVersion, ...]] = field(default_factory=dict)
    """Other versions of the group's resources, by resource."""
    resources: tuple[Resource[Any, Services], ...] = ()
    """Those of which no version is served by default."""


class APIGroup(Struct, frozen=True, kw_only=True):
    """A group as this server serves it; higher priorities come first. Alpha and beta versions are off by default."""

    name: str
    priority: int
    versions: tuple[Version, ...]
    """All that can be served, the preferred one first."""
    empty_versions: tuple[str, ...] = ()
    """Those that upstream knows, and serves nothing in with the default feature gates."""
    resources: tuple[Resource[Any, Services], ...] = ()
    on_request: Callable[[], OnRequest] = OnRequest
    """Imports what is off by default, and only then."""
