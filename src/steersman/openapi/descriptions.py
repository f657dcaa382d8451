"""Descriptions of built-in types and fields, taken from the published package lightkube-models.

Its modules hold one class for every schema, whose docstring describes the type and, under "**parameters**", each field.
The modules are read as text, not imported: importing would keep some tens of MiB for good. Descriptions there are
wrapped; line breaks that wrapping made are undone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

_PACKAGE: Final = "lightkube-models"
_WRAPPED_AT: Final = 78
"""Columns of the package's wrapped text."""

_CLASS: Final = re.compile(r'(\w+)\(DictMixin\):\n    r"""(.*?)\n    """$', re.MULTILINE | re.DOTALL | re.ASCII)
_FIELD: Final = re.compile(r"^      \* \*\*(\S+)\*\* ``.*?`` - ?(.*)$", re.ASCII)
_VERSION: Final = re.compile(r"v\d+((alpha|beta)\d+)?", re.ASCII)
_LIST_ITEM: Final = re.compile(r"[-*•] |\d+[.)] ", re.ASCII)


@dataclass(frozen=True, slots=True)
class TypeDescription:
    """What a type is for, and each of its fields by JSON name; "" where nothing is said."""

    text: str
    fields: dict[str, str]


def source_version() -> str:
    """The installed version of the package the descriptions come from, "" if it is not installed."""
    return _version_of(_PACKAGE)


@cache
def _version_of(package: str) -> str:
    from importlib import metadata  # slow to import

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


class Descriptions:
    """The descriptions for one document; modules are read as they are needed, and forgotten with this object."""

    def __init__(self) -> None:
        self._modules: dict[str, dict[str, TypeDescription]] = {}

    def describe(self, schemas: dict[str, Any]) -> None:
        """Adds descriptions, in place, to schemas by full name, e.g. "io.k8s.api.core.v1.Pod"."""
        for name, schema in schemas.items():
            described = self.of(name)
            if described is None:
                continue
            if described.text:
                schema.setdefault("description", described.text)
            for field, property_schema in schema.get("properties", {}).items():
                text = described.fields.get(_python_name(field))
                if text:
                    property_schema.setdefault("description", text)

    def of(self, name: str) -> TypeDescription | None:
        """The description of a schema, None if the package does not know it."""
        parts = name.split(".")
        if len(parts) < 2:
            return None
        module = f"{parts[-3]}_{parts[-2]}" if len(parts) > 2 and _VERSION.fullmatch(parts[-2]) else parts[-2]
        if module not in self._modules:
            self._modules[module] = _read(module)
        return self._modules[module].get(parts[-1])


def _read(module: str) -> dict[str, TypeDescription]:
    """The types that a module of the package describes; none if there is no such module."""
    from importlib import metadata

    try:
        path = metadata.distribution(_PACKAGE).locate_file(f"lightkube/models/{module}.py")
        with open(str(path), encoding="utf-8") as file:
            text = file.read()
    except (FileNotFoundError, metadata.PackageNotFoundError):
        return {}
    pieces = text.split("\nclass ")  # searched one by one: the interpreter is not held for the whole text
    found = [match for piece in pieces if (match := _CLASS.match(piece)) is not None]
    return {match[1]: parse_docstring(match[2]) for match in found}


def parse_docstring(docstring: str) -> TypeDescription:
    """Reads a class docstring of the package, without its quotes."""
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
    """Joins lines that were wrapped: those whose next word would have gone over the edge."""
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


_KEYWORDS: Final = frozenset({"continue", "except", "from", "not", "import", "class", "global", "in", "is"})


def _python_name(field: str) -> str:
    """The package's name for a field: "$ref" is d_ref, "x-kubernetes-map-type" has underscores, "from" is from_."""
    if field in _KEYWORDS:
        return field + "_"
    return field.replace("$", "d_").replace("-", "_")
