"""Versions of a resource other than the stored version, which --runtime-config turns on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from steersman.kinds.built_in import built_in, gvk_of
from steersman.machinery.conversion.conversion import Conversion
from steersman.machinery.conversion.derived import derive_conversion
from steersman.rest.resource import OtherVersion


def deprecated(kind: type[msgspec.Struct], since: str, until: str, replacement: str = "") -> str:
    """Return the warning about a kind that is deprecated `since` a release and removed in `until` ("1.37").

    `replacement` is the version and kind to use instead ("storage.k8s.io/v1 VolumeAttributesClass").
    """
    gvk = gvk_of(kind)
    text = f"{gvk.group_version} {gvk.kind} is deprecated in v{since}+, unavailable in v{until}+"
    return f"{text}; use {replacement}" if replacement else text


def older_version(
    hub: type[msgspec.Struct],
    kind: type[msgspec.Struct],
    warning: str = "",
    *,
    default: Callable[[Any], None] | None = None,
    conversions: Iterable[Conversion] = (),
) -> OtherVersion:
    """Return `kind` as another version of `hub`, which is stored; `default` fills in the defaults of `kind`.

    Both types must be alike, unless `conversions` has the conversions in both directions.
    """
    known = {(each.source, each.target): each.convert for each in conversions}
    return OtherVersion(
        built_in(kind, default=default),
        known.get((kind, hub)) or derive_conversion(kind, hub),
        known.get((hub, kind)) or derive_conversion(hub, kind),
        deprecation_warning=warning,
    )
