"""StorageVersions: the versions in which each API server of a cluster stores a resource and can decode it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from steersman.api.apiserverinternal.v1alpha1 import (
    ServerStorageVersion,
    StorageVersion,
    StorageVersionCondition,
    StorageVersionStatus,
)
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, invalid, required
from steersman.machinery.validation.formats import (
    EMPTY_ERROR,
    is_dns1035_label,
    is_dns1123_subdomain,
    is_qualified_name,
    regex_error,
)
from steersman.machinery.validation.leaves import validate_unique, validate_with
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy

MAX_SHOWN: Final = 3
"""The most servers in a Table cell."""

_STATUS: Final = Path("status")
_COMMON: Final = _STATUS / "commonEncodingVersion"
_API_VERSION_ERROR: Final = (
    "an apiVersion is "
    + regex_error(
        "a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character",
        "[a-z]([-a-z0-9]*[a-z0-9])?",
        "my-name",
        "abc-123",
    )
    + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')"
)


def storage_version_name(name: str, prefix: bool) -> list[str]:
    """Return the errors of a name, which must be `GROUP.RESOURCE`."""
    group, dot, resource = name.rpartition(".")
    if not dot:
        return ["name must be in the form of <group>.<resource>"]
    errors = [f"the group segment {message}" for message in is_dns1123_subdomain(group)]
    return errors + [f"the resource segment {message}" for message in is_dns1035_label(resource)]


def _api_version_errors(api_version: str) -> str:
    """Return the errors of an apiVersion joined by commas, "" if there are none."""
    parts = api_version.split("/")
    if len(parts) > 2:
        return _API_VERSION_ERROR
    errors = []
    if len(parts) == 2:
        messages = is_dns1123_subdomain(parts[0]) if parts[0] else [EMPTY_ERROR]
        errors += [f"group part: {message}" for message in messages]
    messages = is_dns1035_label(parts[-1]) if parts[-1] else [EMPTY_ERROR]
    errors += [f"version part: {message}" for message in messages]
    return ",".join(errors)


def _validate_server(server: ServerStorageVersion, path: Path) -> Iterator[FieldError]:
    yield from validate_with(is_dns1123_subdomain, server.api_server_id, path / "apiServerID")
    encoding, decodable = server.encoding_version, server.decodable_versions
    if errors := _api_version_errors(encoding):
        yield invalid(path / "encodingVersion", encoding, errors)
    for index, each in enumerate(decodable):
        if errors := _api_version_errors(each):
            yield invalid((path / "decodableVersions")[index], each, errors)
    if encoding not in decodable:
        detail = f"decodableVersions must include encodingVersion {encoding}"
        yield invalid(path / "decodableVersions", decodable or None, detail)
    for index, each in enumerate(server.served_versions):
        at = (path / "servedVersions")[index]
        if errors := _api_version_errors(each):
            yield invalid(at, each, errors)
        if each not in decodable:
            known = " ".join(decodable)
            detail = f"individual served version : {each} must be included in decodableVersions : [{known}]"
            yield invalid(at, each, detail)


def _validate_common(status: StorageVersionStatus) -> Iterator[FieldError]:
    """Require the common encoding version to be set if and only if all servers have the same."""
    said = status.common_encoding_version
    found = {server.encoding_version for server in status.storage_versions}
    common = found.pop() if len(found) == 1 else None
    if said == common:
        return
    if common is None:
        detail = (
            "should be nil if servers do not agree on the same encoding version, or if there is no server reporting "
            "the supported versions yet"
        )
        yield invalid(_COMMON, said, detail)
    elif said is None:
        yield invalid(_COMMON, None, f"the common encoding version is {common}")
    else:
        yield invalid(_COMMON, said, f"the actual common encoding version is {common}")


def _validate_conditions(conditions: Sequence[StorageVersionCondition]) -> Iterator[FieldError]:
    """Validate conditions; upstream omits `conditions` from the paths."""
    seen: dict[str, int] = {}
    for index, condition in enumerate(conditions):
        path = _STATUS[index]
        if condition.type in seen:
            detail = f"the type of the condition is not unique, it also appears in conditions[{seen[condition.type]}]"
            yield invalid(path / "type", condition.type, detail)
        seen[condition.type] = index
        for name, value in (("type", condition.type), ("status", condition.status)):
            yield from validate_with(is_qualified_name, value, path / name)
        if not condition.reason:
            yield required(path / "reason")
        if not condition.message:
            yield required(path / "message")


def _validate_status(status: StorageVersionStatus) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, server in enumerate(status.storage_versions):
        path = (_STATUS / "storageVersions")[index]
        yield from validate_unique(server.api_server_id, seen, path / "apiServerID")
        yield from _validate_server(server, path)
    yield from _validate_common(status)
    yield from _validate_conditions(status.conditions)


class StorageVersionStrategy(Strategy[StorageVersion]):
    allow_unconditional_update = False
    metadata_on_update = "once"
    resets = ("status",)


class StorageVersionStatusStrategy(StatusStrategy[StorageVersion]):
    allow_unconditional_update = False
    metadata_on_update = "once"
    resets = ("spec", "metadata")

    def validate_update(self, ctx: Context, new: StorageVersion, old: StorageVersion) -> Iterator[FieldError]:
        return _validate_status(new.status)


def _servers(obj: StorageVersion) -> str:
    servers = obj.status.storage_versions
    shown = ",".join(f"{each.api_server_id}={each.encoding_version}" for each in servers[:MAX_SHOWN])
    if len(servers) > MAX_SHOWN:
        return f"{shown} + {len(servers) - MAX_SHOWN} more..."
    return shown or "<unset>"


def _common(obj: StorageVersion) -> str:
    common = obj.status.common_encoding_version
    return "<unset>" if common is None else common


STORAGE_VERSIONS: Final = Resource(
    kind=built_in(StorageVersion),
    plural="storageversions",
    namespaced=False,
    strategy=StorageVersionStrategy(),
    name_validator=storage_version_name,
    columns=(Column("CommonEncodingVersion", _common), Column("StorageVersions", _servers), AGE),
    subresources=(Subresource(name="status", strategy=StorageVersionStatusStrategy()),),
    storage_version_hash="c8YZt5U0nPk=",
)
