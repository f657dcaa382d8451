"""Tables: the output of kubectl get (meta/v1 Table)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from steersman.api.meta.v1 import PartialObjectMetadata
from steersman.endpoints.negotiation import Representation
from steersman.endpoints.options import table_options
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.machinery.codec.serializer import encode
from steersman.machinery.values import times
from steersman.rest.capabilities import Item
from steersman.rest.resource import NAME, Column

NAME_TEXT = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_AGE_TEXT = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed "
    "to be set in happens-before order across separate operations. Clients may not set this value. It is represented "
    "in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)

_TEXTS = {"Name": NAME_TEXT, "Age": _AGE_TEXT, "Created At": _AGE_TEXT}


def include_object(request: Request) -> str:
    """Return the part of each object that its row carries: Metadata, Object or None. Raises StatusError 400."""
    return table_options(request).include_object or "Metadata"


def table_of(
    scope: Scope, items: Sequence[Item], wanted: Representation, including: str, revision: str = ""
) -> dict[str, Any]:
    """Return a Table of these objects, as a JSON value in upstream's order."""
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{wanted.as_version}",
        "metadata": {"resourceVersion": revision} if revision else {},
        "columnDefinitions": column_definitions(scope.columns),
        "rows": rows_of(scope, items, wanted, including),
    }


def rows_of(scope: Scope, items: Sequence[Item], wanted: Representation, including: str) -> list[dict[str, Any]]:
    """Return the rows of a Table of these objects."""
    columns = scope.columns
    now = times.unix_now()
    return [_row(scope, item, columns, wanted, including, now) for item in items]


def column_definitions(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Return the column definitions of a Table."""
    definitions = []
    for column in columns:
        if not column.defined:
            continue
        text = column.description or _TEXTS.get(column.name, "")
        definitions.append(_definition(column.name, column.type, column.format, text, column.priority))
    return definitions


def _definition(name: str, type_: str, format_: str, description: str, priority: int) -> dict[str, Any]:
    return {"name": name, "type": type_, "format": format_, "description": description, "priority": priority}


def _row(
    scope: Scope, item: Item, columns: Sequence[Column], wanted: Representation, including: str, now: float
) -> dict[str, Any]:
    obj = scope.row_object(item)
    cells = [_cell(column, obj, now) for column in columns]
    row: dict[str, Any] = {"cells": cells}
    if scope.resource.row_conditions is not None and (conditions := scope.resource.row_conditions(obj)):
        row["conditions"] = conditions
    if including == "Metadata":
        metadata = obj.metadata
        if scope.resource.row_metadata is not None:
            metadata = scope.resource.row_metadata(metadata)
        partial = PartialObjectMetadata(
            kind="PartialObjectMetadata", api_version=f"meta.k8s.io/{wanted.as_version}", metadata=metadata
        )
        row["object"] = msgspec.Raw(encode(partial))
    else:
        row["object"] = msgspec.Raw(scope.prefix + scope.body(item)) if including == "Object" else None
    return row


def view_table(
    view: Any, columns: Sequence[Column], wanted: Representation, including: str, *, named: bool
) -> dict[str, Any]:
    """Return a Table of one view of an object (scale); `named` if the name column has upstream's format "name"."""
    now = times.unix_now()
    every = (NAME, *columns)
    row: dict[str, Any] = {"cells": [_cell(column, view, now) for column in every], "object": None}
    if including == "Metadata":
        partial = PartialObjectMetadata(
            kind="PartialObjectMetadata", api_version=f"meta.k8s.io/{wanted.as_version}", metadata=view.metadata
        )
        row["object"] = msgspec.Raw(encode(partial))
    elif including == "Object":
        row["object"] = msgspec.Raw(encode(view))
    definitions = column_definitions(every)
    if not named:
        definitions[0]["format"] = ""
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{wanted.as_version}",
        "metadata": {"resourceVersion": view.metadata.resource_version},
        "columnDefinitions": definitions,
        "rows": [row],
    }


def _cell(column: Column, obj: Any, now: float) -> Any:
    return times.age(obj.metadata.creation_timestamp, now) if column.cell is None else column.cell(obj)
