"""Writes src/steersman/openapi/data/layout.json: the whitespace of descriptions whose wrapping cannot be undone.

    python -m tools.generate_description_layout URL --ca FILE --token TOKEN

The package that the descriptions come from wraps them, which loses indentation and line breaks. For each description
that `tools.type_descriptions` therefore lays out in another way than the kube-apiserver at URL (with
`--runtime-config=api/all=true`), the file says how many words it has and which whitespace stands behind the n-th. No
words are recorded.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from steersman.openapi.description_files import module_of
from steersman.openapi.descriptions import without_values
from tools.record_documents import getter
from tools.type_descriptions import LAYOUTS, Layout, read, split_words


def main() -> None:
    """Compare every description of the server's v3 documents, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--ca", required=True)
    parser.add_argument("--token", required=True)
    options = parser.parse_args()
    get = getter(options.url, options.ca, options.token)
    schemas: dict[str, Any] = {}
    for name in get("/openapi/v3")["paths"]:
        schemas |= get(f"/openapi/v3/{name}").get("components", {}).get("schemas", {})
    lines = (f"{json.dumps(name)}:{json.dumps(found)}" for name, found in sorted(layouts(schemas).items()))
    LAYOUTS.write_text("{" + ",\n".join(lines) + "}\n")


def layouts(schemas: dict[str, Any]) -> dict[str, dict[str, Layout]]:
    """Return the layouts that differ, by schema and JSON name of the field ("" for the schema itself)."""
    modules = read()
    found: dict[str, dict[str, Layout]] = {}
    for name, schema in schemas.items():
        module, kind = module_of(name)
        ours = modules.get(module, {}).get(kind)
        if ours is None:
            continue
        texts = [("", schema, ours.text)]
        for field, each in schema.get("properties", {}).items():
            texts.append((field, each, ours.fields.get(field, "")))
        for field, each, text in texts:
            if (layout := difference(without_values(each.get("description", "")), text)) is not None:
                found.setdefault(name, {})[field] = layout
    return found


def difference(wanted: str, ours: str) -> Layout | None:
    """Return the layout that makes `wanted` of `ours`, None if they are equal or differ in words."""
    (words, spaces), (our_words, our_spaces) = split_words(wanted), split_words(ours)
    if words != our_words or spaces == our_spaces:
        return None
    differing = {str(i): space for i, space in enumerate(spaces) if space != our_spaces[i]}
    return len(words), differing


if __name__ == "__main__":
    main()
