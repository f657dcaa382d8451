"""Descriptions of the Kubernetes API's types and fields, as files that the package ships.

    python -m tools.type_descriptions       # writes src/steersman/openapi/data/descriptions anew

The texts are those of Kubernetes (Apache-2.0). They come from lightkube-models, the published package that has them; it
is needed when Steersman is built (`hatch_build.py` calls `write`), not when it runs. Each module of that package holds one
class a schema, whose docstring describes the type and, under "**parameters**", each field. Descriptions there are wrapped:
line breaks that wrapping made are undone, and `data/layout.json` restores the whitespace that it lost
(`tools/generate_description_layout.py`).

Only the standard library is used, as builds run without the project's dependencies.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from steersman.openapi.description_files import FOLDER, module_of

PACKAGE: Final = "lightkube-models"
LAYOUTS: Final = FOLDER.parent / "layout.json"
_WRAPPED_AT: Final = 78
"""Columns of the package's wrapped text."""

_CLASS: Final = re.compile(r'(\w+)\(DictMixin\):\n    r"""(.*?)\n    """$', re.MULTILINE | re.DOTALL | re.ASCII)
_FIELD: Final = re.compile(r"^      \* \*\*(\S+)\*\* ``.*?`` - ?(.*)$", re.ASCII)
_LIST_ITEM: Final = re.compile(r"[-*•] |\d+[.)] ", re.ASCII)

Layout = tuple[int, dict[str, str]]
"""The number of words of a description, and the whitespace behind the n-th of them where wrapping lost it."""


@dataclass(frozen=True, slots=True)
class TypeDescription:
    """The description of a type, and those of its fields by JSON name; "" where there is none."""

    text: str
    fields: dict[str, str]


Modules = dict[str, dict[str, TypeDescription]]
"""Module -> class -> description."""


def read() -> Modules:
    """Return all descriptions of the installed package, unwrapped. Raises PackageNotFoundError without it."""
    folder = Path(str(metadata.distribution(PACKAGE).locate_file("lightkube/models")))
    found: Modules = {}
    for file in sorted(folder.glob("*.py")):
        pieces = file.read_text(encoding="utf-8").split("\nclass ")
        matches = [match for piece in pieces if (match := _CLASS.match(piece)) is not None]
        found[file.stem] = {match[1]: parse_docstring(match[2]) for match in matches}
    return {module: types for module, types in found.items() if types}


def write(output: Path = FOLDER) -> None:
    """Write one JSON file a module, `{class: [description, {field: description}]}`, and `SOURCE.json`.

    Raises PackageNotFoundError if lightkube-models is not installed.
    """
    modules = with_layouts(read(), recorded_layouts())
    files = {
        module: {name: [each.text, each.fields] for name, each in types.items()} for module, types in modules.items()
    }
    texts = {name: json.dumps(content, ensure_ascii=False, separators=(",", ":")) for name, content in files.items()}
    digest = hashlib.sha256("".join(texts[name] for name in sorted(texts)).encode()).hexdigest()
    source = {"package": PACKAGE, "version": metadata.version(PACKAGE), "sha256": digest}
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    for name, text in texts.items():
        (output / f"{name}.json").write_text(text, encoding="utf-8")
    (output / "SOURCE.json").write_text(json.dumps(source), encoding="utf-8")


def recorded_layouts() -> dict[str, dict[str, Layout]]:
    """Return the recorded layouts by schema, then by field ("" for the type itself)."""
    document = json.loads(LAYOUTS.read_text(encoding="utf-8"))
    return {
        name: {field: (words, spaces) for field, (words, spaces) in each.items()} for name, each in document.items()
    }


def with_layouts(modules: Modules, layouts: Mapping[str, Mapping[str, Layout]]) -> Modules:
    """Return the descriptions with the recorded whitespace, where the package still has the recorded words."""
    found = {module: dict(types) for module, types in modules.items()}
    for schema, by_field in layouts.items():
        module, name = module_of(schema)
        plain = found.get(module, {}).get(name)
        if plain is not None:
            fields = {field: laid_out(text, by_field.get(field)) for field, text in plain.fields.items()}
            found[module][name] = TypeDescription(laid_out(plain.text, by_field.get("")), fields)
    return found


def parse_docstring(docstring: str) -> TypeDescription:
    """Parse a class docstring of the package, given without its quotes."""
    head, _, parameters = docstring.partition("**parameters**")
    fields: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in parameters.split("\n"):
        if match := _FIELD.match(line):
            lines = fields[json_name(match[1])] = [match[2]]
        else:
            lines.append(line)
    return TypeDescription(_unwrapped(head.split("\n")), {name: _unwrapped(each) for name, each in fields.items()})


def json_name(attribute: str) -> str:
    """Return the JSON name of an attribute: d_ref is "$ref", x_kubernetes_map_type has hyphens, from_ is "from"."""
    if attribute.startswith("d_"):
        return "$" + attribute[2:]
    return attribute.removesuffix("_").replace("_", "-")


def _unwrapped(lines: list[str]) -> str:
    """Join wrapped lines: a line break stays where the next word would have fitted on the line before it."""
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


def laid_out(text: str, layout: Layout | None) -> str:
    """Return a text with the whitespace of a layout, or as it is if the layout is of another number of words."""
    if layout is None:
        return text
    words, spaces = split_words(text)
    if len(words) != layout[0]:
        return text
    for position, space in layout[1].items():
        spaces[int(position)] = space
    return "".join(piece for pair in zip(words, [*spaces, ""], strict=True) for piece in pair)


if __name__ == "__main__":
    write()
