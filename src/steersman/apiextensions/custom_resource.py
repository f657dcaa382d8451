"""The Resource that a CustomResourceDefinition defines.

Objects are validated in the version of the request, as upstream does: each version has a schema and rules of its own.
The storage converts objects (`conversion`), so all other code sees only that version.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from steersman.api.apiextensions.v1 import CustomResourceConversion
from steersman.apiextensions.declared import Declared
from steersman.apiextensions.scale import scale_subresource
from steersman.apiextensions.strategy import CustomResourceStrategy, StatusStrategy, Versions
from steersman.apiextensions.version import Version, versions_of
from steersman.catalogue.catalogue import version_order
from steersman.kinds.custom import CustomKind
from steersman.kinds.open import OpenObject
from steersman.machinery.json_path import JSONPathError, PrinterColumn, find_results, parse
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.conversion import Conversion
from steersman.rest.resource import Column, OtherVersion, Resource, Subresource

_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_VERBS_OF_ENDING: Final = ("delete", "deletecollection", "get", "list", "watch")
"""The verbs in discovery while the definition is terminating; other verbs than create still work."""
_FEW_COLUMNS: Final = 50
_SHORT_PATHS: Final = 4_000
"""Characters of the paths of all columns."""
_AGE: Final = Column("Age", None, type="date")
_DESCRIPTION: Final = "Custom resource definition column (in JSONPath format): {}"


class ConversionFactory(Protocol):
    """Makes the converter between the versions of a definition (conversion.Converters)."""

    def make(self, name: str, declared: CustomResourceConversion | None, kinds: Mapping[str, CustomKind]) -> Conversion:
        """Return the converter of the definition `name`, which declares the conversion `declared` and has these `kinds`
        by version.
        """
        ...


def resource_of(definition: Declared, conversions: ConversionFactory) -> tuple[Resource[OpenObject, Any], Versions]:
    """Return the Resource of a definition whose names are accepted, and the Versions that its strategies use."""
    versions = versions_of(definition)
    spec, names = definition.spec, definition.status.accepted_names
    stored = next(each for each in versions if each.declared.storage)
    all_versions = Versions(versions, stored, names.plural)
    served = [each for each in versions if each is not stored and each.declared.served]
    conversion = None
    if len(versions) > 1:
        conversion = conversions.make(definition.metadata.name, spec.conversion, stored.kind.family)
    resource: Resource[OpenObject, Any] = Resource(
        kind=stored.kind,
        plural=names.plural,
        singular=names.singular,
        namespaced=spec.scope == "Namespaced",
        short_names=tuple(names.short_names),
        categories=tuple(names.categories),
        strategy=CustomResourceStrategy(all_versions),
        name_validator=name_is_dns_subdomain,
        any_finalizers=True,
        by_definition=True,
        unknown_field_label="field label not supported: {0}",
        verbs=_VERBS,
        discovery_verbs=lambda: _VERBS_OF_ENDING if all_versions.lifecycle.is_ending else _VERBS,
        columns=_columns(stored),
        columns_take_long=any(map(_columns_take_long, versions)),
        selectable_fields=_selectable_fields(stored),
        subresources=_subresources(stored, all_versions),
        other_versions=tuple(_other_version(each, all_versions) for each in served),
        conversion=conversion,
        deprecation_warning=_warning(stored, versions),
        storage_version_hash=_version_hash(stored) if stored.declared.served else "",
    )
    return resource, all_versions


def _version_hash(stored: Version) -> str:
    kind = stored.kind
    return b64encode(hashlib.sha256(f"{kind.group}/{kind.version}/{kind.name}".encode()).digest()[:8]).decode()


def _other_version(version: Version, all_versions: Versions) -> OtherVersion:
    """Return a version other than the stored one."""
    fields = _selectable_fields(version)
    return OtherVersion(
        kind=version.kind,
        to_hub=_unchanged,
        from_hub=_unchanged,
        columns=_columns(version),
        selectable_fields={name: name for name in fields},
        own_fields=fields,
        subresources=_subresources(version, all_versions),
        deprecation_warning=_warning(version, all_versions.every),
    )


def _unchanged(obj: OpenObject) -> OpenObject:
    return obj


def _subresources(version: Version, all_versions: Versions) -> tuple[Subresource[Any], ...]:
    below = version.declared.subresources
    subresources: list[Subresource[Any]] = []
    if version.declared.has_status:
        subresources.append(Subresource(name="status", strategy=StatusStrategy(all_versions)))
    if below is not None and below.scale is not None:
        # Objects of other versions are defaulted when they are read.
        default = version.kind.default if version is all_versions.stored else None
        subresources.append(scale_subresource(below.scale, default))
    return tuple(subresources)


def _warning(version: Version, versions: Sequence[Version]) -> str:
    """Return the warning for requests in a deprecated version, "" for other versions.

    The default warning names the newest served version that is not deprecated, if that is newer.
    """
    declared, kind = version.declared, version.kind
    if not declared.deprecated:
        return ""
    if declared.deprecation_warning is not None:
        return declared.deprecation_warning
    text = f"{kind.api_version} {kind.name} is deprecated"
    order = version_order(declared.name)
    for each in sorted(versions, key=lambda each: version_order(each.declared.name)):
        if each.declared.served and not each.declared.deprecated and version_order(each.declared.name) < order:
            return f"{text}; use {each.kind.api_version} {each.kind.name}"
    return text


# Columns


def _columns(version: Version) -> tuple[Column, ...]:
    """Return the declared columns up to the first with an invalid path, or the age if none are declared."""
    declared = version.declared.additional_printer_columns
    if not declared:
        return (_AGE,)
    plain = _LastResult(version.kind.whole)
    columns: list[Column] = []
    for each in declared:
        try:
            column = PrinterColumn(each.type, each.json_path)
        except JSONPathError:
            break
        columns.append(
            Column(
                each.name,
                _cell(column, plain),
                type=each.type,
                priority=each.priority,
                format=each.format,
                description=each.description or _DESCRIPTION.format(each.json_path),
            )
        )
    return tuple(columns)


def _columns_take_long(version: Version) -> bool:
    """Return True if the columns may take long to compute.

    A path with several steps through all of an object visits the object once for each result of the steps before.
    """
    paths = [each.json_path for each in version.declared.additional_printer_columns or ()]
    return (
        len(paths) > _FEW_COLUMNS
        or sum(map(len, paths)) > _SHORT_PATHS
        or any(path.count("..") + path.count("*") + path.count("?") > 1 for path in paths)
    )


def _cell(column: PrinterColumn, plain: Callable[[OpenObject], Any]) -> Callable[[OpenObject], Any]:
    return lambda obj: column.cell(plain(obj))


class _LastResult:
    """A function with a cache of its last result, as a row has many cells."""

    __slots__ = ("_last", "_make")

    def __init__(self, make: Callable[[OpenObject], Any]) -> None:
        self._make = make
        self._last: tuple[OpenObject | None, Any] = None, None

    def __call__(self, obj: OpenObject) -> Any:
        last, made = self._last
        if obj is not last:
            made = self._make(obj)
            self._last = obj, made
        return made


# Selectable fields


def _selectable_fields(version: Version) -> Mapping[str, Callable[[OpenObject], str]]:
    """Return readers of the selectable fields by name, which is the path without its first dot."""
    return {
        each.json_path.removeprefix("."): _selected(each.json_path) for each in version.declared.selectable_fields or ()
    }


def _selected(path: str) -> Callable[[OpenObject], str]:
    template = parse("{" + path + "}")

    def read(obj: OpenObject) -> str:
        try:
            results = find_results(template, obj.content)
        except JSONPathError:
            return ""
        return _selector_text(results[0][0]) if results and results[0] else ""

    return read


def _selector_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
