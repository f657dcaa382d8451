"""Names of versions, kinds and resources: k8s.io/apimachinery `runtime/schema`."""

from __future__ import annotations

from typing import Final, NamedTuple


class GroupVersionError(ValueError):
    """The error for text that is not `VERSION` or `GROUP/VERSION`, with upstream's message."""


class GroupResource(NamedTuple):
    """A resource without its version, e.g. ("apps", "deployments"); printed as `deployments.apps`."""

    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


NO_RESOURCE: Final = GroupResource("", "")


class GroupKind(NamedTuple):
    """A kind without its version, e.g. ("apps", "Deployment"); printed as `Deployment.apps`."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class GroupVersion(NamedTuple):
    """A version of a group; printed as `apiVersion` has it: `v1`, `apps/v1`."""

    group: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def with_kind(self, kind: str) -> GroupVersionKind:
        """Return the kind of this name in this group version."""
        return GroupVersionKind(self.group, self.version, kind)


class GroupVersionKind(NamedTuple):
    """A kind of a group version; printed as `apps/v1, Kind=Deployment`."""

    group: str
    version: str
    kind: str

    @property
    def group_version(self) -> GroupVersion:
        """Return the group version of the kind."""
        return GroupVersion(self.group, self.version)

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"


def parse_group_version(text: str) -> GroupVersion:
    """Parse an `apiVersion`. Empty text and a lone slash are the empty version.

    Raises GroupVersionError.
    """
    if text in ("", "/"):
        return GroupVersion("", "")
    group, slash, version = text.rpartition("/")
    if "/" in group:
        raise GroupVersionError(f"unexpected GroupVersion string: {text}")
    return GroupVersion(group if slash else "", version)


_SCHEME: Final = "pkg/runtime/scheme.go:111"
"""The name of the scheme of the built-in types in upstream's messages."""


def no_type_registered(wanted: GroupVersionKind) -> str:
    """Return upstream's message for a kind that its scheme does not know, where a Scale is expected."""
    return f'no kind is registered for the type {wanted.version}.{wanted.kind} in scheme "{_SCHEME}"'


def no_kind_registered(kind: str, api_version: str) -> str:
    """Return upstream's message for a kind that is not known in a version."""
    return f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"'


def no_internal_kind(kind: str, group: str) -> str:
    """Return upstream's message for a kind that no version of a group has."""
    return f'no kind "{kind}" is registered for the internal version of group "{group}" in scheme "{_SCHEME}"'


def go_package(group: str) -> str:
    """Return the name of the Go package of a group's types, as upstream's messages have it: "core", "apps", "rbac"."""
    return group.partition(".")[0] or "core"
