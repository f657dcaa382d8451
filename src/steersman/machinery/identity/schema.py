"""Names of versions, kinds and resources: k8s.io/apimachinery `runtime/schema`."""

from __future__ import annotations

from typing import Final, NamedTuple


class GroupVersionError(ValueError):
    """The text is not `VERSION` or `GROUP/VERSION`; the message is upstream's."""


class GroupResource(NamedTuple):
    """A resource of any version, e.g. ("apps", "deployments"); prints as `deployments.apps`."""

    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


NO_RESOURCE: Final = GroupResource("", "")


class GroupKind(NamedTuple):
    """A kind of any version, e.g. ("apps", "Deployment"); prints as `Deployment.apps`."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class GroupVersion(NamedTuple):
    """A group's version; prints as objects have it in `apiVersion`: `v1`, `apps/v1`."""

    group: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def with_kind(self, kind: str) -> GroupVersionKind:
        """A kind of this version."""
        return GroupVersionKind(self.group, self.version, kind)


class GroupVersionKind(NamedTuple):
    """A kind of a version; prints as `apps/v1, Kind=Deployment`."""

    group: str
    version: str
    kind: str

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"


def parse_group_version(text: str) -> GroupVersion:
    """What an `apiVersion` names; nothing, or a lone slash, names the empty version. Raises GroupVersionError."""
    if text in ("", "/"):
        return GroupVersion("", "")
    group, slash, version = text.rpartition("/")
    if "/" in group:
        raise GroupVersionError(f"unexpected GroupVersion string: {text}")
    return GroupVersion(group if slash else "", version)


_SCHEME: Final = "pkg/runtime/scheme.go:111"
"""What upstream's messages call the scheme of the built-in types."""


def no_type_registered(wanted: GroupVersionKind) -> str:
    """The text for what is no Scale where upstream's scheme does not know that either."""
    return f'no kind is registered for the type {wanted.version}.{wanted.kind} in scheme "{_SCHEME}"'


def no_kind_registered(kind: str, api_version: str) -> str:
    """The text for a kind that nobody knows in that version."""
    return f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"'


def no_internal_kind(kind: str, group: str) -> str:
    """The text for a kind that no version of the group knows."""
    return f'no kind "{kind}" is registered for the internal version of group "{group}" in scheme "{_SCHEME}"'


def go_package(group: str) -> str:
    """What upstream's messages call the package of a group's types: "core", "apps", "rbac"."""
    return group.partition(".")[0] or "core"
