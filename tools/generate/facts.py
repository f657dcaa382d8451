"""Reading the facts: types, the group versions served, list types; and the closure of types to generate."""

import gzip
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .naming import module_of

Field = dict[str, object]

_META = "apimachinery.pkg.apis.meta.v1."

# Not served as resources: reviews sent to webhooks, discovery, configuration files, audit events.
EXTRA_PACKAGES = (
    "api.admission.v1",
    "api.apidiscovery.v2",
    "api.imagepolicy.v1alpha1",
    "apiserver.pkg.apis.apiserver.v1",
    "apiserver.pkg.apis.audit.v1",
)
EXTRA_TYPES = ("apiserver.pkg.apis.apiserver.v1beta1.EgressSelectorConfiguration",)
"""Configuration that has no version among those packages."""

META_KINDS = (
    "APIGroup",
    "APIGroupList",
    "APIResourceList",
    "APIVersions",
    "Status",
    "WatchEvent",
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "ListOptions",
    "PatchOptions",
    "UpdateOptions",
    "PartialObjectMetadata",
    "PartialObjectMetadataList",
    "Table",
    "TableOptions",
)
OTHER_META = ("LabelSelector", "Condition", "GroupVersionKind", "GroupVersionResource", "GroupResource")

_TYPE_META: Field = {"name": "TypeMeta", "go": "TypeMeta", "type": _META + "TypeMeta", "inline": True}


def _member(name: str, go_type: str, **more: object) -> Field:
    return {"name": name, "go": more.pop("go", name[0].upper() + name[1:]), "type": go_type, **more}


_OBJECT_META = _member("metadata", _META + "ObjectMeta", go="ObjectMeta", omit="omitempty", tag=1, wire="bytes,opt")
_LIST_META = _member("metadata", _META + "ListMeta", go="ListMeta", omit="omitempty", tag=1, wire="bytes,opt")

# Every group version serves these, but no scheme the facts were taken from registers them.
SERVED_BY_NEGOTIATION: dict[str, list[Field]] = {
    "PartialObjectMetadata": [_TYPE_META, _OBJECT_META],
    "PartialObjectMetadataList": [
        _TYPE_META,
        _LIST_META,
        _member("items", "[]" + _META + "PartialObjectMetadata", tag=2, wire="bytes,rep"),
    ],
    "Table": [
        _TYPE_META,
        _member("metadata", _META + "ListMeta", go="ListMeta", omit="omitempty"),
        _member("columnDefinitions", "[]" + _META + "TableColumnDefinition"),
        _member("rows", "[]" + _META + "TableRow"),
    ],
    "TableColumnDefinition": [
        _member("name", "string"),
        _member("type", "string"),
        _member("format", "string"),
        _member("description", "string"),
        _member("priority", "int32"),
    ],
    "TableOptions": [
        _TYPE_META,
        _member("includeObject", _META + "IncludeObjectPolicy", omit="omitempty", tag=1, wire="bytes,opt"),
    ],
    "TableRow": [
        _member("cells", "[]interface {}"),
        _member("conditions", "[]" + _META + "TableRowCondition", omit="omitempty"),
        _member("object", "apimachinery.pkg.runtime.RawExtension", omit="omitempty"),
    ],
    "TableRowCondition": [
        _member("type", _META + "RowConditionType"),
        _member("status", _META + "ConditionStatus"),
        _member("reason", "string", omit="omitempty"),
        _member("message", "string", omit="omitempty"),
    ],
}

SPECIAL = {
    "apimachinery.pkg.api.resource.Quantity": "Quantity",
    _META + "Time": "Time",
    _META + "MicroTime": "MicroTime",
    _META + "Duration": "Duration",
    _META + "FieldsV1": "FieldsV1",
    "apimachinery.pkg.util.intstr.IntOrString": "IntOrString",
    "apimachinery.pkg.runtime.RawExtension": "RawExtension",
    "apimachinery.pkg.runtime.Unknown": "RawExtension",
    "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "JSON",
    "interface {}": "JSON",
}
"""Go types whose JSON is not that of their fields, by the scalar that stands for them."""

UNIONS = {
    "JSONSchemaPropsOrArray": '"JSONSchemaProps | list[JSONSchemaProps] | None"',
    "JSONSchemaPropsOrBool": '"JSONSchemaProps | bool | None"',
    "JSONSchemaPropsOrStringArray": '"JSONSchemaProps | list[str]"',
}
"""apiextensions types that marshal as one of their fields."""

_WRAPPER = re.compile(r"\[\]|map\[[^\]]*\]")


def element(go_type: str) -> str:
    """The type behind all list and map brackets."""
    while match := _WRAPPER.match(go_type):
        go_type = go_type[match.end() :]
    return go_type


@dataclass
class Facts:
    """Input of the generator. `structs` holds only structs that are generated, without special types.

    `group_versions` are served by default, `on_request` if --runtime-config turns them on. `retired` has the group
    versions by kind in which kube-apiserver reads a kind that it serves in others only by default.
    """

    structs: dict[str, list[Field]]
    scalars: dict[str, str]
    kinds: dict[tuple[str, str], dict[str, str]]
    group_versions: list[tuple[str, str]]
    on_request: list[tuple[str, str]] = field(default_factory=list)
    retired: dict[str, list[str]] = field(default_factory=dict)
    list_types: dict[str, dict[str, object]] = field(default_factory=dict)


def read(folder: Path, on_request: Path) -> Facts:
    """The facts in `folder`: types.json, discovery.json, openapi-v2.json.

    `on_request` is the compressed OpenAPI v2 document of what is served only if --runtime-config asks for it.
    """
    types = json.loads((folder / "types.json").read_text())
    structs = {name: struct["fields"] for name, struct in types["structs"].items()}
    structs |= {_META + name: fields for name, fields in SERVED_BY_NEGOTIATION.items()}
    scalars = types["scalars"] | {
        _META + name: "string" for name in ("IncludeObjectPolicy", "RowConditionType", "ConditionStatus")
    }
    served = _served(json.loads((folder / "discovery.json").read_text()))
    more = json.loads(gzip.decompress(on_request.read_bytes()))
    more_kinds = _kinds_of_paths(more["paths"])
    kinds: dict[tuple[str, str], dict[str, str]] = {}
    roots = [_META + name for name in (*META_KINDS, *OTHER_META)]
    roots += EXTRA_TYPES
    packages = {each: _package(types["kinds"], *each) for each in (*served, *more_kinds)}
    for kind in types["kinds"]:
        package = kind["type"].rsplit(".", 1)[0]
        group_version = (kind["group"], kind["version"])
        if group_version in more_kinds and kind["kind"].removesuffix("List") not in more_kinds[group_version]:
            continue
        if packages.get(group_version, package if package in EXTRA_PACKAGES else "") == package:
            kinds.setdefault(group_version, {})[kind["kind"]] = kind["type"]
            roots.append(kind["type"])
    kinds["meta.k8s.io", "v1"] = {name: _META + name for name in META_KINDS}
    wanted = _closure(roots, structs, scalars)
    definitions = more["definitions"] | json.loads((folder / "openapi-v2.json").read_text())["definitions"]
    structs = {name: structs[name] for name in sorted(wanted)}
    retired = _retired(types["kinds"], served)
    return Facts(structs, scalars, kinds, served, sorted(more_kinds), retired, _list_types(definitions))


def _served(discovery: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    for document in discovery.values():
        for group in document["items"]:
            name = group["metadata"].get("name", "")
            found += [(name, version["version"]) for version in group["versions"]]
    return sorted(found)


def _kinds_of_paths(paths: dict[str, dict[str, Any]]) -> dict[tuple[str, str], set[str]]:
    """The kinds of each group version that the operations of an OpenAPI document are about."""
    kinds: dict[tuple[str, str], set[str]] = {}
    for item in paths.values():
        for operation in item.values():
            if isinstance(operation, dict) and (gvk := operation.get("x-kubernetes-group-version-kind")):
                kinds.setdefault((gvk["group"], gvk["version"]), set()).add(gvk["kind"])
    return kinds


def _retired(kinds: list[dict[str, str]], served: list[tuple[str, str]]) -> dict[str, list[str]]:
    """The group versions that are not served but hold a kind of one that is, of its own group or of extensions."""
    homes: dict[str, set[str]] = {}
    for kind in kinds:
        if (kind["group"], kind["version"]) in served and not kind["type"].startswith(_META):
            homes.setdefault(kind["kind"], {"extensions"}).add(kind["group"])
    found: dict[str, list[str]] = {}
    for kind in kinds:
        group, version, name = kind["group"], kind["version"], kind["kind"]
        if (group, version) not in served and group in homes.get(name, ()):
            found.setdefault(name, []).append(f"{group}/{version}")
    return {name: sorted(found[name]) for name in sorted(found) if not name.endswith("List")}


def _package(kinds: list[dict[str, str]], group: str, version: str) -> str:
    """The Go package whose types make up a group version: the one, other than meta, that is called like it."""
    packages = {
        kind["type"].rsplit(".", 1)[0] for kind in kinds if (kind["group"], kind["version"]) == (group, version)
    }
    own = [name for name in packages if not _META.startswith(name + ".") and ".apiserver." not in name]
    (package,) = own
    return package


def _closure(roots: list[str], structs: dict[str, list[Field]], scalars: dict[str, str]) -> set[str]:
    wanted: set[str] = set()
    pending = list(roots)
    while pending:
        name = element(pending.pop())
        if name in SPECIAL or name in wanted:
            continue
        if name in scalars:
            pending.append(scalars[name])
        elif name in structs:
            wanted.add(name)
            pending += [str(member["type"]) for member in structs[name]]
    return wanted


def _list_types(definitions: dict[str, dict[str, dict[str, dict[str, object]]]]) -> dict[str, dict[str, object]]:
    """`core.v1.PodSpec.containers` to its list or map type and keys; `core.v1.Type` to a type's own map type."""
    found: dict[str, dict[str, object]] = {}
    names = {"x-kubernetes-list-type": "list", "x-kubernetes-list-map-keys": "keys", "x-kubernetes-map-type": "map"}
    for name, definition in definitions.items():
        where = f"{module_of(name)}.{name.rsplit('.', 1)[1]}"
        if "x-kubernetes-map-type" in definition:
            found[where] = {"map": definition["x-kubernetes-map-type"]}
        for member, schema in definition.get("properties", {}).items():
            if marks := {names[key]: value for key, value in schema.items() if key in names}:
                found[f"{where}.{member}"] = marks
    return found
