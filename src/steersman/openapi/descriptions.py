"""Descriptions of built-in types and fields, from the published package lightkube-models.

Its modules have a class for every schema. The docstring of a class describes the type and, under "**parameters**", each
field. The modules are read as text and not imported, because importing would take tens of MiB for good. The package's
descriptions are wrapped. The line breaks of wrapping are removed here, and `data/layout.json` restores white space that
wrapping lost (tools/generate_description_layout.py). The values of enumerations are listed after the description, as
kube-openapi does, but without comments, which the package does not have.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

_PACKAGE: Final = "lightkube-models"
_LAYOUTS: Final = Path(__file__).parent / "data" / "layout.json"
_VALUES: Final = "Possible enum values:"
_WRAPPED_AT: Final = 78
"""The width of the package's wrapped text in columns."""

_CLASS: Final = re.compile(r'(\w+)\(DictMixin\):\n    r"""(.*?)\n    """$', re.MULTILINE | re.DOTALL | re.ASCII)
_FIELD: Final = re.compile(r"^      \* \*\*(\S+)\*\* ``.*?`` - ?(.*)$", re.ASCII)
_VERSION: Final = re.compile(r"v\d+((alpha|beta)\d+)?", re.ASCII)
_LIST_ITEM: Final = re.compile(r"[-*•] |\d+[.)] ", re.ASCII)


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
"""The project's own descriptions of types for which the package has no class."""

Layout = tuple[int, dict[str, str]]
"""The number of words of a description, and the white space after the n-th word where wrapping lost it."""


@dataclass(frozen=True, slots=True)
class TypeDescription:
    """The description of a type, and of each of its fields by JSON name; "" for a missing description."""

    text: str
    fields: dict[str, str]


def source_version() -> str:
    """Return the installed version of the package with the descriptions, "" if it is not installed."""
    return _version_of(_PACKAGE)


@cache
def _version_of(package: str) -> str:
    from importlib import metadata  # slow to import

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


@cache
def _recorded_layouts() -> dict[str, dict[str, Layout]]:
    return msgspec.json.decode(_LAYOUTS.read_bytes(), type=dict[str, dict[str, Layout]])


@cache
def digest() -> str:
    """Return a digest of the recorded layouts."""
    return hashlib.sha256(_LAYOUTS.read_bytes()).hexdigest()


class Descriptions:
    """The descriptions for one document. Modules are read when needed and released with this object."""

    def __init__(self, layouts: Mapping[str, Mapping[str, Layout]] | None = None) -> None:
        self._modules: dict[str, dict[str, TypeDescription]] = {}
        self._layouts = _recorded_layouts() if layouts is None else layouts

    def describe(self, schemas: dict[str, Any]) -> None:
        """Add descriptions, in place, to schemas by full name, e.g. "io.k8s.api.core.v1.Pod"."""
        for name, schema in schemas.items():
            described = self.of(name)
            layouts = self._layouts.get(name, {})
            if name in _TYPES_WITHOUT_CLASS:
                schema.setdefault("description", _TYPES_WITHOUT_CLASS[name])
            if described is not None and described.text:
                schema.setdefault("description", _laid_out(described.text, layouts.get("")))
            for field, property_schema in schema.get("properties", {}).items():
                text = "" if described is None else described.fields.get(python_name(field), "")
                text = _with_values(_laid_out(text, layouts.get(field)), property_schema.get("enum", ()))
                if text:
                    property_schema.setdefault("description", text)

    def of(self, name: str) -> TypeDescription | None:
        """Return the description of a schema, None if the package does not have it."""
        parts = name.split(".")
        if len(parts) < 2:
            return None
        module = f"{parts[-3]}_{parts[-2]}" if len(parts) > 2 and _VERSION.fullmatch(parts[-2]) else parts[-2]
        if module not in self._modules:
            self._modules[module] = _read(module)
        return self._modules[module].get(parts[-1])


def _read(module: str) -> dict[str, TypeDescription]:
    """Return the types that a module of the package describes, {} if there is no such module."""
    from importlib import metadata

    try:
        path = metadata.distribution(_PACKAGE).locate_file(f"lightkube/models/{module}.py")
        with open(str(path), encoding="utf-8") as file:
            text = file.read()
    except (FileNotFoundError, metadata.PackageNotFoundError):
        return {}
    pieces = text.split("\nclass ")  # matched piece by piece, so that the interpreter is not held for the whole text
    found = [match for piece in pieces if (match := _CLASS.match(piece)) is not None]
    return {match[1]: parse_docstring(match[2]) for match in found}


def parse_docstring(docstring: str) -> TypeDescription:
    """Parse a class docstring of the package, given without its quotes."""
    head, _, parameters = docstring.partition("**parameters**")
    fields: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in parameters.split("\n"):
        if match := _FIELD.match(line):
            lines = fields[match[1]] = [match[2]]
        else:
            lines.append(line)
    return TypeDescription(_unwrapped(head.split("\n")), {name: _unwrapped(each) for name, each in fields.items()})


def _unwrapped(lines: list[str]) -> str:
    """Join lines that were broken by wrapping: those whose next word would not have fit."""
    text = ""
    width = 0
    for line in map(str.strip, lines):
        if not line:
            continue
        if not text:
            text = line
        elif width + 1 + len(line.partition(" ")[0]) > _WRAPPED_AT:
            text += " " + line
        else:
            text += ("\n" if _LIST_ITEM.match(line) else "\n\n") + line
        width = len(line)
    return text


def split_words(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a text, and the whitespace between them."""
    pieces = re.split(r"(\s+)", text, flags=re.ASCII)
    return pieces[::2], pieces[1::2]


def without_values(text: str) -> str:
    """Return a description without the values of its enumeration."""
    return text.partition(_VALUES)[0].removesuffix("\n\n")


def _with_values(text: str, values: list[str] | tuple[()]) -> str:
    """Return a description followed by the values of an enumeration."""
    if not values:
        return text
    lines = [_VALUES, *(f' - `"{value}"`' for value in values)]
    return "\n".join([text, "", *lines] if text else lines)


def _laid_out(text: str, layout: Layout | None) -> str:
    """Return a text with the recorded white space, unless its number of words differs from the record."""
    if layout is None:
        return text
    words, spaces = split_words(text)
    if len(words) != layout[0]:
        return text
    for place, space in layout[1].items():
        spaces[int(place)] = space
    return "".join(piece for pair in zip(words, [*spaces, ""], strict=True) for piece in pair)


_KEYWORDS: Final = frozenset({"continue", "except", "from", "not", "import", "class", "global", "in", "is"})


def python_name(field: str) -> str:
    """Return the package's name of a field: "$ref" is d_ref, dashes become underscores, "from" is from_."""
    if field in _KEYWORDS:
        return field + "_"
    return field.replace("$", "d_").replace("-", "_")
