"""Descriptions of built-in types and fields for OpenAPI documents.

The files in `data/descriptions` are made when the package is built (`tools/type_descriptions.py`). The possible values of
an enumeration are listed behind its description, as kube-openapi lists them, but without a comment on each value: the
source of the descriptions does not have these comments.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from steersman.openapi.description_files import FOLDER, module_of
from steersman.work.patterns import late_pattern

_VALUES: Final = "Possible enum values:"
_MODULE: Final = late_pattern(r"[a-z0-9_]+", re.ASCII)

_EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_RESOURCE: Final = "io.k8s.apimachinery.pkg.api.resource"
_TYPES_WITHOUT_CLASS: Final = {
    f"{_EXTENSIONS}.CustomResourceSubresourceStatus": (
        "Turns on the subresource `/status` of a custom resource. Writes to `/status` change nothing but the member"
        " `status`; writes to the resource itself leave `status` as it is."
    ),
    f"{_EXTENSIONS}.JSON": "Any JSON value.",
    f"{_EXTENSIONS}.JSONSchemaPropsOrArray": "A JSON schema, or an array of JSON schemas.",
    f"{_EXTENSIONS}.JSONSchemaPropsOrBool": "A JSON schema, or a boolean.",
    f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray": "A JSON schema, or an array of strings.",
    f"{_RESOURCE}.Quantity": (
        "A fixed-point number with an optional suffix, binary (Ki, Mi, Gi, Ti, Pi, Ei) or decimal (n, u, m, k, M, G,"
        " T, P, E), or with a decimal exponent. It is served in its canonical form: the largest suffix with which no"
        " digit follows the decimal point."
    ),
    f"{_META}.FieldsV1": (
        "A set of fields as a tree in JSON. The key `.` stands for the field itself, `f:NAME` for a member, `k:KEYS`"
        " and `v:VALUE` for an item of a list by its keys or its value, `i:INDEX` for an item by its position."
    ),
    f"{_META}.MicroTime": "A moment as RFC 3339 writes it, with microseconds.",
    f"{_META}.Patch": "The body of a PATCH request.",
    f"{_META}.Time": "A moment as RFC 3339 writes it, in seconds.",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "An object of any kind, kept as it was sent.",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "A 32-bit integer or a string.",
}
"""Descriptions by this project, of types that the source of the others does not have."""


class TypeDescription(Struct, frozen=True, array_like=True):
    """The description of a type, and those of its fields by JSON name; "" where there is none."""

    text: str
    fields: dict[str, str]


class _Source(Struct, frozen=True):
    package: str
    version: str
    sha256: str


@cache
def digest() -> str:
    """Return a digest of all descriptions, which changes when one of them does."""
    return msgspec.json.decode((FOLDER / "SOURCE.json").read_bytes(), type=_Source).sha256


class Descriptions:
    """The descriptions for one OpenAPI document. Files are read when first needed, and freed with this object."""

    def __init__(self) -> None:
        self._modules: dict[str, dict[str, TypeDescription]] = {}

    def describe(self, schemas: dict[str, Any]) -> None:
        """Add descriptions, in place, to schemas by full name, such as "io.k8s.api.core.v1.Pod"."""
        for name, schema in schemas.items():
            described = self.find(name)
            if name in _TYPES_WITHOUT_CLASS:
                schema.setdefault("description", _TYPES_WITHOUT_CLASS[name])
            if described is not None and described.text:
                schema.setdefault("description", described.text)
            for field, property_schema in schema.get("properties", {}).items():
                text = "" if described is None else described.fields.get(field, "")
                text = _with_values(text, property_schema.get("enum", ()))
                if text:
                    property_schema.setdefault("description", text)

    def find(self, name: str) -> TypeDescription | None:
        """Return the description of a schema, None if there is none."""
        module, kind = module_of(name)
        if module not in self._modules:
            self._modules[module] = _read(module)
        return self._modules[module].get(kind)


def _read(module: str) -> dict[str, TypeDescription]:
    """Return the descriptions of a group version by type, none if there is no file of it."""
    if not _MODULE.fullmatch(module):
        return {}
    try:
        data = (FOLDER / f"{module}.json").read_bytes()
    except FileNotFoundError:
        return {}
    return msgspec.json.decode(data, type=dict[str, TypeDescription])


def without_values(text: str) -> str:
    """Return a description without the values of its enumeration."""
    return text.partition(_VALUES)[0].removesuffix("\n\n")


def _with_values(text: str, values: list[str] | tuple[()]) -> str:
    """Return a description with the values of an enumeration listed behind it."""
    if not values:
        return text
    lines = [_VALUES, *(f' - `"{value}"`' for value in values)]
    return "\n".join([text, "", *lines] if text else lines)
