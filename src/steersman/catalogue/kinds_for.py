"""The kinds to which the rules of admission policies apply, by resource names.

Follows `KindsFor` of client-go's RESTMapper, and apiserver `admission/plugin/policy/validating` typechecking.go. A name
is the plural or the singular of a resource, in any case, or client-go's guess for the name of a list kind. A rule
without a group applies to resources of every group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Final, Protocol

import msgspec

from steersman.catalogue.catalogue import Catalogue
from steersman.endpoints.discovery import ServedResource, singular
from steersman.machinery.go.strings import to_lower
from steersman.machinery.identity.schema import GroupVersionKind

MAX_TYPES: Final = 10
"""The most kinds that are searched; the rule that reaches this number ends the search."""


class Rule(Protocol):
    """The part of a policy rule that names the resources to which it applies."""

    api_groups: list[str]
    api_versions: list[str]
    resources: list[str]


@dataclass(frozen=True, slots=True)
class ListedVersion:
    """A group version in discovery: resources served here, or the APIVersionDiscovery of another server."""

    group: str
    version: str
    served: Sequence[ServedResource]
    remote: bytes


def listed_versions(catalogue: Catalogue) -> list[ListedVersion]:
    """Return all group versions in the order of discovery."""
    return [
        ListedVersion(
            group.name,
            version,
            catalogue.resources(group.name, version),
            catalogue.remote_discovery(group.name).get(version, b""),
        )
        for group in catalogue.listed_groups()
        for version in group.versions
    ]


class ResourceKinds:
    """The kinds of all resources in a snapshot of discovery. For many resources, construction takes long."""

    def __init__(self, versions: Iterable[ListedVersion]) -> None:
        self._by_name: Final[dict[str, list[GroupVersionKind]]] = {}
        for each in versions:
            for name, kind in _names(each).items():
                self._by_name.setdefault(name, []).append(GroupVersionKind(each.group, each.version, kind))

    def kinds_for(self, rules: Iterable[Rule]) -> list[GroupVersionKind]:
        """Return the kinds to which `rules` apply, sorted by group, version and kind; a rule with a wildcard gives
        none.
        """
        found: set[GroupVersionKind] = set()
        for rule in rules:
            for number, kind in enumerate(self._kinds_for_rule(rule), 1):
                found.add(kind)
                if number == MAX_TYPES:
                    return _in_order(found)
        return _in_order(found)

    def _kinds_for_rule(self, rule: Rule) -> Iterator[GroupVersionKind]:
        """Yield the kinds of a rule sorted by the names that lead to them, each as often as a name leads to it.

        Names are looked up one by one, not in combination with every group and version of the rule.
        """
        if any("*" in each for each in (*rule.api_groups, *rule.api_versions)):
            return
        groups, versions = frozenset(rule.api_groups), frozenset(rule.api_versions)
        names = Counter(each for each in rule.resources if "*" not in each and "/" not in each)
        places: dict[str, dict[str, list[tuple[str, GroupVersionKind]]]] = {}
        for name in sorted(names):
            for kind in self._by_name.get(to_lower(name), ()):
                if kind.version in versions:
                    for group in groups & {kind.group, ""}:
                        places.setdefault(group, {}).setdefault(kind.version, []).append((name, kind))
        for group in sorted(rule.api_groups):
            in_group = places.get(group)
            if in_group is None:
                continue
            for version in sorted(rule.api_versions):
                for name, kinds in _grouped(in_group.get(version, ())):
                    for some in repeat(kinds, names[name]):
                        yield from some


def _grouped(places: Iterable[tuple[str, GroupVersionKind]]) -> Iterable[tuple[str, list[GroupVersionKind]]]:
    found: dict[str, list[GroupVersionKind]] = {}
    for name, kind in places:
        found.setdefault(name, []).append(kind)
    return found.items()


def _in_order(kinds: Iterable[GroupVersionKind]) -> list[GroupVersionKind]:
    return sorted(kinds, key=lambda each: (each.group, each.version, each.kind))


class _ResponseKind(msgspec.Struct):
    kind: str = ""


class _Remote(msgspec.Struct, rename="camel"):
    resource: str = ""
    singular_resource: str = ""
    response_kind: _ResponseKind | None = None


class _RemoteVersion(msgspec.Struct):
    resources: list[_Remote] = []


_REMOTE: Final = msgspec.json.Decoder(_RemoteVersion)


def _names(listed: ListedVersion) -> dict[str, str]:
    """Return the kinds of one group version by the names that lead to them."""
    found: dict[str, str] = {}
    for plural, one, kind in _resources(listed):
        found[one] = found[plural] = kind
        found |= _guessed(f"{kind}List")
    return found | _guessed("List")


def _guessed(kind: str) -> dict[str, str]:
    """Return the names that client-go guesses for a list kind."""
    name = to_lower(kind)
    return {name: kind, f"{name}s": kind}


def _resources(listed: ListedVersion) -> Iterator[tuple[str, str, str]]:
    """Yield plural, singular and kind of each resource."""
    if not listed.remote:
        for each in listed.served:
            yield each.resource.plural, singular(each.resource), each.kind
        return
    for remote in _REMOTE.decode(listed.remote).resources:
        if remote.response_kind is not None:
            kind = remote.response_kind.kind
            yield remote.resource, remote.singular_resource or to_lower(kind), kind
