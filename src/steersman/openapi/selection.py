"""Cuts an OpenAPI document down to what a server serves.

A path stays if its resource is served in its version, or if the group it lists is. Where paths went, the schemas and
shared parameters that nothing refers to any more go too, as upstream's builder only adds what a route refers to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from steersman.openapi.documents import Tree


@dataclass(frozen=True, slots=True)
class Served:
    """What a server answers: resources as (group, version, plural), and the paths that are no resources."""

    resources: frozenset[tuple[str, str, str]]
    paths: frozenset[str]

    def group(self, group: str) -> bool:
        """Whether any version of the group is served."""
        return any(each[0] == group for each in self.resources)

    def group_version(self, group: str, version: str) -> bool:
        """Whether any resource of the group version is served."""
        return any(each[:2] == (group, version) for each in self.resources)

    def path(self, path: str) -> bool:
        """Whether a path of an OpenAPI document, e.g. "/api/v1/namespaces/{namespace}/pods/{name}/log", is served.

        Document names follow the same form with a slash before them: "/apis/apps/v1".
        """
        parts = path.strip("/").split("/")
        if parts[0] == "api":
            parts.insert(1, "")
        elif parts[0] != "apis":
            return path.rstrip("/") in self.paths
        if len(parts) == 1:
            return True
        if len(parts) == 2:
            return self.group(parts[1])
        if len(parts) == 3:
            return self.group_version(parts[1], parts[2])
        return (parts[1], parts[2], _plural(parts[3:])) in self.resources


def _plural(parts: list[str]) -> str:
    """The resource's plural name, from the path's segments after the version."""
    if parts[0] == "watch":
        parts = parts[1:]
    if len(parts) > 2 and parts[:2] == ["namespaces", "{namespace}"]:
        return parts[2]
    return parts[0]


def select(document: Tree, served: Served) -> Tree:
    """Drops from `document`, v2 or v3, in place, what is not served; returns it."""
    paths = document["paths"]
    gone = [path for path in paths if not served.path(path)]
    for path in gone:
        del paths[path]
    if gone:
        _drop_unused(document)
    return document


def _drop_unused(document: Tree) -> None:
    """Drops the schemas, and in v2 the shared parameters, that no path leads to."""
    components = document.get("components", document)
    root = "#/components" if "components" in document else "#"
    sections: dict[str, Tree] = {
        f"{root}/{name}/": components[name] for name in ("schemas", "definitions", "parameters") if name in components
    }
    used: set[str] = set()
    found = set(_references(document["paths"]))
    while found:
        used |= found
        found = {each for reference in found for each in _references(_target(sections, reference))} - used
    for prefix, section in sections.items():
        for name in [name for name in section if prefix + name not in used]:
            del section[name]


def _target(sections: dict[str, Tree], reference: str) -> Any:
    """What a reference, e.g. "#/definitions/NAME", refers to; None if it is elsewhere or missing."""
    section, slash, name = reference.rpartition("/")
    return sections.get(section + slash, {}).get(name)


def _references(value: Any) -> Iterator[str]:
    """All references in `value`."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            reference = each.get("$ref")
            if isinstance(reference, str):
                yield reference
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each)
