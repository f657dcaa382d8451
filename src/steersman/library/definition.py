"""The CustomResourceDefinition of a declared class."""

from __future__ import annotations

from typing import Any

from steersman.library.declaration import AGE, Declaration, Version, declaration_of
from steersman.library.models import Plain, member_names
from steersman.library.schemas import schema_of


def _object_members() -> Plain:
    return {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}


def definition_of(model: type[Any]) -> Plain:
    """Return the definition of a class as plain data for `kubectl apply`: any Kubernetes can serve the resource.

    Conversion methods and hooks run only in this process; other servers have the schema and its rules. Raises TypeError
    for a class that is not declared, or with types that a structural schema cannot express.
    """
    return plain_definition(declaration_of(model))


def definition_yaml(model: type[Any]) -> str:
    """Return the definition of a class as YAML; see `definition_of`."""
    import yaml

    text: str = yaml.safe_dump(definition_of(model), sort_keys=False, allow_unicode=True)
    return text


def plain_definition(declaration: Declaration) -> Plain:
    """Return the definition of a declaration; see `definition_of`."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{declaration.plural}.{declaration.group}"},
        "spec": {
            "group": declaration.group,
            "names": names_of(declaration),
            "scope": "Namespaced" if declaration.namespaced else "Cluster",
            "versions": [_version(each, is_stored=each is declaration.stored) for each in declaration.versions],
        },
    }


def names_of(declaration: Declaration) -> Plain:
    """Return the names of a resource, as in a definition."""
    names: Plain = {
        "plural": declaration.plural,
        "singular": declaration.singular,
        "kind": declaration.kind,
        "listKind": f"{declaration.kind}List",
    }
    if declaration.short_names:
        names["shortNames"] = list(declaration.short_names)
    if declaration.categories:
        names["categories"] = list(declaration.categories)
    return names


def _version(version: Version, *, is_stored: bool) -> Plain:
    schema = schema_of(version.model, version.rules)
    schema["properties"] = {**_object_members(), **schema.get("properties", {})}
    plain: Plain = {
        "name": version.name,
        "served": version.served,
        "storage": is_stored,
        "schema": {"openAPIV3Schema": schema},
    }
    if version.deprecated:
        plain["deprecated"] = True
        if version.deprecation_warning:
            plain["deprecationWarning"] = version.deprecation_warning
    below: Plain = {}
    if "status" in member_names(version.model):
        below["status"] = {}
    if version.scale is not None:
        below["scale"] = _scale(version)
    if below:
        plain["subresources"] = below
    if version.printer_columns:
        columns = version.printer_columns if AGE in version.printer_columns else (*version.printer_columns, AGE)
        plain["additionalPrinterColumns"] = [_column(each) for each in columns]
    if version.selectable_fields:
        plain["selectableFields"] = [{"jsonPath": each} for each in version.selectable_fields]
    return plain


def _scale(version: Version) -> Plain:
    scale = version.scale
    assert scale is not None
    plain = {"specReplicasPath": scale.spec_replicas_path, "statusReplicasPath": scale.status_replicas_path}
    if scale.label_selector_path:
        plain["labelSelectorPath"] = scale.label_selector_path
    return plain


def _column(column: Any) -> Plain:
    plain: Plain = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    if column.priority:
        plain["priority"] = column.priority
    if column.format:
        plain["format"] = column.format
    if column.description:
        plain["description"] = column.description
    return plain
