"""The catalogue: every resource that is served, with its storage, its versions, its routes and its place in the order.

Resources come and go while the server runs, on its loop: the next request finds what is there. Routes, discovery,
OpenAPI, metrics and the checks of owners read the catalogue, and whoever keeps something made of it subscribes.
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

Changed = Callable[[str], None]
"""Is told the group of which something has changed. Called on the loop; must not block, nor raise."""
Serves = Callable[[str, str, str], bool]
"""Whether a resource is served in a version: group, version, plural."""

_KUBE_VERSION: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?", re.ASCII)
_STABILITY: Final = {"": 2, "beta": 1, "alpha": 0}


class Priority(Struct, frozen=True):
    """Where a group version stands in lists, as its APIService has it: higher ones first."""

    group: int = 1000
    version: int = 100


class Group(Struct, frozen=True):
    """A group that is served, and its versions, the preferred one first."""

    name: str
    versions: tuple[str, ...]


class CatalogueEntry(Struct, frozen=True):
    """A resource that is served: what implements it, and the versions it is served in."""

    resource: Resource[Any]
    storage: ResourceStorage
    versions: tuple[ServedResource, ...]
    routes: Routes


class Catalogue:
    """See the module. `shared` is what all resources have in common, `mapper` knows what is in the catalogue."""

    def __init__(self, shared: Shared, mapper: RESTMapper | None = None) -> None:
        self._shared = shared
        self.mapper = mapper or RESTMapper()
        self.routes: Routes = {}
        """By template."""
        self.defined: dict[tuple[str, str, str], DefinedRoutes] = {}
        """By group, version and plural: resources that definitions make."""
        self.roots: dict[str, int] = {}
        """How many resources there are below the path of a group version, e.g. "/apis/apps/v1"."""
        self._entries: dict[tuple[str, str], CatalogueEntry] = {}
        self._hidden: set[tuple[str, str]] = set()
        """Those that nobody has been told of, but the mapper."""
        self._defined: set[str] = set()
        """The paths of groups in which definitions make all resources."""
        self._by_version: dict[str, dict[str, dict[str, ServedResource]]] = {}
        """By group, version and plural."""
        self._declared: dict[str, dict[str, bytes]] = {}
        """By group and version: group versions that APIServices name, with what discovery says of those that another
        server answers."""
        self._priorities: dict[tuple[str, str], Priority] = {}
        self._groups: list[Group] | None = None
        self._listed: list[Group] | None = None
        self._subscribers: list[Changed] = []
        self.revision = 0
        """Another number after each change."""

    # Changes

    def put(
        self,
        bound: BoundResource[Any],
        storage: ResourceStorage,
        *,
        serves: Serves = lambda group, version, plural: True,
        announced: bool = True,
    ) -> None:
        """Serves a resource from its storage from now on, in the versions for which `serves` says so, with those of its
        verbs that the storage can do.

        What was served under its group and name before is not any more; its storage goes on, for requests that are
        being answered. What is not `announced` answers requests already; nobody is told of it before `announce`.

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
        routes = routes_of(versions, bound, storage, self._shared)
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
            self.mapper.add(each)  # whoever judges requests finds what they are about, announced or not
        if announced or known is not None:
            self._announce(entry, *([known] if known is not None else []))
        else:
            self._hidden.add(key)

    def announce(self, group: str, plural: str) -> None:
        """Tells of a resource that was not announced when it was put in. Raises KeyError for what is not served."""
        entry = self._entries[group, plural]
        if (group, plural) in self._hidden:
            self._hidden.discard((group, plural))
            self._announce(entry)

    def _announce(self, entry: CatalogueEntry, *others: CatalogueEntry) -> None:
        plural = entry.resource.plural
        for each in entry.versions:
            self._by_version.setdefault(each.group, {}).setdefault(each.version, {})[plural] = each
        self._tell(*others, entry)

    def remove(self, group: str, plural: str) -> ResourceStorage:
        """Ends serving a resource of this group (that of its stored version); what its storage was.

        Ending the storage, and with it the watches, is up to who made it. Raises KeyError for what is not served.
        """
        entry = self._entries.pop((group, plural))
        is_hidden = (group, plural) in self._hidden
        self._forget(entry)
        if not is_hidden:
            self._tell(entry)
        return entry.storage

    def is_defined(self, path: str) -> bool:
        """Whether definitions alone, or other servers, make the group of a path, e.g. "/apis/example.com/v1"."""
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

    def prioritize(self, group: str, version: str, priority: Priority | None) -> None:
        """Says where a group version stands; with None it comes last again, as those of which nothing is said."""
        if priority is None:
            self._priorities.pop((group, version), None)
        else:
            self._priorities[group, version] = priority
        self._changed({group})

    def declare(self, group: str, version: str, discovery: bytes | None = None) -> None:
        """Lists a group version from now on, whether resources of it are served here or not. `discovery` is its
        APIVersionDiscovery in JSON, for one that is answered elsewhere, once that is known; without it, what was said
        before holds."""
        versions = self._declared.setdefault(group, {})
        before = versions.get(version)
        discovery = (before or b"") if discovery is None else discovery
        versions[version] = discovery
        if before != discovery and (before or discovery or not self._has(group, version)):
            self._changed({group})

    def undeclare(self, group: str, version: str) -> None:
        """Ends what `declare` began; nothing happens if it did not."""
        versions = self._declared.get(group, {})
        before = versions.pop(version, None)
        if before is None:
            return
        if not versions:
            del self._declared[group]
        if before or not self._has(group, version):
            self._changed({group})

    def _has(self, group: str, version: str) -> bool:
        """Whether resources of a group version are served here."""
        return version in self._by_version.get(group, {})

    def subscribe(self, changed: Changed) -> None:
        """Tells of the groups there are, and from then on of every change."""
        self._subscribers.append(changed)
        for group in {**self._by_version, **self._declared}:
            changed(group)

    def tell_anew(self, group: str) -> None:
        """Says that what discovery tells of a group is not what it was (`Resource.told_verbs`)."""
        self._changed({group})

    def _tell(self, *entries: CatalogueEntry) -> None:
        self._changed({each.group for entry in entries for each in entry.versions})

    def _changed(self, groups: set[str]) -> None:
        self.revision += 1
        self._groups = self._listed = None
        for changed in self._subscribers:
            for group in groups:
                changed(group)

    # What there is

    def entry(self, group: str, plural: str) -> CatalogueEntry | None:
        """A resource by the group of its stored version, None if it is not served."""
        return self._entries.get((group, plural))

    def served(self) -> Iterator[ServedResource]:
        """Every resource in every version it is served in."""
        for key, entry in self._entries.items():
            if key not in self._hidden:
                yield from entry.versions

    def groups(self) -> Sequence[Group]:
        """The groups in their order, each with its versions in theirs."""
        if self._groups is None:
            self._groups = sorted((self._group(name) for name in self._by_version), key=self._group_order)
        return self._groups

    def group(self, name: str) -> Group | None:
        """One group, None if nothing of it is served."""
        return self._group(name) if name in self._by_version else None

    def listed_groups(self) -> Sequence[Group]:
        """The same with the group versions that were declared: what clients are shown in plain discovery."""
        if not self._declared:
            return self.groups()
        if self._listed is None:
            names = {**self._by_version, **self._declared}
            self._listed = sorted((self._listed_group(name) for name in names), key=self._group_order)
        return self._listed

    def listed_group(self, name: str) -> Group | None:
        """One of them."""
        return self._listed_group(name) if name in self._by_version or name in self._declared else None

    def remote_discovery(self, group: str) -> Mapping[str, bytes]:
        """By version: what discovery says of those of a group that other servers answer, in JSON."""
        return {version: text for version, text in self._declared.get(group, {}).items() if text}

    def find(self, group: str, version: str, plural: str) -> ServedResource | None:
        """A resource in a version it is served in."""
        return self._by_version.get(group, {}).get(version, {}).get(plural)

    def resources(self, group: str, version: str) -> list[ServedResource]:
        """What is served in a group version, by name."""
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
    """A key that sorts versions as Kubernetes does: stable ones first, the highest first, then all others by name."""
    found = _KUBE_VERSION.fullmatch(version)
    if found is None:
        return 1, version
    major, level, minor = found.groups()
    return 0, -_STABILITY[level or ""], -int(major), -int(minor or 0)
