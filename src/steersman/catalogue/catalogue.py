"""The catalogue: every served resource with its storage, versions and routes, and its position in lists.

Resources are added and removed while the server runs, on its event loop, and the next request sees the change. Routes,
discovery, OpenAPI, metrics and the checks of owner references read the catalogue. Code that caches something derived
from the catalogue subscribes to changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct

from steersman.catalogue.rest_mapper import RESTMapper
from steersman.endpoints.defined_routes import DefinedRoutes
from steersman.endpoints.discovery import ServedResource, served_versions
from steersman.endpoints.installer import Routes, offered, routes_of
from steersman.endpoints.scope import Shared, root_of
from steersman.rest.bound import BoundResource
from steersman.rest.capabilities import ResourceStorage
from steersman.rest.resource import Resource
from steersman.work.patterns import late_pattern

Changed = Callable[[str], None]
"""Called with the group that has changed, on the event loop; must not block nor raise."""
Serves = Callable[[str, str, str], bool]
"""(group, version, plural) -> True if the resource is served in the version."""

_KUBE_VERSION: Final = late_pattern(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?", re.ASCII)
_STABILITY: Final = {"": 2, "beta": 1, "alpha": 0}


class Priority(Struct, frozen=True):
    """The position of a group version in lists, as its APIService has it: higher priorities first."""

    group: int = 1000
    version: int = 100


class Group(Struct, frozen=True):
    """A served group and its versions, the preferred version first."""

    name: str
    versions: tuple[str, ...]


class CatalogueEntry(Struct, frozen=True):
    """A served resource: its storage, its routes, and the versions in which it is served."""

    resource: Resource[Any]
    storage: ResourceStorage
    versions: tuple[ServedResource, ...]
    routes: Routes


class Catalogue:
    """The live table of served resources; see the module.

    `shared` is common to the handlers of all resources. `mapper` is filled with the resources of the catalogue.
    """

    def __init__(self, shared: Shared, mapper: RESTMapper | None = None) -> None:
        self.shared = shared
        self.mapper = mapper or RESTMapper()
        self.routes: Routes = {}
        """Routes by path template."""
        self.defined: dict[tuple[str, str, str], DefinedRoutes] = {}
        """Custom resources by group, version and plural."""
        self.roots: dict[str, int] = {}
        """The number of resources below the path of a group version, e.g. "/apis/apps/v1"."""
        self._entries: dict[tuple[str, str], CatalogueEntry] = {}
        self._hidden: set[tuple[str, str]] = set()
        """Resources, by group and plural, that only the mapper and the routes know so far, as they are not announced.
        """
        self._defined: set[str] = set()
        """Paths of groups that have only custom resources."""
        self._by_version: dict[str, dict[str, dict[str, ServedResource]]] = {}
        """Announced resources by group, version and plural."""
        self._declared: dict[str, dict[str, bytes]] = {}
        """Group versions that APIServices declare, by group and version, with the APIVersionDiscovery of the group
        versions that another server answers.
        """
        self._priorities: dict[tuple[str, str], Priority] = {}
        self._groups: list[Group] | None = None
        self._listed: list[Group] | None = None
        self._subscribers: list[Changed] = []
        self.revision = 0
        """A number that changes with each change of the catalogue."""

    # Changes

    def put(
        self,
        bound: BoundResource[Any],
        storage: ResourceStorage,
        *,
        serves: Serves = lambda group, version, plural: True,
        announced: bool = True,
    ) -> None:
        """Serve a resource from its storage from now on, with the verbs that the storage supports.

        `serves` selects the versions. A resource that is already served under the same group and plural is replaced;
        its storage goes on for requests in flight. A resource that is not `announced` answers requests, but subscribers
        do not learn of it before `announce`.

        Raises ValueError if another resource has one of its paths.
        """
        resource = offered(bound.resource, storage)
        versions = tuple(
            each for each in served_versions(resource) if serves(each.group, each.version, resource.plural)
        )
        key = (resource.group, resource.plural)
        known = self._entries.get(key)
        for each in versions:
            there = self._by_version.get(each.group, {}).get(each.version, {}).get(resource.plural)
            if there is not None and (known is None or there not in known.versions):
                raise ValueError(f"{resource.plural} of {each.group}/{each.version} are served already")
        routes = routes_of(versions, bound, storage, self.shared)
        if known is not None:
            self._forget(known)
        self._entries[key] = entry = CatalogueEntry(resource, storage, versions, routes)
        self.routes |= routes
        for each in versions:
            root = root_of(each.group, each.version)
            self.roots[root] = self.roots.get(root, 0) + 1
            if resource.by_definition and each.group not in self._by_version:
                self._defined.add(f"/apis/{each.group}")
            if resource.by_definition:
                self.defined[each.group, each.version, resource.plural] = DefinedRoutes(
                    [route for route in routes.values() if route.version == each.version],
                    namespaced=resource.namespaced,
                    warning=each.deprecation_warning,
                )
            self.mapper.add(each)  # admission finds the resource of a request, announced or not
        if announced or known is not None:
            self._announce(entry, *([known] if known is not None else []))
        else:
            self._hidden.add(key)

    def announce(self, group: str, plural: str) -> None:
        """Announce a resource that was put in without. Raises KeyError if it is not served."""
        entry = self._entries[group, plural]
        if (group, plural) in self._hidden:
            self._hidden.discard((group, plural))
            self._announce(entry)

    def _announce(self, entry: CatalogueEntry, *others: CatalogueEntry) -> None:
        plural = entry.resource.plural
        for each in entry.versions:
            self._by_version.setdefault(each.group, {}).setdefault(each.version, {})[plural] = each
        self._notify(*others, entry)

    def remove(self, group: str, plural: str) -> ResourceStorage:
        """Stop serving the resource with this group (of its stored version) and plural; return its storage.

        The owner of the storage has to stop it, and with it the watches. Raises KeyError if the resource is not served.
        """
        entry = self._entries.pop((group, plural))
        is_hidden = (group, plural) in self._hidden
        self._forget(entry)
        if not is_hidden:
            self._notify(entry)
        return entry.storage

    def is_defined(self, path: str) -> bool:
        """Return True if the group of a path ("/apis/example.com/v1") has only custom resources, or only remote
        versions.
        """
        parts = path.split("/", 3)
        if "/".join(parts[:3]) in self._defined:
            return True
        return len(parts) > 2 and parts[1] == "apis" and parts[2] in self._declared and parts[2] not in self._by_version

    def _forget(self, entry: CatalogueEntry) -> None:
        plural = entry.resource.plural
        is_hidden = (entry.resource.group, plural) in self._hidden
        self._hidden.discard((entry.resource.group, plural))
        for template in entry.routes:
            del self.routes[template]
        for each in entry.versions:
            root = root_of(each.group, each.version)
            self.roots[root] -= 1
            if not self.roots[root]:
                del self.roots[root]
            self.defined.pop((each.group, each.version, plural), None)
            self.mapper.remove(each)
            if is_hidden:
                if each.group not in self._by_version:
                    self._defined.discard(f"/apis/{each.group}")
                continue
            versions = self._by_version[each.group]
            del versions[each.version][plural]
            if not versions[each.version]:
                del versions[each.version]
            if not versions:
                del self._by_version[each.group]
                self._defined.discard(f"/apis/{each.group}")

    def set_priority(self, group: str, version: str, priority: Priority | None) -> None:
        """Set the position of a group version; None puts it last again, like group versions without a priority."""
        if priority is None:
            self._priorities.pop((group, version), None)
        else:
            self._priorities[group, version] = priority
        self._changed({group})

    def declare(self, group: str, version: str, discovery: bytes | None = None) -> None:
        """List a group version from now on, whether resources of it are served here or not.

        `discovery` is its APIVersionDiscovery in JSON, for a group version that another server answers, once it is
        known. None keeps the earlier document.
        """
        versions = self._declared.setdefault(group, {})
        before = versions.get(version)
        discovery = (before or b"") if discovery is None else discovery
        versions[version] = discovery
        if before != discovery and (before or discovery or not self._has(group, version)):
            self._changed({group})

    def undeclare(self, group: str, version: str) -> None:
        """Undo `declare`; does nothing for a group version that was not declared."""
        versions = self._declared.get(group, {})
        before = versions.pop(version, None)
        if before is None:
            return
        if not versions:
            del self._declared[group]
        if before or not self._has(group, version):
            self._changed({group})

    def _has(self, group: str, version: str) -> bool:
        """Return True if resources of a group version are served here."""
        return version in self._by_version.get(group, {})

    def subscribe(self, changed: Changed) -> None:
        """Call `changed` for every current group, and from then on for each change of a group."""
        self._subscribers.append(changed)
        for group in {**self._by_version, **self._declared}:
            changed(group)

    def notify_changed(self, group: str) -> None:
        """Notify subscribers that the discovery of a group has changed without the catalogue (`Resource.discovery_verbs`)."""
        self._changed({group})

    def _notify(self, *entries: CatalogueEntry) -> None:
        self._changed({each.group for entry in entries for each in entry.versions})

    def _changed(self, groups: set[str]) -> None:
        self.revision += 1
        self._groups = self._listed = None
        for changed in self._subscribers:
            for group in groups:
                changed(group)

    # Queries

    def entry(self, group: str, plural: str) -> CatalogueEntry | None:
        """Return the entry of a resource by the group of its stored version, None if it is not served."""
        return self._entries.get((group, plural))

    def served_as(self, group: str, version: str, plural: str) -> tuple[CatalogueEntry, ServedResource] | None:
        """Return a resource in one of its served versions, and its entry; None if it is not served or not announced."""
        served = self._by_version.get(group, {}).get(version, {}).get(plural)
        entry = None if served is None else self._entries.get((served.resource.group, plural))
        return None if served is None or entry is None else (entry, served)

    def served(self) -> Iterator[ServedResource]:
        """Yield every resource in every version in which it is served."""
        for key, entry in self._entries.items():
            if key not in self._hidden:
                yield from entry.versions

    def groups(self) -> Sequence[Group]:
        """Return the groups in the order of discovery, each with its versions in order."""
        if self._groups is None:
            self._groups = sorted((self._group(name) for name in self._by_version), key=self._group_order)
        return self._groups

    def group(self, name: str) -> Group | None:
        """Return a group, None if nothing of it is served."""
        return self._group(name) if name in self._by_version else None

    def listed_groups(self) -> Sequence[Group]:
        """Return the groups with declared group versions included, as plain discovery shows them."""
        if not self._declared:
            return self.groups()
        if self._listed is None:
            names = {**self._by_version, **self._declared}
            self._listed = sorted((self._listed_group(name) for name in names), key=self._group_order)
        return self._listed

    def listed_group(self, name: str) -> Group | None:
        """Return a group with its declared versions included, None if there is no such group."""
        return self._listed_group(name) if name in self._by_version or name in self._declared else None

    def remote_discovery(self, group: str) -> Mapping[str, bytes]:
        """Return, by version, the APIVersionDiscovery JSON of the group versions that other servers answer."""
        return {version: text for version, text in self._declared.get(group, {}).items() if text}

    def resources(self, group: str, version: str) -> list[ServedResource]:
        """Return the resources of a group version, sorted by plural."""
        found = self._by_version.get(group, {}).get(version, {})
        return [found[plural] for plural in sorted(found)]

    def _group(self, name: str) -> Group:
        versions = sorted(self._by_version[name], key=partial(self._version_order, name))
        return Group(name, tuple(versions))

    def _listed_group(self, name: str) -> Group:
        versions = {**self._by_version.get(name, {}), **self._declared.get(name, {})}
        return Group(name, tuple(sorted(versions, key=partial(self._version_order, name))))

    def _priority(self, group: str, version: str) -> Priority:
        return self._priorities.get((group, version)) or _DEFAULT

    def _group_order(self, group: Group) -> tuple[int, str]:
        return -max(self._priority(group.name, version).group for version in group.versions), group.name

    def _version_order(self, group: str, version: str) -> tuple[Any, ...]:
        return -self._priority(group, version).version, *version_order(version)


_DEFAULT: Final = Priority()


def version_order(version: str) -> tuple[Any, ...]:
    """Return a sort key that orders versions as Kubernetes does: stable first, highest first, then all others by name."""
    match = _KUBE_VERSION.fullmatch(version)
    if match is None:
        return 1, version
    major, level, minor = match.groups()
    return 0, -_STABILITY[level or ""], -int(major), -int(minor or 0)
