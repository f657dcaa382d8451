"""The resources of kube-apiserver including those of `--runtime-config`; imported only if that flag enables some."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from steersman.controlplane.resources import KUBE_API_GROUPS
from steersman.registry.services import Services
from steersman.rest.resource import Resource


def kube_api(serves: Callable[[str, str, str], bool]) -> tuple[Resource[Any, Services], ...]:
    """Return the resources on by default, then the optional ones.

    Older and optional versions are included if `serves(group, version, resource)` is True; stable versions always are.
    """
    return (*_with_older_versions(serves), *_on_request(serves))


def _with_older_versions(serves: Callable[[str, str, str], bool]) -> Iterator[Resource[Any, Services]]:
    for group in KUBE_API_GROUPS:
        known = group.on_request().older_versions
        for each in group.resources:
            older = known.get(each.plural, ())
            served = tuple(other for other in older if serves(other.group, other.version, each.plural))
            yield replace(each, other_versions=(*each.other_versions, *served)) if served else each


def _on_request(serves: Callable[[str, str, str], bool]) -> Iterator[Resource[Any, Services]]:
    for group in KUBE_API_GROUPS:
        for each in group.on_request().resources:
            served = tuple(other for other in each.other_versions if serves(other.group, other.version, each.plural))
            if served or serves(each.group, each.version, each.plural):
                yield replace(each, other_versions=served)
